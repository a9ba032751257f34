"""What if: the smallest changes that would make a pod fit, found by one search and verified by a rerun.

changes                        a change as a value: its kind, its amount; what a set of them costs
pod_changes, cluster_changes   the kinds of changes, and how each is applied
lowering                       a pod that asks for less
needs                          what a node holds against a pod, as the changes that would answer it
shapes                         nodes that might be added
bench                          filters that are asked anew for each set of changes
moving                         pods that might go elsewhere, and where to
search                         sets of changes in order of cost, until some work
"""

from bayplan.scheduling.whatif.changes import Change, Cost, Kind, applied, cost
from bayplan.scheduling.whatif.search import Answer, Proposal, smallest_changes

__all__ = ["Answer", "Change", "Cost", "Kind", "Proposal", "applied", "cost", "smallest_changes"]
