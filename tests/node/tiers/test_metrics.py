"""The four series of ThrottleMetrics."""

from __future__ import annotations

from bayplan.node.cgroup.port import Counters
from bayplan.node.tiers.metrics import ThrottleMetrics

MS = 1_000_000


def test_the_rate_of_zero_periods_is_zero() -> None:
    assert ThrottleMetrics().throttle_rate() == 0


def test_looks_add_up() -> None:
    metrics = ThrottleMetrics()
    metrics.observe(Counters(10, 5, 5 * MS), Counters(20, 7, 105 * MS))
    metrics.observe(Counters(20, 7, 105 * MS), Counters(30, 7, 105 * MS))
    assert (metrics.periods_total, metrics.throttled_periods) == (20, 2)
    assert metrics.throttle_rate() == 0.1
    assert (metrics.throttled_time_ns.count, metrics.throttled_time_ns.sum) == (2, 100 * MS)
    assert metrics.throttled_time_ns.counts[5] == 2  # 50 ms each: the bucket up to 50 ms


def test_a_group_that_began_anew_counts_from_zero() -> None:
    metrics = ThrottleMetrics()
    metrics.observe(Counters(100, 50, 5 * MS), Counters(4, 1, 2 * MS))
    assert (metrics.periods_total, metrics.throttled_periods, metrics.throttled_time_ns.sum) == (4, 1, 2 * MS)
