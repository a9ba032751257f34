"""JSON patch: RFC 6902 where the API server keeps to it, and where it does not."""

from __future__ import annotations

from typing import Any

import pytest

from bayplan.cluster.embedded.admission.fields import Doc
from bayplan.cluster.embedded.patch.json_patch import json_patch, same
from bayplan.model.errors import BadRequest, Invalid

OLD: Doc = {"m": {"labels": {"a": "1", "x/y": "2"}}, "items": [1, 2, 3], "none": None}


def op(name: str, path: str, **rest: Any) -> Doc:
    return {"op": name, "path": path, **rest}


@pytest.mark.parametrize(
    ("operation", "path", "expected"),
    [
        pytest.param(op("add", "/m/new", value=5), ("m", "new"), 5, id="add sets a key"),
        pytest.param(op("add", "/m/new"), ("m", "new"), None, id="add without a value sets null"),
        pytest.param(op("replace", "/m/new", value=1), ("m", "new"), 1, id="replace of an absent key sets it"),
        pytest.param(op("add", "/items/1", value=9), ("items",), [1, 9, 2, 3], id="add inserts in a list"),
        pytest.param(op("add", "/items/-", value=9), ("items",), [1, 2, 3, 9], id="a dash appends"),
        pytest.param(op("add", "/items/-1", value=9), ("items",), [1, 2, 3, 9], id="so does the index -1"),
        pytest.param(op("add", "/items/-2", value=9), ("items",), [1, 2, 9, 3], id="-2 is before the last"),
        pytest.param(op("remove", "/items/-1"), ("items",), [1, 2], id="a negative index removes from the end"),
        pytest.param(op("replace", "/items/0", value=7), ("items",), [7, 2, 3], id="replace keeps the place"),
        pytest.param(op("remove", "/m/labels/x~1y"), ("m", "labels"), {"a": "1"}, id="~1 is a slash"),
        pytest.param(op("add", "/m/a~2b", value=1), ("m", "a~2b"), 1, id="~2 is taken literally"),
        pytest.param(op("copy", "/m/b", **{"from": "/m/absent"}), ("m", "b"), None, id="a copy of nothing is null"),
        pytest.param(op("move", "/m/b", **{"from": "/m/labels/a"}), ("m", "b"), "1", id="move carries the value"),
        pytest.param(op("add", "x/new", value=1), ("new",), 1, id="what stands before the first slash is ignored"),
        pytest.param(op("test", "/m/absent", value=None), ("none",), None, id="an absent key tests as null"),
        pytest.param(op("test", "/m/absent"), ("none",), None, id="a test without value means null"),
        pytest.param(op("test", "", value=OLD), ("none",), None, id="the whole document can be tested"),
        pytest.param(op("replace", "", value={"k": 1}), ("k",), 1, id="the whole document can be replaced"),
    ],
)
def test_what_is_accepted(operation: Doc, path: tuple[str, ...], expected: object) -> None:
    found = json_patch(OLD, [operation])
    for key in path:
        found = found[key]
    assert found == expected


@pytest.mark.parametrize(
    "operation",
    [
        pytest.param(op("remove", "/m/absent"), id="remove of an absent key"),
        pytest.param(op("add", "/no/such", value=1), id="a missing parent"),
        pytest.param(op("add", "/none/x", value=1), id="a parent that is null"),
        pytest.param(op("add", "/items/4", value=1), id="an index beyond the end"),
        pytest.param(op("add", "/items/x", value=1), id="an index that is no number"),
        pytest.param(op("remove", "/items/-"), id="a dash where nothing is added"),
        pytest.param(op("test", "/items/9", value=None), id="a test of an absent index"),
        pytest.param(op("test", "/items/0", value=1.0), id="1 is not 1.0"),
        pytest.param(op("test", "/m/labels", value={"a": "1"}), id="a test of half an object"),
        pytest.param(op("add", "", value={}), id="add of the whole document"),
        pytest.param(op("add", "x/m/a/b", value=1), id="a path below a key that is not there"),
        pytest.param(op("move", "/m/x", **{"from": "/m/absent"}), id="a move of nothing"),
        pytest.param(op("explode", "/m"), id="an unknown operation"),
        pytest.param({}, id="no operation"),
        pytest.param({"op": "add"}, id="no path"),
    ],
)
def test_what_fails_fails_without_a_reason(operation: Doc) -> None:
    with pytest.raises(Invalid) as caught:
        json_patch(OLD, [operation])
    assert caught.value.message == "the server rejected our request due to an error in our request"
    assert caught.value.causes == ()


def test_an_object_is_no_json_patch() -> None:
    with pytest.raises(BadRequest, match="error decoding patch: json: cannot unmarshal object into Go value"):
        json_patch(OLD, {})


def test_a_member_of_the_wrong_type_is_named() -> None:
    with pytest.raises(BadRequest, match="cannot unmarshal number into Go struct field op"):
        json_patch(OLD, [{"op": 5}])


def test_the_arguments_are_left_alone() -> None:
    value: Doc = {"a": []}
    result = json_patch(OLD, [op("add", "/m/new", value=value), op("add", "/m/new/a/-", value=1)])
    assert result["m"]["new"] == {"a": [1]}
    assert value == {"a": []}
    assert "new" not in OLD["m"]


def test_truth_is_not_one() -> None:
    assert not same({"a": [1]}, {"a": [True]})
