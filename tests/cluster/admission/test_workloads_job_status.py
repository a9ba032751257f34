"""What may be written into the status of a Job, and what of it stays once written."""

from __future__ import annotations

from typing import Any

import pytest

from bayplan.cluster.embedded.admission.fields import Doc, Errors
from bayplan.cluster.embedded.admission.workloads.job_policies import IndexListError, count_indexes
from bayplan.cluster.embedded.admission.workloads.job_status import validate_job_status

START, END = "2026-01-01T00:00:00Z", "2026-01-01T01:00:00Z"
CONDITIONS = "status.conditions"


def conditions(*types: str, **fields: Any) -> Doc:
    return {"conditions": [{"type": kind, "status": "True"} for kind in types], **fields}


COMPLETE = conditions("SuccessCriteriaMet", "Complete", startTime=START, completionTime=END)
FAILED = conditions("FailureTarget", "Failed", startTime=START)
INDEXED = {"completionMode": "Indexed", "completions": 5, "parallelism": 2}


@pytest.mark.parametrize(
    ("spec", "old", "new", "expected"),
    [
        pytest.param({}, {}, {"active": 1, "ready": 1, "startTime": START}, [], id="a Job starts"),
        pytest.param({}, {"startTime": START}, COMPLETE, [], id="a Job completes"),
        pytest.param({}, {"startTime": START}, FAILED, [], id="a Job fails"),
        pytest.param(
            {},
            {},
            {"active": -1},
            [("status.active", "Invalid value: -1: must be greater than or equal to 0")],
            id="pods are counted from zero",
        ),
        pytest.param(
            {},
            {"startTime": START},
            conditions("Complete", "Failed", startTime=START, completionTime=END),
            [
                (CONDITIONS, "Invalid value: cannot set Complete=True and Failed=true conditions"),
                (
                    CONDITIONS,
                    "Invalid value: cannot set Failed=True condition without the FailureTarget=true condition",
                ),
                (
                    CONDITIONS,
                    "Invalid value: cannot set Complete=True condition without the SuccessCriteriaMet=true condition",
                ),
            ],
            id="a Job does not end both ways",
        ),
        pytest.param(
            {},
            {},
            conditions("SuccessCriteriaMet", "Complete", active=2),
            [
                ("status.completionTime", "Required value: completionTime is required for Complete jobs"),
                ("status.active", "Invalid value: 2: active>0 is invalid for finished job"),
                ("status.startTime", "Required value: startTime is required for finished job"),
            ],
            id="a finished Job has its times and no pods",
        ),
        pytest.param(
            {},
            COMPLETE,
            {"startTime": START, "completionTime": END},
            [
                (
                    "status.completionTime",
                    f'Invalid value: "{END}": cannot set completionTime when there is no Complete=True condition',
                ),
                (CONDITIONS, "Invalid value: cannot disable the terminal Complete=True condition"),
                (CONDITIONS, "Invalid value: cannot disable the SuccessCriteriaMet=True condition"),
            ],
            id="a finished Job stays finished",
        ),
        pytest.param(
            {},
            {"failed": 2, "succeeded": 2, "startTime": START},
            {"failed": 1, "succeeded": 1, "startTime": END},
            [
                (
                    "status.startTime",
                    f'Invalid value: "{END}": field is immutable for unsuspended job once set',
                ),
                ("status.failed", "Invalid value: 1: cannot decrease the failed counter"),
                ("status.succeeded", "Invalid value: 1: cannot decrease the succeeded counter"),
            ],
            id="what has happened stays so",
        ),
        pytest.param(
            INDEXED | {"backoffLimitPerIndex": 1},
            {},
            {"completedIndexes": "0-2", "failedIndexes": "2,9"},
            [
                ("status.failedIndexes", 'Invalid value: "2,9": error parsing failedIndexes: too large index: "9"'),
                (
                    "status.failedIndexes",
                    'Invalid value: "2,9": failedIndexes and completedIndexes overlap at index: 2',
                ),
            ],
            id="an index succeeds or fails",
        ),
        pytest.param(
            {"completions": 5},
            {"completedIndexes": "x"},
            {"completedIndexes": "x", "active": 1},
            [],
            id="a bad part stored long ago does not block a write of another",
        ),
        pytest.param(
            {},
            {},
            {"uncountedTerminatedPods": {"succeeded": ["a", ""], "failed": ["a"]}},
            [
                ("status.uncountedTerminatedPods.succeeded[1]", 'Invalid value: "": must not be empty'),
                ("status.uncountedTerminatedPods.failed[0]", 'Duplicate value: "a"'),
            ],
            id="a pod is counted once",
        ),
    ],
)
def test_a_write_of_status(spec: Doc, old: Doc, new: Doc, expected: list[tuple[str, str]]) -> None:
    errors = Errors()
    validate_job_status({"spec": spec, "status": new}, {"spec": spec, "status": old}, errors)
    assert [(cause.field, cause.message) for cause in errors] == expected


@pytest.mark.parametrize(
    ("text", "count"), [pytest.param("", 0, id="none"), pytest.param("0,2-4", 4, id="one and three")]
)
def test_indexes_are_counted(text: str, count: int) -> None:
    assert count_indexes(text, 5) == count


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        pytest.param("5", 'too large index: "5"', id="beyond the last"),
        pytest.param("1-", 'cannot convert string to integer for index: ""', id="without an end"),
        pytest.param("3-1", "non-increasing order, previous: 3, current: 1", id="backwards"),
        pytest.param("2,2", "non-increasing order, previous: 2, current: 2", id="twice"),
        pytest.param(
            "1-2-3",
            'the fragment "1-2-3" violates the requirement that an index interval can have at most two parts '
            "separated by '-'",
            id="of three parts",
        ),
    ],
)
def test_a_bad_list_of_indexes_tells_why(text: str, fault: str) -> None:
    with pytest.raises(IndexListError) as raised:
        count_indexes(text, 5)
    assert str(raised.value) == fault
