"""Kinds that make pods: defaults and refusals."""

from __future__ import annotations

import msgspec
import pytest

from bayplan.cluster.embedded.admission.fields import Doc, Errors
from bayplan.cluster.embedded.admission.registry import strategy_of
from bayplan.cluster.embedded.schema.decode import decode
from bayplan.cluster.kinds import KINDS
from tests.cluster.admission.workload_specs import LABELS, TYPES, created, decoded, faults, refused, template

NO_MATCH = "`selector` does not match template `labels`"
NEGATIVE = "must be greater than or equal to 0"


@pytest.mark.parametrize("kind", [kind for kind in TYPES if kind != "ControllerRevision"])
def test_a_small_object_of_every_kind_is_good_and_warns_of_nothing(kind: str) -> None:
    doc = created(kind)
    assert refused(kind) == []
    assert strategy_of(KINDS[kind]).warn(doc, None) == []


@pytest.mark.parametrize("kind", [kind for kind in TYPES if kind != "ControllerRevision"])
def test_defaults_change_nothing_the_second_time(kind: str) -> None:
    once = decoded(kind)
    again = msgspec.json.decode(msgspec.json.encode(once))
    strategy_of(KINDS[kind]).default(again)
    assert again == once


@pytest.mark.parametrize(
    ("kind", "given", "expected"),
    [
        pytest.param(
            "Deployment",
            {},
            {
                "replicas": 1,
                "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%"}},
                "revisionHistoryLimit": 10,
                "progressDeadlineSeconds": 600,
            },
            id="a Deployment rolls by quarters",
        ),
        pytest.param(
            "StatefulSet",
            {"updateStrategy": {"type": "RollingUpdate"}},
            {"updateStrategy": {"type": "RollingUpdate"}, "podManagementPolicy": "OrderedReady"},
            id="a StatefulSet that names its strategy gets no partition",
        ),
        pytest.param(
            "StatefulSet",
            {"updateStrategy": {"rollingUpdate": {"maxUnavailable": 2}}},
            {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}}},
            id="a field whose gate is off is dropped",
        ),
        pytest.param(
            "DaemonSet",
            {},
            {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0}}},
            id="a DaemonSet replaces one pod at a time",
        ),
        pytest.param(
            "Job",
            {"completionMode": "Indexed", "completions": 3, "backoffLimitPerIndex": 1},
            {"parallelism": 1, "completions": 3, "backoffLimit": 2147483647},
            id="a limit for each index lifts the limit for all",
        ),
        pytest.param(
            "Job", {"parallelism": 2}, {"parallelism": 2, "completions": None}, id="a work queue has no completions"
        ),
        pytest.param(
            "CronJob",
            {},
            {"concurrencyPolicy": "Allow", "successfulJobsHistoryLimit": 3, "failedJobsHistoryLimit": 1},
            id="a CronJob keeps a few of its Jobs",
        ),
        pytest.param(
            "ReplicationController", {"selector": {}}, {"selector": LABELS}, id="a selector from the template"
        ),
    ],
)
def test_defaults(kind: str, given: Doc, expected: Doc) -> None:
    spec = created(kind, **given)["spec"]
    assert {field: spec.get(field) for field in expected} == expected


def test_a_job_selects_its_pods_by_its_uid() -> None:
    doc = created("Job")
    generated = {
        "controller-uid": "u",
        "batch.kubernetes.io/controller-uid": "u",
        "job-name": "x",
        "batch.kubernetes.io/job-name": "x",
    }
    assert doc["spec"]["selector"] == {"matchLabels": {"batch.kubernetes.io/controller-uid": "u"}}
    assert doc["spec"]["template"]["metadata"]["labels"] == LABELS | generated
    assert doc["metadata"]["labels"] == LABELS | generated
    assert doc["metadata"]["labels"] is not doc["spec"]["template"]["metadata"]["labels"]


def test_the_job_inside_a_cron_job_is_not_defaulted() -> None:
    assert set(created("CronJob")["spec"]["jobTemplate"]["spec"]) == {"template"}


