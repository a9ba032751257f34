"""Resources of a node should run out together: a pod that evens out their use is welcome.

    balance = 100 * (1 - standard deviation of the shares in use)
    points  = 50 + (50 + balance with the pod - balance without it) / 2

True requests count, and pods that ask for none of the resources are not scored.
Source of truth: kube-scheduler 1.36 NodeResourcesBalancedAllocation.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from bayplan.scheduling.arguments import NodeResourcesBalancedAllocationArgs
from bayplan.scheduling.framework import MAX_SCORE, NodeScore, Plugin
from bayplan.scheduling.plugins.resource_strategies import rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bayplan.model.resources import Amounts
    from bayplan.scheduling.arguments import ResourceSpec
    from bayplan.scheduling.pods import PodInfo
    from bayplan.scheduling.state import ClusterState, NodeState

_DEFAULTS = NodeResourcesBalancedAllocationArgs()


class NodeResourcesBalancedAllocation(Plugin):
    """Prefers nodes whose resources get used more evenly."""

    name = "NodeResourcesBalancedAllocation"

    def __init__(self, args: NodeResourcesBalancedAllocationArgs = _DEFAULTS) -> None:
        self.args = args
        self._resources = args.resources

    def score(self, pod: PodInfo, state: ClusterState, nodes: Sequence[NodeState]) -> NodeScore | None:
        """None for a pod that asks for nothing."""
        asks = any(pod.requests.get(spec.name) for spec in self._resources)
        return _Balance(pod.requests, self._resources) if asks else None


class _Balance(NodeScore):
    def __init__(self, asked: Amounts, resources: Sequence[ResourceSpec]) -> None:
        self._asked = asked
        self._resources = resources

    def score(self, node: NodeState) -> int:
        table = rows(node, node.requested, self._asked, self._resources)
        after = balance([min(row.requested / row.allocatable, 1.0) for row in table])
        before = balance([min(row.allocated / row.allocatable, 1.0) for row in table])
        return MAX_SCORE // 2 + (MAX_SCORE // 2 + after - before) // 2


def balance(shares: Sequence[float]) -> int:
    """How even the shares are. The formulas are upstream's to the letter: a float's last digit can cost a point."""
    if len(shares) < 2:
        deviation = 0.0
    elif len(shares) == 2:
        deviation = abs((shares[0] - shares[1]) / 2)
    else:
        mean = sum(shares) / len(shares)
        deviation = math.sqrt(sum((share - mean) * (share - mean) for share in shares) / len(shares))
    return int((1 - deviation) * MAX_SCORE)
