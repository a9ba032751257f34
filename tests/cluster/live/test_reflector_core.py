"""What a reflector does next: each rule of the state machine is a row, and the story that comes out is always true."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.cluster.kinds import POD
from bayplan.cluster.live.faults import Unreachable, Untrusted
from bayplan.cluster.live.reflector_core import (
    Closed,
    Failed,
    Fetch,
    InvalidTransition,
    Policy,
    Read,
    ReflectorCore,
    Rest,
    Rested,
    Stalled,
    State,
    Step,
    Stimulus,
    Stop,
    Stream,
    Told,
)
from bayplan.cluster.live.wire import InitialEnd
from bayplan.cluster.objects import Object
from bayplan.cluster.port import Page, WatchEvent
from bayplan.model.errors import (
    BadRequest,
    Details,
    Expired,
    Forbidden,
    Invalid,
    NotFound,
    ServerError,
    TooManyRequests,
    Unauthorized,
)

Story = list[tuple[str, str, str]]
"""Type, name and uid of each change."""


def pod(name: str, revision: int, uid: str = "") -> Object:
    meta = {"namespace": "here", "name": name, "uid": uid or f"u-{name}", "resourceVersion": str(revision)}
    return Object.from_raw(POD, msgspec.json.encode({"metadata": meta, "spec": {"nodeName": "n"}}))


def added(name: str, revision: int, uid: str = "") -> WatchEvent:
    return WatchEvent("ADDED", str(revision), pod(name, revision, uid))


def modified(name: str, revision: int, uid: str = "") -> WatchEvent:
    return WatchEvent("MODIFIED", str(revision), pod(name, revision, uid))


def deleted(name: str, revision: int, uid: str = "") -> WatchEvent:
    return WatchEvent("DELETED", str(revision), pod(name, revision, uid))


def bookmark(revision: int) -> WatchEvent:
    return WatchEvent("BOOKMARK", str(revision))


def end(revision: int) -> InitialEnd:
    return InitialEnd(type="BOOKMARK", revision=str(revision))


def page(*items: Object, revision: int = 10, after: str = "") -> Page:
    return Page(items, str(revision), after)


def core(**options: Any) -> ReflectorCore:
    return ReflectorCore(POD, random=lambda: 1.0, **options)


def run(machine: ReflectorCore, *stimuli: Stimulus) -> list[Step]:
    machine.start()
    return [machine.handle(stimulus) for stimulus in stimuli]


def story(steps: Sequence[Step]) -> Story:
    return [(each.type, each.object.name, each.object.uid) for step in steps for each in step.changes]


SYNCED = Told([added("a", 1), added("b", 2), end(10)])
CUT = Failed(Unreachable("cut"))
BROKEN: list[Stimulus] = [CUT, Rested()]
STALL: list[Stimulus] = [Stalled(), Rested()]
EXPIRED = Failed(Expired("too old resource version"))
FORBIDDEN = Failed(Forbidden("pods is forbidden"))
LISTS = {"streams": False}


@pytest.mark.parametrize(
    ("options", "first"),
    [
        pytest.param({}, Stream(initial=True), id="the present is streamed where the server can"),
        pytest.param(LISTS, Fetch(), id="else it is listed in pages"),
        pytest.param({"since": "7"}, Stream("7", late=True), id="a known revision is taken up"),
    ],
)
def test_how_it_begins(options: dict[str, object], first: object) -> None:
    assert core(**options).start() == first


@pytest.mark.parametrize(
    ("options", "stimuli", "then"),
    [
        pytest.param({}, [Told([added("a", 1)])], Read(), id="an unfinished stream is read on"),
        pytest.param({}, [SYNCED], Read(), id="the streamed list becomes the watch"),
        pytest.param({}, [Failed(Invalid("sendInitialEvents is forbidden"))], Fetch(), id="no streaming, so pages"),
        pytest.param({}, [Failed(BadRequest("what is sendInitialEvents"))], Fetch(), id="not even the word is known"),
        pytest.param({}, [Told([added("a", 1)]), CUT, Rested()], Stream(initial=True), id="a cut stream begins anew"),
        pytest.param({}, [Told([added("a", 1)]), Closed(), Rested()], Stream(initial=True), id="so does a closed one"),
        pytest.param({}, [Stalled(), Rested()], Stream(initial=True), id="so does one that stalls"),
        pytest.param({}, [EXPIRED, Rested()], Stream(initial=True), id="so does one that expires"),
        pytest.param(LISTS, [page(after="x")], Fetch("x"), id="page after page"),
        pytest.param(LISTS, [page(after="x"), page(revision=12)], Stream("12"), id="then watch from the list"),
        pytest.param(LISTS, [page(after="x"), EXPIRED, Rested()], Fetch(), id="a list that expires begins anew"),
        pytest.param(LISTS, [page(after="x"), CUT, Rested()], Fetch(), id="a page that is cut begins anew"),
        pytest.param({}, [SYNCED, Told([modified("a", 11)]), Closed()], Stream("11"), id="closed: from the last event"),
        pytest.param({}, [SYNCED, Told([bookmark(30)]), Closed()], Stream("30"), id="closed: from the last bookmark"),
        pytest.param({}, [SYNCED, Told([deleted("a", 12)]), Closed()], Stream("12"), id="closed: from a deletion"),
        pytest.param({}, [SYNCED, CUT, Rested()], Stream("10", late=True), id="cut: the same"),
        pytest.param({}, [SYNCED, Stalled(), Rested()], Stream("10", late=True), id="stalled: the same"),
        pytest.param({}, [SYNCED, EXPIRED], Stream(initial=True), id="expired: the present anew, at once"),
        pytest.param(LISTS, [page(), EXPIRED], Fetch(), id="expired where nothing streams: the list anew"),
        pytest.param(
            {}, [SYNCED, FORBIDDEN, Rested()], Stream("10", late=True), id="refused after it has worked: try again"
        ),
        pytest.param(
            {},
            [SYNCED, Failed(NotFound("no such kind")), Rested()],
            Stream("10", late=True),
            id="unknown after it has worked",
        ),
        pytest.param({}, [SYNCED, Closed(), Closed(10)], Stream("10"), id="a long silence is taken up at once"),
        pytest.param(
            {},
            [SYNCED, Closed(), CUT, Rested(), Closed(), Rested()],
            Stream("10", late=True),
            id="late until something is heard",
        ),
        pytest.param(
            {}, [SYNCED, CUT, Rested(), Told([bookmark(30)]), Closed()], Stream("30"), id="then it is late no more"
        ),
        pytest.param({}, [SYNCED, CUT, Rested(), Closed(10)], Stream("10"), id="nor after a silence that was heard"),
        pytest.param({}, [FORBIDDEN], Stop(FORBIDDEN.error), id="refused from the start: stop"),
        pytest.param({"since": "7"}, [FORBIDDEN], Stop(FORBIDDEN.error), id="refused from the start when taken up"),
        pytest.param({}, [SYNCED, Closed(), Closed()], Rest(0.5), id="streams that bring nothing are not hammered"),
    ],
)
def test_what_comes_next(options: dict[str, object], stimuli: list[Stimulus], then: object) -> None:
    assert run(core(**options), *stimuli)[-1].then == then


@pytest.mark.parametrize(
    ("stimuli", "told"),
    [
        pytest.param([SYNCED], [("ADDED", "a", "u-a"), ("ADDED", "b", "u-b")], id="the present is added"),
        pytest.param(
            [Told([added("a", 1), modified("a", 3), deleted("b", 4), end(10)])],
            [("ADDED", "a", "u-a"), ("MODIFIED", "a", "u-a")],
            id="news among the present; what was never told is not deleted",
        ),
        pytest.param([SYNCED, EXPIRED, SYNCED], [], id="nothing has changed, nothing is told"),
        pytest.param(
            [SYNCED, EXPIRED, Told([added("a", 15), added("b", 2), end(20)])],
            [("MODIFIED", "a", "u-a")],
            id="changed in between",
        ),
        pytest.param(
            [SYNCED, EXPIRED, Told([added("b", 2), added("c", 15), end(20)])],
            [("ADDED", "c", "u-c"), ("DELETED", "a", "u-a")],
            id="gone in between, and another came",
        ),
        pytest.param(
            [SYNCED, EXPIRED, Told([added("a", 15, "other"), added("b", 2), end(20)])],
            [("DELETED", "a", "u-a"), ("ADDED", "a", "other")],
            id="replaced under the same name in between",
        ),
        pytest.param(
            [SYNCED, Told([modified("a", 15, "other")])],
            [("DELETED", "a", "u-a"), ("ADDED", "a", "other")],
            id="replaced within a stream that left the deletion out",
        ),
        pytest.param([SYNCED, Told([added("a", 15)])], [("MODIFIED", "a", "u-a")], id="known already: a change"),
        pytest.param([SYNCED, Told([modified("c", 15)])], [("ADDED", "c", "u-c")], id="not known yet: new"),
        pytest.param([SYNCED, Told([modified("a", 1)])], [], id="what is told twice counts once"),
        pytest.param([SYNCED, Told([deleted("c", 15)])], [], id="the unknown cannot go"),
        pytest.param(
            [SYNCED, Told([deleted("a", 15), added("a", 16)])],
            [("DELETED", "a", "u-a"), ("ADDED", "a", "u-a")],
            id="gone from the selection and back",
        ),
        pytest.param(
            [SYNCED, EXPIRED, Told([added("a", 15)]), CUT, Rested(), Told([added("a", 15), end(20)])],
            [("MODIFIED", "a", "u-a"), ("DELETED", "b", "u-b")],
            id="read anew twice: each change once, and nobody is deleted before the end",
        ),
    ],
)
def test_what_is_told(stimuli: list[Stimulus], told: Story) -> None:
    steps = run(core(), *stimuli)
    assert story(steps[1:] if len(steps) > 1 else steps) == told


def test_pages_tell_the_same_story_as_a_stream() -> None:
    steps = run(
        core(**LISTS),
        page(pod("a", 1), after="x"),
        page(pod("b", 2), revision=10),
        EXPIRED,
        page(pod("b", 12), after="y"),
        EXPIRED,
        Rested(),
        page(pod("b", 12), after="z"),
        page(pod("c", 14), revision=20),
    )
    assert story(steps) == [
        ("ADDED", "a", "u-a"),
        ("ADDED", "b", "u-b"),
        ("MODIFIED", "b", "u-b"),
        ("ADDED", "c", "u-c"),
        ("DELETED", "a", "u-a"),
    ]
    assert [step.synced for step in steps] == [False, True, False, False, False, False, False, True]


def test_an_inferred_deletion_says_so_and_knows_the_last_revision() -> None:
    step = run(core(), SYNCED, EXPIRED, Told([added("b", 2), end(20)]))[-1]
    (change,) = step.changes
    assert (change.synthetic, change.object.version, change.object.namespace) == (True, 1, "here")


def test_a_known_past_is_compared_with_the_present() -> None:
    known = {("here", "a"): ("u-a", "1"), ("here", "gone"): ("u-gone", "2"), ("here", "new"): ("old", "3")}
    steps = run(core(known=known), Told([added("a", 1), added("new", 9, "fresh"), end(10)]))
    assert story(steps) == [("DELETED", "new", "old"), ("ADDED", "new", "fresh"), ("DELETED", "gone", "u-gone")]


def test_the_revision_is_not_one_to_resume_from_while_the_present_is_read() -> None:
    machine = core()
    run(machine, Told([added("a", 1)]))
    assert machine.revision == ""
    machine.handle(Told([end(10), modified("a", 12)]))
    assert (machine.revision, machine.state) == ("12", State.WATCHING)


def pauses(steps: Sequence[Step]) -> list[float]:
    return [step.then.seconds for step in steps if isinstance(step.then, Rest)]


def test_pauses_double_up_to_a_limit_and_begin_anew_after_success() -> None:
    steps = run(core(), SYNCED, *BROKEN * 8, Told([bookmark(11)]), CUT)
    assert pauses(steps) == [0.5, 1, 2, 4, 8, 16, 30, 30, 0.5]


def test_a_watch_that_is_cut_after_a_long_silence_is_no_failure_in_a_row() -> None:
    late: list[Stimulus] = [Failed(Unreachable("cut"), lived=10), Rested()]
    assert pauses(run(core(), SYNCED, *late * 5)) == [0.5] * 5


def test_an_event_without_a_revision_does_not_move_the_stream() -> None:
    machine = core()
    run(machine, SYNCED, Told([WatchEvent("ADDED", "", pod("c", 0))]))
    assert machine.revision == "10"


@pytest.mark.parametrize(("luck", "pause"), [(0.0, 0.25), (0.5, 0.375), (1.0, 0.5)])
def test_chance_spreads_the_pauses(luck: float, pause: float) -> None:
    steps = run(ReflectorCore(POD, random=lambda: luck), CUT)
    assert pauses(steps) == [pause]


@pytest.mark.parametrize(
    ("error", "pause"),
    [
        pytest.param(TooManyRequests("busy", details=Details(retryAfterSeconds=7)), 7, id="429 with a time"),
        pytest.param(TooManyRequests("busy"), 0.5, id="429 without"),
        pytest.param(ServerError("starting", details=Details(retryAfterSeconds=3)), 3, id="503 with a time"),
    ],
)
def test_the_server_says_how_long_to_wait(error: ServerError, pause: float) -> None:
    assert pauses(run(core(), SYNCED, Failed(error))) == [pause]


@pytest.mark.parametrize("error", [Forbidden("no"), Unauthorized("no"), NotFound("no"), Untrusted("no")], ids=repr)
def test_lasting_refusal_ends_it(error: Forbidden) -> None:
    refused: list[Stimulus] = [Failed(error), Rested()]
    steps = run(core(policy=Policy(refusals=2)), SYNCED, *refused * 2, Failed(error))
    assert steps[-1].then == Stop(error)


def test_refusals_after_a_long_outage_are_still_put_up_with() -> None:
    steps = run(core(policy=Policy(refusals=1)), SYNCED, *BROKEN * 20, FORBIDDEN)
    assert pauses(steps)[-1] == 30


def test_a_server_that_forgets_at_once_every_time_is_not_hammered() -> None:
    steps = run(core(), SYNCED, EXPIRED, SYNCED, EXPIRED, Rested(), SYNCED, EXPIRED)
    assert pauses(steps) == [2, 4]


def test_news_make_an_expiry_the_first_again() -> None:
    steps = run(core(), SYNCED, EXPIRED, SYNCED, Told([bookmark(20)]), EXPIRED)
    assert steps[-1].then == Stream(initial=True)


def test_stall_after_stall_ends_in_reading_the_present() -> None:
    """A revision that a restored server has not reached yet brings nothing, for ever."""
    steps = run(core(policy=Policy(stalls=3)), SYNCED, *STALL * 3)
    assert [step.then for step in steps if isinstance(step.then, Stream)] == [
        Stream("10", late=True),
        Stream("10", late=True),
        Stream(initial=True),
    ]


def test_what_cannot_happen_tells_how_it_came() -> None:
    with pytest.raises(InvalidTransition, match=r"pods: .*streaming: Told; watching: Rested"):
        run(core(), SYNCED, Rested())


def test_a_stopped_reflector_takes_nothing_more() -> None:
    with pytest.raises(InvalidTransition):
        run(core(), FORBIDDEN, Rested())


NAMES = st.sampled_from("abc")


class World:
    """A server with history: what it holds now, and every change since revision 0."""

    def __init__(self) -> None:
        self.revision = 0
        self.objects: dict[str, Object] = {}
        self.log: list[WatchEvent] = []

    def turn(self, name: str, *, remove: bool) -> None:
        self.revision += 1
        if remove and name in self.objects:
            self.log.append(deleted(name, self.revision, self.objects.pop(name).uid))
        elif name in self.objects:
            self.objects[name] = pod(name, self.revision, self.objects[name].uid)
            self.log.append(WatchEvent("MODIFIED", str(self.revision), self.objects[name]))
        else:
            self.objects[name] = pod(name, self.revision, f"{name}-{self.revision}")
            self.log.append(WatchEvent("ADDED", str(self.revision), self.objects[name]))


def answer(world: World, step: Step, machine: ReflectorCore) -> Stimulus:
    """What an honest server gives for an instruction."""
    match step.then:
        case Rest():
            return Rested()
        case Fetch():
            return Page(tuple(world.objects.values()), str(world.revision))
        case Stream(initial=True):
            events = [WatchEvent("ADDED", each.meta.resource_version, each) for each in world.objects.values()]
            return Told([*events, end(world.revision)])
        case Stream() | Read():
            return Told([event for event in world.log if int(event.revision) > int(machine.revision)])
        case Stop():
            raise AssertionError(step)


@given(
    st.lists(
        st.one_of(
            st.tuples(NAMES, st.booleans()),
            st.sampled_from([CUT, EXPIRED, Closed(), Stalled(), None]),
        ),
        max_size=40,
    ),
    st.booleans(),
)
def test_whatever_breaks_the_story_is_true(acts: list[tuple[str, bool] | Stimulus | None], streams: bool) -> None:
    """Replayed, the changes give the server's objects; each is added once and deleted once, and in that order."""
    world, machine = World(), ReflectorCore(POD, random=lambda: 0.0, streams=streams)
    step = Step(machine.start())
    alive: dict[str, str] = {}
    known: dict[str, str] = {}
    ended: set[str] = set()

    def take(stimulus: Stimulus) -> None:
        nonlocal step
        step = machine.handle(stimulus)
        for change in step.changes:
            name, uid = change.object.name, change.object.uid
            assert uid not in ended
            assert (alive.get(name) == uid) == (change.type != "ADDED")
            if change.type == "DELETED":
                ended.add(alive.pop(name))
                known.pop(name)
            else:
                assert name not in alive or change.type == "MODIFIED"
                alive[name], known[name] = uid, change.object.meta.resource_version

    for act in acts:
        if isinstance(act, tuple):
            world.turn(act[0], remove=act[1])
        elif act is None or machine.state is State.RESTING:
            take(answer(world, step, machine))
        elif not (isinstance(act, Closed) and machine.state is State.LISTING):
            take(act)
    for _ in range(3):
        take(answer(world, step, machine))
    assert known == {name: item.meta.resource_version for name, item in world.objects.items()}
