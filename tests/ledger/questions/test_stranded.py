"""Which idle GPUs nobody can get: the rule at an instant, and that sums over time are sums of it."""

from __future__ import annotations

import itertools

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bayplan.ledger.questions.idle import ModelDevices, by_model, devices_at, over_time
from bayplan.ledger.questions.spans import DeviceSpan, RoomSpan, Span, Story, TakenSpan
from bayplan.ledger.questions.stranded import Beside, Stranded, Taken, stranded
from bayplan.ledger.questions.windows import Window
from bayplan.ledger.rows import NodeRoomPeriod, PodRoomPeriod
from bayplan.model.clock import Instant
from tests.ledger.books import HOUR, held, hour, offered, roomy, story, took

_GI = 1 << 30
NOTHING = Taken()
_ROOM = RoomSpan("east", "n", Instant(0), None, 8000, 16 * _GI, 10, "")


def _but(**changes: object) -> RoomSpan:
    return msgspec.structs.replace(_ROOM, **changes)


# --- the rule


@pytest.mark.parametrize(
    ("idle", "room", "taken", "beside", "found"),
    [
        pytest.param(8000, _ROOM, NOTHING, Beside(), (0, ""), id="an empty node strands nothing"),
        pytest.param(
            8000, _but(hurdle="cordoned"), NOTHING, Beside(), (8000, "cordoned"), id="a cordoned node strands all"
        ),
        pytest.param(
            3000,
            _but(hurdle="not ready, cordoned"),
            Taken(8000, 16 * _GI, 10),
            Beside(),
            (3000, "not ready, cordoned"),
            id="of a node that no pod may go to nothing else is told",
        ),
        pytest.param(8000, None, NOTHING, Beside(), (None, ""), id="where nothing tells of room it is not known"),
        pytest.param(0, None, NOTHING, Beside(), (0, ""), id="where nothing is idle nothing is stranded, room or not"),
        pytest.param(
            -1000, _but(hurdle="cordoned"), NOTHING, Beside(), (0, ""), id="nor where more is held than there is"
        ),
        pytest.param(8000, _ROOM, Taken(3000, 0, 1), Beside(), (3000, "no CPU"), id="five CPUs do for five of eight"),
        pytest.param(
            8000, _ROOM, Taken(3001, 0, 1), Beside(), (4000, "no CPU"), id="a thousandth less, for four of eight"
        ),
        pytest.param(8000, _ROOM, Taken(9000, 0, 1), Beside(), (8000, "no CPU"), id="less than nothing is nothing"),
        pytest.param(
            8000, _ROOM, Taken(0, 15 * _GI, 1), Beside(), (7000, "no memory"), id="a gibibyte does for one of eight"
        ),
        pytest.param(
            8000,
            _ROOM,
            Taken(8000, 16 * _GI, 1),
            Beside(),
            (8000, "no CPU, no memory"),
            id="what is in the way together is told together",
        ),
        pytest.param(
            8000,
            _ROOM,
            Taken(7000, 12 * _GI, 1),
            Beside(),
            (7000, "no CPU"),
            id="what would not help alone is not told: memory for four, CPU for one",
        ),
        pytest.param(
            4000, _ROOM, Taken(0, 0, 10), Beside(), (4000, "no room for a pod"), id="a node full of pods strands all"
        ),
        pytest.param(8000, _ROOM, Taken(0, 0, 9), Beside(), (0, ""), id="one pod may take them all"),
        pytest.param(
            8000, _ROOM, NOTHING, Beside(4000, 1), (6000, "no CPU"), id="who needs four CPUs each can have two"
        ),
        pytest.param(
            8000, _ROOM, Taken(8000, 16 * _GI, 1), Beside(0, 0), (0, ""), id="who needs nothing beside can have all"
        ),
        pytest.param(500, _ROOM, Taken(7000, 0, 1), Beside(), (0, ""), id="half a GPU needs no more than a whole one"),
        pytest.param(500, _ROOM, Taken(7001, 0, 1), Beside(), (500, "no CPU"), id="and no less"),
    ],
)
def test_the_rule(
    idle: int, room: RoomSpan | None, taken: Taken, beside: Beside, found: tuple[int | None, str]
) -> None:
    assert stranded(idle, room, taken, beside) == Stranded(*found)


def test_a_node_that_was_made_anew_has_the_room_of_the_new_one() -> None:
    old, new = roomy("a100-1", hour(0), cpu=0), roomy("a100-1", hour(2), cpu=3000)
    for rows in ((old, new), (new, old)):
        known = story(offered("a100-1", hour(0)), *rows)
        assert [devices_at(known, hour(at))[0].stranded for at in (1, 3)] == [8000, 5000]
        (line,) = over_time(known, Window(hour(0), hour(4), 2 * HOUR)).lines
        assert line.stranded == (16_000 * HOUR, 10_000 * HOUR)


def test_a_step_is_not_known_when_a_part_of_it_is_not_and_gpus_were_idle_then() -> None:
    known = story(
        offered("a100-1", hour(0)),
        held("p", hour(0), hour(1)),
        roomy("a100-1", hour(3), hour(6), cpu=0),
        held("q", hour(6), hour(8)),
    )
    (line,) = over_time(known, Window(hour(0), hour(8), HOUR)).lines
    assert line.stranded == (0, None, None, *(8000 * HOUR,) * 3, 0, 0)
    assert line.total_stranded is None
    (line,) = over_time(known, Window(hour(3), hour(8), HOUR)).lines
    assert line.total_stranded == 24_000 * HOUR


