"""The smaller kinds after their creation: changes, statuses, defaults and warnings."""

from __future__ import annotations

import pytest

from bayplan.cluster.embedded.admission.fields import Doc, Errors
from bayplan.cluster.embedded.admission.kinds import plain
from bayplan.cluster.kinds import KINDS
from tests.cluster.admission.test_kinds_rules import Fault, change_faults, created, read, rules_of, secret


@pytest.mark.parametrize(
    ("kind", "before", "after", "expected"),
    [
        pytest.param(
            "Node",
            {"spec": {"providerID": "a", "podCIDR": "10.0.0.0/24"}},
            {"spec": {"providerID": "b", "podCIDR": "10.0.1.0/24"}},
            [
                ("spec.podCIDRs", 'Forbidden: node updates may not change podCIDR except from "" to valid'),
                ("spec.providerID", 'Forbidden: node updates may not change providerID except from "" to valid'),
            ],
            id="a node keeps its machine and its addresses",
        ),
        pytest.param("Node", {}, {"spec": {"providerID": "b"}}, [], id="a node may get a machine"),
        pytest.param(
            "PriorityClass",
            {"value": 1},
            {"value": 2, "preemptionPolicy": "Never"},
            [
                ("value", "Forbidden: may not be changed in an update."),
                ("preemptionPolicy", 'Invalid value: "Never": field is immutable'),
            ],
            id="a priority stays",
        ),
        pytest.param(
            "ResourceQuota",
            {"spec": {"scopes": ["BestEffort"]}},
            {},
            [("spec.scopes", "Invalid value: null: field is immutable")],
            id="the scopes of a quota stay",
        ),
        pytest.param(
            "ConfigMap",
            {"immutable": True, "data": {"a": "1"}},
            {"data": {"a": "2"}},
            [
                ("immutable", "Forbidden: field is immutable when `immutable` is set"),
                ("data", "Forbidden: field is immutable when `immutable` is set"),
            ],
            id="what is frozen stays frozen",
        ),
        pytest.param(
            "Secret",
            {"type": "example.com/x"},
            {},
            [("type", 'Invalid value: "Opaque": field is immutable')],
            id="a secret without a type is opaque, on update too",
        ),
        pytest.param(
            "StorageClass",
            {"provisioner": "a/b"},
            {"provisioner": "a/c"},
            [("provisioner", 'Invalid value: "a/c": field is immutable')],
            id="a storage class keeps its provisioner",
        ),
    ],
)
def test_changes(kind: str, before: Doc, after: Doc, expected: list[Fault]) -> None:
    assert change_faults(kind, created(kind, **before), **after) == expected


@pytest.mark.parametrize(
    ("kind", "status", "expected"),
    [
        pytest.param(
            "Namespace",
            {"phase": "Terminating"},
            [("status.Phase", "Invalid value: \"Terminating\": may only be 'Active' if `deletionTimestamp` is empty")],
            id="nobody ends a namespace by saying so",
        ),
        pytest.param(
            "PodDisruptionBudget",
            {"currentHealthy": -1, "conditions": [{"type": "A", "status": "Yes", "reason": "a b"}]},
            [
                (
                    "status.conditions[0].status",
                    'Unsupported value: "Yes": supported values: "False", "True", "Unknown"',
                ),
                ("status.conditions[0].lastTransitionTime", "Required value"),
                (
                    "status.conditions[0].reason",
                    'Invalid value: "a b": a condition reason must start with alphabetic character, optionally '
                    "followed by a string of alphanumeric characters or '_,:', and must end with an alphanumeric "
                    "character or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName',  or 'ReasonA,ReasonB',  or "
                    "'ReasonA:ReasonB', regex used for validation is '[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?')",
                ),
                ("status.currentHealthy", "Invalid value: -1: must be greater than or equal to 0"),
            ],
            id="conditions have a form",
        ),
        pytest.param(
            "Node",
            {"addresses": [{"type": "Hostname", "address": "a"}, {"type": "Hostname", "address": "a"}]},
            [("status.addresses[1]", 'Duplicate value: {"Address":"a","Type":"Hostname"}')],
            id="an address is told once",
        ),
        pytest.param(
            "ResourceQuota",
            {"used": {"pods": "-1"}},
            [("status.used[pods]", 'Invalid value: "-1": must be greater than or equal to 0')],
            id="nothing uses less than nothing",
        ),
    ],
)
def test_statuses(kind: str, status: Doc, expected: list[Fault]) -> None:
    old, errors = created(kind), Errors()
    new = read(kind, status=status)
    rules_of(kind).prepare_status(new, old)
    rules_of(kind).validate_status(new, old, errors)
    assert [(cause.field, cause.message) for cause in errors] == expected


