"""A change as a value: what it is, how much of it, and how it is applied to a pod or to a copy of the cluster's state.

A set of changes costs, compared in this order:
    the number of changes
    their kinds, the most disturbing first: kinds stand in `Kind` from the least to the most disturbing
    their amounts: the share of a request given up, the size of the node added, the priority and size of the pod moved
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

import msgspec
from msgspec.structs import replace

from bayplan.model.affinity import NodeSelectorRequirement, PodAffinity, PodAffinityTerm, TopologySpreadConstraint
from bayplan.model.nodes import Node
from bayplan.model.pods import ContainerPort, Pod
from bayplan.model.taints import Taint, Toleration
from bayplan.scheduling.plugins.node_unschedulable import CORDON
from bayplan.scheduling.pods import HostPort, PodInfo
from bayplan.scheduling.whatif.lowering import lowered, quantity

if TYPE_CHECKING:
    from collections.abc import Iterable

    from bayplan.scheduling.state import ClusterState

Amount = tuple[int, ...]
_WHOLE = 10**12
"""Shares are counted in such small parts that different ones differ."""


class Kind(StrEnum):
    """The kinds of changes, the least disturbing first: to the pod itself, then to a node, then to others."""

    LOWER_REQUEST = "lower-request"
    ADD_TOLERATION = "add-toleration"
    DROP_NODE_SELECTOR = "drop-node-selector"
    RELAX_NODE_AFFINITY = "relax-node-affinity"
    SOFTEN_SPREAD = "soften-spread"
    DROP_POD_AFFINITY = "drop-pod-affinity"
    DROP_POD_ANTI_AFFINITY = "drop-pod-anti-affinity"
    DROP_HOST_PORT = "drop-host-port"
    REMOVE_GATES = "remove-scheduling-gates"
    UNCORDON_NODE = "uncordon-node"
    RECOVER_NODE = "recover-node"
    ADD_NODE = "add-node"
    MOVE_POD = "move-pod"

    @property
    def rank(self) -> int:
        """How disturbing it is."""
        return _RANKS[self]


_RANKS = {kind: rank for rank, kind in enumerate(Kind)}


class Change(msgspec.Struct, frozen=True, tag_field="kind", rename="camel"):
    """One change. `what` tells it from others of its kind, whatever node it is made for."""

    @property
    def kind(self) -> Kind:
        """Which it is."""
        return Kind(str(type(self).__struct_config__.tag))

    @property
    def what(self) -> str:
        """What is changed."""
        return ""

    @property
    def amount(self) -> Amount:
        """How much of it."""
        return ()

    @property
    def nodes(self) -> tuple[str, ...] | None:
        """The nodes that it changes; None for a change to the pod itself."""
        return None

    def __hash__(self) -> int:
        return hash((self.kind, self.what))  # some hold selectors, which have no hash

    def to_pod(self, pod: Pod) -> Pod:
        """The pod, changed."""
        return pod

    def to_state(self, state: ClusterState) -> None:
        """Change a state; one of the caller's own."""


class Cost(NamedTuple):
    """What a set of changes costs; the smaller the better."""

    changes: int
    kinds: tuple[int, ...]
    amounts: tuple[Amount, ...]


def cost(changes: Iterable[Change]) -> Cost:
    """What they cost together."""
    ranked = sorted(((each.kind.rank, each.amount) for each in changes), reverse=True)
    return Cost(len(ranked), tuple(rank for rank, _ in ranked), tuple(amount for _, amount in ranked))


def applied(changes: Iterable[Change], pod: Pod, state: ClusterState) -> tuple[Pod, ClusterState]:
    """The pod and the cluster with all of the changes. What was given stays as it is."""
    made = [*changes]
    touched = [each.nodes for each in made if each.nodes is not None]
    if touched:
        state = state.copy({name for names in touched for name in names})
    for each in made:
        pod = each.to_pod(pod)
        each.to_state(state)
    return pod, state


# --- to the pod


