"""A burst budget that learns: a moving average of the quota that would have sufficed.

A task throttled in a share r of its periods got at most its quota in them, so it wanted about quota / (1 - r). Each
look moves the estimate a part of the way there (an exponentially weighted moving average); a look without throttling
moves it back towards the task's own quota. So it is bounded (own to `MOST` times), grows with the rate, and forgets.
"""

from __future__ import annotations

from typing import Self

import msgspec

LEARNING = 0.3
"""The part of the way a look moves the estimate: half of it is forgotten after two quiet looks."""
LEAST, MOST = 1.5, 3.0
"""A burst is worth at least and at most so many quotas, however little or much was learnt."""


class Budget(msgspec.Struct, frozen=True):
    """What a task's bursts get, in units of its own quota."""

    learned: float = 1.0

    def learn(self, rate: float) -> Self:
        """The estimate after a look at which this share of periods was throttled."""
        needed = MOST if rate >= 1 else min(1 / (1 - max(rate, 0.0)), MOST)
        return type(self)(self.learned + LEARNING * (needed - self.learned))

    def factor(self, most: float = MOST) -> float:
        """By how much a burst multiplies the quota; `most` is the tier's."""
        return max(LEAST, min(self.learned, most))