@pytest.mark.parametrize(
    ("kind", "fields", "expected"),
    [
        pytest.param(
            "Node",
            {"spec": {"podCIDR": "10.0.0.0/24", "podCIDRs": ["10.9.0.0/24"]}, "status": {"capacity": {"cpu": "1n"}}},
            {"podCIDR": "10.0.0.0/24", "podCIDRs": ["10.0.0.0/24"]},
            id="the older of the two range fields wins",
        ),
        pytest.param("Namespace", {"spec": {"finalizers": ["a/b"]}}, {"finalizers": ["a/b", "kubernetes"]}, id="held"),
        pytest.param("Lease", {"spec": {"strategy": "x", "preferredHolder": "y"}}, {}, id="no leader is coordinated"),
        pytest.param("LimitRange", {"spec": {"limits": []}}, {"limits": None}, id="an empty list of limits is none"),
        pytest.param(
            "LimitRange",
            {"spec": {"limits": [{"type": "Container", "max": {"cpu": "2"}, "min": {"memory": "1Mi"}}]}},
            {
                "limits": [
                    {
                        "type": "Container",
                        "max": {"cpu": "2"},
                        "min": {"memory": "1Mi"},
                        "default": {"cpu": "2"},
                        "defaultRequest": {"cpu": "2", "memory": "1Mi"},
                    }
                ]
            },
            id="a maximum is the default limit, that the default request, else the minimum is",
        ),
        pytest.param(
            "ResourceClaim",
            {"spec": {"devices": {"requests": [{"name": "a", "exactly": {"deviceClassName": "gpu"}}]}}},
            {
                "devices": {
                    "requests": [
                        {"name": "a", "exactly": {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}}
                    ]
                }
            },
            id="one device unless it says how many",
        ),
    ],
)
def test_specs_after_create(kind: str, fields: Doc, expected: Doc) -> None:
    assert created(kind, **fields)["spec"] == expected


def test_a_node_can_allocate_what_it_has_in_thousandths() -> None:
    status = created("Node", status={"capacity": {"cpu": "1n"}})["status"]
    assert status["capacity"] == status["allocatable"] == {"cpu": "1m"}
    assert status["capacity"] is not status["allocatable"]


def test_plain_text_of_a_secret_wins_over_its_bytes() -> None:
    doc = created("Secret", data={"a": secret("1"), "b": secret("2")}, stringData={"a": "3"})
    assert (doc["data"], doc["type"]) == ({"a": secret("3"), "b": secret("2")}, "Opaque")
    assert "stringData" not in doc


def test_the_generation_of_a_priority_class_is_one_and_not_counted() -> None:
    assert created("PriorityClass", value=5)["metadata"]["generation"] == 1
    assert not rules_of("PriorityClass").generation


@pytest.mark.parametrize(
    ("certificate", "key", "expected"),
    [
        pytest.param("", "", "failed to find any PEM data in certificate input", id="nothing at all"),
        pytest.param("C", "", "failed to find any PEM data in key input", id="a certificate without a key"),
        pytest.param(
            "C", "C", "found a certificate rather than a key in the PEM for the private key", id="a certificate twice"
        ),
        pytest.param(
            "K",
            "C",
            "failed to find certificate PEM data in certificate input, but did find a private key; "
            "PEM inputs may have been switched",
            id="the two exchanged",
        ),
    ],
)
def test_a_certificate_that_cannot_work_warns(certificate: str, key: str, expected: str) -> None:
    blocks = {
        "": "",
        "C": "-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n",
        "K": "-----BEGIN RSA PRIVATE KEY-----\nAA==\n-----END RSA PRIVATE KEY-----\n",
    }
    doc = created(
        "Secret", type="kubernetes.io/tls", stringData={"tls.crt": blocks[certificate], "tls.key": blocks[key]}
    )
    assert rules_of("Secret").warn(doc, None) == [f"tls: {expected}"]


def test_a_quota_warns_of_more_requests_than_limits() -> None:
    doc = created("ResourceQuota", spec={"hard": {"cpu": "2", "limits.cpu": "1"}})
    assert rules_of("ResourceQuota").warn(doc, None) == ["ResourceQuota cpu (2) should be less than limits.cpu (1)"]
    assert rules_of("ResourceQuota").warn(doc, doc) == []


MINE = [
    "Node",
    "Namespace",
    "PodDisruptionBudget",
    "ResourceQuota",
    "PriorityClass",
    "ConfigMap",
    "Secret",
    "Event",
    "Lease",
    "LimitRange",
    "PersistentVolumeClaim",
    "HorizontalPodAutoscaler",
    "Service",
    *plain.STRATEGIES,
]


@pytest.mark.parametrize("kind", MINE)
def test_an_empty_object_breaks_rules_but_nothing_else(kind: str) -> None:
    strategy, errors = rules_of(kind), Errors()
    old = created(kind)
    strategy.validate(old, errors)
    new, status = read(kind), read(kind)
    strategy.prepare_update(new, old)
    strategy.validate_update(new, old, errors)
    strategy.prepare_status(status, old)
    strategy.validate_status(status, old, errors)
    strategy.warn(new, old)
    assert strategy.kind is KINDS[kind]


@pytest.mark.parametrize("kind", MINE)
def test_defaults_are_set_once(kind: str) -> None:
    doc = read(kind)
    again = read(kind, **{field: value for field, value in doc.items() if field not in ("apiVersion", "kind")})
    assert again == doc
