"""What a node holds against a pod, as the changes that would answer it.

Taints, labels, ports and resources concern the node alone, so the answer to them is known: `Needs.ways` are sets of
changes of which one must be made whole. Spread and affinity between pods depend on the other nodes as well; which of
the pod's own rules could be given up there, `Demands.looser` lists, and only asking the filters anew tells what helps.

Only what a plugin of the profile has refused is answered: where a profile has no taints, taints are no need.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from bayplan.model.affinity import NodeSelectorTerm
from bayplan.model.node_selectors import node_terms
from bayplan.model.taints import HARD_EFFECTS
from bayplan.scheduling.plugins.node_ports import ports_clash
from bayplan.scheduling.plugins.node_resources_fit import TOO_MANY_PODS
from bayplan.scheduling.plugins.node_unschedulable import CORDON
from bayplan.scheduling.pods import selector_of
from bayplan.scheduling.whatif.changes import Change
from bayplan.scheduling.whatif.cluster_changes import RecoverNode, UncordonNode
from bayplan.scheduling.whatif.lowering import least
from bayplan.scheduling.whatif.pod_changes import (
    AddToleration,
    DropNodeSelector,
    DropPodAffinity,
    DropPodAntiAffinity,
    LowerRequest,
    RelaxNodeAffinity,
    SoftenSpread,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from bayplan.model.affinity import TopologySpreadConstraint
    from bayplan.model.node_selectors import NodeTerm
    from bayplan.model.pods import PodSpec
    from bayplan.model.taints import Taint
    from bayplan.scheduling.framework import Refusal
    from bayplan.scheduling.pods import HostPort, PodInfo
    from bayplan.scheduling.state import NodeState

    Changes = tuple[Change, ...]

CONDITIONS = frozenset(
    f"node.kubernetes.io/{each}"
    for each in (
        "not-ready", "unreachable", "memory-pressure", "disk-pressure", "pid-pressure", "network-unavailable",
        "out-of-service",
    )
) | {"node.cloudprovider.kubernetes.io/uninitialized"}  # fmt: skip
"""Taints that tell of a node's condition: to be cured, not to be tolerated."""

_ELSEWHERE = frozenset(("PodTopologySpread", "InterPodAffinity"))
"""Plugins whose answer depends on other nodes than the one asked."""
FIT = "NodeResourcesFit"
INSUFFICIENT = "Insufficient "
_PLACE = "pods"


class Needs(NamedTuple):
    """What must change for one node. `short` and `ports` may also be answered by a pod that leaves it."""

    rigid: tuple[Changes, ...]
    """Alternatives: changes to the pod and to the node that nothing else can stand in for."""
    short: Mapping[str, int]
    """Resources, and by how much; `pods` is a place."""
    ports: tuple[HostPort, ...]
    rules: bool
    """Whether rules between pods refuse, which other nodes have a part in."""
    stubborn: bool
    """Whether a plugin refuses that only other pods' leaving could persuade."""


