"""Preemption: whom a pod that fits nowhere may evict, where, and what follows.

attempt     the whole attempt, from eligibility to the choice
dry_run     one node: who would have to go there
budgets     whose eviction a disruption budget forbids
choice      which of the nodes
aftermath   what is to be written once the choice is made
"""

from bayplan.scheduling.preemption.aftermath import Aftermath, Eviction, aftermath, clear_lower_nominations
from bayplan.scheduling.preemption.attempt import preempt

__all__ = ["Aftermath", "Eviction", "aftermath", "clear_lower_nominations", "preempt"]
