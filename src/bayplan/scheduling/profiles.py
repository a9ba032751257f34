"""The plugins there are, and profiles made of them.

`KNOWN` is the one table: upstream's default plugins in upstream's order, with what they weigh and where they take part.
The default profile is all of it; a configuration is a selection from it.

Source of truth: kube-scheduler 1.36 apis/config/v1/default_plugins.go with the default feature gates.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec

from bayplan.model.meta import Wire
from bayplan.scheduling.arguments import (
    DefaultPreemptionArgs,
    InterPodAffinityArgs,
    NodeAffinityArgs,
    NodeResourcesBalancedAllocationArgs,
    NodeResourcesFitArgs,
    PodTopologySpreadArgs,
)
from bayplan.scheduling.framework import Plugin, Profile
from bayplan.scheduling.plugins.balanced_allocation import NodeResourcesBalancedAllocation
from bayplan.scheduling.plugins.dynamic_resources import DynamicResources
from bayplan.scheduling.plugins.gpu_policies.chance import Random, RandomArgs
from bayplan.scheduling.plugins.gpu_policies.fragmentation import FGD, FgdArgs
from bayplan.scheduling.plugins.gpu_policies.packing import BestFit, DotProd, GpuClustering, GpuPacking
from bayplan.scheduling.plugins.gpu_share import GpuShare
from bayplan.scheduling.plugins.image_locality import ImageLocality
from bayplan.scheduling.plugins.inter_pod_affinity import InterPodAffinity
from bayplan.scheduling.plugins.node_affinity import NodeAffinity
from bayplan.scheduling.plugins.node_declared_features import NodeDeclaredFeatures
from bayplan.scheduling.plugins.node_name import NodeName
from bayplan.scheduling.plugins.node_ports import NodePorts
from bayplan.scheduling.plugins.node_resources_fit import NodeResourcesFit
from bayplan.scheduling.plugins.node_topology import NodeTopology
from bayplan.scheduling.plugins.node_unschedulable import NodeUnschedulable
from bayplan.scheduling.plugins.node_volume_limits import NodeVolumeLimits
from bayplan.scheduling.plugins.pod_topology_spread import PodTopologySpread
from bayplan.scheduling.plugins.scheduling_gates import SchedulingGates
from bayplan.scheduling.plugins.taint_toleration import TaintToleration
from bayplan.scheduling.plugins.volume_binding import VolumeBinding
from bayplan.scheduling.plugins.volume_restrictions import VolumeRestrictions
from bayplan.scheduling.plugins.volume_zone import VolumeZone

Enabled = Mapping[str, Sequence[tuple[str, int]]]
"""For each extension point the plugins in order, with what they weigh there."""


class Known(msgspec.Struct, frozen=True):
    """A plugin by name. `make` is None where it does nothing that is modelled as a Plugin."""

    name: str
    points: frozenset[str]
    weight: int = 0
    make: Callable[..., Plugin] | None = None
    args: type[Wire] | None = None
    """What it can be configured with; `make` takes one of these."""


def _known(plugin: str | type[Plugin], points: str, weight: int = 0, args: type[Wire] | None = None) -> Known:
    name, make = (plugin, None) if isinstance(plugin, str) else (plugin.name, plugin)
    return Known(name, frozenset(points.split()), weight, make, args)


_FILTER = "preFilter filter"
_BOTH = "preFilter filter preScore score"

KNOWN: tuple[Known, ...] = (
    _known(SchedulingGates, "preEnqueue"),
    _known("PrioritySort", "queueSort"),
    _known(NodeUnschedulable, "filter"),
    _known(NodeName, "filter"),
    _known(TaintToleration, "filter preScore score", 3),
    _known(NodeAffinity, _BOTH, 2, NodeAffinityArgs),
    _known(NodePorts, _FILTER),
    _known(NodeResourcesFit, _BOTH, 1, NodeResourcesFitArgs),
    _known(VolumeRestrictions, _FILTER),
    _known(NodeVolumeLimits, _FILTER),
    _known(VolumeBinding, "preFilter filter reserve preBind preScore score", 1),
    _known(VolumeZone, _FILTER),
    _known(PodTopologySpread, _BOTH, 2, PodTopologySpreadArgs),
    _known(InterPodAffinity, _BOTH, 2, InterPodAffinityArgs),
    _known(DynamicResources, "preEnqueue preFilter filter postFilter score reserve preBind", 2),
    _known("DefaultPreemption", "preEnqueue postFilter", args=DefaultPreemptionArgs),
    _known(NodeResourcesBalancedAllocation, "preScore score", 1, NodeResourcesBalancedAllocationArgs),
    _known(ImageLocality, "score", 1),
    _known("DefaultBinder", "bind"),
    _known(NodeDeclaredFeatures, _FILTER),
)
FURTHER: tuple[Known, ...] = (
    _known(GpuShare, "preFilter filter reserve"),
    _known(FGD, "score", 1, FgdArgs),
    _known(BestFit, "score", 1),
    _known(DotProd, "score", 1),
    _known(GpuPacking, "score", 1),
    _known(GpuClustering, "score", 1),
    _known(Random, "score", 1, RandomArgs),
    _known(NodeTopology, "filter"),
)
"""Those that upstream does not have; a configuration enables them."""
PLUGINS: Mapping[str, Known] = {known.name: known for known in (*KNOWN, *FURTHER)}


def default_enabled() -> dict[str, list[tuple[str, int]]]:
    """What is enabled where, unless a configuration says otherwise."""
    points = sorted({point for known in KNOWN for point in known.points})
    return {point: [(known.name, known.weight) for known in KNOWN if point in known.points] for point in points}


def assemble(
    scheduler_name: str,
    enabled: Enabled,
    arguments: Mapping[str, Wire] = {},
    percentage_of_nodes_to_score: int = 0,
) -> Profile:
    """A profile of the plugins that are enabled, with arguments for some of them by name.

    A plugin that filters brings its preparation along, so only `filter` and `score` are looked at, not their `pre`.
    """
    after = {name for name, _ in enabled.get("postFilter", ())}
    wanted = {name for point in ("preEnqueue", "filter", "score") for name, _ in enabled.get(point, ())}
    made: dict[str, Plugin] = {}
    for name in wanted:
        make = PLUGINS[name].make
        if make is not None:
            made[name] = make(arguments[name]) if name in arguments else make()

    def at(point: str) -> list[tuple[Plugin, int]]:
        return [(made[name], weight) for name, weight in enabled.get(point, ()) if name in made]

    preemption = arguments.get("DefaultPreemption", DefaultPreemptionArgs())
    assert isinstance(preemption, DefaultPreemptionArgs)  # whoever reads a configuration has seen to it
    return Profile(
        scheduler_name,
        gates=tuple(plugin for plugin, _ in at("preEnqueue")),
        filters=tuple(plugin for plugin, _ in at("filter")),
        scorers=tuple(at("score")),
        preemption=preemption if "DefaultPreemption" in after else None,
        claims=DynamicResources.name in after,
        percentage_of_nodes_to_score=percentage_of_nodes_to_score,
    )


def default_profile(
    scheduler_name: str = "default-scheduler",
    percentage_of_nodes_to_score: int = 0,
    arguments: Mapping[str, Wire] = {},
) -> Profile:
    """kube-scheduler as it is shipped, but for arguments given by the plugin's name."""
    return assemble(scheduler_name, default_enabled(), arguments, percentage_of_nodes_to_score)
