"""FGD: the node, and the device on it, where a pod makes the least of what is left useless to the pods to come.

What is left of a node's GPUs is, for a pod, fragmented as far as that pod could not use it: all of it where the pod
does not fit or wants none, else the devices with too little left. The expectation over typical pods is the node's
fragmentation, so with the share of each (they sum to 1)

    F = left - sum over typical pods that fit of share * what is left of devices that are large enough

and a placement is the better the more F falls, or the less it rises. Source: Weng et al., "Beware of Fragmentation:
Scheduling GPU-Sharing Workloads with Fragmentation Gradient Descent", USENIX ATC 2023, and its authors' simulator.
"""

from __future__ import annotations

from collections import Counter
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from bayplan.model.meta import Wire
from bayplan.scheduling.framework import MAX_SCORE
from bayplan.scheduling.gpus.asking import WHOLE
from bayplan.scheduling.gpus.columns import GpuColumns
from bayplan.scheduling.gpus.devices import best_fit
from bayplan.scheduling.plugins.gpu_policies.policy import GpuPolicy, request_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from bayplan.scheduling.gpus.asking import Devices
    from bayplan.scheduling.gpus.columns import Flags, Ints, Positions
    from bayplan.scheduling.plugins.gpu_policies.policy import Request
    from bayplan.scheduling.pods import PodInfo
    from bayplan.scheduling.state import NodeState

    Floats = NDArray[np.float64]

ENOUGH = 0.95
"""The share of all pods that the typical ones stand for."""


class TypicalPod(Wire, frozen=True):
    """A sort of pod that is expected, and how often. No `models`: any GPU will do."""

    cpu_milli: int = 0
    gpu_milli: int = 0
    gpus: int = 0
    models: tuple[str, ...] = ()
    weight: float = 1.0


class FgdArgs(Wire, frozen=True):
    """Of FGD: what pods are expected."""

    typical_pods: tuple[TypicalPod, ...] = ()


def typical(pods: Iterable[TypicalPod], enough: float = ENOUGH) -> tuple[TypicalPod, ...]:
    """The most frequent sorts of pods, until they stand for enough of all; each with how often it occurs.

    Of sorts that are equally frequent the one that asks for more comes first.
    """
    counts = Counter(pods)
    order = sorted(
        counts, key=lambda pod: (counts[pod], pod.cpu_milli, pod.gpu_milli, pod.gpus, pod.models), reverse=True
    )
    wanted, found = enough * counts.total(), 0
    kept: list[TypicalPod] = []
    for pod in order:
        if found >= wanted:
            break
        found += counts[pod]
        kept.append(TypicalPod(pod.cpu_milli, pod.gpu_milli, pod.gpus, pod.models, float(counts[pod])))
    return tuple(kept)


class _Expected:
    """Typical pods with GPUs, as columns. Those without count in the sum of weights alone: they use nothing."""

    def __init__(self, pods: Sequence[TypicalPod]) -> None:
        total = sum(pod.weight for pod in pods) or 1.0
        self._pods = [pod for pod in pods if pod.gpus]
        self.cpu: Ints = np.array([pod.cpu_milli for pod in self._pods], dtype=np.int64)
        self.milli: Ints = np.array([pod.gpu_milli for pod in self._pods], dtype=np.int64)
        self.gpus: Ints = np.array([pod.gpus for pod in self._pods], dtype=np.int64)
        self.share: Floats = np.array([pod.weight / total for pod in self._pods], dtype=np.float64)
        self._access: tuple[tuple[str, ...], Flags] | None = None
        self._is_choosy = any(pod.models for pod in self._pods)

    def access(self, columns: GpuColumns) -> Flags | None:
        """For each model of the nodes whether each pod may use it; None if all may use all."""
        if not self._is_choosy:
            return None
        if self._access is None or self._access[0] != columns.models:
            rows = [[not pod.models or model in pod.models for pod in self._pods] for model in columns.models]
            self._access = columns.models, np.array(rows, dtype=np.bool_).reshape(len(rows), len(self._pods))
        return self._access[1]


