"""Each state of each kind, from status documents as the controllers write them (L25)."""

from __future__ import annotations

import pytest

from bayplan.ledger.status.document import Document
from bayplan.ledger.status.judge import judge, of_object
from bayplan.ledger.status.kinds import RULES, GroupKind
from bayplan.ledger.status.verdict import PodCounts, State
from bayplan.model.clock import parse_rfc3339
from tests.ledger.status.cases import CASES
from tests.ledger.status.documents import JOB, PYTORCH, T1, T2, TRAIN_JOB, UNKNOWN, Status, conditions


@pytest.mark.parametrize(("kind", "spec", "status", "state", "reason"), CASES)
def test_state_of_a_kind(kind: GroupKind, spec: Status, status: Status, state: State, reason: str) -> None:
    verdict = of_object(kind, Document(spec, status))
    assert verdict is not None
    assert verdict.state is state
    assert reason in verdict.reason
    assert verdict.reason
    assert verdict.final == (state in (State.SUCCEEDED, State.FAILED))
    if verdict.ended_at is not None:
        assert verdict.ended_at in (parse_rfc3339(T1), parse_rfc3339(T2))
    if T2 in str(status):
        assert verdict.ended_at == parse_rfc3339(T2)


def test_every_kind_with_rules_is_in_the_table() -> None:
    tested = {row.values[0] for row in CASES}
    assert set(RULES) <= tested


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        pytest.param(JOB, {"active": 2}, id="a server that does not count ready pods of a Job"),
        pytest.param(PYTORCH, {}, id="a PyTorchJob that its operator has not seen"),
        pytest.param(TRAIN_JOB, {"conditions": []}, id="a TrainJob of a version that does not count jobs"),
        pytest.param(UNKNOWN, {"progress": "12%"}, id="an unknown kind that says nothing of use"),
        pytest.param(UNKNOWN, {"phase": "Frobnicating"}, id="an unknown word"),
    ],
)
def test_where_the_object_says_nothing_the_pods_decide(kind: GroupKind, status: Status) -> None:
    assert of_object(kind, Document({}, status)) is None
    assert judge(kind, None, PodCounts(running=2)).state is State.RUNNING


@pytest.mark.parametrize(
    ("pods", "state", "reason"),
    [
        pytest.param(PodCounts(), State.SUSPENDED, "no pods", id="none"),
        pytest.param(PodCounts(pending=2), State.PENDING, "0 of 2 pods running", id="all wait"),
        pytest.param(PodCounts(running=2), State.RUNNING, "2 of 2 pods running", id="all run"),
        pytest.param(PodCounts(running=1, pending=1), State.DEGRADED, "1 of 2 pods running", id="one waits"),
        pytest.param(PodCounts(running=1, failed=1), State.DEGRADED, "1 of 2 pods running", id="one failed"),
        pytest.param(PodCounts(running=1, succeeded=1), State.RUNNING, "1 of 1 pods running", id="one is done"),
        pytest.param(PodCounts(succeeded=2), State.SUCCEEDED, "2 of 2 pods succeeded", id="all are done"),
        pytest.param(PodCounts(succeeded=1, failed=1), State.FAILED, "1 of 2 pods succeeded", id="done, but for one"),
    ],
)
def test_state_from_pods_is_never_final(pods: PodCounts, state: State, reason: str) -> None:
    verdict = judge(UNKNOWN, None, pods)
    assert (verdict.state, verdict.reason, verdict.final) == (state, reason, False)


def test_a_deletion_asked_for_shows_unless_it_has_ended() -> None:
    running = of_object(JOB, Document({}, {"active": 1, "ready": 1}))
    done = of_object(JOB, Document({}, {"conditions": conditions("Complete")}))
    assert judge(JOB, running, PodCounts(), deleting=True).state is State.TERMINATING
    assert judge(JOB, done, PodCounts(), deleting=True).state is State.SUCCEEDED


def test_an_unknown_kind_that_is_not_ready_but_has_running_pods_is_degraded() -> None:
    own = of_object(UNKNOWN, Document({}, {"conditions": conditions("!Ready", reason="Scaling")}))
    assert judge(UNKNOWN, own, PodCounts(running=1)).state is State.DEGRADED
    assert judge(UNKNOWN, own, PodCounts(pending=1)).state is State.PENDING
