"""Usage over time as a small formula: `60%`, `ramp from=10% to=80% over=30m`, `daily low=10% high=90% peak=14h`,
`bursts base=10% high=90% every=10m for=1m`.

A level is a share of what was asked for (`60%`) or an amount (`250m`, `2Gi`). A curve has no state: its value is a
function of the time since the start and of the time of day.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from bayplan.model.clock import SECOND, Instant
from bayplan.model.durations import parse_duration
from bayplan.model.quantity import parse

_DAY = 86_400 * SECOND


class Level(NamedTuple):
    """How much: a share of what was asked for, or nanos of the unit."""

    share: float = 0.0
    nanos: int = 0

    def of(self, asked: float) -> float:
        """The level in units, given what was asked for."""
        return self.share * asked + self.nanos / 1e9


class Curve(NamedTuple):
    """A course between two levels. `span` and `part` are the shape's own times, in microseconds."""

    shape: str
    low: Level
    high: Level
    span: int = 0
    part: int = 0

    def at(self, since: Instant, now: Instant, asked: float) -> float:
        """The usage at an instant of something that began at `since`."""
        low, high = self.low.of(asked), self.high.of(asked)
        return low + (high - low) * self._height(now - since, now)

    def _height(self, elapsed: int, now: int) -> float:
        if self.shape == "ramp":
            return min(elapsed / self.span, 1.0) if self.span else 1.0
        if self.shape == "daily":
            return (1 + math.cos(2 * math.pi * (now % _DAY - self.part) / _DAY)) / 2
        if self.shape == "bursts":
            return 1.0 if elapsed % self.span >= self.span - self.part else 0.0
        return 1.0


# The words of each shape: low level, high level, span, part; and what they are when left out.
_SHAPES: dict[str, dict[str, str]] = {
    "ramp": {"from": "0", "to": "", "over": "10m"},
    "daily": {"low": "0", "high": "", "peak": "14h"},
    "bursts": {"base": "0", "high": "", "every": "10m", "for": "1m"},
}


def read_curve(text: str) -> Curve:
    """The curve that a text describes. Raises ValueError."""
    shape, *words = text.split() or [""]
    known = _SHAPES.get(shape)
    if known is None:
        if words and shape != "constant":
            raise ValueError(f"{text!r}: no such shape")
        level = _level(words[0] if words else shape)
        return Curve("constant", level, level)
    options = dict(word.partition("=")[::2] for word in words)
    if not options.keys() <= known.keys():
        raise ValueError(f"{text!r}: {shape} takes {', '.join(known)}")
    low, high, *times = {**known, **options}.values()
    spans = [parse_duration(each) for each in times]
    if shape == "daily":
        return Curve(shape, _level(low), _level(high), _DAY, spans[0])
    curve = Curve(shape, _level(low), _level(high), *spans)
    if curve.span < 0 or curve.part < 0 or curve.part > curve.span or (shape == "bursts" and not curve.span):
        raise ValueError(f"{text!r}: the times do not fit together")
    return curve


def _level(text: str) -> Level:
    level = Level(share=float(text[:-1]) / 100) if text.endswith("%") else Level(nanos=parse(text).nanos)
    if not math.isfinite(level.share) or level.share < 0 or level.nanos < 0:
        raise ValueError(f"{text!r} is no level, such as 60%, 250m, 2Gi")
    return level
