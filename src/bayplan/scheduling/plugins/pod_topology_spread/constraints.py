"""Spread constraints compiled for one pod: who counts, and on which nodes.

Source of truth: kube-scheduler 1.36 podtopologyspread/common.go and helper/spread.go.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from bayplan.model.affinity import TopologySpreadConstraint
from bayplan.model.node_selectors import node_matcher
from bayplan.model.policies import Service
from bayplan.model.selectors import EVERYTHING, NOTHING, Selector, SelectorError, from_labels
from bayplan.model.taints import HARD_EFFECTS, first_untolerated
from bayplan.model.workloads import ReplicaSet, ReplicationController, StatefulSet
from bayplan.scheduling.pods import selector_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from bayplan.scheduling.pods import PodInfo
    from bayplan.scheduling.state import ClusterState, NodeState

NAME = "PodTopologySpread"
HOSTNAME = "kubernetes.io/hostname"
SYSTEM_CONSTRAINTS = (
    TopologySpreadConstraint(topology_key=HOSTNAME, when_unsatisfiable="ScheduleAnyway", max_skew=3),
    TopologySpreadConstraint(
        topology_key="topology.kubernetes.io/zone", when_unsatisfiable="ScheduleAnyway", max_skew=5
    ),
)
_HONOR = "Honor"


class Constraint(msgspec.Struct, frozen=True):
    """A constraint with its defaults filled in and its selector compiled."""

    topology_key: str
    max_skew: int
    selector: Selector
    min_domains: int
    honours_affinity: bool
    honours_taints: bool

    def count(self, node: NodeState, namespace: str) -> int:
        """How many pods of a node count. Terminating ones do not; an empty selector counts nobody."""
        selector = self.selector
        if not selector or not node.pods:
            return 0
        return sum(
            each.namespace == namespace and not each.terminating and selector.matches(each.labels)
            for each in node.pods.values()
        )


class Eligibility:
    """The nodes whose pods count towards a constraint: by its policies, those that the pod could go to."""

    __slots__ = ("_matcher", "_tolerations")

    def __init__(self, pod: PodInfo) -> None:
        self._matcher = node_matcher(pod.pod.spec)
        self._tolerations = pod.pod.spec.tolerations

    def admits(self, node: NodeState, constraint: Constraint) -> bool:
        """Whether a node is one of them."""
        if constraint.honours_affinity and not self._matches(node):
            return False
        taints = node.node.spec.taints if constraint.honours_taints else ()
        return not taints or first_untolerated(taints, self._tolerations, HARD_EFFECTS) is None

    def _matches(self, node: NodeState) -> bool:
        try:
            return self._matcher.matches(node.labels, node.name)
        except SelectorError:  # NodeAffinity reports it; here such a node is just not counted
            return False


def constraints_of(
    pod: PodInfo, state: ClusterState, defaults: Iterable[TopologySpreadConstraint], action: str
) -> tuple[Constraint, ...]:
    """The constraints of one kind that a pod has: its own if it names any, else the defaults for pods like it."""
    own = pod.pod.spec.topology_spread_constraints
    if own:
        return tuple(_compiled(each, _selector(each, pod.labels)) for each in own if each.when_unsatisfiable == action)
    wanted = [each for each in defaults if each.when_unsatisfiable == action]
    selector = default_selector(pod, state) if wanted else None
    return tuple(_compiled(each, selector) for each in wanted) if selector else ()


def have_all_keys(labels: Mapping[str, str], constraints: Sequence[Constraint]) -> bool:
    """Whether a node has a place in every topology."""
    return all(each.topology_key in labels for each in constraints)


def _compiled(constraint: TopologySpreadConstraint, selector: Selector) -> Constraint:
    return Constraint(
        constraint.topology_key,
        constraint.max_skew,
        selector,
        1 if constraint.min_domains is None else constraint.min_domains,
        (constraint.node_affinity_policy or _HONOR) == _HONOR,
        constraint.node_taints_policy == _HONOR,
    )


def _selector(constraint: TopologySpreadConstraint, labels: Mapping[str, str]) -> Selector:
    """The constraint's selector, narrowed to the pod's own values of `matchLabelKeys`."""
    selector = selector_of(constraint.label_selector)
    own = {key: labels[key] for key in constraint.match_label_keys if key in labels}
    if not own or selector is NOTHING:
        return selector
    return Selector((*from_labels(own).requirements, *selector.requirements))


def default_selector(pod: PodInfo, state: ClusterState) -> Selector:
    """Who a pod's like are, by the Services that select it and its controller; empty if nothing tells."""
    merged: dict[str, str] = {}
    for service in state.all(Service, pod.namespace):
        wanted = service.spec.selector
        if wanted.items() <= pod.labels.items():
            merged.update(wanted)
    owner = pod.pod.metadata.controller
    kind = (owner.api_version, owner.kind) if owner else None
    if owner is None or kind not in _CONTROLLERS:
        return from_labels(merged) if merged else EVERYTHING
    found = state.find(_CONTROLLERS[kind], pod.namespace, owner.name)
    if isinstance(found, ReplicationController):
        return from_labels(merged | found.spec.selector)
    own = selector_of(found.spec.selector) if found else EVERYTHING
    return Selector((*from_labels(merged).requirements, *own.requirements)) if merged else own


_CONTROLLERS: dict[tuple[str, str], type[ReplicationController | ReplicaSet | StatefulSet]] = {
    ("v1", "ReplicationController"): ReplicationController,
    ("apps/v1", "ReplicaSet"): ReplicaSet,
    ("apps/v1", "StatefulSet"): StatefulSet,
}
