"""Rates over windows, through restarts and without growing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.model.clock import SECOND, Instant
from bayplan.node.cgroup.port import Counters
from bayplan.node.throttling.samples import WINDOWS, History, Rates, Sample, Totals, between


def _filled(spans: int, *, every: int = 2, periods: int = 20, throttled: int = 2) -> History:
    history = History()
    for index in range(spans + 1):
        history.add(
            Instant(index * every * SECOND),
            Totals(index * periods, index * throttled, index * 10**8, index, 0, index * 10**9, index * 2 * 10**8),
        )
    return history


def test_no_periods_no_throttling() -> None:
    assert Rates(SECOND, Totals(usage_ns=5)).throttle_rate == 0.0
    assert Rates().usage_cpus == 0.0
    assert History().rates("10s") == Rates()


@pytest.mark.parametrize("window", WINDOWS)
def test_a_steady_group_has_the_same_rates_in_every_window(window: str) -> None:
    rates = _filled(2_000).rates(window)

    assert rates.throttle_rate == pytest.approx(0.1)
    assert rates.usage_cpus == pytest.approx(0.5)
    assert rates.throttled_seconds == pytest.approx(0.05)
    assert rates.run_queue_seconds == pytest.approx(0.1)
    assert rates.bursts_per_hour == pytest.approx(1800)
    assert WINDOWS[window] <= rates.span_us <= WINDOWS[window] * 1.21


def test_a_short_past_is_all_there_is() -> None:
    assert _filled(2).rates("5m").span_us == 4 * SECOND


def test_what_was_long_ago_has_left_the_window() -> None:
    history = _filled(10)
    for index in range(1, 30):
        history.add(Instant((20 + 2 * index) * SECOND), Totals(200 + 20 * index, 20, 10**9, 10, 0, 10**10, 2 * 10**9))
    assert history.rates("10s").throttle_rate == 0.0
    assert history.rates("5m").throttle_rate == pytest.approx(20 / 780)


def test_a_restarted_container_counts_on() -> None:
    history = History()
    history.add(Instant(0), Totals(periods=1000, throttled_periods=500, usage_ns=10**10, run_queue_ns=7))
    history.add(Instant(SECOND), Totals(periods=1010, throttled_periods=510, usage_ns=10**10 + 10, run_queue_ns=9))
    history.add(Instant(2 * SECOND), Totals(periods=5, throttled_periods=1, usage_ns=3, run_queue_ns=11))

    delta = history.rates("10s").delta

    assert history.restarts == 1
    assert (delta.periods, delta.throttled_periods, delta.usage_ns) == (15, 11, 13)
    assert delta.run_queue_ns == 4  # that sum goes on by itself


def test_a_reading_that_is_not_later_is_passed_over() -> None:
    history = _filled(3)
    latest = history.latest
    history.add(Instant(0), Totals(1, 1))
    assert history.latest == latest


@given(st.lists(st.tuples(st.integers(1, 10**8), st.integers(0, 100), st.integers(0, 100)), max_size=200))
def test_rates_are_sums_of_what_was_added_and_never_negative(steps: list[tuple[int, int, int]]) -> None:
    history, at, totals, first = History(), 0, Totals(), Sample(Instant(0), Totals())
    history.add(Instant(at), totals)
    for span, periods, throttled in steps:
        at += span
        totals = totals.plus(Totals(periods=periods, throttled_periods=min(throttled, periods)))
        history.add(Instant(at), totals)
    for window in WINDOWS:
        rates = history.rates(window)
        assert 0.0 <= rates.throttle_rate <= 1.0
        assert rates.span_us <= at
    if at <= WINDOWS["10s"]:
        assert history.rates("10s") == between(first, Sample(Instant(at), totals))


def test_totals_are_the_kernels_counters() -> None:
    assert Totals.of(Counters(1, 2, 3, 4, 5, 6), 7, 8) == (1, 2, 3, 4, 5, 6, 7, 8)
