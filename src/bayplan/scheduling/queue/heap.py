"""A queue by rank from which anything can be taken out: a heap whose stale items are passed over when they come up."""

from __future__ import annotations

import heapq
import itertools
from typing import Generic, TypeVar

K = TypeVar("K")
T = TypeVar("T")
_SLACK = 64


class LazyHeap(Generic[K, T]):
    """Items by key, the least rank first. A step takes O(log n) on average: stale items stay fewer than live ones."""

    __slots__ = ("_heap", "_live", "_tickets")

    def __init__(self) -> None:
        self._heap: list[tuple[tuple[int, ...], int, K, T]] = []
        self._live: dict[K, int] = {}  # key -> the ticket of its only valid item
        self._tickets = itertools.count()

    def __len__(self) -> int:
        return len(self._live)

    def push(self, key: K, rank: tuple[int, ...], item: T) -> None:
        """Put an item in, in the place of an earlier one with this key."""
        ticket = self._live[key] = next(self._tickets)
        heapq.heappush(self._heap, (rank, ticket, key, item))
        self._compact()

    def discard(self, key: K) -> None:
        """Take an item out, if it is there."""
        if self._live.pop(key, None) is not None:
            self._compact()

    def peek(self) -> T | None:
        """The first item."""
        while self._heap and not self._valid(self._heap[0]):
            heapq.heappop(self._heap)
        return self._heap[0][3] if self._heap else None

    def pop(self) -> T | None:
        """The first item, taken out."""
        first = self.peek()
        if first is not None:
            del self._live[heapq.heappop(self._heap)[2]]
        return first

    def _valid(self, entry: tuple[tuple[int, ...], int, K, T]) -> bool:
        return self._live.get(entry[2]) == entry[1]

    def _compact(self) -> None:
        if len(self._heap) > 2 * len(self._live) + _SLACK:
            self._heap = [entry for entry in self._heap if self._valid(entry)]
            heapq.heapify(self._heap)
