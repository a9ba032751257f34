"""Changes to the pod itself: it asks for less, puts up with more, or gives up a rule."""

from __future__ import annotations

from msgspec.structs import replace

from bayplan.model.affinity import NodeSelectorRequirement, PodAffinity, PodAffinityTerm, TopologySpreadConstraint
from bayplan.model.pods import ContainerPort, Pod
from bayplan.model.taints import Taint, Toleration
from bayplan.scheduling.pods import HostPort
from bayplan.scheduling.whatif.changes import Amount, Change, Kind
from bayplan.scheduling.whatif.lowering import amounts, lowered

_WHOLE = 10**12
"""Shares are counted in such small parts that different ones differ."""


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
        less, more = amounts(self.resource, self.to, self.asked)
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