class Demands:
    """One pod's own rules, compiled once, to be held against each node."""

    def __init__(self, pod: PodInfo) -> None:
        self._pod = pod
        spec = pod.wants.spec
        self._terms = _expressions(spec)
        self.rules_about_nodes: Changes = (
            *(DropNodeSelector(key, value) for key, value in spec.node_selector.items()),
            *dict.fromkeys(change for term in self._terms for change, _ in term),
        )
        self._about = [
            *(selector_of(each.label_selector) for each in hard_constraints(spec)),
            *(term.selector for term in (*pod.wants.affinity, *pod.wants.anti_affinity)),
        ]
        self.looser: Changes = tuple(_looser(spec, self.rules_about_nodes))

    def needs(self, node: NodeState, refusals: Collection[Refusal]) -> Needs:
        """What the refusals ask for. `node` is as the filters saw it."""
        by_plugin = {each.plugin: each for each in refusals}
        rigid: tuple[Changes, ...] = ((),)
        if by_plugin.keys() & {"NodeUnschedulable", "TaintToleration"}:
            opened = tuple(self._openings(node))
            rigid = tuple((*each, *opened) for each in rigid)
        if "NodeAffinity" in by_plugin:
            rigid = tuple((*each, *more) for each in rigid for more in self._affinity(node))
        fit = by_plugin.get(FIT)
        short = {name: self._deficit(node, name) for name in _lacking(fit)} if fit else {}
        clashing = self._pod.wants.host_ports if "NodePorts" in by_plugin else ()
        return Needs(
            rigid,
            short,
            tuple(each for each in clashing if ports_clash((each,), node.ports)),
            bool(by_plugin.keys() & _ELSEWHERE),
            bool(by_plugin.keys() - _ANSWERED - _ELSEWHERE),
        )

    def lowerings(self, node: NodeState, short: Mapping[str, int]) -> Changes | None:
        """Ask for what is left; None where there is nothing left to ask for."""
        found = []
        for name, deficit in short.items():
            asked = self._pod.requests.get(name, 0)
            if name == _PLACE or asked - deficit <= least(self._pod.pod, name):
                return None
            found.append(LowerRequest(name, asked, asked - deficit, node.name))
        return tuple(found)

    def concern(self, other: PodInfo) -> bool:
        """Whether the pod's rules about pods may speak of another."""
        return any(selector.matches(other.labels) for selector in self._about)

    def _deficit(self, node: NodeState, name: str) -> int:
        if name == _PLACE:
            return 1 - node.free_places
        free = node.allocatable.get(name, 0) - node.requested.get(name, 0)
        return self._pod.requests[name] - free

    def _openings(self, node: NodeState) -> Iterator[Change]:
        tolerations = self._pod.wants.spec.tolerations
        hard = [
            each
            for each in node.node.spec.taints
            if each.effect in HARD_EFFECTS and not any(one.tolerates(each) for one in tolerations)
        ]
        minds = node.node.spec.unschedulable and not any(one.tolerates(CORDON) for one in tolerations)
        if minds or any(each.key == CORDON.key for each in hard):
            yield UncordonNode(node.name)
        ill = tuple(dict.fromkeys(each.key for each in hard if each.key in CONDITIONS))
        if ill:
            yield RecoverNode(node.name, ill)
        yield from dict.fromkeys(AddToleration(_plain(each)) for each in hard if can_be_tolerated(each))

    def _affinity(self, node: NodeState) -> Iterator[Changes]:
        labels = node.labels
        wrong = tuple(
            DropNodeSelector(key, value)
            for key, value in self._pod.wants.spec.node_selector.items()
            if labels.get(key) != value
        )
        if not self._terms:
            yield wrong
        for term in self._terms:
            failing = (change for change, part in term if part.problems or not part.matches(labels, node.name))
            yield (*wrong, *dict.fromkeys(failing))


_ANSWERED = frozenset(("NodeUnschedulable", "TaintToleration", "NodeAffinity", FIT, "NodePorts"))


def can_be_tolerated(taint: Taint) -> bool:
    """Whether a toleration is proposed for it: not for a cordon and not for a node's condition."""
    return taint.key not in CONDITIONS and taint.key != CORDON.key


def _plain(taint: Taint) -> Taint:
    """Without the time it was added."""
    return type(taint)(taint.key, taint.value, taint.effect)


def _lacking(fit: Refusal) -> Iterator[str]:
    for reason in fit.reasons:
        if reason == TOO_MANY_PODS:
            yield _PLACE
        elif reason.startswith(INSUFFICIENT):
            yield reason.removeprefix(INSUFFICIENT)


Expressions = tuple[tuple[tuple[RelaxNodeAffinity, "NodeTerm"], ...], ...]
"""For each required term its expressions: the change that drops one, and the expression compiled alone."""


def _expressions(spec: PodSpec) -> Expressions:
    node = spec.affinity.node_affinity if spec.affinity else None
    if node is None or node.required is None:
        return ()
    return tuple(
        tuple(
            (RelaxNodeAffinity(i, each), node_terms((alone,))[0])
            for each, alone in chain(
                ((each, NodeSelectorTerm(match_expressions=(each,))) for each in term.match_expressions),
                ((each, NodeSelectorTerm(match_fields=(each,))) for each in term.match_fields),
            )
        )
        for i, term in enumerate(node.required.node_selector_terms)
        if term.match_expressions or term.match_fields
    )


def hard_constraints(spec: PodSpec) -> list[TopologySpreadConstraint]:
    """Those that forbid."""
    return [each for each in spec.topology_spread_constraints if each.when_unsatisfiable == "DoNotSchedule"]


def _looser(spec: PodSpec, rules_about_nodes: Changes) -> Iterator[Change]:
    """The pod's rules about other pods. Where pods are spread, its rules about nodes say which nodes count."""
    hard = hard_constraints(spec)
    if any(each.node_affinity_policy != "Ignore" for each in hard):
        yield from rules_about_nodes
    yield from dict.fromkeys(SoftenSpread(each) for each in hard)
    affinity = spec.affinity
    if affinity and affinity.pod_affinity:
        yield from dict.fromkeys(DropPodAffinity(each) for each in affinity.pod_affinity.required)
    if affinity and affinity.pod_anti_affinity:
        yield from dict.fromkeys(DropPodAntiAffinity(each) for each in affinity.pod_anti_affinity.required)
