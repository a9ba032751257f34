"""Which nodes a DaemonSet's pods belong on, and how a pod is made for just one of them.

Source of truth: NodeShouldRunDaemonPod in pkg/controller/daemon, and pkg/controller/daemon/util.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from bayplan.cluster.objects import Section
from bayplan.model.affinity import NodeSelectorRequirement
from bayplan.model.node_selectors import NodeMatcher, node_matcher
from bayplan.model.nodes import Node
from bayplan.model.objects import decode
from bayplan.model.pods import Pod, PodSpec
from bayplan.model.selectors import SelectorError
from bayplan.model.taints import HARD_EFFECTS, NO_EXECUTE, NO_SCHEDULE, Toleration, first_untolerated
from bayplan.model.workloads import DaemonSet

_ALWAYS_TOLERATED = (
    ("not-ready", NO_EXECUTE),
    ("unreachable", NO_EXECUTE),
    ("disk-pressure", NO_SCHEDULE),
    ("memory-pressure", NO_SCHEDULE),
    ("pid-pressure", NO_SCHEDULE),
    ("unschedulable", NO_SCHEDULE),
)
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


class Site(msgspec.Struct, frozen=True):
    """What a node means to a DaemonSet: whether a pod is to be started there, and whether one may stay."""

    runs: bool
    stays: bool


class Eligibility:
    """The nodes that suit one DaemonSet."""

    def __init__(self, wanted: DaemonSet) -> None:
        self._spec = decode(wanted.spec.template.spec, PodSpec)
        self._matcher: NodeMatcher = node_matcher(self._spec)
        self._tolerations = tolerations(self._spec)

    def of(self, node: Node) -> Site:
        """What a node is good for."""
        name = node.metadata.name
        if self._spec.node_name not in ("", name) or not self._fits(node):
            return Site(runs=False, stays=False)
        taints = node.spec.taints
        if first_untolerated(taints, self._tolerations, HARD_EFFECTS) is None:
            return Site(runs=True, stays=True)
        return Site(runs=False, stays=first_untolerated(taints, self._tolerations, (NO_EXECUTE,)) is None)

    def _fits(self, node: Node) -> bool:
        try:
            return self._matcher.matches(node.metadata.labels, node.metadata.name)
        except SelectorError:
            return False  # as upstream: a term that makes no sense suits no node


def tolerations(spec: PodSpec) -> tuple[Toleration, ...]:
    """What the pods tolerate: as their template says, and what comes over nodes by itself."""
    added = [_toleration(key, effect) for key, effect in _ALWAYS_TOLERATED]
    if spec.host_network:
        added.append(_toleration("network-unavailable", NO_SCHEDULE))
    kinds = {_kind(one): one for one in added}
    kept = [kinds.pop(_kind(one), one) for one in spec.tolerations]
    return (*kept, *kinds.values())


def _toleration(key: str, effect: str) -> Toleration:
    return Toleration(key=f"node.kubernetes.io/{key}", operator="Exists", effect=effect)


def _kind(one: Toleration) -> tuple[str, str, str, str]:
    return (one.key, one.operator, one.value, one.effect)


class PodSpecs:
    """The specs of a DaemonSet's pods: the template's, each tied to a node by its name."""

    def __init__(self, wanted: DaemonSet) -> None:
        raw = wanted.spec.template.spec
        self._spec: dict[str, Any] = msgspec.json.decode(raw)
        self._spec["tolerations"] = msgspec.to_builtins(tolerations(decode(raw, PodSpec)))

    def on(self, node: str) -> Section:
        """The spec of the pod of a node."""
        terms = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}]
        affinity = self._spec.get("affinity", {})
        required = affinity.get("nodeAffinity", {}) | {_REQUIRED: {"nodeSelectorTerms": terms}}
        return Section(msgspec.json.encode(self._spec | {"affinity": affinity | {"nodeAffinity": required}}))


def target_node(pod: Pod) -> str:
    """The node that a pod is on or was made for; empty if it was made for none."""
    if pod.spec.node_name:
        return pod.spec.node_name
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity else None
    terms = affinity.required.node_selector_terms if affinity and affinity.required else ()
    fields: Iterable[NodeSelectorRequirement] = (field for term in terms for field in term.match_fields)
    named = (one.values[0] for one in fields if one.key == "metadata.name" and one.operator == "In" and one.values)
    return next(named, "")
