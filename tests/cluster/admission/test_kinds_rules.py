"""Which objects of the smaller kinds are refused, and in which words."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from bayplan.cluster.embedded.admission.fields import Doc, Errors
from bayplan.cluster.embedded.admission.kinds import plain
from bayplan.cluster.embedded.admission.registry import strategy_of
from bayplan.cluster.embedded.admission.strategy import Strategy
from bayplan.cluster.embedded.schema.decode import clean_document
from bayplan.cluster.embedded.schema.table import TABLE
from bayplan.cluster.kinds import KINDS

Fault = tuple[str, str]


def rules_of(kind: str) -> Strategy:
    """The strategy of a kind by its name."""
    return plain.STRATEGIES[kind] if kind in plain.STRATEGIES else strategy_of(KINDS[kind])


def read(kind: str, **fields: Any) -> Doc:  # Any: the fields of an object
    """An object of that kind as it is after decoding and defaulting."""
    document = {"metadata": {"name": "x"}, **fields}
    doc, problems = clean_document(TABLE.kinds[kind], document)
    assert not problems
    rules_of(kind).default(doc)
    return doc


def created(kind: str, **fields: Any) -> Doc:
    """An object of that kind as a create leaves it."""
    doc = read(kind, **fields)
    rules_of(kind).prepare(doc)
    return doc


def faults(kind: str, **fields: Any) -> list[Fault]:
    """What is wrong with a new object: fields and messages."""
    errors = Errors()
    rules_of(kind).validate(created(kind, **fields), errors)
    return [(cause.field, cause.message) for cause in errors]


def change_faults(kind: str, old: Doc, **fields: Any) -> list[Fault]:
    """What is wrong with a change of `old`."""
    new, errors = read(kind, **fields), Errors()
    rules_of(kind).prepare_update(new, old)
    rules_of(kind).validate_update(new, old, errors)
    return [(cause.field, cause.message) for cause in errors]


def secret(text: str) -> str:
    """Text as a Secret stores it."""
    return base64.b64encode(text.encode()).decode()


@pytest.mark.parametrize(
    ("kind", "fields", "expected"),
    [
        pytest.param(
            "Node",
            {
                "spec": {
                    "taints": [{"key": "a", "effect": "NoSchedule"}, {"key": "a", "value": "2", "effect": "NoSchedule"}]
                }
            },
            [("metadata.taints[1]", "Duplicate value: {...}: taints must be unique by key and effect pair")],
            id="two taints of one key and effect",
        ),
        pytest.param(
            "Node",
            {"spec": {"taints": [{"key": "a"}]}},
            [("metadata.taints[0].effect", "Required value")],
            id="a taint needs an effect",
        ),
        pytest.param(
            "Node",
            {"status": {"capacity": {"pods": "1.5"}, "allocatable": {"cpu": "-1"}}},
            [
                ("status.capacity.pods", 'Invalid value: "1500m": must be an integer'),
                ("status.allocatable.cpu", 'Invalid value: "-1": must be greater than or equal to 0'),
            ],
            id="half a pod and less than no CPU",
        ),
        pytest.param(
            "Node",
            {"spec": {"podCIDRs": ["10.0.0.0/24", "10.0.1.0/24"]}},
            [
                (
                    "spec.podCIDRs",
                    'Invalid value: ["10.0.0.0/24","10.0.1.0/24"]: '
                    "may specify no more than one CIDR for each IP family",
                )
            ],
            id="two ranges of one family",
        ),
        pytest.param(
            "Node",
            {"status": {"declaredFeatures": ["B", "A", "A"]}},
            [
                ("status.declaredFeatures[1]", 'Invalid value: "A": list must be sorted alphabetically'),
                ("status.declaredFeatures[2]", 'Duplicate value: "A"'),
            ],
            id="features are sorted and unique",
        ),
        pytest.param(
            "Namespace",
            {"spec": {"finalizers": ["mine"]}},
            [
                (
                    "spec.finalizers",
                    'Invalid value: "mine": name is neither a standard finalizer name nor is it fully qualified',
                )
            ],
            id="a bare finalizer is a standard one",
        ),
        pytest.param(
            "PodDisruptionBudget",
            {"spec": {"minAvailable": "1%", "maxUnavailable": "2%"}},
            [("spec", "Invalid value: {...}: minAvailable and maxUnavailable cannot be both set")],
            id="a budget counts one way",
        ),
        pytest.param(
            "PodDisruptionBudget",
            {"spec": {"minAvailable": "101%"}},
            [("spec.minAvailable", 'Invalid value: "101%": must not be greater than 100%')],
            id="more than all",
        ),
        pytest.param(
            "ResourceQuota",
            {"spec": {"hard": {"cpu": "1"}, "scopes": ["BestEffort"]}},
            [("spec.scopes", 'Invalid value: ["BestEffort"]: unsupported scope applied to resource')],
            id="best effort pods have no CPU to count",
        ),
        pytest.param(
            "ResourceQuota",
            {"spec": {"hard": {"storage": "1"}}},
            [("spec.hard[storage]", 'Invalid value: "storage": must be a standard resource for quota')],
            id="storage is counted as requests.storage",
        ),
        pytest.param(
            "ResourceQuota",
            {
                "spec": {
                    "scopeSelector": {
                        "matchExpressions": [{"scopeName": "PriorityClass", "operator": "Exists", "values": ["a"]}]
                    }
                }
            },
            [
                (
                    "spec.scopeSelector.matchExpressions.values",
                    'Invalid value: ["a"]: '
                    "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector",
                )
            ],
            id="existence has no values",
        ),
        pytest.param(
            "PriorityClass",
            {"value": 1_000_000_001},
            [("value", "Forbidden: maximum allowed value of a user defined priority is 1000000000")],
            id="the highest priorities are the system's",
        ),
        pytest.param(
            "PriorityClass",
            {"metadata": {"name": "system-node-critical"}, "value": 2_000_001_000, "globalDefault": True},
            [
                (
                    "metadata.name",
                    "Forbidden: priority class names with 'system-' prefix are reserved for system use only. "
                    "error: globalDefault of system-node-critical PriorityClass must be false",
                )
            ],
            id="a system class is as the system made it",
        ),
        pytest.param(
            "ConfigMap",
            {"data": {"a": "x" * 1024 * 1024}, "binaryData": {"b": "AA=="}},
            [("[]", "Too long: may not be more than 1048576 bytes")],
            id="a byte too much, counted over both fields",
        ),
        pytest.param(
            "ConfigMap",
            {"data": {"a": "x"}, "binaryData": {"a": "AA=="}},
            [("data[a]", 'Invalid value: "a": duplicate of key present in binaryData')],
            id="one key in both fields",
        ),
        pytest.param(
            "Secret",
            {"type": "kubernetes.io/dockerconfigjson", "data": {".dockerconfigjson": secret("[]")}},
            [
                (
                    "data[.dockerconfigjson]",
                    'Invalid value: "<secret contents redacted>": '
                    "json: cannot unmarshal array into Go value of type map[string]interface {}",
                )
            ],
            id="a registry's password file is a JSON object",
        ),
        pytest.param(
            "Secret",
            {"type": "kubernetes.io/dockercfg", "stringData": {".dockercfg": ""}},
            [
                (
                    "data[.dockercfg]",
                    'Invalid value: "<secret contents redacted>": unexpected end of JSON input',
                )
            ],
            id="an empty password file",
        ),
        pytest.param(
            "Secret",
            {"type": "kubernetes.io/ssh-auth", "data": {"ssh-privatekey": ""}},
            [("data[ssh-privatekey]", "Required value")],
            id="an empty SSH key",
        ),
        pytest.param(
            "Event",
            {"metadata": {"name": "x", "namespace": "a"}, "involvedObject": {"namespace": "b"}},
            [("involvedObject.namespace", 'Invalid value: "b": does not match event.namespace')],
            id="an event lives where its object does",
        ),
        pytest.param(
            "Event",
            {
                "metadata": {"name": "x", "namespace": "a"},
                "involvedObject": {"namespace": "b"},
                "eventTime": "2026-01-02T03:04:05.000006Z",
                "reportingComponent": "c",
                "reportingInstance": "i" * 129,
                "action": "a",
                "reason": "r",
            },
            [("reportingInstance", 'Invalid value: "": can have at most 128 characters')],
            id="a new event may speak of another namespace, in few words",
        ),
        pytest.param(
            "Lease",
            {"spec": {"leaseDurationSeconds": 0, "leaseTransitions": -1}},
            [
                ("spec.leaseDurationSeconds", "Invalid value: 0: must be greater than 0"),
                ("spec.leaseTransitions", "Invalid value: -1: must be greater than or equal to 0"),
            ],
            id="a lease lasts",
        ),
        pytest.param(
            "LimitRange",
            {"spec": {"limits": [{"type": "Container", "max": {"cpu": "1"}, "min": {"cpu": "2"}}]}},
            [
                ("spec.limits[0].min[cpu]", 'Invalid value: "2": min value 2 is greater than max value 1'),
                (
                    "spec.limits[0].defaultRequest[cpu]",
                    'Invalid value: "1": min value 2 is greater than default request value 1',
                ),
                ("spec.limits[0].default[cpu]", 'Invalid value: "2": min value 2 is greater than default value 1'),
            ],
            id="a minimum above the maximum is above the defaults too",
        ),
        pytest.param(
            "LimitRange",
            {"spec": {"limits": [{"type": "Pod", "default": {"cpu": "1"}}]}},
            [("spec.limits[0].default", "Forbidden: may not be specified when `type` is 'Pod'")],
            id="a pod has no default limit",
        ),
        pytest.param(
            "LimitRange",
            {
                "spec": {
                    "limits": [
                        {
                            "type": "Container",
                            "default": {"nvidia.com/gpu": "2"},
                            "defaultRequest": {"nvidia.com/gpu": "1"},
                        }
                    ]
                }
            },
            [
                (
                    "spec.limits[0].defaultRequest[nvidia.com/gpu]",
                    'Invalid value: "1": default value 2 must equal to defaultRequest value 1 in nvidia.com/gpu',
                )
            ],
            id="devices are not overcommitted",
        ),
        pytest.param(
            "LimitRange",
            {
                "spec": {
                    "limits": [
                        {
                            "type": "Pod",
                            "min": {"cpu": "0"},
                            "max": {"cpu": "1"},
                            "maxLimitRequestRatio": {"cpu": "500m"},
                        }
                    ]
                }
            },
            [("spec.limits[0].maxLimitRequestRatio[cpu]", 'Invalid value: "500m": ratio 500m is less than 1')],
            id="a minimum of zero allows any ratio from one on",
        ),
        pytest.param("StorageClass", {}, [("provisioner", "Required value")], id="a storage class has a provisioner"),
        pytest.param(
            "RuntimeClass",
            {"handler": "a.b"},
            [("handler", 'Invalid value: "a.b": must not contain dots')],
            id="a handler is a label",
        ),
        pytest.param(
            "PersistentVolume",
            {"spec": {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "0"}}},
            [("spec.capacity[storage]", 'Invalid value: "0": must be greater than zero')],
            id="a volume of nothing",
        ),
    ],
)
def test_new_objects(kind: str, fields: Doc, expected: list[Fault]) -> None:
    assert faults(kind, **fields) == expected
