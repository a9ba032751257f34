"""Placing pods: kube-scheduler's decisions as pure functions of a cluster's state, and the same decisions fast.

state       what is where: nodes in search order, pods, budgets, services
framework   what a plugin is: a filter asked node by node, a score asked node by node
plugins     the default plugins, one module each: the specification
cycle       one pod, one decision, with every reason
fast        the same decisions from columns
"""
