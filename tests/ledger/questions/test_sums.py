"""GPU-hours are exact: steps add up to their line, lines to the whole, idle and allocated to the capacity."""

from __future__ import annotations

import itertools

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.ledger.questions.amounts import HOUR as GPU_HOUR
from bayplan.ledger.questions.amounts import gpu_hours, gpu_seconds, gpus
from bayplan.ledger.questions.idle import devices_at, over_time
from bayplan.ledger.questions.usage import DimensionError, Held, tally
from bayplan.ledger.questions.windows import Sums, Window, WindowError
from bayplan.ledger.rows import GpuPeriod, NodePeriod
from bayplan.model.clock import Instant
from tests.ledger.books import HOUR, MIDNIGHT, held, hour, offered, story

_TIMES = st.integers(0, 40 * HOUR).map(lambda span: Instant(MIDNIGHT - 8 * HOUR + span))
_ENDS = st.one_of(st.none(), _TIMES)
_WINDOWS = st.builds(
    lambda start, length, step: Window(start, Instant(start + length), step),
    _TIMES,
    st.integers(1, 24 * HOUR),
    st.one_of(st.none(), st.sampled_from([HOUR, 7 * HOUR // 3, 24 * HOUR]), st.integers(HOUR // 60, 30 * HOUR)),
)
_GPUS = st.integers(1, 16_000)
_PERIODS = st.lists(
    st.builds(
        Held,
        gpus=_GPUS,
        start=_TIMES,
        end=_ENDS,
        cluster=st.sampled_from(["east", "west"]),
        node=st.sampled_from(["n0", "n1", "n2"]),
        model=st.sampled_from(["A100", "H100", ""]),
        namespace=st.sampled_from(["vision", "prod", None]),
        user=st.sampled_from(["alice", "bob", None]),
        pod=st.sampled_from(["a", "b", None]),
        workload=st.sampled_from(["", "j1", "j2", None]),
        labels=st.sampled_from(["{}", '{"team":"red"}', '{"team":"blue"}', None]),
    ),
    max_size=30,
)
_BY = st.lists(
    st.sampled_from(["cluster", "namespace", "user", "workload", "model", "node", "label:team"]),
    min_size=1,
    max_size=3,
    unique=True,
)


def _plainly(periods: list[Held], since: int, until: int) -> int:
    spans = (
        (each.gpus, max(each.start, since), until if each.end is None else min(each.end, until)) for each in periods
    )
    return sum(value * (end - start) for value, start, end in spans if start < end)


@given(_PERIODS, _BY, _WINDOWS)
def test_sums_by_any_dimension_and_step_equal_the_total_exactly(
    periods: list[Held], by: list[str], window: Window
) -> None:
    found = tally(periods, by, window)
    assert found.total == _plainly(periods, window.since, window.until)
    edges = window.edges()
    for index, (start, end) in enumerate(itertools.pairwise(edges)):
        assert sum(line.amounts[index] for line in found.lines) == _plainly(periods, start, end)


@given(_PERIODS, _BY, _WINDOWS)
def test_clusters_add_up_to_all_of_them(periods: list[Held], by: list[str], window: Window) -> None:
    parts = [tally([each for each in periods if each.cluster == name], by, window) for name in ("east", "west")]
    whole = tally(periods, by, window)
    amounts = {line.key: line.total for line in whole.lines}
    for key in amounts:
        assert amounts[key] == sum(line.total for part in parts for line in part.lines if line.key == key)
    assert whole.total == sum(part.total for part in parts)


@given(_PERIODS, _WINDOWS, st.integers(1, 24 * HOUR - 1))
def test_two_windows_that_touch_add_up_to_one(periods: list[Held], window: Window, cut: int) -> None:
    middle = Instant(min(window.since + cut, window.until))
    parts = [Window(start, end) for start, end in ((window.since, middle), (middle, window.until)) if start < end]
    assert sum(tally(periods, ["user"], part).total for part in parts) == tally(periods, ["user"], window).total


_NODES = st.sampled_from(["n0", "n1"])
_CAPACITY = st.lists(st.builds(offered, _NODES, _TIMES, _ENDS, _GPUS), max_size=12)
_HOLDERS = st.lists(st.builds(held, st.just("p"), _TIMES, _ENDS, _GPUS, _NODES), max_size=12)


def _overlap(period: NodePeriod | GpuPeriod, start: int, end: int) -> int:
    over = end if period.end_at is None else min(period.end_at, end)
    return max(0, over - max(period.start_at, start)) * period.gpus


@given(_CAPACITY, _HOLDERS, _TIMES)
def test_idle_and_allocated_are_the_capacity_at_every_instant(
    capacity: list[NodePeriod], holders: list[GpuPeriod], at: Instant
) -> None:
    devices = devices_at(story(*capacity, *holders), at)
    assert all(each.idle + each.allocated == each.capacity for each in devices)
    moment = [period for period in (*capacity, *holders) if period.start_at <= at and (period.end_at or at + 1) > at]
    assert sum(each.capacity for each in devices) == sum(p.gpus for p in moment if isinstance(p, NodePeriod))
    assert sum(each.allocated for each in devices) == sum(p.gpus for p in moment if isinstance(p, GpuPeriod))


@given(_CAPACITY, _HOLDERS, _WINDOWS)
def test_idle_and_allocated_are_the_capacity_in_every_step(
    capacity: list[NodePeriod], holders: list[GpuPeriod], window: Window
) -> None:
    found = over_time(story(*capacity, *holders), window)
    for index, (start, end) in enumerate(itertools.pairwise(window.edges())):
        offers = sum(_overlap(each, start, end) for each in capacity)
        taken = sum(_overlap(each, start, end) for each in holders)
        assert sum(line.capacity[index] for line in found.lines) == offers
        assert sum(line.allocated[index] for line in found.lines) == taken
        assert sum(line.idle[index] for line in found.lines) == offers - taken


def test_sums_beyond_64_bits_are_exact() -> None:
    sums = Sums(Window(hour(0), hour(24 * 365)))
    for _ in range(10_000):
        sums.add(("a",), 8_000_001, hour(0), None)
    assert sums.totals() == {("a",): (10_000 * 8_000_001 * 24 * 365 * HOUR,)}


def test_steps_begin_on_the_hours() -> None:
    edges = Window(hour(0.5), hour(3.25), HOUR).edges()
    assert edges == [hour(0.5), hour(1), hour(2), hour(3), hour(3.25)]


@pytest.mark.parametrize(
    ("since", "until", "step"),
    [
        pytest.param(hour(2), hour(1), None, id="it ends before it begins"),
        pytest.param(hour(1), hour(1), None, id="it has no length"),
        pytest.param(hour(0), hour(24), 1, id="it has more steps than anybody reads"),
    ],
)
def test_a_window_that_makes_no_sense_is_refused(since: Instant, until: Instant, step: int | None) -> None:
    with pytest.raises(WindowError):
        Window(since, until, step)


def test_an_unknown_dimension_names_those_that_there_are() -> None:
    with pytest.raises(DimensionError, match="label:KEY"):
        tally([], ["colour"], Window(hour(0), hour(1)))


@pytest.mark.parametrize(
    ("amount", "hours"),
    [(0, "0.00"), (GPU_HOUR, "1.00"), (GPU_HOUR // 200, "0.01"), (GPU_HOUR // 201, "0.00"), (-GPU_HOUR * 2, "-2.00")],
)
def test_gpu_hours_are_rounded_for_people(amount: int, hours: str) -> None:
    assert gpu_hours(amount) == hours


def test_gpus_and_gpu_seconds_are_not_rounded() -> None:
    assert [gpus(each) for each in (8000, 500, 1, -2500)] == ["8", "0.5", "0.001", "-2.5"]
    assert gpu_seconds(1_500_000_001) == "1.500000001"


def test_periods_of_a_pod_whose_row_is_missing_still_count() -> None:
    lost = Held(1000, hour(0), hour(1), "east", "n0", "", None, None, None, None, None)
    by = ["namespace", "user", "workload", "model", "label:team"]
    (line,) = tally([lost], by, Window(hour(0), hour(2))).lines
    assert (line.key, line.total) == (("<unknown>",) * 5, 1000 * HOUR)
    assert msgspec.structs.astuple(line)[1] == (1000 * HOUR,)
