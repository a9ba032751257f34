"""Events happen when they are due, and never without end."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.model.clock import SECOND, Instant
from bayplan.service.durations import Duration
from bayplan.simulate.director import Director
from bayplan.simulate.timeline import Bound, Deeds, Event, When

_MINUTE = 60 * SECOND


def _minutes(count: float) -> Duration:
    return Duration(round(count * _MINUTE))


def _times(event: Event, values: list[float], others: tuple[Event, ...] = ()) -> list[int]:
    """The minutes at which an event happens, `values` being what it looks at, minute by minute."""
    director = Director([event, *others], Instant(0))
    found = []
    for minute, value in enumerate(values):
        due = director.due(Instant(minute * _MINUTE), {"pending": value, "cpu": value}.__getitem__)
        found += [minute for index, _ in due if index == 0]
    return found


_NOTHING = Deeds()
_HIGH = When(pending=Bound(above=5))


@pytest.mark.parametrize(
    ("event", "values", "minutes"),
    [
        pytest.param(Event(do=_NOTHING, at=_minutes(2)), [0] * 6, [2], id="at a time, once"),
        pytest.param(Event(do=_NOTHING, at=_minutes(1), every=_minutes(2)), [0] * 6, [1, 3, 5], id="again and again"),
        pytest.param(
            Event(do=_NOTHING, at=_minutes(1), every=_minutes(2), times=2), [0] * 9, [1, 3], id="so many times"
        ),
        pytest.param(Event(do=_NOTHING, when=_HIGH), [0, 5, 6, 7, 0, 9], [2], id="when a limit is passed, once"),
        pytest.param(
            Event(do=_NOTHING, when=When(pending=Bound(above=5), for_=_minutes(2))),
            [9, 0, 9, 9, 9, 9],
            [4],
            id="when it has been passed for long enough without a break",
        ),
        pytest.param(Event(do=_NOTHING, when=_HIGH, every=_minutes(3)), [9] * 8, [0, 3, 6], id="no sooner than every"),
        pytest.param(
            Event(do=_NOTHING, when=When(cpu=Bound(above=1, below=3))), [0, 3, 2], [2], id="between two limits"
        ),
    ],
)
def test_when_events_happen(event: Event, values: list[float], minutes: list[int]) -> None:
    assert _times(event, values) == minutes


def test_an_event_after_another() -> None:
    first = Event(do=_NOTHING, name="first", at=_minutes(1))
    assert _times(Event(do=_NOTHING, when=When(after="first", for_=_minutes(2))), [0] * 6, (first,)) == [3]


@given(st.lists(st.tuples(st.booleans(), st.integers(1, 5)), min_size=1, max_size=5), st.integers(1, 30))
def test_no_event_happens_twice_at_one_instant(shapes: list[tuple[bool, int]], looks: int) -> None:
    events = [
        Event(do=_NOTHING, when=_HIGH, every=_minutes(every))
        if conditional
        else Event(do=_NOTHING, at=_minutes(0), every=_minutes(every))
        for conditional, every in shapes
    ]
    director = Director(events, Instant(0))
    seen = [index for _ in range(looks) for index, _ in director.due(Instant(0), lambda _: 9.0)]
    assert sorted(seen) == list(range(len(events)))
