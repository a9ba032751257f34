"""A span of time cut into steps: an hour's on the hours (of UTC), so the first and the last may be shorter."""

from __future__ import annotations

from bisect import bisect_right

import msgspec

from bayplan.model.clock import Instant
from bayplan.model.errors import PermanentError

MOST_STEPS = 100_000


class WindowError(PermanentError):
    """A window that ends before it begins, or has more steps than anybody reads."""

    code = "BP-D040"


class Window(msgspec.Struct, frozen=True):
    """From `since` to before `until`; no step: in one piece. Raises WindowError."""

    since: Instant
    until: Instant
    step: int | None = None

    def __post_init__(self) -> None:
        if self.until <= self.since:
            raise WindowError("the time asked about ends before it begins", hint="--since must be before --until")
        if self.step is not None and (self.step <= 0 or (self.until - self.since) // self.step > MOST_STEPS):
            raise WindowError(f"more than {MOST_STEPS} steps", hint="a longer --step, or a shorter time")

    def edges(self) -> list[int]:
        """Where its steps begin, and its end."""
        if self.step is None:
            return [self.since, self.until]
        first = (self.since // self.step + 1) * self.step
        return [self.since, *range(first, self.until, self.step), self.until]

    def __len__(self) -> int:
        return len(self.edges()) - 1


class Sums:
    """Something times time, step by step, for as many keys as turn up: whole numbers, so that parts equal the whole.

    A period costs the same however many steps it spans: what it adds to whole steps is kept as a difference.
    """

    def __init__(self, window: Window) -> None:
        self._edges = window.edges()
        self._amounts: dict[tuple[str, ...], list[int]] = {}
        self._rises: dict[tuple[str, ...], list[int]] = {}

    def add(self, key: tuple[str, ...], value: int, start: int, end: int | None) -> None:
        """`value` held from `start` to `end` (None: still), as far as that is within the window."""
        edges = self._edges
        begin = max(start, edges[0])
        over = edges[-1] if end is None else min(end, edges[-1])
        if begin >= over:
            return
        amounts = self._amounts.get(key)
        if amounts is None:
            amounts = self._amounts[key] = [0] * (len(edges) - 1)
            self._rises[key] = [0] * len(edges)
        first = bisect_right(edges, begin) - 1
        last = bisect_right(edges, over - 1) - 1
        if first == last:
            amounts[first] += value * (over - begin)
            return
        amounts[first] += value * (edges[first + 1] - begin)
        amounts[last] += value * (over - edges[last])
        rises = self._rises[key]
        rises[first + 1] += value
        rises[last] -= value

    def totals(self) -> dict[tuple[str, ...], tuple[int, ...]]:
        """The amounts of each key, a step each."""
        return {key: self._total(key) for key in sorted(self._amounts)}

    def _total(self, key: tuple[str, ...]) -> tuple[int, ...]:
        level, found = 0, []
        for index, amount in enumerate(self._amounts[key]):
            level += self._rises[key][index]
            found.append(amount + level * (self._edges[index + 1] - self._edges[index]))
        return tuple(found)