class LowerRequest(Change, frozen=True, tag=str(Kind.LOWER_REQUEST)):
    """The pod asks for less, in the scheduler's units; `node` has that much left."""

    resource: str
    asked: int
    to: int
    node: str

    @property
    def what(self) -> str:
        return self.resource

    @property
    def amount(self) -> Amount:
        return ((self.asked - self.to) * _WHOLE // self.asked,)

    def to_pod(self, pod: Pod) -> Pod:
        return lowered(pod, self.resource, self.to)

    def __str__(self) -> str:
        less, more = (quantity(self.resource, amount) for amount in (self.to, self.asked))
        return f"it asked for {less} {self.resource} instead of {more}"


class AddToleration(Change, frozen=True, tag=str(Kind.ADD_TOLERATION)):
    """The pod tolerates a taint."""

    taint: Taint

    @property
    def what(self) -> str:
        return str(self.taint)

    def to_pod(self, pod: Pod) -> Pod:
        taint = self.taint
        how = Toleration(taint.key, "Equal" if taint.value else "Exists", taint.value, taint.effect)
        return replace(pod, spec=replace(pod.spec, tolerations=(*pod.spec.tolerations, how)))

    def __str__(self) -> str:
        return f"it tolerated the taint {self.taint}"


class DropNodeSelector(Change, frozen=True, tag=str(Kind.DROP_NODE_SELECTOR)):
    """The pod no longer asks for a node label."""

    key: str
    value: str

    @property
    def what(self) -> str:
        return f"{self.key}={self.value}"

    def to_pod(self, pod: Pod) -> Pod:
        kept = {key: value for key, value in pod.spec.node_selector.items() if key != self.key}
        return replace(pod, spec=replace(pod.spec, node_selector=kept))

    def __str__(self) -> str:
        return f"its node selector did not ask for {self.what}"


class RelaxNodeAffinity(Change, frozen=True, tag=str(Kind.RELAX_NODE_AFFINITY)):
    """One expression leaves a required term. A term without any asks for nothing, and so do the terms as a whole."""

    term: int
    expression: NodeSelectorRequirement

    @property
    def what(self) -> str:
        values = f" ({', '.join(self.expression.values)})" if self.expression.values else ""
        return f"{self.expression.key} {self.expression.operator}{values}"

    def to_pod(self, pod: Pod) -> Pod:
        affinity = pod.spec.affinity
        node = affinity.node_affinity if affinity else None
        if affinity is None or node is None or node.required is None:
            return pod
        terms = [*node.required.node_selector_terms]
        old = terms[self.term]
        terms[self.term] = left = replace(
            old,
            match_expressions=tuple(each for each in old.match_expressions if each != self.expression),
            match_fields=tuple(each for each in old.match_fields if each != self.expression),
        )
        asks = left.match_expressions or left.match_fields
        required = replace(node.required, node_selector_terms=tuple(terms)) if asks else None
        affinity = replace(affinity, node_affinity=replace(node, required=required))
        return replace(pod, spec=replace(pod.spec, affinity=affinity))

    def __str__(self) -> str:
        return f"its node affinity did not require {self.what}"


class SoftenSpread(Change, frozen=True, tag=str(Kind.SOFTEN_SPREAD)):
    """A spread constraint becomes a wish."""

    constraint: TopologySpreadConstraint

    @property
    def what(self) -> str:
        return f"{self.constraint.topology_key} (maxSkew {self.constraint.max_skew})"

    def to_pod(self, pod: Pod) -> Pod:
        soft = replace(self.constraint, when_unsatisfiable="ScheduleAnyway")
        kept = tuple(soft if each == self.constraint else each for each in pod.spec.topology_spread_constraints)
        return replace(pod, spec=replace(pod.spec, topology_spread_constraints=kept))

    def __str__(self) -> str:
        return f"its spread over {self.what} were ScheduleAnyway"


class _DropTerm(Change, frozen=True):
    term: PodAffinityTerm

    @property
    def what(self) -> str:
        selector = self.term.label_selector
        labels = [f"{key}={value}" for key, value in sorted(selector.match_labels.items())] if selector else []
        more = [f"{each.key} {each.operator}" for each in selector.match_expressions] if selector else []
        return f"{','.join(labels + more)} by {self.term.topology_key}"

    def _without(self, side: PodAffinity | None) -> PodAffinity | None:
        return replace(side, required=tuple(each for each in side.required if each != self.term)) if side else None


class DropPodAffinity(_DropTerm, frozen=True, tag=str(Kind.DROP_POD_AFFINITY)):
    """The pod need not be near to some pods."""

    def to_pod(self, pod: Pod) -> Pod:
        affinity = pod.spec.affinity
        if affinity is None:
            return pod
        affinity = replace(affinity, pod_affinity=self._without(affinity.pod_affinity))
        return replace(pod, spec=replace(pod.spec, affinity=affinity))

    def __str__(self) -> str:
        return f"it did not require pods {self.what} near it"


class DropPodAntiAffinity(_DropTerm, frozen=True, tag=str(Kind.DROP_POD_ANTI_AFFINITY)):
    """The pod need not be away from some pods."""

    def to_pod(self, pod: Pod) -> Pod:
        affinity = pod.spec.affinity
        if affinity is None:
            return pod
        affinity = replace(affinity, pod_anti_affinity=self._without(affinity.pod_anti_affinity))
        return replace(pod, spec=replace(pod.spec, affinity=affinity))

    def __str__(self) -> str:
        return f"it did not keep away from pods {self.what}"


class DropHostPort(Change, frozen=True, tag=str(Kind.DROP_HOST_PORT)):
    """The pod no longer asks for a port of the node."""

    port: HostPort

    @property
    def what(self) -> str:
        return f"{self.port.port}/{self.port.protocol}"

    def to_pod(self, pod: Pod) -> Pod:
        spec = pod.spec
        containers, init = (
            tuple(replace(each, ports=tuple(map(self._dropped, each.ports))) for each in group)
            for group in (spec.containers, spec.init_containers)
        )
        return replace(pod, spec=replace(spec, containers=containers, init_containers=init))

    def _dropped(self, port: ContainerPort) -> ContainerPort:
        own = HostPort(port.host_ip or "0.0.0.0", port.protocol or "TCP", port.host_port)  # noqa: S104 the node's
        return replace(port, host_port=0) if own == self.port else port

    def __str__(self) -> str:
        return f"it did not ask for the host port {self.what}"


class RemoveGates(Change, frozen=True, tag=str(Kind.REMOVE_GATES)):
    """The pod's scheduling gates are taken away."""

    gates: tuple[str, ...]

    @property
    def what(self) -> str:
        return ", ".join(self.gates)

    def to_pod(self, pod: Pod) -> Pod:
        return replace(pod, spec=replace(pod.spec, scheduling_gates=()))

    def __str__(self) -> str:
        return f"its scheduling gates were removed ({self.what})"


# --- to a node


class UncordonNode(Change, frozen=True, tag=str(Kind.UNCORDON_NODE)):
    """A node takes pods again."""

    node: str

    @property
    def nodes(self) -> tuple[str, ...]:
        return (self.node,)

    def to_node(self, node: Node) -> Node:
        """The node, uncordoned."""
        taints = tuple(each for each in node.spec.taints if each.key != CORDON.key)
        return replace(node, spec=replace(node.spec, unschedulable=False, taints=taints))

    def to_state(self, state: ClusterState) -> None:
        found = state.node(self.node)
        assert found is not None  # the change was made for it
        state.put_node(self.to_node(found.node))

    def __str__(self) -> str:
        return f"{self.node} were uncordoned"


class RecoverNode(Change, frozen=True, tag=str(Kind.RECOVER_NODE)):
    """A node is well again: the taints that tell of its condition are gone."""

    node: str
    taints: tuple[str, ...]

    @property
    def nodes(self) -> tuple[str, ...]:
        return (self.node,)

    def to_node(self, node: Node) -> Node:
        """The node, recovered."""
        kept = tuple(each for each in node.spec.taints if each.key not in self.taints)
        return replace(node, spec=replace(node.spec, taints=kept))

    def to_state(self, state: ClusterState) -> None:
        found = state.node(self.node)
        assert found is not None  # the change was made for it
        state.put_node(self.to_node(found.node))

    def __str__(self) -> str:
        return f"{self.node} recovered (it is tainted {', '.join(self.taints)})"


class AddNode(Change, frozen=True, tag=str(Kind.ADD_NODE)):
    """One more node, empty, of an existing one's shape. `size` is by what shapes are compared."""

    like: str
    size: tuple[int, ...]
    offers: dict[str, str]
    node: Node

    @property
    def nodes(self) -> tuple[str, ...]:
        return ()

    @property
    def amount(self) -> Amount:
        return self.size

    def to_state(self, state: ClusterState) -> None:
        state.put_node(self.node)

    def __str__(self) -> str:
        offers = ", ".join(f"{amount} {name}" for name, amount in self.offers.items())
        return f"there were one more node like {self.like} ({offers})"


# --- to others


class MovePod(Change, frozen=True, tag=str(Kind.MOVE_POD)):
    """Another pod goes to another node, where it fits. `share`: of its node, in millionths."""

    namespace: str
    name: str
    priority: int
    share: int
    origin: str
    to: str

    @property
    def nodes(self) -> tuple[str, ...]:
        return (self.origin, self.to)

    @property
    def amount(self) -> Amount:
        return (self.priority, self.share)

    def to_state(self, state: ClusterState) -> None:
        key = (self.namespace, self.name)
        origin = state.node(self.origin)
        assert origin is not None  # the change was made for it
        pod = origin.pods[key].pod
        state.put_pod(PodInfo(replace(pod, spec=replace(pod.spec, node_name=self.to))), self.to)

    def __str__(self) -> str:
        return f"pod {self.namespace}/{self.name} moved from {self.origin} to {self.to}"
