"""What the policies have in common: a formula over columns, and a choice of device.

A policy says what a node is worth to a pod from that node alone, for many nodes at once. The same formula serves a
single decision that is to be explained (`score`, over columns made for it) and the rows that are kept between decisions
(`fast.gpu_rows`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bayplan.scheduling.framework import NodeScore, Plugin
from bayplan.scheduling.gpus.columns import GpuColumns
from bayplan.scheduling.gpus.devices import best_fit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bayplan.scheduling.gpus.asking import Ask, Devices
    from bayplan.scheduling.gpus.columns import Ints, Positions
    from bayplan.scheduling.pods import PodInfo
    from bayplan.scheduling.state import ClusterState, NodeState


class Request(NamedTuple):
    """A pod in the eyes of a policy."""

    gpus: Ask
    cpu: int
    """Thousandths of a CPU, something for containers that do not say."""


def request_of(pod: PodInfo) -> Request:
    """What policies look at."""
    return Request(pod.gpus.ask, pod.nonzero.cpu)


class GpuPolicy(Plugin):
    """A plugin that scores."""

    def points(self, request: Request, columns: GpuColumns, at: Positions) -> Ints:
        """What these nodes are worth to a pod, which fits on each of them."""
        raise NotImplementedError

    def settled(self, points: Ints, pod: PodInfo) -> Ints:
        """The points of all feasible nodes as they count in the end."""
        return points

    def devices(self, pod: PodInfo, node: NodeState, devices: Sequence[int]) -> Devices:
        """Which of a node's devices, of which so much is left, the pod gets."""
        return best_fit(devices, pod.gpus.ask)

    def score(self, pod: PodInfo, state: ClusterState, nodes: Sequence[NodeState]) -> NodeScore:
        """Always, also for pods without GPUs."""
        columns = GpuColumns(nodes)
        columns.sync()
        points = self.points(request_of(pod), columns, np.arange(len(nodes)))
        return _Scores(self, pod, dict(zip((node.name for node in nodes), points.tolist(), strict=True)))


class _Scores(NodeScore):
    def __init__(self, policy: GpuPolicy, pod: PodInfo, points: dict[str, int]) -> None:
        self._policy = policy
        self._pod = pod
        self._points = points

    def score(self, node: NodeState) -> int:
        return self._points[node.name]

    def normalise(self, nodes: Sequence[NodeState], scores: list[int]) -> list[int]:
        found: list[int] = self._policy.settled(np.array(scores, dtype=np.int64), self._pod).tolist()
        return found
