"""Structural schemas drop, fill in and refuse as the API server does."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from bayplan.cluster.embedded.admission.fields import Errors
from bayplan.cluster.embedded.custom.schema import default, prune, validate

from .definitions import SPEC


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({"size": 3}, [], id="a good one"),
        pytest.param({}, ["spec.size: Required value"], id="something missing"),
        pytest.param(
            {"size": "3"},
            ['spec.size: Invalid value: "string": spec.size in body must be of type integer: "string"'],
            id="a text for a number",
        ),
        pytest.param(
            {"size": 3.5},
            [
                'spec.size: Invalid value: "number": spec.size in body must be of type integer: "number"',
                '<nil>: Invalid value: "": Checked value must be of type integer (default format) in spec.size',
            ],
            id="a fraction for a whole number",
        ),
        pytest.param({"size": 3.0}, [], id="a whole number written as a fraction"),
        pytest.param(
            {"size": 0},
            ["spec.size: Invalid value: 0: spec.size in body should be greater than or equal to 1"],
            id="too small",
        ),
        pytest.param(
            {"size": 10},
            ["spec.size: Invalid value: 10: spec.size in body should be less than or equal to 9"],
            id="too big",
        ),
        pytest.param(
            {"size": 3, "colour": "green"},
            ['spec.colour: Unsupported value: "green": supported values: "red", "blue"'],
            id="none of the choices",
        ),
        pytest.param(
            {"size": 3, "name": "a"},
            ['spec.name: Invalid value: "a": spec.name in body should be at least 2 chars long'],
            id="too short",
        ),
        pytest.param(
            {"size": 3, "name": "abcdef"}, ["spec.name: Too long: may not be more than 5 bytes"], id="too long"
        ),
        pytest.param(
            {"size": 3, "name": "AB"},
            ["spec.name: Invalid value: \"AB\": spec.name in body should match '^[a-z]+$'"],
            id="a text of the wrong form",
        ),
        pytest.param({"size": 3, "port": "http"}, [], id="either may be a text"),
        pytest.param({"size": 3, "port": 80}, [], id="either may be a number"),
        pytest.param(
            {"size": 3, "port": True},
            ['spec.port: Invalid value: "boolean": spec.port in body must be of type integer,string: "boolean"'],
            id="either is not both",
        ),
        pytest.param({"size": 3, "note": None}, [], id="nothing where nothing may be"),
        pytest.param(
            {"size": 3, "tags": [None]},
            ['spec.tags[0]: Invalid value: "null": spec.tags[0] in body must be of type string: "null"'],
            id="nothing where something must be",
        ),
        pytest.param(
            {"size": 3, "tags": []},
            ["spec.tags: Invalid value: 0: spec.tags in body should have at least 1 items"],
            id="too few",
        ),
        pytest.param(
            {"size": 3, "tags": ["a", "b", "c"]},
            ["spec.tags: Too many: 3: must have at most 2 items"],
            id="too many",
        ),
        pytest.param(
            {"size": 3, "tags": [1]},
            ['spec.tags[0]: Invalid value: "integer": spec.tags[0] in body must be of type string: "integer"'],
            id="an item of the wrong type",
        ),
        pytest.param(
            {"size": 3, "labels": {"a": 1}},
            ['spec.labels.a: Invalid value: "integer": spec.labels.a in body must be of type string: "integer"'],
            id="a value of the wrong type in a map",
        ),
    ],
)
def test_validation(spec: dict[str, Any], expected: list[str]) -> None:
    errors = Errors()
    validate({"spec": spec}, {"type": "object", "properties": {"spec": SPEC}}, errors)
    assert [f"{cause.field}: {cause.message}" for cause in errors] == expected


def test_unknown_fields_are_dropped() -> None:
    value = {
        "kind": "Widget",
        "metadata": {"name": "a", "odd": 1},
        "spec": {"size": 1, "odd": 1, "free": {"any": {"thing": 1}}, "labels": {"a": "b"}, "nested": {"off": 1}},
        "odd": 1,
    }
    schema = {"type": "object", "properties": {"spec": SPEC}}
    assert prune(value, schema) == ["odd", "spec.odd", "spec.nested.off"]
    assert value == {
        "kind": "Widget",
        "metadata": {"name": "a", "odd": 1},
        "spec": {"size": 1, "free": {"any": {"thing": 1}}, "labels": {"a": "b"}, "nested": {}},
    }


def test_defaults_are_filled_in_where_something_is() -> None:
    value: dict[str, Any] = {"size": 1, "nested": {}, "ratio": None, "colour": None, "note": None}
    default(value, SPEC)
    assert value.pop("note", "gone") is None
    assert value == {"size": 1, "colour": "red", "nested": {"on": True}}
    again = copy.deepcopy(value)
    default(again, SPEC)
    assert again == value


@pytest.mark.parametrize(
    ("schema", "value", "expected"),
    [
        pytest.param(
            {"anyOf": [{"type": "string"}, {"type": "integer"}]},
            1.5,
            [
                '"x" must validate at least one schema (anyOf)',
                'Invalid value: "number": x in body must be of type string: "number"',
            ],
            id="none of several",
        ),
        pytest.param(
            {"oneOf": [{"type": "integer"}, {"type": "number"}]},
            1,
            ['"x" must validate one and only one schema (oneOf)'],
            id="two of several",
        ),
        pytest.param(
            {"not": {"type": "string"}}, "a", ['"x" must not validate the schema (not)'], id="what may not be"
        ),
        pytest.param(
            {"allOf": [{"minimum": 2}]},
            1,
            [
                '"x" must validate all the schemas (allOf)',
                "Invalid value: 1: x in body should be greater than or equal to 2",
            ],
            id="not all of several",
        ),
    ],
)
def test_junctors(schema: dict[str, Any], value: Any, expected: list[str]) -> None:
    errors = Errors()
    validate(value, schema, errors, "x")
    assert [cause.message.removeprefix('Invalid value: "": ') for cause in errors] == expected


def test_sets_and_keyed_lists_hold_nothing_twice() -> None:
    keyed = {
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
        "items": {"type": "object", "properties": {"name": {"type": "string"}}},
    }
    errors = Errors()
    validate([{"name": "a"}, {"name": "a", "b": 1}], keyed, errors, "spec.l")
    validate(["a", "a"], {"type": "array", "x-kubernetes-list-type": "set"}, errors, "spec.s")
    assert [f"{cause.field}: {cause.message}" for cause in errors] == [
        'spec.l[1]: Duplicate value: {"name":"a"}',
        'spec.s[1]: Duplicate value: "a"',
    ]
