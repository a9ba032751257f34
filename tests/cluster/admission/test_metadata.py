"""Metadata of new and of changed objects."""

from __future__ import annotations

from typing import Any

import pytest

from bayplan.cluster.embedded.admission.fields import Doc, Errors
from bayplan.cluster.embedded.admission.metadata import validate_metadata, validate_metadata_update
from bayplan.cluster.embedded.admission.strategy import NameRule
from bayplan.cluster.embedded.admission.syntax import path_segment_name, subdomain_name

UNQUALIFIED = "name is neither a standard finalizer name nor is it fully qualified"


def of(**fields: Any) -> Doc:
    return {"metadata": {"name": "x", "namespace": "n", "resourceVersion": "1", **fields}}


def created(doc: Doc, *, namespaced: bool = True, rule: NameRule = subdomain_name) -> list[tuple[str, str]]:
    errors = Errors()
    validate_metadata(doc, namespaced=namespaced, name_rule=rule, errors=errors)
    return [(cause.field, cause.message) for cause in errors]


def owner(**fields: Any) -> Doc:
    return {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u", **fields}


@pytest.mark.parametrize(
    ("fields", "faults"),
    [
        pytest.param({}, [], id="a name is enough"),
        pytest.param(
            {"name": ""}, [("name", "Required value: name or generateName is required")], id="a name is needed"
        ),
        pytest.param({"namespace": ""}, [("namespace", "Required value")], id="a namespace is needed"),
        pytest.param(
            {"generation": -1},
            [("generation", "Invalid value: -1: must be greater than or equal to 0")],
            id="generations count up",
        ),
        pytest.param({"annotations": {"A/B": "x"}}, [], id="annotation keys are of any case"),
        pytest.param(
            {"annotations": {"a": "x" * 262144}},
            [("annotations", "Too long: may not be more than 262144 bytes")],
            id="annotations have a size together",
        ),
        pytest.param(
            {"finalizers": ["bad"]},
            [("finalizers[0]", f'Invalid value: "bad": {UNQUALIFIED}')],
            id="a finalizer is qualified or a standard one",
        ),
        pytest.param(
            {"finalizers": ["orphan", "foregroundDeletion"]},
            [
                (
                    "finalizers",
                    'Invalid value: ["orphan","foregroundDeletion"]: '
                    "finalizer orphan and foregroundDeletion cannot be both set",
                )
            ],
            id="dependents are orphaned or deleted, not both",
        ),
        pytest.param(
            {"ownerReferences": [owner(apiVersion="a/b/c", uid="")]},
            [
                ("ownerReferences.apiVersion", 'Invalid value: "a/b/c": version must not be empty'),
                ("ownerReferences.uid", 'Invalid value: "": must not be empty'),
            ],
            id="an owner is named in full",
        ),
        pytest.param(
            {"ownerReferences": [owner(kind="Event")]},
            [
                (
                    "ownerReferences",
                    'Invalid value: {"apiVersion":"v1","kind":"Event","name":"p","uid":"u"}: '
                    "/v1, Kind=Event is disallowed from being an owner",
                )
            ],
            id="an event owns nothing",
        ),
        pytest.param(
            {"ownerReferences": [owner(controller=True), owner(name="q", controller=True)]},
            [
                (
                    "ownerReferences",
                    "Invalid value: [...]: Only one reference can have Controller set to true. "
                    'Found "true" in references for Pod/p and Pod/q',
                )
            ],
            id="one owner controls",
        ),
        pytest.param(
            {"managedFields": [{"operation": "x", "manager": "a\u0007"}]},
            [
                ("managedFields[0].operation", 'Invalid value: "x": must be `Apply` or `Update`'),
                ("managedFields[0].manager", 'Invalid value: "a\\u0007": invalid character U+0007 (at position 1)'),
            ],
            id="managers have printable names",
        ),
    ],
)
def test_metadata_of_a_new_object(fields: Doc, faults: list[tuple[str, str]]) -> None:
    assert created(of(**fields)) == [(f"metadata.{field}", message) for field, message in faults]


def test_a_kind_without_rules_of_its_own_takes_any_finalizer() -> None:
    assert created(of(name="a b", finalizers=["bad"]), rule=path_segment_name) == []


def test_a_cluster_scoped_object_has_no_namespace() -> None:
    assert created(of(), namespaced=False) == [("metadata.namespace", "Forbidden: not allowed on this type")]


@pytest.mark.parametrize(
    ("new", "old", "faults"),
    [
        pytest.param({"labels": {"a": "b"}}, {}, [], id="labels may change"),
        pytest.param({"uid": "b"}, {"uid": "a"}, [("uid", 'Invalid value: "b": field is immutable')], id="a uid stays"),
        pytest.param(
            {"deletionGracePeriodSeconds": 5},
            {},
            [("deletionGracePeriodSeconds", "Invalid value: 5: field is immutable")],
            id="a client does not start a deletion by writing",
        ),
        pytest.param(
            {"resourceVersion": ""},
            {},
            [("resourceVersion", 'Invalid value: "": must be specified for an update')],
            id="an update is of a version",
        ),
        pytest.param(
            {"finalizers": ["a/b", "a/c"], "deletionTimestamp": "t"},
            {"finalizers": ["a/b"], "deletionTimestamp": "t"},
            [
                (
                    "finalizers",
                    "Forbidden: no new finalizers can be added if the object is being deleted, "
                    'found new finalizers []string{"a/c"}',
                )
            ],
            id="a deletion is not delayed further",
        ),
        pytest.param(
            {"finalizers": ["bad"]},
            {},
            [("finalizers[0]", f'Invalid value: "bad": {UNQUALIFIED}')],
            id="finalizers are checked again",
        ),
    ],
)
def test_metadata_of_a_changed_object(new: Doc, old: Doc, faults: list[tuple[str, str]]) -> None:
    errors = Errors()
    validate_metadata_update(of(**new), of(**old), errors)
    assert [(c.field, c.message) for c in errors] == [(f"metadata.{field}", message) for field, message in faults]
