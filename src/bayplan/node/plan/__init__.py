"""What a machine would make of pods that come to it.

site       a machine that pods come to one by one
planning   who would get what, and why
blockage   what keeps a refused pod out, with the numbers
"""

from bayplan.node.plan.blockage import Blockage, blockage
from bayplan.node.plan.planning import Plan, Pool, Share, make_plan, pools, shares
from bayplan.node.plan.site import Candidate, Outcome, Site, candidate, site_of

__all__ = [
    "Blockage",
    "Candidate",
    "Outcome",
    "Plan",
    "Pool",
    "Share",
    "Site",
    "blockage",
    "candidate",
    "make_plan",
    "pools",
    "shares",
    "site_of",
]
