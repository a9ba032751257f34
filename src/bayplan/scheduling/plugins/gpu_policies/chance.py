"""Any node that will do, and any device on it: what the other policies must beat.

The draw depends on the seed and on the pod's name alone, so that asking twice gives the same answer.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import numpy as np

from bayplan.model.meta import Wire
from bayplan.scheduling.framework import MAX_SCORE
from bayplan.scheduling.gpus.devices import best_fit
from bayplan.scheduling.plugins.gpu_policies.policy import GpuPolicy

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bayplan.scheduling.gpus.asking import Devices
    from bayplan.scheduling.gpus.columns import GpuColumns, Ints, Positions
    from bayplan.scheduling.plugins.gpu_policies.policy import Request
    from bayplan.scheduling.pods import PodInfo
    from bayplan.scheduling.state import NodeState


class RandomArgs(Wire, frozen=True):
    """Of Random."""

    seed: int = 0


class Random(GpuPolicy):
    """One node at random."""

    name = "Random"

    def __init__(self, args: RandomArgs = RandomArgs()) -> None:  # noqa: B008 - frozen
        self._seed = args.seed

    def points(self, request: Request, columns: GpuColumns, at: Positions) -> Ints:
        """All are alike."""
        return np.zeros(len(at), dtype=np.int64)

    def settled(self, points: Ints, pod: PodInfo) -> Ints:
        """But one."""
        found = np.zeros_like(points)
        found[self._chance(pod, "node").randrange(len(found))] = MAX_SCORE
        return found

    def devices(self, pod: PodInfo, node: NodeState, devices: Sequence[int]) -> Devices:
        """One of those with enough left; of whole ones the first free."""
        ask = pod.gpus.ask
        if not ask.is_share:
            return best_fit(devices, ask)
        able = [device for device, each in enumerate(devices) if each >= ask.milli]
        return (self._chance(pod, "device").choice(able),)

    def _chance(self, pod: PodInfo, what: str) -> random.Random:
        return random.Random(f"{self._seed}/{what}/{'/'.join(pod.key)}")