def test_a_model_is_not_known_when_one_of_its_nodes_is_not_and_has_idle_gpus() -> None:
    known = [roomy("n0", hour(0), hurdle="cordoned"), roomy("n2", hour(0))]
    rows = [offered("n0", hour(0)), offered("n1", hour(0)), offered("n2", hour(0), model="H100"), *known]
    assert by_model(devices_at(story(*rows), hour(1))) == {
        "A100": ModelDevices(16_000, 0, None),
        "H100": ModelDevices(8000, 0, 0),
    }
    taken = held("p", hour(0), node="n1")
    assert by_model(devices_at(story(*rows, taken), hour(1)))["A100"] == ModelDevices(16_000, 8000, 8000)


@pytest.mark.parametrize(
    ("room", "guest", "lost"),
    [
        pytest.param(roomy("a100-1", hour(0), cpu=8000), took("p", hour(1), hour(2), 6000), 6000, id="its CPU"),
        pytest.param(
            roomy("a100-1", hour(0), memory=8 * _GI), took("p", hour(1), hour(2), 0, 5 * _GI), 5000, id="its memory"
        ),
        pytest.param(roomy("a100-1", hour(0), pods=1), took("p", hour(1), hour(2), 0, 0), 8000, id="its place"),
    ],
)
def test_what_a_pod_takes_it_takes_from_its_binding_to_its_release(
    room: NodeRoomPeriod, guest: PodRoomPeriod, lost: int
) -> None:
    known = story(offered("a100-1", hour(0)), room, guest)
    assert [devices_at(known, hour(at))[0].stranded for at in (0.5, 1, 1.5, 2)] == [0, lost, lost, 0]
    (line,) = over_time(known, Window(hour(0), hour(3), HOUR)).lines
    assert line.stranded == (0, lost * HOUR, 0)


# --- over time: moment by moment on small stories

_LAST = 12
_MOMENTS = st.integers(0, _LAST).map(Instant)
_SMALL, _LARGE = st.integers(0, 2), st.integers(0, 30)
_WHERE = (st.just("east"), st.sampled_from(["n0", "n0", "n1"]), _MOMENTS, st.one_of(st.none(), _MOMENTS))
_RESOURCES = st.sampled_from(["a.com/gpu", "a.com/gpu", "b.com/gpu"])


def _devices(*gpus: int) -> st.SearchStrategy[list[DeviceSpan]]:
    spans = st.builds(DeviceSpan, *_WHERE, _RESOURCES, st.just("A100"), st.sampled_from(gpus))
    return st.lists(spans, min_size=1, max_size=6)


_HURDLES = st.sampled_from(["", "", "", "cordoned"])
_ROOMS = st.lists(st.builds(RoomSpan, *_WHERE, _LARGE, _LARGE, _SMALL, _HURDLES), min_size=1, max_size=4)
_TAKEN = st.lists(st.builds(TakenSpan, *_WHERE, _SMALL, _SMALL), max_size=6)
_STORIES = st.builds(Story, _devices(2000, 8000), _devices(500, 1000), _ROOMS, _TAKEN)
_WINDOWS = st.builds(
    lambda since, length, step: Window(since, Instant(since + length), step),
    _MOMENTS,
    st.integers(1, _LAST),
    st.one_of(st.none(), st.integers(1, _LAST)),
)
_BESIDE = st.builds(Beside, st.integers(0, 4), st.integers(0, 4))


def _holds(span: Span, node: str, at: int) -> bool:
    return span.node_name == node and span.start_at <= at and (span.end_at is None or span.end_at > at)


def _counted(known: Story, node: str, resource: str, at: int, beside: Beside) -> tuple[int, int | None]:
    """Idle and stranded, counted one by one."""
    had = sum(each.gpus for each in known.capacity if _holds(each, node, at) and each.resource == resource)
    taken = sum(each.gpus for each in known.held if _holds(each, node, at) and each.resource == resource)
    idle, usable = had - taken, 0
    rooms = sorted((each for each in known.rooms if _holds(each, node, at)), key=lambda each: each.start_at)
    if idle <= 0 or not rooms:
        return idle, None if idle > 0 else 0
    room, pods = rooms[-1], [each for each in known.taken if _holds(each, node, at)]
    cpu, memory = room.cpu - sum(each.cpu for each in pods), room.memory - sum(each.memory for each in pods)
    while not room.hurdle and len(pods) < room.pods and usable < idle:
        cpu, memory = cpu - beside.cpu, memory - beside.memory
        if (beside.cpu and cpu < 0) or (beside.memory and memory < 0):
            break
        usable += 1000
    return idle, max(idle - usable, 0)


@given(_STORIES, _WINDOWS, _BESIDE)
@example(Story([], [], [_ROOM], []), Window(Instant(0), Instant(2), 1), Beside())
def test_over_time_is_the_sum_of_its_moments(known: Story, window: Window, beside: Beside) -> None:
    moments = range(window.since, window.until)
    for line in over_time(known, window, beside).lines:
        counted = {at: _counted(known, line.place.node, line.place.resource, at, beside) for at in moments}
        for index, (start, end) in enumerate(itertools.pairwise(window.edges())):
            step = [counted[at] for at in range(start, end)]
            lost = [gpus for _, gpus in step if gpus is not None]
            assert line.idle[index] == sum(idle for idle, _ in step)
            assert line.stranded[index] == (sum(lost) if len(lost) == len(step) else None)


@given(_STORIES, _MOMENTS, _BESIDE)
def test_no_more_is_stranded_than_is_idle(known: Story, at: Instant, beside: Beside) -> None:
    for each in devices_at(known, at, beside):
        idle, lost = _counted(known, each.place.node, each.place.resource, at, beside)
        assert (each.idle, each.stranded) == (idle, lost)
        assert lost is None or 0 <= lost <= max(idle, 0)
        assert bool(each.why) == bool(lost)
