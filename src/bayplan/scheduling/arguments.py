"""The arguments of plugins, by upstream's names, with upstream's defaults.

Source of truth: k8s.io/kube-scheduler 0.36 config/v1 and the scheduler's defaults.go.
"""

from __future__ import annotations

from typing import Literal

from bayplan.model.affinity import NodeAffinity, TopologySpreadConstraint
from bayplan.model.meta import Wire
from bayplan.model.resources import CPU, MEMORY


class ResourceSpec(Wire, frozen=True):
    """A resource and what it weighs."""

    name: str
    weight: int = 1


class ShapePoint(Wire, frozen=True):
    """At this utilisation, in percent, a score from 0 to 10."""

    utilization: int = 0
    score: int = 0


CPU_AND_MEMORY = (ResourceSpec(CPU), ResourceSpec(MEMORY))


class RequestedToCapacityRatioParam(Wire, frozen=True):
    """The function from utilisation to score."""

    shape: tuple[ShapePoint, ...] = ()


class ScoringStrategy(Wire, frozen=True):
    """How NodeResourcesFit scores."""

    type: Literal["LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"] = "LeastAllocated"
    resources: tuple[ResourceSpec, ...] = CPU_AND_MEMORY
    requested_to_capacity_ratio: RequestedToCapacityRatioParam | None = None


class NodeResourcesFitArgs(Wire, frozen=True):
    """Of NodeResourcesFit. Ignored resources and groups concern extended resources only."""

    ignored_resources: tuple[str, ...] = ()
    ignored_resource_groups: tuple[str, ...] = ()
    scoring_strategy: ScoringStrategy = ScoringStrategy()


class NodeResourcesBalancedAllocationArgs(Wire, frozen=True):
    """Of NodeResourcesBalancedAllocation."""

    resources: tuple[ResourceSpec, ...] = CPU_AND_MEMORY


class PodTopologySpreadArgs(Wire, frozen=True):
    """Of PodTopologySpread: how pods are spread that do not say."""

    default_constraints: tuple[TopologySpreadConstraint, ...] = ()
    defaulting_type: Literal["System", "List"] = "System"


class InterPodAffinityArgs(Wire, frozen=True):
    """Of InterPodAffinity."""

    hard_pod_affinity_weight: int = 1
    ignore_preferred_terms_of_existing_pods: bool = False


class NodeAffinityArgs(Wire, frozen=True):
    """Of NodeAffinity: an affinity that every pod of the profile has besides its own."""

    added_affinity: NodeAffinity | None = None


class DefaultPreemptionArgs(Wire, frozen=True):
    """Of DefaultPreemption: how many nodes are tried at least, as a share and as a number."""

    min_candidate_nodes_percentage: int = 10
    min_candidate_nodes_absolute: int = 100


class VolumeBindingArgs(Wire, frozen=True):
    """Of VolumeBinding. The shape is for the feature gate StorageCapacityScoring, which is off by default."""

    bind_timeout_seconds: int = 600
    shape: tuple[ShapePoint, ...] = ()


class DynamicResourcesArgs(Wire, frozen=True):
    """Of DynamicResources, as Go durations."""

    filter_timeout: str = "10s"
    binding_timeout: str = "10m"
