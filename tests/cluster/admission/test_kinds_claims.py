"""PersistentVolumeClaims: what is asked for, and what may change afterwards."""

from __future__ import annotations

import pytest

from bayplan.cluster.embedded.admission.fields import Doc, Errors
from tests.cluster.admission.test_kinds_rules import Fault, change_faults, created, faults, read, rules_of

CLASS = "volume.beta.kubernetes.io/storage-class"
FIXED = (
    "spec",
    "Forbidden: spec is immutable after creation except resources.requests and volumeAttributesClassName "
    "for bound claims",
)


def spec(storage: str = "1Gi", **fields: object) -> Doc:
    """A claim's spec."""
    return {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": storage}}, **fields}


def claim(storage: str = "1Gi", *, phase: str = "Pending", **fields: object) -> Doc:
    """A stored claim."""
    doc = created("PersistentVolumeClaim", spec=spec(storage, **fields))
    doc["status"] = {"phase": phase, "capacity": {"storage": storage}} if phase == "Bound" else {"phase": phase}
    return doc


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        pytest.param({}, [], id="a plain claim"),
        pytest.param(
            {"accessModes": ["ReadWriteOncePod", "ReadOnlyMany"]},
            [("spec.accessModes", "Forbidden: may not use ReadWriteOncePod with other access modes")],
            id="for one pod alone, and for many",
        ),
        pytest.param(
            {"accessModes": [], "resources": {}},
            [
                ("spec.accessModes", "Required value: at least 1 access mode is required"),
                ("spec.resources[storage]", "Required value"),
            ],
            id="nothing asked for",
        ),
        pytest.param(
            {"dataSource": {"kind": "PersistentVolumeClaim"}},
            [("spec.dataSource.name", "Required value"), ("spec.dataSourceRef.name", "Required value")],
            id="a source is told twice",
        ),
        pytest.param(
            {
                "dataSource": {"kind": "PersistentVolumeClaim", "name": "a"},
                "dataSourceRef": {"kind": "PersistentVolumeClaim", "name": "b"},
            },
            [("spec", "Invalid value: {}: must match dataSourceRef")],
            id="two sources",
        ),
    ],
)
def test_new_claims(asked: Doc, expected: list[Fault]) -> None:
    assert faults("PersistentVolumeClaim", spec={**spec(), **asked}) == expected


@pytest.mark.parametrize(
    ("asked", "source", "reference"),
    [
        pytest.param(
            {"dataSource": {"kind": "Foo", "name": "a"}}, False, False, id="a source that cannot be is dropped"
        ),
        pytest.param(
            {"dataSourceRef": {"apiGroup": "x.y", "kind": "Foo", "name": "a"}},
            True,
            True,
            id="a reference is copied back",
        ),
        pytest.param(
            {"dataSourceRef": {"kind": "PersistentVolumeClaim", "name": "a", "namespace": "b"}},
            False,
            False,
            id="another namespace is off by default",
        ),
    ],
)
def test_sources(asked: Doc, source: bool, reference: bool) -> None:
    made = created("PersistentVolumeClaim", spec={**spec(), **asked})["spec"]
    assert ("dataSource" in made, "dataSourceRef" in made) == (source, reference)


@pytest.mark.parametrize(
    ("old", "asked", "expected"),
    [
        pytest.param(claim(), spec("1024Mi"), [], id="the same amount, written otherwise"),
        pytest.param(claim(), spec("2Gi"), [FIXED], id="an unbound claim does not grow"),
        pytest.param(claim(phase="Bound"), spec("2Gi"), [], id="a bound one does"),
        pytest.param(
            claim("2Gi", phase="Bound"),
            spec("1Gi"),
            [("spec.resources.requests.storage", "Forbidden: field can not be less than status.capacity")],
            id="no claim shrinks below what it has",
        ),
        pytest.param(claim(), spec(volumeName="v"), [], id="a volume is bound once"),
        pytest.param(claim(volumeName="v"), spec(volumeName="w"), [FIXED], id="and stays"),
        pytest.param(claim(), spec(storageClassName="a"), [], id="a claim without a class may get one"),
        pytest.param(claim(storageClassName="a"), spec(storageClassName="b"), [FIXED], id="a class stays"),
        pytest.param(
            claim(),
            spec(volumeMode="Block"),
            [FIXED, ("volumeMode", 'Invalid value: "Block": field is immutable')],
            id="a mode stays",
        ),
    ],
)
def test_changes(old: Doc, asked: Doc, expected: list[Fault]) -> None:
    assert change_faults("PersistentVolumeClaim", old, spec=asked) == expected


def test_the_old_annotation_of_a_class_gives_way_to_the_field() -> None:
    meta = {"name": "x", "annotations": {CLASS: "a"}}
    old = created("PersistentVolumeClaim", metadata=meta, spec=spec())
    assert change_faults("PersistentVolumeClaim", old, spec=spec(storageClassName="a")) == []
    assert change_faults("PersistentVolumeClaim", old, spec=spec(storageClassName="b")) == [
        (f"metadata.annotations.{CLASS}", 'Invalid value: "": field is immutable'),
        FIXED,
    ]
    assert rules_of("PersistentVolumeClaim").warn(old, None) == [
        f'metadata.annotations[{CLASS}]: deprecated since v1.8; use "storageClassName" attribute instead'
    ]


def test_status() -> None:
    old, errors = claim(), Errors()
    status = {"capacity": {"storage": "-1"}, "allocatedResourceStatuses": {"cpu": "Foo"}}
    new = read("PersistentVolumeClaim", spec=spec(), status=status)
    rules_of("PersistentVolumeClaim").prepare_status(new, old)
    rules_of("PersistentVolumeClaim").validate_status(new, old, errors)
    assert [(cause.field, cause.message) for cause in errors] == [
        ("status.capacity[storage]", "Invalid value: -1: must be a valid resource quantity"),
        ("status.allocatedResourceStatuses", 'Unsupported value: "cpu": supported values: "storage"'),
        (
            "status.allocatedResourceStatuses",
            'Unsupported value: "cpu": supported values: "ControllerResizeInProgress", "ControllerResizeInfeasible", '
            '"NodeResizeInProgress", "NodeResizeInfeasible", "NodeResizePending"',
        ),
    ]


def test_half_a_byte_warns() -> None:
    assert rules_of("PersistentVolumeClaim").warn(claim("1.5"), None) == [
        'spec.resources.requests[storage]: fractional byte value "1500m" is invalid, must be an integer'
    ]
