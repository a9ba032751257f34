"""Where a pod wants to be: the types of node affinity, pod (anti-)affinity and topology spread.

The long wire names are shortened to `required` and `preferred`. `selectors` says what matches.
"""

from __future__ import annotations

import msgspec

from bayplan.model.meta import LabelSelector, Wire

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


class NodeSelectorRequirement(Wire, frozen=True):
    """One expression: operator In, NotIn, Exists, DoesNotExist, Gt or Lt."""

    key: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()


class NodeSelectorTerm(Wire, frozen=True):
    """Expressions that must all hold. A term without any matches no node."""

    match_expressions: tuple[NodeSelectorRequirement, ...] = ()
    match_fields: tuple[NodeSelectorRequirement, ...] = ()


class NodeSelector(Wire, frozen=True):
    """Terms of which one must hold."""

    node_selector_terms: tuple[NodeSelectorTerm, ...] = ()


class PreferredSchedulingTerm(Wire, frozen=True):
    """A wish and its weight, 1 to 100."""

    weight: int = 0
    preference: NodeSelectorTerm = NodeSelectorTerm()


class NodeAffinity(Wire, frozen=True):
    """Which nodes a pod must, and would rather, run on."""

    required: NodeSelector | None = msgspec.field(name=_REQUIRED, default=None)
    preferred: tuple[PreferredSchedulingTerm, ...] = msgspec.field(name=_PREFERRED, default=())


class PodAffinityTerm(Wire, frozen=True):
    """Pods (by labels and namespaces) and the topology within which to be near to, or away from, them."""

    label_selector: LabelSelector | None = None
    namespaces: tuple[str, ...] = ()
    topology_key: str = ""
    namespace_selector: LabelSelector | None = None
    match_label_keys: tuple[str, ...] = ()
    mismatch_label_keys: tuple[str, ...] = ()


class WeightedPodAffinityTerm(Wire, frozen=True):
    """A wish and its weight, 1 to 100."""

    weight: int = 0
    pod_affinity_term: PodAffinityTerm = PodAffinityTerm()


class PodAffinity(Wire, frozen=True):
    """Which pods a pod must, and would rather, be near to; in `pod_anti_affinity`: away from."""

    required: tuple[PodAffinityTerm, ...] = msgspec.field(name=_REQUIRED, default=())
    preferred: tuple[WeightedPodAffinityTerm, ...] = msgspec.field(name=_PREFERRED, default=())


class Affinity(Wire, frozen=True):
    """All of a pod's affinities."""

    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class TopologySpreadConstraint(Wire, frozen=True):
    """How unevenly a pod's like may be spread over the values of a node label."""

    max_skew: int = 0
    topology_key: str = ""
    when_unsatisfiable: str = ""
    label_selector: LabelSelector | None = None
    min_domains: int | None = None
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None
    match_label_keys: tuple[str, ...] = ()
