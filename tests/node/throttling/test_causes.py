"""Causes are named from what was seen, and the remedies end what they are for."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bayplan.node.cgroup.port import Bandwidth
from bayplan.node.throttling.causes import Cause, explain
from bayplan.node.throttling.evidence import Evidence, bursts
from bayplan.node.throttling.remedies import Lever
from tests.node.throttling.bucket import Job, every, watched

MS = 1000
HALF = Bandwidth(50 * MS)
TWO = Bandwidth(200 * MS)


@pytest.mark.parametrize(
    ("evidence", "cause", "lever"),
    [
        pytest.param(
            watched(Bandwidth(30 * MS), [Job(0, 10_000 * MS)]),
            Cause.LIMIT_TOO_LOW,
            Lever.QUOTA,
            id="one thread that never rests has a limit that is too low",
        ),
        pytest.param(
            watched(HALF, [Job(0, 100_000 * MS, 8)]),
            Cause.LIMIT_TOO_LOW,
            Lever.QUOTA,
            id="many threads that never rest have a limit that is too low, however many they are",
        ),
        pytest.param(
            watched(HALF, every(500 * MS, 90 * MS, 4)),
            Cause.THREADS_TOGETHER,
            Lever.BURST,
            id="four threads at once spend the quota of a period at once",
        ),
        pytest.param(
            watched(TWO, every(800 * MS, 320 * MS, 4)),
            Cause.THREADS_TOGETHER,
            Lever.BURST,
            id="a limit of two CPUs does not help four threads",
        ),
        pytest.param(
            watched(HALF, every(400 * MS, 80 * MS)),
            Cause.PERIOD_TOO_SHORT,
            Lever.PERIOD,
            id="one thread with work for more than a period's quota",
        ),
        pytest.param(
            watched(Bandwidth(5 * MS, 10 * MS), every(100 * MS, 12 * MS)),
            Cause.PERIOD_TOO_SHORT,
            Lever.PERIOD,
            id="a period of ten milliseconds cuts short work into pieces",
        ),
    ],
)
def test_the_cause_and_the_first_remedy(evidence: Evidence, cause: Cause, lever: Lever) -> None:
    found = explain(evidence)

    assert (found.cause, found.remedies[0].lever) == (cause, lever)
    assert found.throttle_rate > 0.05


def test_a_group_without_a_limit_is_not_throttled() -> None:
    evidence = msgspec.structs.replace(watched(HALF, []), bandwidth=Bandwidth())
    assert explain(evidence).cause is Cause.NO_LIMIT


def test_an_idle_group_has_nothing_to_explain() -> None:
    found = explain(watched(HALF, []))
    assert (found.cause, found.throttle_rate, found.remedies) == (Cause.NONE, 0.0, ())


def test_the_paradox_is_told_with_its_number() -> None:
    evidence = msgspec.structs.replace(watched(HALF, every(500 * MS, 90 * MS, 4)), node_idle_cpus=3.25)
    assert "meanwhile 3.25 CPUs of the node were idle" in explain(evidence).reasons


def test_without_bursts_in_the_kernel_the_quota_is_raised() -> None:
    evidence = msgspec.structs.replace(watched(HALF, every(500 * MS, 90 * MS, 4)), has_burst=False)
    assert [remedy.lever for remedy in explain(evidence).remedies] == [Lever.QUOTA]


def _throttled_early(kernel: str) -> Evidence:
    """Throttled in every busy period with half of the quota unused, as expired slices leave it."""
    honest = watched(HALF, every(300 * MS, 90 * MS, 4), kernel=kernel)
    looks = tuple(msgspec.structs.replace(look, usage_ns=look.usage_ns // 3) for look in honest.looks)
    return msgspec.structs.replace(honest, looks=looks)


def test_a_defective_kernel_is_named_where_quota_was_unused() -> None:
    found = explain(_throttled_early("4.15.0-20-generic"))
    assert found.cause is Cause.KERNEL_DEFECT
    assert found.remedies[0].bandwidth.quota_us == 70 * MS  # 5 ms for each of four CPUs


def test_a_mended_kernel_is_not_blamed() -> None:
    assert explain(_throttled_early("5.4.0")).cause is not Cause.KERNEL_DEFECT


def test_an_old_kernel_is_not_blamed_where_the_quota_was_used() -> None:
    assert explain(watched(Bandwidth(30 * MS), [Job(0, 10_000 * MS)], kernel="4.15.0")).cause is Cause.LIMIT_TOO_LOW


def test_a_throttled_burst_is_one_burst_with_all_of_its_work() -> None:
    evidence = watched(HALF, [Job(200 * MS, 180 * MS)], span_us=1_000_000)
    (burst,) = bursts(evidence.looks)
    assert burst.work_us == 180 * MS
    assert burst.lasted_us > 300 * MS
    assert burst.throttled_periods == 3
    assert burst.whole


@settings(max_examples=40)
@given(
    quota=st.integers(10, 150),
    work=st.integers(20, 180),
    parallel=st.integers(1, 4),
    offset=st.integers(0, 99),
)
@example(quota=11, work=100, parallel=1, offset=0)  # as long as a period: the refill comes when all is done
def test_whatever_remedy_is_named_first_ends_the_throttling(quota: int, work: int, parallel: int, offset: int) -> None:
    jobs = every(1_000 * MS, work * MS, parallel, span_us=6_000_000)
    now = Bandwidth(quota * MS)
    before = explain(watched(now, jobs, span_us=6_000_000, offset_us=offset * MS))

    for remedy in before.remedies:
        after = watched(remedy.bandwidth, jobs, span_us=6_000_000, offset_us=offset * MS)
        assert after.throttle_rate == 0.0, remedy


@settings(max_examples=40)
@given(quota=st.integers(1, 400), work=st.integers(1, 2_000), parallel=st.integers(1, 8), pause=st.integers(100, 3_000))
def test_remedies_are_ones_that_the_kernel_takes(quota: int, work: int, parallel: int, pause: int) -> None:
    evidence = watched(Bandwidth(quota * MS), every(pause * MS, work * MS, parallel), cpus=8)
    for remedy in explain(evidence).remedies:
        bandwidth = remedy.bandwidth
        assert bandwidth.quota_us is not None
        assert 1 * MS <= bandwidth.period_us <= 1_000 * MS
        assert bandwidth.burst_us <= bandwidth.quota_us
        assert bandwidth.quota_us >= 1 * MS
