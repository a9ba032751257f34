"""Attempts under way, and what happened since each began.

A pod that is refused goes by the cluster as it was when the attempt began; what came in between may have helped it.
Events are kept once for all attempts, and only as long as one of them began before.

Source of truth: kube-scheduler 1.36 backend/queue/active_queue.go (inFlightPods, inFlightEvents).
"""

from __future__ import annotations

from collections import deque
from itertools import islice
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from bayplan.scheduling.pods import PodKey
    from bayplan.scheduling.queue.events import ClusterEvent, Subject

    Happening = tuple[ClusterEvent, Subject | None, Subject | None]


class Attempts:
    """Pods that were popped and not yet placed or refused."""

    __slots__ = ("_begun", "_events", "_forgotten")

    def __init__(self) -> None:
        self._begun: dict[PodKey, int] = {}  # in order; how many events there had been
        self._events: deque[Happening] = deque()
        self._forgotten = 0

    def __len__(self) -> int:
        return len(self._begun)

    def begin(self, key: PodKey) -> None:
        """A pod is being tried."""
        self._begun[key] = self._forgotten + len(self._events)

    def record(self, event: ClusterEvent, old: Subject | None, new: Subject | None) -> None:
        """Something happened."""
        if self._begun:
            self._events.append((event, old, new))

    def end(self, key: PodKey) -> Iterable[Happening]:
        """The attempt is over: all that happened meanwhile."""
        seen = tuple(islice(self._events, self._begun.pop(key) - self._forgotten, None))
        oldest = next(iter(self._begun.values()), None)
        while self._events and (oldest is None or self._forgotten < oldest):
            self._events.popleft()
            self._forgotten += 1
        return seen
