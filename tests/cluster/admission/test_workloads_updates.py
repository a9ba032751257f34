"""Kinds that make pods: what an update may change."""

from __future__ import annotations

import pytest

from bayplan.cluster.embedded.admission.fields import Doc, Errors
from bayplan.cluster.embedded.admission.registry import strategy_of
from bayplan.cluster.kinds import KINDS
from tests.cluster.admission.workload_specs import created, decoded, faults, template


def updated(kind: str, old: Doc, new: Doc) -> list[tuple[str, str]]:
    strategy, errors = strategy_of(KINDS[kind]), Errors()
    before = created(kind, **old)
    before["status"] |= old.get("status", {})
    after = decoded(kind, **new)
    if kind == "Job":
        strategy.prepare(after)
    strategy.prepare_update(after, before)
    strategy.validate_update(after, before, errors)
    return faults(errors)


SUSPENDED = {"suspend": True}
MOVED = template(restartPolicy="Never", nodeSelector={"a": "b"})


@pytest.mark.parametrize(
    ("kind", "old", "new", "expected"),
    [
        pytest.param("Deployment", {}, {"template": template(hostNetwork=True)}, [], id="a template may change"),
        pytest.param(
            "Deployment",
            {},
            {"selector": {"matchExpressions": [{"key": "app", "operator": "Exists"}]}},
            [("spec.selector", "Invalid value: {...}: field is immutable")],
            id="a selector stays",
        ),
        pytest.param("StatefulSet", {}, {"replicas": 3, "minReadySeconds": 5}, [], id="a StatefulSet scales"),
        pytest.param(
            "StatefulSet",
            {},
            {"serviceName": "other"},
            [
                (
                    "spec",
                    "Forbidden: updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', "
                    "'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and "
                    "'minReadySeconds' are forbidden",
                )
            ],
            id="the identity of a StatefulSet's pods stays",
        ),
        pytest.param("Job", SUSPENDED, SUSPENDED | {"template": MOVED}, [], id="a waiting Job may move elsewhere"),
        pytest.param(
            "Job",
            SUSPENDED | {"status": {"active": 1}},
            SUSPENDED | {"template": MOVED},
            [("spec.template", "Invalid value: {...}: field is immutable")],
            id="a Job that still has pods may not",
        ),
        pytest.param(
            "Job",
            SUSPENDED,
            SUSPENDED | {"template": template(restartPolicy="OnFailure")},
            [("spec.template.spec", "Invalid value: {...}: field is immutable")],
            id="what a waiting Job does stays",
        ),
        pytest.param(
            "Job",
            {"completionMode": "Indexed", "completions": 3, "parallelism": 3},
            {"completionMode": "Indexed", "completions": 5, "parallelism": 5},
            [],
            id="an Indexed Job scales as a whole",
        ),
        pytest.param(
            "Job",
            {"completions": 3},
            {"completions": 5},
            [("spec.completions", "Invalid value: 5: field is immutable")],
            id="completions of other Jobs stay",
        ),
        pytest.param(
            "CronJob",
            {"schedule": "TZ=UTC 0 0 * * *"},
            {"schedule": "TZ=UTC 0 1 * * *"},
            [],
            id="an old schedule with a zone in it may be kept",
        ),
    ],
)
def test_what_an_update_may_change(kind: str, old: Doc, new: Doc, expected: list[tuple[str, str]]) -> None:
    assert updated(kind, old, new) == expected


def test_a_daemon_set_counts_its_templates() -> None:
    strategy, key = strategy_of(KINDS["DaemonSet"]), "deprecated.daemonset.template.generation"
    first = created("DaemonSet")
    second = decoded("DaemonSet", template=template(hostNetwork=True))
    strategy.prepare_update(second, first)
    third = decoded("DaemonSet", template=template(hostNetwork=True), minReadySeconds=5)
    strategy.prepare_update(third, second)
    assert [doc["metadata"]["annotations"][key] for doc in (first, second, third)] == ["1", "2", "2"]


def test_annotations_of_a_deployment_are_for_its_controller_too() -> None:
    old, new = created("Deployment"), decoded("Deployment", meta={"annotations": {"a": "b"}})
    strategy_of(KINDS["Deployment"]).prepare_update(new, old)
    assert new["metadata"]["generation"] == 2


def test_labels_of_a_deployment_do_not_change_with_its_status() -> None:
    old, new = created("Deployment", meta={"labels": {"a": "b"}}), decoded("Deployment", meta={"labels": {"c": "d"}})
    strategy_of(KINDS["Deployment"]).prepare_status(new, old)
    assert new["metadata"]["labels"] == {"a": "b"}
