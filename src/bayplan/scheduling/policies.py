"""Policies by name: what a profile scores by, the rest being as kube-scheduler is shipped."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from bayplan.scheduling.arguments import (
    NodeResourcesFitArgs,
    RequestedToCapacityRatioParam,
    ScoringStrategy,
    ShapePoint,
)
from bayplan.scheduling.plugins.gpu_policies.chance import Random, RandomArgs
from bayplan.scheduling.plugins.gpu_policies.fragmentation import FGD, FgdArgs
from bayplan.scheduling.plugins.gpu_policies.packing import BestFit, DotProd, GpuClustering, GpuPacking
from bayplan.scheduling.plugins.gpu_share import GpuShare
from bayplan.scheduling.plugins.node_resources_fit import NodeResourcesFit
from bayplan.scheduling.profiles import default_profile

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from bayplan.scheduling.framework import Profile
    from bayplan.scheduling.plugins.gpu_policies.fragmentation import TypicalPod
    from bayplan.scheduling.plugins.gpu_policies.policy import GpuPolicy

GPU_POLICIES: dict[str, Callable[[Sequence[TypicalPod], int], GpuPolicy]] = {
    "random": lambda _, seed: Random(RandomArgs(seed)),
    "dotprod": lambda *_: DotProd(),
    "gpuclustering": lambda *_: GpuClustering(),
    "gpupacking": lambda *_: GpuPacking(),
    "bestfit": lambda *_: BestFit(),
    "fgd": lambda typical, _: FGD(FgdArgs(tuple(typical))),
}
"""Those that place GPU pods by the device, each alone: in the order of the paper's table."""

_FULL_IS_BEST = ScoringStrategy(
    type="RequestedToCapacityRatio",
    requested_to_capacity_ratio=RequestedToCapacityRatioParam((ShapePoint(0, 0), ShapePoint(100, 10))),
)
STRATEGIES: dict[str, ScoringStrategy] = {
    "default": ScoringStrategy(),
    "mostallocated": ScoringStrategy(type="MostAllocated"),
    "requestedtocapacityratio": _FULL_IS_BEST,
}
"""Those of NodeResourcesFit, beside the other plugins as they are."""
POLICIES = (*STRATEGIES, *GPU_POLICIES)
_ALL_NODES = 100


def by_device(policy: GpuPolicy) -> Profile:
    """A profile that scores by one policy alone, all nodes, and takes the first of equals."""
    shipped = default_profile()
    return msgspec.structs.replace(
        shipped,
        filters=(*shipped.filters, GpuShare()),
        scorers=((policy, 1),),
        preemption=None,
        percentage_of_nodes_to_score=_ALL_NODES,
        ties="first",
    )


def profile(name: str, typical: Sequence[TypicalPod] = (), seed: int = 0) -> Profile:
    """The profile of a policy. `typical` is what FGD expects, `seed` what Random draws by. Raises KeyError."""
    if name in GPU_POLICIES:
        return by_device(GPU_POLICIES[name](typical, seed))
    return default_profile(arguments={NodeResourcesFit.name: NodeResourcesFitArgs(scoring_strategy=STRATEGIES[name])})
