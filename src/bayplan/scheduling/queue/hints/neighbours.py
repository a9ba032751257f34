"""Hints of the plugins that look at other pods: topology spread and pod affinity.

Source of truth: kube-scheduler 1.36 podtopologyspread/plugin.go and interpodaffinity/plugin.go. As there, terms are
matched without the labels of namespaces, and against all terms at once even for anti-affinity.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bayplan.scheduling.plugins.pod_topology_spread.constraints import constraints_of, have_all_keys
from bayplan.scheduling.queue.hints.contract import NEVER
from bayplan.scheduling.queue.hints.own import holds_place, itself
from bayplan.scheduling.state import ClusterState

if TYPE_CHECKING:
    from collections.abc import Iterable

    from bayplan.model.nodes import Node
    from bayplan.scheduling.plugins.pod_topology_spread.constraints import Constraint
    from bayplan.scheduling.pods import AffinityTerm, PodInfo
    from bayplan.scheduling.queue.hints.contract import Judge

_NOTHING_AROUND = ClusterState()
"""Own constraints do not depend on the cluster."""
_NO_LABELS: dict[str, str] = {}


# --- topology spread


def _hard(pod: PodInfo) -> tuple[Constraint, ...]:
    """The pod's own hard constraints. One without any was refused by the profile's: then any change may do."""
    return constraints_of(pod, _NOTHING_AROUND, (), "DoNotSchedule")


def counted(old: PodInfo | None, new: PodInfo | None) -> Judge:
    """A pod that counts came, went, or changed so that it counts now or no more; the pod's own tolerations grew."""
    if old is not None and new is not None:
        return _recounted(old, new)
    other = new if new is not None else old
    assert other is not None, "a change has an object before or after it"
    if not holds_place(other):
        return NEVER

    def judge(pod: PodInfo) -> bool:
        if pod.namespace != other.namespace:
            return False
        constraints = _hard(pod)
        return not constraints or any(each.selector.matches(other.labels) for each in constraints)

    return judge


def _recounted(old: PodInfo, new: PodInfo) -> Judge:
    around = holds_place(old) and holds_place(new)
    relabelled = old.labels != new.labels

    def judge(pod: PodInfo) -> bool:
        own = pod.key == new.key
        if not own and not (around and relabelled and pod.namespace == new.namespace):
            return False
        constraints = _hard(pod)
        if not constraints:
            return True
        tolerates_more = own and old.pod.spec.tolerations != new.pod.spec.tolerations
        if tolerates_more and any(each.honours_taints for each in constraints):
            return True
        return relabelled and any(
            each.selector.matches(old.labels) != each.selector.matches(new.labels) for each in constraints
        )

    return judge


def spread_over(old: Node | None, new: Node | None) -> Judge:
    """A node came into the pod's topologies, left them, moved within them, or is tainted otherwise."""

    def judge(pod: PodInfo) -> bool:
        constraints = _hard(pod)
        if not constraints:
            return True
        was = old is not None and have_all_keys(old.metadata.labels, constraints)
        now = new is not None and have_all_keys(new.metadata.labels, constraints)
        if old is None or new is None or was != now:
            return was or now
        moved = any(
            old.metadata.labels.get(each.topology_key) != new.metadata.labels.get(each.topology_key)
            for each in constraints
        )
        return now and (moved or old.spec.taints != new.spec.taints)

    return judge


# --- affinity


def _meets(terms: tuple[AffinityTerm, ...], pod: PodInfo) -> bool:
    return bool(terms) and all(term.matches(pod, _NO_LABELS) for term in terms)


def neighbour(old: PodInfo | None, new: PodInfo | None) -> Judge:
    """Someone came whom the pod wants near, went whom it wants away or who wanted that, or changed to that effect."""
    if any(each is not None and not holds_place(each) for each in (old, new)):
        return NEVER if old is None or new is None else itself(old, new)

    def judge(pod: PodInfo) -> bool:
        wants = pod.wants
        if old is None:
            return new is not None and _meets(wants.affinity, new)
        if new is None:
            return _meets(wants.anti_affinity, old) or _meets(old.wants.anti_affinity, pod)
        if pod.key == new.key:
            return True
        joined = not _meets(wants.affinity, old) and _meets(wants.affinity, new)
        return joined or (_meets(wants.anti_affinity, old) and not _meets(wants.anti_affinity, new))

    return judge


def near(old: Node | None, new: Node) -> Judge:
    """A node came into, left or moved within a topology of the pod's terms, to where it may do."""
    after = new.metadata.labels
    if old is None:
        return lambda pod: bool(pod.wants.anti_affinity) or any(key in after for key in _keys(pod.wants.affinity))
    before = old.metadata.labels

    def judge(pod: PodInfo) -> bool:
        gained = any(key in after and before.get(key) != after[key] for key in _keys(pod.wants.affinity))
        return gained or any(key in before and before[key] != after.get(key) for key in _keys(pod.wants.anti_affinity))

    return judge


def _keys(terms: tuple[AffinityTerm, ...]) -> Iterable[str]:
    return (term.topology_key for term in terms)
