"""HorizontalPodAutoscalers: bounds, targets, metrics and behaviour."""

from __future__ import annotations

import pytest

from bayplan.cluster.embedded.admission.fields import Doc
from tests.cluster.admission.test_kinds_rules import Fault, change_faults, created, faults

TARGET = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "w"}
VALUE = {"type": "Value", "value": "1"}
UTILIZATION = {"type": "Utilization", "averageUtilization": 50}


def spec(**fields: object) -> Doc:
    """A spec that is right but for the fields given."""
    return {"scaleTargetRef": TARGET, "maxReplicas": 3, **fields}


def metric(kind: str, **source: object) -> Doc:
    """A spec with one metric."""
    return spec(metrics=[{"type": kind, kind[0].lower() + kind[1:]: source}])


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        pytest.param(spec(), [], id="the least that is needed"),
        pytest.param(
            spec(minReplicas=0),
            [
                ("spec.minReplicas", "Invalid value: 0: must be greater than or equal to 1"),
                (
                    "spec.metrics",
                    "Forbidden: must specify at least one Object or External metric to support scaling to zero "
                    "replicas",
                ),
            ],
            id="to nothing at all",
        ),
        pytest.param(
            spec(scaleTargetRef={"apiVersion": "a/b/c", "kind": "x/y", "name": ".."}),
            [
                ("spec.scaleTargetRef.kind", "Invalid value: \"x/y\": may not contain '/'"),
                ("spec.scaleTargetRef.name", "Invalid value: \"..\": may not be '..'"),
                (
                    "spec.scaleTargetRef.apiVersion",
                    'Invalid value: "a/b/c": unexpected GroupVersion string: a/b/c',
                ),
            ],
            id="a target that no path can carry",
        ),
        pytest.param(
            spec(scaleTargetRef={"kind": "ReplicationController", "name": "w"}), [], id="the one old kind that scales"
        ),
        pytest.param(
            spec(metrics=[{"type": "Foo"}]),
            [
                (
                    "spec.metrics[0].type",
                    'Unsupported value: "Foo": supported values: "ContainerResource", "External", "Object", "Pods", '
                    '"Resource"',
                )
            ],
            id="an unknown source",
        ),
        pytest.param(
            spec(metrics=[{"type": "Pods", "resource": {"name": "cpu", "target": UTILIZATION}}]),
            [("spec.metrics[0].pods", "Required value: must populate information for the given metric source")],
            id="a source of another type",
        ),
        pytest.param(
            metric("External", metric={"name": "q"}, target={**VALUE, "averageValue": "0"}),
            [
                ("spec.metrics[0].external.target.averageValue", 'Invalid value: "0": must be positive'),
                (
                    "spec.metrics[0].external.target.value",
                    "Forbidden: may not set both a target value for metric and a per-pod target",
                ),
            ],
            id="two targets",
        ),
        pytest.param(
            metric("ContainerResource", name="gpu", container="", target={"type": "Foo", "averageUtilization": 0}),
            [
                (
                    "spec.metrics[0].containerResource.name",
                    'Invalid value: "gpu": must be a standard resource type or fully qualified',
                ),
                (
                    "spec.metrics[0].containerResource.name",
                    'Invalid value: "gpu": must be a standard resource for containers',
                ),
                ("spec.metrics[0].containerResource.container", "Required value: must specify a container"),
                (
                    "spec.metrics[0].containerResource.target.type",
                    'Invalid value: "Foo": must be either Utilization, Value, or AverageValue',
                ),
                (
                    "spec.metrics[0].containerResource.target.averageUtilization",
                    "Invalid value: 0: must be greater than 0",
                ),
            ],
            id="a container's resource",
        ),
        pytest.param(
            metric("Object", describedObject={"kind": "Service", "name": "s"}, metric={}, target=VALUE),
            [("spec.metrics[0].object.metric.name", "Required value: must specify a metric name")],
            id="an object of the core group",
        ),
        pytest.param(
            spec(
                behavior={
                    "scaleUp": {
                        "selectPolicy": "Foo",
                        "stabilizationWindowSeconds": 3601,
                        "tolerance": "-1",
                        "policies": [{"type": "Pods", "value": 0, "periodSeconds": 1801}],
                    }
                }
            ),
            [
                (
                    "spec.behavior.scaleUp.stabilizationWindowSeconds",
                    "Invalid value: 3601: must be less than or equal to 3600",
                ),
                (
                    "spec.behavior.scaleUp.selectPolicy",
                    'Unsupported value: "Foo": supported values: "Disabled", "Max", "Min"',
                ),
                ("spec.behavior.scaleUp.policies[0].value", "Invalid value: 0: must be greater than zero"),
                (
                    "spec.behavior.scaleUp.policies[0].periodSeconds",
                    "Invalid value: 1801: must be less than or equal to 1800",
                ),
                ("spec.behavior.scaleUp.tolerance", 'Invalid value: "-1": must be greater than or equal to 0'),
            ],
            id="behaviour out of bounds",
        ),
    ],
)
def test_new_autoscalers(asked: Doc, expected: list[Fault]) -> None:
    assert faults("HorizontalPodAutoscaler", spec=asked) == expected


def test_what_was_stored_under_laxer_rules_stays_legal() -> None:
    old = created("HorizontalPodAutoscaler", spec=spec())
    old["spec"] |= {"minReplicas": 0, "scaleTargetRef": {"kind": "Foo", "name": "w"}}
    lax = metric("External", metric={"name": "q"}, target=VALUE) | {
        "minReplicas": 0,
        "scaleTargetRef": {"kind": "Foo", "name": "v"},
    }
    assert change_faults("HorizontalPodAutoscaler", old, spec=lax) == []


def test_behaviour_is_completed_where_it_is_given() -> None:
    made = created("HorizontalPodAutoscaler", spec=spec(behavior={"scaleDown": {"stabilizationWindowSeconds": 60}}))
    assert made["spec"]["behavior"] == {
        "scaleUp": {
            "stabilizationWindowSeconds": 0,
            "selectPolicy": "Max",
            "policies": [
                {"type": "Pods", "value": 4, "periodSeconds": 15},
                {"type": "Percent", "value": 100, "periodSeconds": 15},
            ],
        },
        "scaleDown": {
            "stabilizationWindowSeconds": 60,
            "selectPolicy": "Max",
            "policies": [{"type": "Percent", "value": 100, "periodSeconds": 15}],
        },
    }
    assert "behavior" not in created("HorizontalPodAutoscaler", spec=spec())["spec"]
    assert made["status"] == {"desiredReplicas": 0, "currentMetrics": None}
