"""Pods that wait for a place: whose turn it is, who must hold back, and what wakes those that were refused.

events      a change of the cluster, split into the kinds of change that plugins care about
hints       for each plugin, which changes may help a pod that it refused
attempts    what happened while pods were being tried
heap        a queue by rank from which anything can be taken out
queue       the pools and the moves between them
watching    changes of objects, told to the queue as kube-scheduler's handlers do
"""
