"""The load is the same for a seed, in order, and each workload's is its own."""

from __future__ import annotations

import random

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from bayplan.cluster.embedded.kubelet.node import STOPPED
from bayplan.cluster.kinds import NODE
from bayplan.model.clock import SECOND, Instant
from bayplan.service.durations import Duration
from bayplan.simulate.actions import Create, Delete, Patch, Scale, Target, Timed
from bayplan.simulate.chance import HOUR, arrival_times, level, mishap, span
from bayplan.simulate.entry import Spread
from bayplan.simulate.load import Load
from bayplan.simulate.scenario import Arrivals, Mishap, Scenario
from bayplan.simulate.scenario_file import shipped

_SCENARIO = shipped()
_DAY = 24 * HOUR
_START = Instant(1000 * SECOND)


def _day(seed: int, scenario: Scenario = _SCENARIO) -> list[Timed]:
    return [*Load(scenario, seed, _START).until(Instant(_START + _DAY))]


def test_the_same_seed_gives_the_same_day_and_another_seed_another() -> None:
    assert _day(7) == _day(7)
    assert _day(7) != _day(8)


def test_actions_come_in_order_and_each_once() -> None:
    load = Load(_SCENARIO, 7, _START)
    first = [*load.until(Instant(_START + 9 * HOUR))]
    assert first[-1].at <= _START + 9 * HOUR
    whole = [*first, *load.until(Instant(_START + _DAY))]
    assert whole == _day(7)
    assert [timed.at for timed in whole] == sorted(timed.at for timed in whole)


def test_a_workload_less_changes_nothing_for_the_others() -> None:
    gone = _SCENARIO.workloads[0]
    fewer = msgspec.structs.replace(_SCENARIO, workloads=_SCENARIO.workloads[1:])

    def of_others(timed: Timed) -> bool:
        action = timed.action
        namespace, name = "", ""
        match action:
            case Create(made):
                namespace, name = made.namespace, made.name
            case Target(_, namespace, name):
                pass
        return (namespace, name.rpartition("-")[0]) != (gone.namespace, gone.name)

    assert [timed for timed in _day(7) if of_others(timed)] == _day(7, fewer)


def test_what_arrives_to_stay_a_while_is_deleted_later() -> None:
    created: dict[str, Instant] = {}
    for timed in _day(3):
        match timed.action:
            case Create(made) if made.name.startswith("notebook-"):
                created[made.name] = timed.at
            case Delete(_, _, name) if name.startswith("notebook-"):
                assert timed.at > created[name]


def test_services_follow_the_day_and_nodes_fail_and_return() -> None:
    actions = [timed.action for timed in _day(7)]
    chat = [each.replicas for each in actions if isinstance(each, Scale) and each.name == "chat"]
    assert max(chat) == 7
    stops = [each for each in actions if isinstance(each, Patch) and each.kind is NODE]
    values = [each.patch["metadata"]["annotations"][STOPPED] for each in stops]
    assert [value is None for value in values] == [False, True, False, True]
    assert values[0].startswith("stopped-at=1970-01-01T10:36:40Z")


@given(st.integers(0, 3 * _DAY))
def test_a_curve_stays_between_its_hours(at: int) -> None:
    hours = [hour / 23 for hour in range(24)]
    here, there = hours[at // HOUR % 24], hours[(at // HOUR + 1) % 24]
    assert min(here, there) <= level({"c": hours}, "c", at) <= max(here, there)


@given(st.integers())
def test_arrivals_come_only_while_the_curve_is_above_nothing(seed: int) -> None:
    curves = {"noon": [1.0 if hour == 12 else 0.0 for hour in range(24)]}
    times = arrival_times(Arrivals(per_hour=50, curve="noon"), curves, random.Random(seed))
    for _, at in zip(range(20), times, strict=False):
        assert 11 * HOUR < at % _DAY < 13 * HOUR


@given(st.integers(), st.floats(1, 5))
def test_a_span_is_whole_seconds_within_its_limit(seed: int, factor: float) -> None:
    drawn = span(Spread(median=Duration(90 * SECOND), spread=factor, most=Duration(200 * SECOND)), random.Random(seed))
    assert SECOND <= drawn.micros <= 200 * SECOND
    assert drawn.micros % SECOND == 0


def test_mishaps_have_their_share_of_all() -> None:
    chance = random.Random(1)
    mishaps = (Mishap(share=0.1, behaviour={"exit-code": 1}), Mishap(share=0.2, behaviour={"exit-code": 2}))
    drawn = [mishap(mishaps, chance) for _ in range(10_000)]
    assert 900 < drawn.count(mishaps[0]) < 1100
    assert 1800 < drawn.count(mishaps[1]) < 2200
