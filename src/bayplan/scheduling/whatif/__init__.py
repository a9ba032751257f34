"""What if: the smallest changes that would make a pod fit, found by one search and verified by a rerun.

changes     a change as a value: its kind, its amount, how it is applied; what a set of them costs
lowering    a pod that asks for less
needs       what a node holds against a pod, as the changes that would answer it
shapes      nodes that might be added
moving      pods that might go elsewhere, and where to
search      sets of changes in order of cost, until some work
"""

from bayplan.scheduling.whatif.changes import Change, Cost, Kind, applied, cost
from bayplan.scheduling.whatif.search import Answer, Proposal, smallest_changes

__all__ = ["Answer", "Change", "Cost", "Kind", "Proposal", "applied", "cost", "smallest_changes"]
