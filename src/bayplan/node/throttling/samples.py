"""Counters over time become rates over windows.

The kernel's counters only grow, until a container restarts under its old path and they begin at zero again; `Totals`
carries on from there, as Prometheus' `rate` does. Each window keeps twelve samples a tenth of it apart, so memory does
not grow with how often one looks, and a window is exact to a tenth of itself.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

import msgspec

from bayplan.model.clock import SECOND, Instant
from bayplan.node.cgroup.port import Counters

WINDOWS: dict[str, int] = {"10s": 10 * SECOND, "1m": 60 * SECOND, "5m": 300 * SECOND, "1h": 3600 * SECOND}
"""Spans by the name that metrics give them. The hour is for what is rare: bursts."""

_PARTS = 10
_NS = 1_000_000_000


class Totals(NamedTuple):
    """Everything that is counted for a group. They add and subtract field by field."""

    periods: int = 0
    throttled_periods: int = 0
    throttled_ns: int = 0
    bursts: int = 0
    burst_ns: int = 0
    usage_ns: int = 0
    run_queue_ns: int = 0
    pressure_us: int = 0

    @classmethod
    def of(cls, counters: Counters, run_queue_ns: int = 0, pressure_us: int = 0) -> Totals:
        """What the kernel's files say."""
        return cls(**msgspec.structs.asdict(counters), run_queue_ns=run_queue_ns, pressure_us=pressure_us)

    def plus(self, other: Totals) -> Totals:
        """The sum."""
        return Totals(*(mine + theirs for mine, theirs in zip(self, other, strict=True)))

    def minus(self, other: Totals) -> Totals:
        """The difference."""
        return Totals(*(mine - theirs for mine, theirs in zip(self, other, strict=True)))


class Sample(NamedTuple):
    """What was counted until an instant."""

    at: Instant
    totals: Totals


class Rates(msgspec.Struct, frozen=True):
    """What happened in a span of time."""

    span_us: int = 0
    delta: Totals = Totals()

    @property
    def throttle_rate(self) -> float:
        """Throttled periods of all periods; no periods, no throttling."""
        return self.delta.throttled_periods / self.delta.periods if self.delta.periods else 0.0

    @property
    def usage_cpus(self) -> float:
        """CPU seconds a second."""
        return self._a_second(self.delta.usage_ns / _NS)

    @property
    def throttled_seconds(self) -> float:
        """Seconds throttled a second, summed over CPUs: it may exceed one."""
        return self._a_second(self.delta.throttled_ns / _NS)

    @property
    def run_queue_seconds(self) -> float:
        """Seconds that threads waited for a CPU, a second, summed over threads; being throttled is waiting, too."""
        return self._a_second(self.delta.run_queue_ns / _NS)

    @property
    def pressure(self) -> float:
        """The share of time in which some task waited for a CPU (PSI)."""
        return self._a_second(self.delta.pressure_us / SECOND)

    @property
    def bursts_per_hour(self) -> float:
        """Periods that used more than their quota, an hour."""
        return 3600 * self._a_second(self.delta.bursts)

    def _a_second(self, amount: float) -> float:
        return amount * SECOND / self.span_us if self.span_us else 0.0


def between(earlier: Sample, later: Sample) -> Rates:
    """What happened from one sample to another."""
    return Rates(later.at - earlier.at, later.totals.minus(earlier.totals))


class History:
    """The samples of one group, as many as its windows need."""

    def __init__(self) -> None:
        self._rings: dict[str, deque[Sample]] = {name: deque(maxlen=_PARTS + 2) for name in WINDOWS}
        self._raw = Totals()
        self._before = Totals()
        """What was counted until the last restart."""
        self.latest: Sample | None = None
        self.restarts = 0

    def add(self, at: Instant, totals: Totals) -> None:
        """Take a reading. One that is not later than the last is passed over."""
        if self.latest is not None and at <= self.latest.at:
            return
        # periods and use tell a restart; the others may stand still or be unknown for a moment
        if totals.periods < self._raw.periods or totals.usage_ns < self._raw.usage_ns:
            # waiting is summed by `RunQueue`, which goes on by itself
            self._before = self._before.plus(self._raw._replace(run_queue_ns=0))
            self.restarts += 1
        self._raw = totals
        self.latest = Sample(at, self._before.plus(totals))
        for name, ring in self._rings.items():
            if not ring or at - ring[-1].at >= WINDOWS[name] // _PARTS:
                ring.append(self.latest)

    def rates(self, window: str) -> Rates:
        """What happened in a window of WINDOWS, or since the first sample where that is later."""
        if self.latest is None:
            return Rates()
        oldest = self.latest.at - WINDOWS[window]
        first = self.latest
        for sample in reversed(self._rings[window]):
            first = sample
            if sample.at <= oldest:
                break
        return between(first, self.latest)
