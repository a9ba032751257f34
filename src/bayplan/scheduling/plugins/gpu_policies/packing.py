"""Four ways to fill nodes up: by what is left, by alignment, by device, by like with like.

Scores are whole numbers, cut off and not rounded, as the authors' simulator has them: ties depend on it. They are 0 to
100 on nodes up to MOST_CPU and MOST_GPU; larger ones may fall below.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bayplan.scheduling.framework import MAX_SCORE
from bayplan.scheduling.gpus.asking import WHOLE
from bayplan.scheduling.gpus.columns import tag
from bayplan.scheduling.plugins.gpu_policies.policy import GpuPolicy

if TYPE_CHECKING:
    from bayplan.scheduling.gpus.columns import GpuColumns, Ints, Positions
    from bayplan.scheduling.plugins.gpu_policies.policy import Request
    from bayplan.scheduling.pods import PodInfo

MOST_CPU = 128_000
"""The largest node of the paper's trace, by which CPUs are made comparable with GPUs; and its GPUs."""
MOST_GPU = 8 * WHOLE
_TIER = MAX_SCORE // 4


class BestFit(GpuPolicy):
    """The node of which the least would be left, CPU and GPU counted alike."""

    name = "BestFit"

    def points(self, request: Request, columns: GpuColumns, at: Positions) -> Ints:
        """A hundred for a node that would be full."""
        cpu = (columns.cpu[at] - request.cpu) / MOST_CPU * 0.5
        gpu = (columns.left[at].sum(axis=1) - request.gpus.total) / MOST_GPU * 0.5
        found: Ints = ((1.0 - (cpu + gpu)) * float(MAX_SCORE)).astype(np.int64)
        return found

    def settled(self, points: Ints, pod: PodInfo) -> Ints:
        """Stretched, so that the best has 100 and the worst 0."""
        least = int(points.min())
        span = int(points.max()) - least
        return (points - least) * MAX_SCORE // span if span else np.zeros_like(points)


class DotProd(GpuPolicy):
    """The node whose rest points least in the direction in which the pod asks."""

    name = "DotProd"

    def points(self, request: Request, columns: GpuColumns, at: Positions) -> Ints:
        """The smaller the product of what is left and what is asked for, the better."""
        cpu = columns.cpu[at] / MOST_CPU * (request.cpu / MOST_CPU)
        gpu = columns.left[at].sum(axis=1) / MOST_GPU * (request.gpus.total / MOST_GPU)
        found: Ints = (float(MAX_SCORE) * (1.0 - (cpu + gpu) / 2)).astype(np.int64)
        return found


class GpuPacking(GpuPolicy):
    """First devices that are shared already, then free ones of nodes in use, then nodes that are free."""

    name = "GpuPacking"

    def points(self, request: Request, columns: GpuColumns, at: Positions) -> Ints:
        """Above 50, above 33, and below."""
        ask = request.gpus
        if not ask.number:
            return np.zeros(len(at), dtype=np.int64)
        left, count = columns.left[at], columns.count[at]
        free = (left == WHOLE).sum(axis=1)
        able = np.sort(np.where(left >= ask.milli, left, 2 * WHOLE), axis=1)[:, : ask.number]
        opened = (able == WHOLE).sum(axis=1)
        rest = (able * 100 // WHOLE).sum(axis=1)
        shared = np.maximum(MAX_SCORE - rest // 10, MAX_SCORE // 2)
        in_use = np.maximum(MAX_SCORE // 2 - opened, MAX_SCORE // 3)
        fresh = np.maximum(MAX_SCORE // 3 - free, free)
        found: Ints = np.where(free == count, fresh, np.where(opened > 0, in_use, shared))
        return found


class GpuClustering(GpuPolicy):
    """Pods of one size together: nodes with only such pods, then with such among others, then free ones."""

    name = "GpuClustering"

    def points(self, request: Request, columns: GpuColumns, at: Positions) -> Ints:
        """Four tiers of 25, each by how full the node is."""
        if not request.gpus.number:
            return np.zeros(len(at), dtype=np.int64)
        own, tags = tag(request.gpus), columns.tags[at]
        fullness = _TIER * (MOST_GPU - columns.left[at].sum(axis=1)) // MOST_GPU
        tier = np.where(tags == own, 3, np.where(tags & own, 2, np.where(tags == 0, 1, 0)))
        found: Ints = fullness + tier * _TIER
        return found
