"""Chance and the course of a day, from a generator that is handed in."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator, Mapping, Sequence

from bayplan.model.clock import SECOND
from bayplan.service.durations import Duration
from bayplan.simulate.entry import Spread
from bayplan.simulate.scenario import FLAT, Arrivals, Mishap, Size

HOUR = 3600 * SECOND

Curves = Mapping[str, Sequence[float]]
Offset = int
"""Microseconds since the scenario's start."""


def level(curves: Curves, name: str, at: Offset) -> float:
    """How high a curve stands, from 0 to 1."""
    if name == FLAT:
        return 1.0
    hours = curves[name]
    hour, rest = divmod(at, HOUR)
    here, there = hours[hour % 24], hours[(hour + 1) % 24]
    return here + (there - here) * rest / HOUR


def arrival_times(
    arrivals: Arrivals, curves: Curves, chance: random.Random, peak: float | None = None
) -> Iterator[Offset]:
    """When arrivals come; with `peak` at that many times their pace and without end, for somebody else to count."""
    if arrivals.per_hour is not None:
        times = _by_chance(arrivals.per_hour * (peak or 1), arrivals, curves, chance)
    elif arrivals.every is not None:
        times = itertools.count(arrivals.start.micros, max(1, round(arrivals.every.micros / (peak or 1))))
    else:
        times = itertools.repeat(arrivals.start.micros, arrivals.count or 0)
    return iter(times) if peak is not None else itertools.islice(times, arrivals.count)


def _by_chance(per_hour: float, arrivals: Arrivals, curves: Curves, chance: random.Random) -> Iterator[Offset]:
    """A Poisson process whose rate follows the curve: candidates at the full rate, kept as the curve says."""
    at = 0.0
    while True:
        at += chance.expovariate(per_hour)
        offset = arrivals.start.micros + round(at * HOUR)
        if chance.random() < level(curves, arrivals.curve, offset):
            yield offset


def span(spread: Spread, chance: random.Random) -> Duration:
    """A span in whole seconds, at least one."""
    micros = spread.median.micros * math.exp(chance.gauss(0, 1) * math.log(spread.spread))
    if spread.most is not None:
        micros = min(micros, spread.most.micros)
    return Duration(max(SECOND, round(micros / SECOND) * SECOND))


def size(sizes: Sequence[Size], chance: random.Random) -> Size:
    """One of the sizes, by their shares."""
    return chance.choices(sizes, [each.share for each in sizes])[0]


def mishap(mishaps: Sequence[Mishap], chance: random.Random) -> Mishap | None:
    """What goes wrong with one arrival, if anything. The shares are of all arrivals."""
    drawn = chance.random()
    for each in mishaps:
        drawn -= each.share
        if drawn < 0:
            return each
    return None
