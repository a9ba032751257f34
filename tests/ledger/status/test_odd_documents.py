"""Whatever a status holds, there is an answer (L23)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.ledger.status.document import LONGEST, Document
from bayplan.ledger.status.judge import judge, of_object
from bayplan.ledger.status.kinds import RULES, GroupKind
from bayplan.ledger.status.verdict import PodCounts, State

KINDS = [*RULES, GroupKind("example.com", "Anything")]
NAMES = [
    "conditions",
    "active",
    "ready",
    "failed",
    "state",
    "phase",
    "jobStatus",
    "jobDeploymentStatus",
    "readyReplicas",
    "replicas",
    "suspend",
    "type",
    "status",
    "reason",
    "message",
    "lastTransitionTime",
    "completionTime",
    "endTime",
    "replicatedJobs",
    "replicatedJobsStatus",
    "jobsStatus",
    "terminalState",
]
WORDS = ["Complete", "Failed", "Ready", "True", "False", "Running", "2026-01-01T00:00:00Z", "0001-01-01T00:00:00Z", ""]
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.sampled_from(WORDS),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=4),
    max_leaves=20,
)


@given(st.sampled_from(KINDS), anything, anything)
def test_no_document_is_too_odd(kind: GroupKind, spec: Any, status: Any) -> None:
    verdict = judge(kind, of_object(kind, Document(spec, status)), PodCounts(running=1))
    assert isinstance(verdict.state, State)
    assert isinstance(verdict.reason, str)


@pytest.mark.parametrize(
    "status",
    [
        pytest.param({"conditions": "Complete"}, id="conditions are a text"),
        pytest.param({"conditions": [None, 3, {"type": 4}, {"status": "True"}]}, id="conditions of wrong types"),
        pytest.param({"conditions": [{"type": "Complete", "status": True}]}, id="a status that is no text"),
        pytest.param({"active": "4", "ready": True}, id="numbers that are none"),
        pytest.param([1, 2], id="a list"),
    ],
)
def test_what_has_a_wrong_type_says_nothing(status: Any) -> None:
    verdict = of_object(GroupKind("batch", "Job"), Document({}, status))
    assert verdict is not None
    assert verdict.state is State.PENDING


def test_a_time_that_is_none_leaves_the_end_open() -> None:
    status = {"conditions": [{"type": "Complete", "status": "True", "lastTransitionTime": "soon"}]}
    verdict = of_object(GroupKind("batch", "Job"), Document({}, status))
    assert verdict is not None
    assert verdict.final
    assert verdict.ended_at is None


def test_a_reason_is_cut() -> None:
    status = {"conditions": [{"type": "Failed", "status": "True", "message": "x" * 1_000_000}]}
    verdict = of_object(GroupKind("batch", "Job"), Document({}, status))
    assert verdict is not None
    assert len(verdict.reason) == LONGEST
