"""What a pod asks for must be left on the node; how much is left, or taken, makes a node better.

Filtering counts true requests. Scoring counts something for containers that ask for nothing, so that they spread too,
and, as upstream does, passes over what the incoming pod asks for as a whole.

Source of truth: kube-scheduler 1.36 NodeResourcesFit (noderesources/fit.go).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from bayplan.model.resources import CPU, MEMORY, nonzero_requests, pod_requests
from bayplan.scheduling.arguments import NodeResourcesFitArgs
from bayplan.scheduling.framework import NodeFilter, NodeScore, Plugin, Refusal
from bayplan.scheduling.plugins.resource_strategies import BASIC, is_scalar, rows, strategy

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bayplan.model.resources import Amounts
    from bayplan.scheduling.arguments import ResourceSpec
    from bayplan.scheduling.plugins.resource_strategies import Strategy
    from bayplan.scheduling.pods import PodInfo
    from bayplan.scheduling.state import ClusterState, NodeState

TOO_MANY_PODS = "Too many pods"
_DEFAULTS = NodeResourcesFitArgs()


class NodeResourcesFit(Plugin):
    """Fits pods by their requests."""

    name = "NodeResourcesFit"

    def __init__(self, args: NodeResourcesFitArgs = _DEFAULTS) -> None:
        self.args = args
        self._ignored = frozenset(args.ignored_resources)
        self._ignored_groups = frozenset(args.ignored_resource_groups)
        self._resources = args.scoring_strategy.resources
        self._strategy = strategy(args.scoring_strategy)

    def filter(self, pod: PodInfo, state: ClusterState) -> NodeFilter:
        """Always: every pod takes a place at least."""
        return _Fits(self.counted(pod))

    def score(self, pod: PodInfo, state: ClusterState, nodes: Sequence[NodeState]) -> NodeScore:
        """Always."""
        return _Allocation(scored_requests(pod), self._resources, self._strategy)

    def counted(self, pod: PodInfo) -> Amounts:
        """What must be left on a node, in the order in which it is checked."""
        asked = {name: pod.requests[name] for name in BASIC if pod.requests.get(name)}
        scalars = sorted(name for name, amount in pod.requests.items() if amount and is_scalar(name))
        return asked | {name: pod.requests[name] for name in scalars if not self._ignores(name)}

    def _ignores(self, resource: str) -> bool:
        group, slash, _ = resource.partition("/")
        extended = bool(slash) and "kubernetes.io/" not in resource
        return extended and (resource in self._ignored or group in self._ignored_groups)


class _Fits(NodeFilter):
    def __init__(self, asked: Amounts) -> None:
        self._asked = asked

    def check(self, node: NodeState) -> Refusal | None:
        there, taken = node.allocatable, node.requested
        short = [name for name, amount in self._asked.items() if amount > there.get(name, 0) - taken.get(name, 0)]
        full = node.free_places < 1
        if not short and not full:
            return None
        reasons = [TOO_MANY_PODS] if full else []
        hopeless = any(self._asked[name] > there.get(name, 0) for name in short)
        return Refusal(NodeResourcesFit.name, (*reasons, *(f"Insufficient {name}" for name in short)), hopeless)


def scored_requests(pod: PodInfo) -> Amounts:
    """What scoring counts for a pod: its containers' requests, with a default where cpu or memory is missing."""
    requests, nonzero = pod.requests, pod.nonzero
    if pod.wants.spec.resources is not None:
        spec = msgspec.structs.replace(pod.pod.spec, resources=None)
        apart = msgspec.structs.replace(pod.pod, spec=spec)
        requests, nonzero = pod_requests(apart), nonzero_requests(apart)
    return {**requests, CPU: nonzero.cpu, MEMORY: nonzero.memory}


class _Allocation(NodeScore):
    def __init__(self, asked: Amounts, resources: Sequence[ResourceSpec], strategy: Strategy) -> None:
        self._asked = asked
        self._resources = resources
        self._strategy = strategy

    def score(self, node: NodeState) -> int:
        taken = {**node.requested, CPU: node.nonzero_cpu, MEMORY: node.nonzero_memory}
        return self._strategy(rows(node, taken, self._asked, self._resources))
