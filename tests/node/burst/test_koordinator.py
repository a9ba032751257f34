"""Koordinator's rule where the recorded answers do not reach: bounds, the bucket's clock, refused settings."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.model.clock import MILLISECOND, SECOND, Instant
from bayplan.node.burst.errors import BurstConfigError
from bayplan.node.burst.koordinator import (
    Bucket,
    BurstConfig,
    Measured,
    NodeState,
    Operation,
    Policy,
    ceiling_us,
    node_state,
    static_burst_us,
    step,
)

CONFIG = BurstConfig(cfs_quota_burst_period_seconds=60)
FULL = Bucket(CONFIG.capacity, Instant(0))


@pytest.mark.parametrize(
    ("ratio", "state"),
    [
        pytest.param(None, NodeState.UNKNOWN, id="nothing is known"),
        pytest.param(0.44, NodeState.IDLE, id="below nine tenths of the threshold"),
        pytest.param(0.45, NodeState.COOLING, id="at nine tenths of the threshold"),
        pytest.param(0.5, NodeState.OVERLOAD, id="at the threshold"),
    ],
)
def test_the_nodes_state(ratio: float | None, state: NodeState) -> None:
    assert node_state(CONFIG, ratio) is state


@pytest.mark.parametrize(
    ("throttled", "ratio", "operation", "quota"),
    [
        pytest.param(True, 0.1, Operation.SCALE_UP, 120_000, id="throttled on an idle node: a fifth more"),
        pytest.param(False, 0.1, Operation.REMAIN, 100_000, id="not throttled: as it is"),
        pytest.param(None, 0.1, Operation.REMAIN, 100_000, id="not known whether throttled: as it is"),
        pytest.param(True, 0.47, Operation.REMAIN, 100_000, id="throttled on a cooling node: as it is"),
        pytest.param(True, 0.9, Operation.SCALE_DOWN, 80_000, id="throttled on an overloaded node: a fifth less"),
        pytest.param(True, None, Operation.REMAIN, 100_000, id="throttled on an unknown node: as it is"),
    ],
)
def test_an_operation(throttled: bool | None, ratio: float | None, operation: Operation, quota: int) -> None:
    decision = step(CONFIG, FULL, 50_000, 100_000, Measured(80, throttled, ratio), Instant(SECOND))
    assert (decision.final_operation, decision.quota_us) == (operation, quota)


def test_an_empty_bucket_ends_the_burst() -> None:
    decision = step(CONFIG, Bucket(0, Instant(0)), 50_000, 100_000, Measured(200, True, 0.1), Instant(SECOND))
    assert (decision.allowed, decision.operation, decision.bucket.tokens) == (False, Operation.SCALE_DOWN, -100)


def test_what_is_left_of_a_second_counts_next_time() -> None:
    bucket = Bucket(0, Instant(0))
    for look in range(1, 101):
        bucket = bucket.after(CONFIG, 50, Instant(look * 999 * MILLISECOND))
    assert bucket.tokens == 50 * 99  # of 99.9 seconds the whole ones, at 50 saved in each


@pytest.mark.parametrize("policy", [Policy.NONE, Policy.CFS_QUOTA_BURST_ONLY])
def test_a_policy_without_it_has_no_static_burst(policy: Policy) -> None:
    assert static_burst_us(BurstConfig(policy=policy), 1000) == 0


@given(
    percent=st.integers(0, 1000),
    base=st.integers(1000, 10_000_000),
    steps=st.lists(
        st.tuples(st.integers(0, 1000), st.booleans(), st.none() | st.floats(0, 2), st.integers(0, 10)), max_size=30
    ),
)
def test_the_quota_stays_between_the_limit_and_the_ceiling(
    percent: int, base: int, steps: list[tuple[int, bool, float | None, int]]
) -> None:
    config = BurstConfig(cfs_quota_burst_percent=percent, cfs_quota_burst_period_seconds=30)
    bucket, quota, now = Bucket(0, Instant(0)), base, Instant(0)
    for usage, throttled, ratio, seconds in steps:
        now = Instant(now + seconds * SECOND)
        decision = step(config, bucket, base, quota, Measured(usage, throttled, ratio), now)
        quota, bucket = decision.quota_us, decision.bucket
        assert base <= quota <= ceiling_us(config, base)
        assert abs(bucket.tokens) <= abs(config.capacity)


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"cpu_burst_percent": -1}, "cpu_burst_percent is -1"),
        ({"cfs_quota_burst_percent": 10_001}, "cfs_quota_burst_percent is 10001"),
        ({"share_pool_threshold_percent": 101}, "share_pool_threshold_percent is 101"),
    ],
)
def test_settings_out_of_range_are_refused(settings: dict[str, Any], told: str) -> None:
    with pytest.raises(BurstConfigError, match=told):
        BurstConfig(**settings)
