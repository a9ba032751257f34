"""The listener manager: recovered at the start, collected every 10 s, health-checked every 30 s (L14, L28)."""

from __future__ import annotations

import pytest

from bayplan.ledger.events import EVENTS
from bayplan.ledger.listeners import Action, Listeners, Sign
from bayplan.ledger.owners import Watch
from bayplan.ledger.status.kinds import GroupKind
from tests.ledger.owners.builders import at, new, owner, pod, workload, workloads

JOB = GroupKind("batch", "Job")
SETS = GroupKind("apps", "ReplicaSet")
JOBS = {JOB: Watch("batch/v1", "Job", True)}
BOTH = {**JOBS, SETS: Watch("apps/v1", "ReplicaSet", False)}


def verbs(actions: list[Action]) -> list[tuple[str, str, str]]:
    for action in actions:
        assert set(action.fields) == set(EVENTS[action.event].fields.split())
    return [(action.verb, str(action.kind), action.event) for action in actions]


def test_stored_kinds_are_recovered_and_new_ones_started_at_once() -> None:
    listeners = Listeners()
    assert verbs(listeners.step(at(0), JOBS)) == [("start", "Job.batch", "listener recovered")]
    assert verbs(listeners.step(at(1), BOTH)) == [("start", "ReplicaSet.apps", "listener started")]
    assert listeners.step(at(2), BOTH) == []
    assert len(listeners) == 2


def test_listeners_are_recovered_from_stored_workloads() -> None:
    before = new()
    before.seen(workload("job", "Job", status={"active": 1}), at(0))
    before.pod(pod("p", owner("job", "Job")), at(0))
    after = new()
    after.remember(workloads(before.flush(at(0))).values(), [])
    after.flush(at(1))
    assert verbs(Listeners().step(at(1), after.kinds())) == [("start", "Job.batch", "listener recovered")]


def test_a_kind_of_which_nothing_is_left_is_collected_at_the_next_ten_seconds() -> None:
    listeners = Listeners()
    listeners.step(at(0), BOTH)
    assert listeners.step(at(9), JOBS) == []
    assert verbs(listeners.step(at(10), JOBS)) == [("stop", "ReplicaSet.apps", "listener ended")]
    assert len(listeners) == 1


def test_a_kind_that_is_wanted_again_before_the_collection_is_kept() -> None:
    listeners = Listeners()
    listeners.step(at(0), JOBS)
    assert listeners.step(at(4), {}) == []
    assert listeners.step(at(10), JOBS) == []


def test_a_listener_that_is_wanted_whole_is_restarted_and_never_narrowed() -> None:
    listeners = Listeners()
    listeners.step(at(0), BOTH)
    whole = {**BOTH, SETS: Watch("apps/v1", "ReplicaSet", True)}
    (action,) = listeners.step(at(1), whole)
    assert verbs([action]) == [("restart", "ReplicaSet.apps", "listener widened")]
    assert action.watch.whole
    assert listeners.step(at(2), BOTH) == []


@pytest.mark.parametrize(
    ("sign", "now", "why"),
    [
        pytest.param(Sign(at(0)), 30, "", id="a young listener that has heard nothing yet lives"),
        pytest.param(Sign(at(100)), 240, "", id="one that was heard of two minutes ago lives"),
        pytest.param(Sign(at(100)), 251, "no sign of life for 151 s", id="one that is silent for longer is dead"),
        pytest.param(None, 151, "no sign of life for 151 s", id="one that never gave a sign is as old as its start"),
        pytest.param(Sign(at(29), "403 forbidden"), 30, "403 forbidden", id="one that ended is dead"),
    ],
)
def test_health(sign: Sign | None, now: int, why: str) -> None:
    listeners = Listeners()
    listeners.step(at(0), JOBS)
    actions = listeners.step(at(now), JOBS, {JOB: sign} if sign else {})
    assert [action.fields["why"] for action in actions] == ([why] if why else [])


def test_health_is_checked_every_thirty_seconds_and_failures_are_counted() -> None:
    listeners = Listeners()
    listeners.step(at(0), JOBS)
    dead = {JOB: Sign(at(0), "gone")}
    assert listeners.step(at(29), JOBS, dead) == []
    assert [listeners.step(at(now), JOBS, dead)[0].fields["failures"] for now in (30, 60, 90)] == [1, 2, 3]
    assert listeners.step(at(120), JOBS, {JOB: Sign(at(119))}) == []
    assert listeners.step(at(150), JOBS, dead)[0].fields["failures"] == 1


def test_a_dead_listener_of_which_nothing_is_left_is_not_restarted() -> None:
    listeners = Listeners()
    listeners.step(at(0), JOBS)
    assert verbs(listeners.step(at(30), {}, {JOB: Sign(at(0), "gone")})) == [("stop", "Job.batch", "listener ended")]


def test_it_says_when_it_is_due() -> None:
    listeners = Listeners()
    assert listeners.due(at(5)) == at(5)
    listeners.step(at(5), {})
    assert listeners.due(at(6)) == at(15)
    listeners.step(at(15), {})
    listeners.step(at(34), {})
    assert listeners.due(at(34)) == at(35)
