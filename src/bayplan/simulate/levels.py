"""How high something stood over a run: means and maxima by time, however seldom somebody looks.

Levels are told the time before each change, and add up what has been held since the last. So a change costs the same
however much there is, and nothing between two samples is lost. What was held for no time is no maximum, but for what
stands when all is done: that would have been held on.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from bayplan.model.clock import Instant

NAMES = ("cpu", "memory", "gpu", "pending")


class Level(msgspec.Struct, frozen=True):
    """One of them over a run."""

    mean: float
    most: float
    parts: tuple[float, ...]
    """Its means from each sample to the next."""


class Levels:
    """Shares of CPU, memory and GPUs that are requested, and pods that wait."""

    def __init__(self, start: Instant) -> None:
        self.at = self._start = self._cut_at = start
        """Up to when it is known."""
        self._areas = [0.0] * len(NAMES)
        self._most = [0.0] * len(NAMES)
        self._cut = [0.0] * len(NAMES)
        self._parts: list[list[float]] = [[] for _ in NAMES]

    def pass_to(self, now: Instant, held: Sequence[float]) -> None:
        """Let it be that time; until now these were held."""
        passed = now - self.at
        if passed <= 0:
            return
        self.at = now
        for place, value in enumerate(held):
            if value:
                self._areas[place] += value * passed
                self._most[place] = max(self._most[place], value)

    def rest(self, stands: Sequence[float]) -> None:
        """All is done, and it stands so."""
        self._most = [max(pair) for pair in zip(self._most, stands, strict=True)]

    def sample(self) -> None:
        """A part ends."""
        passed = self.at - self._cut_at
        if passed:
            for place, area in enumerate(self._areas):
                self._parts[place].append(round((area - self._cut[place]) / passed, 6))
            self._cut, self._cut_at = [*self._areas], self.at

    def found(self) -> dict[str, Level]:
        """All of it, by name. Of no time at all there is no mean but the maximum."""
        span = self.at - self._start
        means = [area / span for area in self._areas] if span else self._most
        return {
            name: Level(round(mean, 6), round(most, 6), tuple(parts))
            for name, mean, most, parts in zip(NAMES, means, self._most, self._parts, strict=True)
        }
