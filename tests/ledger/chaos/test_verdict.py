"""The judge itself: made-up histories, and each way in which a database can be wrong is found."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest

from bayplan.ledger.rows import Gap, GpuPeriod, GpuPod, GpuPodsEvent, PodRoomPeriod
from bayplan.model.clock import SECOND, Instant
from tests.ledger.chaos import objects
from tests.ledger.chaos.oracle import History, OracleGapError, Seen, told
from tests.ledger.chaos.transitions import events_of
from tests.ledger.chaos.verdict import FAULTS, Recorded, Snapshot, Unheard, Verdict, judge
from tests.ledger.chaos.witness import Hearing

_START = Instant(1_700_000_000 * SECOND)
_GONE_AT = Instant(_START + 7 * SECOND)
_KEY = "/registry/pods/vision/one"


def _pod(uid: str, status: dict[str, Any] | None = None, node: str = "") -> dict[str, Any]:
    made = objects.pod("one", "vision", "amd.com/gpu", 1, {"uid": "owner", "controller": True})
    made["metadata"]["uid"] = uid
    return {**made, "spec": {**made["spec"], "nodeName": node}, "status": status or {"phase": "Pending"}}


def _changes() -> Iterator[Seen]:
    """A pod that is created, bound, runs and is deleted; its owner before it."""
    owner = {"metadata": {"uid": "owner", "ownerReferences": [{"uid": "root", "controller": True}]}}
    yield Seen(2, _START, "/registry/owners/o", owner)
    yield Seen(3, _START, _KEY, _pod("a"))
    yield Seen(4, _START, _KEY, _pod("a", objects.pulling(_START), "n"))
    yield Seen(5, _START, _KEY, _pod("a", objects.running(_START), "n"))
    yield Seen(6, _START, "/registry/other", {})
    yield Seen(7, _GONE_AT, _KEY)


def _history() -> History:
    return told(_changes(), 7)


def _recorded() -> Recorded:
    """What a ledger that missed nothing tells of it."""
    versions = _history().pods["a"]
    row = GpuPod(
        cluster="c",
        uid="a",
        resource_version=7,
        namespace="vision",
        name="one",
        root_uid="root",
        created_at=_START,
        updated_at=_GONE_AT,
        end_at=_GONE_AT,
        gone_at=_GONE_AT,
    )
    return Recorded(
        pods={"a": row},
        snapshots={"a": [Snapshot(each.revision, each.gone, each.object) for each in versions]},
        events={"a": [_event(*each) for each in events_of(versions, gone=True)]},
    )


def _event(revision: int, kind: str, subject: str = "") -> GpuPodsEvent:
    return GpuPodsEvent(
        cluster="c",
        pod_uid="a",
        resource_version=revision,
        event_type=kind,
        subject=subject,
        at=_START,
        observed_at=_START,
    )


def _row(recorded: Recorded, **changes: Any) -> None:
    recorded.pods["a"] = msgspec.structs.replace(recorded.pods["a"], **changes)


def _found(verdict: Verdict) -> dict[str, int]:
    return {name: count for name in FAULTS if (count := getattr(verdict, name))}


def test_a_ledger_that_missed_nothing_is_sound() -> None:
    verdict = judge(_history(), _recorded())
    assert _found(verdict) == {}
    assert verdict.sound
    assert (verdict.pods, verdict.states) == (1, 4)


def _without(revision: int) -> Callable[[Recorded], None]:
    def change(recorded: Recorded) -> None:
        recorded.snapshots["a"] = [each for each in recorded.snapshots["a"] if each.revision != revision]

    return change


def _altered(recorded: Recorded) -> None:
    first, *others = recorded.snapshots["a"]
    recorded.snapshots["a"] = [Snapshot(first.revision, first.gone, {**first.object, "kind": "Cod"}), *others]


def _stranger(recorded: Recorded) -> None:
    recorded.snapshots["a"].append(Snapshot(99, False, {}))


def _open_period(recorded: Recorded) -> None:
    period = GpuPeriod(
        cluster="c", pod_uid="a", resource="amd.com/gpu", start_at=_START, resource_version=4, gpus=1, node_name="n"
    )
    recorded.open_periods["a"] = [period]


@pytest.mark.parametrize(
    ("change", "sorts"),
    [
        pytest.param(_without(4), {"missing"}, id="a state in between is missing"),
        pytest.param(_without(3), {"missing", "missing_first"}, id="the first state is missing"),
        pytest.param(_without(7), {"missing", "missing_last"}, id="the last state is missing"),
        pytest.param(_altered, {"altered"}, id="a state is another than etcd held"),
        pytest.param(_stranger, {"duplicated"}, id="a state that etcd never held"),
        pytest.param(lambda it: it.events["a"].pop(0), {"missing_events"}, id="an event is missing"),
        pytest.param(lambda it: it.events["a"].append(it.events["a"][0]), {"duplicated_events"}, id="an event twice"),
        pytest.param(
            lambda it: it.events["a"].append(_event(5, "Condition", "Odd")),
            {"duplicated_events"},
            id="an event of nothing",
        ),
        pytest.param(lambda it: _row(it, gone_at=None), {"wrong_ends"}, id="a pod that went is still there"),
        pytest.param(
            lambda it: _row(it, end_at=Instant(_GONE_AT + 60 * SECOND)), {"wrong_ends"}, id="an end a minute too late"
        ),
        pytest.param(
            lambda it: _row(it, end_at=Instant(_GONE_AT + 60 * SECOND), end_inferred=True, end_after=_START),
            set(),
            id="an inferred end whose bounds hold the truth is right",
        ),
        pytest.param(
            lambda it: _row(it, end_inferred=True, end_after=Instant(_GONE_AT + 30 * SECOND)),
            {"wrong_ends"},
            id="an inferred end whose bounds miss the truth",
        ),
        pytest.param(_open_period, {"wrong_ends"}, id="a pod that went still holds GPUs"),
        pytest.param(lambda it: _row(it, root_uid="owner"), {"wrong_owners"}, id="a chain that was left half way"),
    ],
)
def test_what_is_wrong_is_found(change: Callable[[Recorded], None], sorts: set[str]) -> None:
    recorded = _recorded()
    change(recorded)
    found = _found(judge(_history(), recorded))
    assert sorts <= found.keys()
    if "missing" not in sorts:  # a state that is missing may move events as well: those are judged by what was seen
        assert found.keys() == sorts


def test_a_pod_that_was_never_seen_is_missing() -> None:
    found = _found(judge(_history(), Recorded()))
    assert found == {"missing_pods": 1, "missing": 4, "missing_first": 1, "missing_last": 1}


def _gap(after: int, up_to: int, dropped: int = 0) -> Gap:
    return Gap(
        cluster="c",
        kind="pods",
        from_at=_START,
        to_at=_START,
        after_revision=str(after),
        up_to_revision=str(up_to),
        dropped=dropped,
    )


_DEAF = Unheard(((_START, _START),))
_DEAF_LATER = Unheard(((_START + SECOND, _START + SECOND),))


@pytest.mark.parametrize(
    ("gaps", "unheard", "missing", "excused"),
    [
        pytest.param([_gap(3, 6)], _DEAF, 0, 1, id="told as a gap, and a fault explains it"),
        pytest.param([_gap(3, 6)], Unheard(), 1, 0, id="told as a gap, but nothing happened"),
        pytest.param([_gap(3, 6)], _DEAF_LATER, 1, 0, id="told as a gap, but the fault was later: the ledger slept"),
        pytest.param([], _DEAF, 1, 0, id="a fault, but the ledger does not tell"),
        pytest.param([_gap(4, 6)], _DEAF, 1, 0, id="a gap elsewhere"),
        pytest.param([_gap(3, 4)], _DEAF, 1, 0, id="what a list finds after the gap must be there"),
        pytest.param([_gap(0, 0, dropped=1)], Unheard(full_spool=True), 0, 1, id="a full spool counted it"),
        pytest.param([], Unheard(full_spool=True), 1, 0, id="a full spool that did not count"),
    ],
)
def test_a_state_may_lack_only_where_the_ledger_says_so(
    gaps: list[Gap], unheard: Unheard, missing: int, excused: int
) -> None:
    recorded = _recorded()
    _without(4)(recorded)
    recorded.gaps = gaps
    verdict = judge(_history(), recorded, unheard)
    assert (verdict.missing, verdict.excused) == (missing, excused)


_LATE = 4 * SECOND


@pytest.mark.parametrize(
    ("hearing", "sound"),
    [
        pytest.param(Hearing(), False, id="the ledger alone was late"),
        pytest.param(Hearing({7: _GONE_AT + _LATE}), True, id="whoever asked the API server heard as late"),
        pytest.param(
            Hearing(stalled=[(_GONE_AT - SECOND, _GONE_AT + _LATE)]), True, id="the campaign held it back until then"
        ),
        pytest.param(Hearing(stalled=[(_START, _START + SECOND)]), False, id="it held back something else"),
        pytest.param(
            Hearing(starved=[(_START, 0), (_GONE_AT + SECOND, 3 * SECOND), (_GONE_AT + _LATE, 4 * SECOND)]),
            True,
            id="the machine did not let the ledger run",
        ),
        pytest.param(
            Hearing(starved=[(_START, 0), (_GONE_AT + _LATE, SECOND)]), False, id="the machine let it run mostly"
        ),
        pytest.param(
            Hearing({6: _START + 4 * SECOND}, {6: _START}), True, id="those who watched do not agree about the time"
        ),
    ],
)
def test_an_end_is_right_when_it_is_told_as_soon_as_it_could_be_known(hearing: Hearing, sound: bool) -> None:
    recorded = _recorded()
    _row(recorded, end_at=Instant(_GONE_AT + _LATE))
    assert judge(_history(), recorded, hearing=hearing).sound is sound


@pytest.mark.parametrize(
    ("before", "lacking", "found"),
    [
        pytest.param(4, [3], {}, id="what was over before there was a ledger is not asked for"),
        pytest.param(4, [3, 4], {"missing": 1}, id="what it found at first is"),
        pytest.param(0, [3], {"missing": 1, "missing_first": 1}, id="with a ledger from the beginning everything is"),
    ],
)
def test_a_ledger_that_came_later_must_have_what_it_found(
    before: int, lacking: list[int], found: dict[str, int]
) -> None:
    recorded = _recorded()
    for revision in lacking:
        _without(revision)(recorded)
    versions = [each for each in _history().pods["a"] if each.revision not in lacking]
    recorded.events["a"] = [_event(*each) for each in events_of(versions, gone=True)]
    assert _found(judge(_history(), recorded, Unheard(before=before))) == found


def test_a_reused_name_is_two_pods() -> None:
    changes = [*_changes(), Seen(8, _GONE_AT, _KEY, _pod("b"))]
    history = told(iter(changes), 8)
    assert {uid: len(versions) for uid, versions in history.pods.items()} == {"a": 4, "b": 1}
    assert [each.gone for each in history.pods["a"]] == [False, False, False, True]


def test_an_oracle_with_a_hole_is_void() -> None:
    changes = [each for each in _changes() if each.revision != 6]
    with pytest.raises(OracleGapError, match="between the revisions 5 and 7"):
        told(iter(changes), 7)


def test_an_oracle_that_ended_too_early_is_void() -> None:
    with pytest.raises(OracleGapError, match="came to revision 7, the cluster to 9"):
        told(_changes(), 9)


def test_an_oracle_that_began_too_late_is_void() -> None:
    changes = [each for each in _changes() if each.revision > 3]
    with pytest.raises(OracleGapError, match="begins at revision 4"):
        told(iter(changes), 7)


def _room(cpu: int = 200, node: str = "n") -> PodRoomPeriod:
    return PodRoomPeriod(
        cluster="c",
        pod_uid="a",
        start_at=_START,
        resource_version=4,
        namespace="vision",
        name="one",
        node_name=node,
        cpu=cpu,
        memory=64 << 20,
    )


@pytest.mark.parametrize(
    ("up_to", "rooms", "sound"),
    [
        pytest.param(5, [_room()], True, id="a pod that runs takes what it asks for"),
        pytest.param(5, [], False, id="and not nothing"),
        pytest.param(5, [_room(100)], False, id="nor less"),
        pytest.param(5, [_room(node="m")], False, id="nor elsewhere"),
        pytest.param(5, [_room(), _room()], False, id="nor twice"),
        pytest.param(3, [], True, id="one that is not bound takes nothing"),
        pytest.param(3, [_room()], False, id="and not something"),
        pytest.param(7, [_room()], False, id="nor does one that is gone"),
    ],
)
def test_what_pods_take_at_the_end_is_judged(up_to: int, rooms: list[PodRoomPeriod], sound: bool) -> None:
    history = told((each for each in _changes() if each.revision <= up_to), up_to)
    verdict = judge(history, Recorded(open_rooms={"a": rooms}))
    assert (verdict.wrong_rooms == 0) is sound