class FGD(GpuPolicy):
    """Fragmentation gradient descent."""

    name = "FGD"

    def __init__(self, args: FgdArgs = FgdArgs()) -> None:  # noqa: B008 - frozen
        self._expected = _Expected(args.typical_pods)

    def points(self, request: Request, columns: GpuColumns, at: Positions) -> Ints:
        """The best that a device of each node gives."""
        best: Ints = self._by_device(request, columns, at).max(axis=1)
        return best

    def devices(self, pod: PodInfo, node: NodeState, devices: Sequence[int]) -> Devices:
        """The device that made the score; of whole ones the first free."""
        request = request_of(pod)
        if not request.gpus.is_share or len({each for each in devices if each >= request.gpus.milli}) < 2:
            return best_fit(devices, request.gpus)
        columns = GpuColumns([node])
        columns.sync()
        points = self._by_device(request, columns, np.zeros(1, dtype=np.intp))
        return (int(points[0].argmax()),)

    def _usable(self, left: Ints) -> tuple[Ints, Ints]:
        """For each node and typical pod what is left of devices that are large enough, and how many these are."""
        large = left[:, :, None] >= self._expected.milli
        return np.einsum("kg,kgt->kt", left, large), large.sum(axis=1)

    def _of_use(self, usable: Ints, able: Ints, columns: GpuColumns, cpu: Ints, at: Positions) -> Floats:
        expected = self._expected
        fits = able >= expected.gpus
        fits &= cpu[:, None] >= expected.cpu
        access = expected.access(columns)
        if access is not None:
            fits &= access[columns.model[at]]
        return (usable * fits) @ expected.share

    def _by_device(self, request: Request, columns: GpuColumns, at: Positions) -> Ints:
        """Points for each node, and for a share for each of its devices; -1 where it does not go, or as an equal does.

        Of devices with the same left the first stands for all.
        """
        left, cpu = columns.left[at], columns.cpu[at]
        usable, able = self._usable(left)
        before = left.sum(axis=1) - self._of_use(usable, able, columns, cpu, at)
        if not request.gpus.is_share:
            after = _less(left, request)
            usable, able = self._usable(after)
            fragmented = after.sum(axis=1) - self._of_use(usable, able, columns, cpu - request.cpu, at)
            return _sigmoid(before - fragmented)[:, None]
        milli, expected = request.gpus.milli, self._expected
        node, device = np.nonzero(_first_of_equals(left) & (left >= milli))
        was = left[node, device][:, None]
        usable_then = usable[node] - np.where(
            was - milli >= expected.milli, milli, np.where(was >= expected.milli, was, 0)
        )
        able_then = able[node] - ((was >= expected.milli) & (was - milli < expected.milli))
        of_use = self._of_use(usable_then, able_then, columns, cpu[node] - request.cpu, at[node])
        points = np.full(left.shape, -1, dtype=np.int64)
        points[node, device] = _sigmoid(before[node] - (left.sum(axis=1)[node] - milli - of_use))
        return points


def _first_of_equals(left: Ints) -> Flags:
    """For each device whether none before it has as much left."""
    same = left[:, :, None] == left[:, None, :]
    same &= _earlier(left.shape[1])
    found: Flags = ~same.any(axis=2)
    return found


@lru_cache(maxsize=8)
def _earlier(size: int) -> Flags:
    """For each device which ones stand before it."""
    found: Flags = np.tri(size, k=-1, dtype=np.bool_)
    return found


def _less(left: Ints, request: Request) -> Ints:
    """What would be left without whole devices that are free."""
    after = left.copy()
    if request.gpus.number:
        free = after == WHOLE
        after[free & (free.cumsum(axis=1) <= request.gpus.number)] = 0
    return after


def _sigmoid(fall: Floats) -> Ints:
    points: Ints = (MAX_SCORE / (1.0 + np.exp(fall / -float(WHOLE)))).astype(np.int64)
    return points
