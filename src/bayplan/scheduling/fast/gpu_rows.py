"""GpuShare and a policy over columns: for one shape of pods which nodes lack devices, and what each is worth.

Both depend on a node alone, so a row is corrected only where nodes have changed since it was last looked at.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bayplan.scheduling.plugins.gpu_policies.policy import request_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bayplan.scheduling.fast.columns import Flags, Ints, Positions
    from bayplan.scheduling.gpus.columns import GpuColumns
    from bayplan.scheduling.plugins.gpu_policies.policy import GpuPolicy
    from bayplan.scheduling.pods import PodInfo

_ONE_OF_A_SORT = 48
"""From so many nodes on, it pays to look for those that are alike."""


class GpuRow:
    """What is kept for a shape."""

    __slots__ = ("_columns", "_lacking", "_points", "_policy", "_request", "_weight", "seen")

    def __init__(self, policy: GpuPolicy | None, weight: int, pod: PodInfo, columns: GpuColumns) -> None:
        self._policy, self._weight = policy, weight
        self._request = request_of(pod)
        self._columns = columns
        size = len(columns.nodes)
        self._lacking: Flags = np.zeros(size, dtype=np.bool_)
        self._points: Ints = np.zeros(size, dtype=np.int64)
        self.seen = 0
        """How far in the journal of changed nodes it has got."""
        self.correct(np.arange(size))

    def correct(self, at: Positions) -> None:
        """These nodes have changed."""
        columns = self._columns
        columns.sync()
        request = self._request
        if request.gpus.number:
            lacking = (columns.left[at] >= request.gpus.milli).sum(axis=1) < request.gpus.number
            self._lacking[at] = lacking
            at = at[~lacking]
        if self._policy is None or not len(at):
            return
        if len(at) < _ONE_OF_A_SORT:
            self._points[at] = self._policy.points(request, columns, at)
        else:
            heads, members = columns.alike(at)
            self._points[at] = self._policy.points(request, columns, heads)[members]

    def keep(self, ok: Flags) -> None:
        """Strike out the nodes that lack devices."""
        if self._request.gpus.number:
            ok &= ~self._lacking

    def add_points(self, points: Ints, chosen: Positions, pod: PodInfo) -> None:
        """Add what the policy gives the chosen nodes."""
        if self._policy is not None:
            points += self._policy.settled(self._points[chosen], pod) * self._weight

    def differences(self) -> Iterator[Flags]:
        """What tells nodes apart in the eyes of GpuShare."""
        count = self._request.gpus.number
        if count:
            yield self._lacking
            yield self._columns.count < count
            yield self._columns.count == 0
