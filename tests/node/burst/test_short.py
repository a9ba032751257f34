"""The short burst: when it begins, how much it gives, that it ends and rests."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.model.clock import MILLISECOND, SECOND, Instant
from bayplan.node.burst.errors import BurstConfigError
from bayplan.node.burst.short import Phase, ShortBurst, ShortState, Step, step, throttle_rate
from bayplan.node.cgroup.port import Bandwidth, Counters

RULE = ShortBurst()
HALF = Bandwidth(50_000)
START = Instant(1000 * SECOND)


def watched(*looks: tuple[int, int], rule: ShortBurst = RULE, own: Bandwidth = HALF) -> Step:
    """Look every `rule.look` at counters of periods and throttled periods; the last step."""
    state, now = ShortState(), START
    for periods, throttled in looks:
        found = step(rule, state, own, Counters(periods=periods, throttled_periods=throttled), now)
        state, now = found.state, found.wake
    return found


@pytest.mark.parametrize(
    ("looks", "phase", "quota"),
    [
        pytest.param([(100, 50)], Phase.WATCHING, None, id="what happened before the first look does not count"),
        pytest.param([(100, 50), (100, 50)], Phase.WATCHING, None, id="no periods, no rate"),
        pytest.param([(100, 50), (110, 51)], Phase.WATCHING, None, id="one of ten is at the threshold, not over it"),
        pytest.param([(100, 50), (109, 51)], Phase.BURSTING, 75_925, id="one of nine: a little over one and a half"),
        pytest.param([(0, 0), (1, 1)], Phase.BURSTING, 150_000, id="every period throttled: three times the quota"),
        pytest.param([(0, 0), (9, 0), (10, 1)], Phase.WATCHING, None, id="the window remembers the quiet periods"),
    ],
)
def test_a_burst_begins(looks: list[tuple[int, int]], phase: Phase, quota: int | None) -> None:
    found = watched(*looks)
    assert found.state.phase is phase
    assert (found.write.quota_us if found.write else None) == quota


def test_a_group_without_a_limit_never_bursts() -> None:
    assert watched((0, 0), (10, 10), own=Bandwidth(None)).write is None


def test_quiet_periods_older_than_the_window_are_forgotten() -> None:
    rule = ShortBurst(look=100 * MILLISECOND, window=200 * MILLISECOND)
    assert watched((0, 0), (50, 0), (51, 0), (52, 0), (53, 1), rule=rule).write is not None


def test_a_burst_tells_why() -> None:
    found = watched((0, 0), (4, 2))
    assert found.reason == "2 of 4 periods throttled (50%), quota x2.17 for 200 ms"
    assert found.rate == 0.5


def test_a_round() -> None:
    began = watched((0, 0), (1, 1))
    assert began.wake == began.state.until == START + RULE.look + RULE.lasts
    early = step(RULE, began.state, HALF, Counters(), Instant(began.wake - 1))
    assert (early.write, early.state) == (None, began.state)
    over = step(RULE, began.state, Bandwidth(150_000), Counters(periods=9, throttled_periods=9), began.wake)
    assert (over.write, over.state.phase) == (HALF, Phase.COOLING)
    resting = step(RULE, over.state, HALF, Counters(periods=20, throttled_periods=20), Instant(over.wake - 1))
    assert (resting.write, resting.state.phase) == (None, Phase.COOLING)
    rested = step(RULE, over.state, HALF, Counters(periods=20, throttled_periods=20), over.wake)
    assert (rested.write, rested.state.phase) == (None, Phase.WATCHING)


def rushing(*spent_ms: int, since_burst: int = SECOND) -> Step:
    """A group that burst some time ago, then looked at closely, with so much CPU time used by each look."""
    state, now = ShortState(remembered_until=Instant(START - since_burst + RULE.memory)), START
    for each in spent_ms:
        found = step(RULE, state, HALF, Counters(usage_ns=each * 1_000_000), now)
        state, now = found.state, found.wake
    return found


@pytest.mark.parametrize(
    ("found", "quota"),
    [
        pytest.param(rushing(0, 10, 20), 150_000, id="two CPUs at once: the most, before the quota of 50 ms is gone"),
        pytest.param(rushing(0, 10), None, id="a fifth of the quota is not enough to tell"),
        pytest.param(rushing(0, 2, 4, 6, 8, 10, 12, 14), None, id="at less than its pace it will not be throttled"),
        pytest.param(rushing(0, 10, 20, since_burst=RULE.memory), None, id="after a minute it is forgotten"),
        pytest.param(rushing(0, *[0] * 30, 10, 20), 150_000, id="a rest before does not hide it"),
    ],
)
def test_a_group_that_was_throttled_bursts_before_it_is_again(found: Step, quota: int | None) -> None:
    assert (found.write.quota_us if found.write else None) == quota


def test_an_early_burst_tells_why_and_is_remembered() -> None:
    found = rushing(0, 10, 20)
    assert found.reason == "throttled lately, and of 50 ms 20 are spent, 20 in the last 10, quota x3.00 for 200 ms"
    assert found.state.remembered_until == found.wake - RULE.lasts + RULE.memory


def test_a_remembered_group_is_looked_at_closely() -> None:
    assert rushing(0).wake == START + RULE.close_look
    assert watched((0, 0)).wake == START + RULE.look


@given(st.lists(st.tuples(st.integers(0, 400), st.integers(0, 5), st.integers(0, 5), st.integers(0, 80)), max_size=60))
def test_no_burst_is_longer_than_it_may_be_nor_without_a_rest(looks: list[tuple[int, int, int, int]]) -> None:
    state, now, quota, periods, throttled, usage = ShortState(), START, HALF, 0, 0, 0
    began, ended = None, Instant(0)
    for late, more, held, used in looks:
        periods, throttled, usage = periods + more, throttled + min(held, more), usage + used * 1_000_000
        counters = Counters(periods=periods, throttled_periods=throttled, usage_ns=usage)
        found = step(RULE, state, HALF, counters, now)
        if found.write is not None and began is None:
            began = now
            assert now - ended >= RULE.cooldown
            assert 1.5 <= (found.write.quota_us or 0) / 50_000 <= 3
        elif found.write is not None:
            assert found.write == HALF
            began, ended = None, now
        if began is not None:
            assert found.wake == began + RULE.lasts  # the caller is always told to come back in time
        quota, state = found.write or quota, found.state
        assert found.wake > now
        now = Instant(found.wake + late * MILLISECOND)


@given(st.floats(0, 1), st.floats(0, 1))
def test_the_factor_grows_with_the_rate_within_bounds(one: float, other: float) -> None:
    low, high = sorted((one, other))
    assert 1.5 <= RULE.factor(low) <= RULE.factor(high) <= 3


def test_the_rate_of_zero_periods_is_zero() -> None:
    assert throttle_rate(0, 0) == 0


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"least": 1.4}, "least is 1.4"),
        ({"most": 3.1}, "most is 3.1"),
        ({"least": 2.5, "most": 2.0}, "least is 2.5"),
        ({"lasts": 99 * MILLISECOND}, "lasts is 99 ms"),
        ({"lasts": 501 * MILLISECOND}, "lasts is 501 ms"),
        ({"cooldown": 199 * MILLISECOND}, "cooldown is 199 ms"),
        ({"threshold": 1.0}, "threshold is 1.0"),
        ({"look": 0}, "look is 0 ms"),
        ({"close_look": 51 * MILLISECOND}, "close_look is 51 ms"),
        ({"early": 1.0}, "early is 1.0"),
    ],
)
def test_unsafe_settings_are_refused(settings: dict[str, Any], told: str) -> None:
    with pytest.raises(BurstConfigError, match=told):
        ShortBurst(**settings)
