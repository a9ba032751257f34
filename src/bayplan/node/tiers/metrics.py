"""What throttling did to a task: the four series of `ThrottleMetrics`."""

from __future__ import annotations

import bisect

import msgspec

from bayplan.node.cgroup.port import Counters

BOUNDS_NS = tuple(milliseconds * 1_000_000 for milliseconds in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000))
"""Upper ends of the histogram's buckets; a throttled task waits for the rest of a period of, mostly, 100 ms."""


class Histogram(msgspec.Struct):
    """How often a value fell into which bucket; the last bucket has no upper end."""

    counts: list[int] = msgspec.field(default_factory=lambda: [0] * (len(BOUNDS_NS) + 1))
    sum: int = 0

    @property
    def count(self) -> int:
        """How many values there were."""
        return sum(self.counts)

    def observe(self, value: int, times: int = 1) -> None:
        """Count a value, so often."""
        self.counts[bisect.bisect_left(BOUNDS_NS, value)] += times
        self.sum += value * times


class ThrottleMetrics(msgspec.Struct):
    """The throttling of one task since it was taken on."""

    periods_total: int = 0
    throttled_periods: int = 0
    throttled_time_ns: Histogram = msgspec.field(default_factory=Histogram)
    """Time held back per throttled period, averaged over each look."""
    burst_activations: int = 0

    def observe(self, before: Counters, after: Counters) -> None:
        """Add what happened between two looks; counters that went back belong to a new group and count from 0."""
        if after.periods < before.periods:
            before = Counters()
        self.periods_total += after.periods - before.periods
        throttled = max(0, after.throttled_periods - before.throttled_periods)
        self.throttled_periods += throttled
        if throttled:
            self.throttled_time_ns.observe(max(0, after.throttled_ns - before.throttled_ns) // throttled, throttled)

    def throttle_rate(self) -> float:
        """The share of periods that were throttled; of zero periods it is 0."""
        return self.throttled_periods / self.periods_total if self.periods_total else 0.0