POLICY = "spec.podFailurePolicy.rules[0]"
RULE = {"action": "Ignore", "onExitCodes": {"operator": "In", "values": [1]}}


@pytest.mark.parametrize(
    ("kind", "given", "expected"),
    [
        pytest.param(
            "Deployment",
            {"selector": None},
            [
                ("spec.selector", "Required value"),
                ("spec.template.metadata.labels", f'Invalid value: {{"app":"web"}}: {NO_MATCH}'),
            ],
            id="a Deployment without selector selects nothing",
        ),
        pytest.param(
            "Deployment",
            {"selector": {}},
            [("spec.selector", "Invalid value: {}: empty selector is invalid for deployment")],
            id="an empty selector would select every pod",
        ),
        pytest.param(
            "Deployment",
            {"strategy": {"type": "Fast"}},
            [("spec.strategy", 'Unsupported value: {...}: supported values: "Recreate", "RollingUpdate"')],
            id="an unknown strategy",
        ),
        pytest.param(
            "Deployment",
            {"strategy": {"rollingUpdate": {"maxUnavailable": "101%", "maxSurge": "x"}}},
            [
                (
                    "spec.strategy.rollingUpdate.maxSurge",
                    'Invalid value: "x": a valid percent string must be a numeric string followed by an ending '
                    "'%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')",
                ),
                (
                    "spec.strategy.rollingUpdate.maxUnavailable",
                    'Invalid value: "101%": must not be greater than 100%',
                ),
            ],
            id="shares are percentages of at most all",
        ),
        pytest.param(
            "Deployment",
            {"minReadySeconds": 600},
            [("spec.progressDeadlineSeconds", "Invalid value: 600: must be greater than minReadySeconds")],
            id="a rollout has time to become ready",
        ),
        pytest.param(
            "ReplicaSet",
            {"template": template(restartPolicy="Never", activeDeadlineSeconds=5)},
            [
                ("spec.template.spec.restartPolicy", 'Unsupported value: "Never": supported values: "Always"'),
                (
                    "spec.template.spec.activeDeadlineSeconds",
                    "Forbidden: activeDeadlineSeconds in ReplicaSet is not Supported",
                ),
            ],
            id="pods of a ReplicaSet run for ever",
        ),
        pytest.param(
            "DaemonSet",
            {"updateStrategy": {"rollingUpdate": {"maxSurge": 1}}},
            [
                (
                    "spec.updateStrategy.rollingUpdate.maxSurge",
                    "Invalid value: 1: may not be set when maxUnavailable is non-zero",
                )
            ],
            id="a DaemonSet surges or lacks, not both",
        ),
        pytest.param(
            "StatefulSet",
            {"updateStrategy": {"type": "OnDelete", "rollingUpdate": {}}, "podManagementPolicy": "Fast"},
            [
                ("spec.podManagementPolicy", "Invalid value: \"Fast\": must be 'OrderedReady' or 'Parallel'"),
                (
                    "spec.updateStrategy.rollingUpdate",
                    "Invalid value: {...}: only allowed for updateStrategy 'RollingUpdate'",
                ),
            ],
            id="a StatefulSet that waits for deletion does not roll",
        ),
        pytest.param(
            "ReplicationController",
            {"template": None, "selector": {}},
            [("spec.selector", "Required value"), ("spec.template", "Required value")],
            id="a ReplicationController without template",
        ),
        pytest.param(
            "Job",
            {"template": template()},
            [("spec.template.spec.restartPolicy", 'Required value: valid values: "OnFailure", "Never"')],
            id="a Job ends",
        ),
        pytest.param(
            "Job",
            {"podFailurePolicy": {"rules": [{"onExitCodes": {"values": [2, 1, 1]}}]}},
            [
                (f"{POLICY}.action", 'Required value: valid values: ["Count" "FailIndex" "FailJob" "Ignore"]'),
                (f"{POLICY}.onExitCodes.operator", 'Required value: valid values: ["In" "NotIn"]'),
                (f"{POLICY}.onExitCodes.values[2]", "Duplicate value: 1"),
                (f"{POLICY}.onExitCodes.values", "Invalid value: [2,1,1]: must be ordered"),
            ],
            id="a failure rule says what it looks for and what follows",
        ),
        pytest.param(
            "Job",
            {"podFailurePolicy": {"rules": [{"action": "Count"}]}, "podReplacementPolicy": "TerminatingOrFailed"},
            [
                (POLICY, "Invalid value: specifying one of OnExitCodes and OnPodConditions is required"),
                (
                    "spec.podReplacementPolicy",
                    'Unsupported value: "TerminatingOrFailed": supported values: "Failed"',
                ),
            ],
            id="a failure rule looks at something",
        ),
        pytest.param(
            "Job",
            {
                "completionMode": "Indexed",
                "completions": 3,
                "successPolicy": {
                    "rules": [{"succeededIndexes": "2,1"}, {"succeededIndexes": "0", "succeededCount": 2}]
                },
            },
            [
                (
                    "spec.successPolicy.rules[0].succeededIndexes",
                    'Invalid value: "2,1": error parsing succeededIndexes: '
                    "non-increasing order, previous: 2, current: 1",
                ),
                (
                    "spec.successPolicy.rules[1].succeededCount",
                    "Invalid value: 2: must be less than or equal to 1 "
                    "(the number of indexes in the specified succeededIndexes field)",
                ),
            ],
            id="a success rule counts indexes that there are",
        ),
        pytest.param(
            "Job",
            {"managedBy": "Bad.io/x y"},
            [
                (
                    "spec.managedBy",
                    'Invalid value: "Bad.io": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric '
                    "characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com',"
                    r" regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
                ),
                (
                    "spec.managedBy",
                    'Invalid value: "x y": Invalid path (regex used for validation is '
                    r"'[A-Za-z0-9/\-._~%!$&'()*+,;=:]+')",
                ),
            ],
            id="a manager is a path under a domain",
        ),
        pytest.param(
            "CronJob",
            {"schedule": "TZ=UTC 0 0 * * *", "timeZone": "local"},
            [
                (
                    "spec.schedule",
                    'Invalid value: "TZ=UTC 0 0 * * *": '
                    "cannot use TZ or CRON_TZ in schedule, use timeZone field instead",
                ),
                (
                    "spec.timeZone",
                    'Invalid value: "local": '
                    "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones",
                ),
                ("spec.timeZone", 'Invalid value: "local": unknown time zone local'),
            ],
            id="a time zone has its own field and a place",
        ),
        pytest.param(
            "CronJob",
            {"meta": {"name": "x" * 53}, "concurrencyPolicy": "Some"},
            [
                (
                    "spec.concurrencyPolicy",
                    'Unsupported value: "Some": supported values: "Allow", "Forbid", "Replace"',
                ),
                ("metadata.name", f'Invalid value: "{"x" * 53}": must be no more than 52 characters'),
            ],
            id="a CronJob leaves room for a time in its Jobs' names",
        ),
    ],
)
def test_refusals(kind: str, given: Doc, expected: list[tuple[str, str]]) -> None:
    assert refused(kind, **given) == expected


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        pytest.param({"a": 1}, [], id="an object"),
        pytest.param(None, [("data", "Required value: data is mandatory")], id="nothing"),
        pytest.param([1], [("data", "Required value: data must be a valid JSON object")], id="a list"),
    ],
)
def test_the_data_of_a_revision(data: object, expected: list[tuple[str, str]]) -> None:
    body = {"metadata": {"name": "x"}, "data": data, "revision": 1}
    doc, _ = decode(TYPES["ControllerRevision"], msgspec.json.encode(body))
    errors = Errors()
    strategy_of(KINDS["ControllerRevision"]).validate(doc, errors)
    assert faults(errors) == expected
