"""JSON merge patch: RFC 7386 and what the API server says to bodies that are no patch."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.cluster.embedded.admission.fields import Doc
from bayplan.cluster.embedded.patch.merge import merge_patch
from bayplan.model.errors import BadRequest

_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(0, 3) | st.sampled_from("ab"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
)
_DOCS = st.dictionaries(st.sampled_from("abc"), _VALUES, max_size=3)


@pytest.mark.parametrize(
    ("old", "patch", "expected"),
    [
        pytest.param({"a": 1, "b": 2}, {"a": None}, {"b": 2}, id="null removes a key"),
        pytest.param({"a": {"b": 1}}, {"a": {"c": 2}}, {"a": {"b": 1, "c": 2}}, id="objects merge"),
        pytest.param({"a": [1, 2]}, {"a": [3]}, {"a": [3]}, id="lists replace"),
        pytest.param({"a": [1]}, {"a": {"b": None, "c": 1}}, {"a": {"c": 1}}, id="a new object is pruned of nulls"),
        pytest.param({}, {"a": [{"b": None}, None]}, {"a": [{}, None]}, id="a null list item stays"),
        pytest.param({"a": {"b": 1}}, {"a": 5}, {"a": 5}, id="a scalar replaces an object"),
        pytest.param({"a": 1}, {}, {"a": 1}, id="an empty patch changes nothing"),
    ],
)
def test_merging(old: Doc, patch: Doc, expected: Doc) -> None:
    assert merge_patch(old, patch) == expected


@pytest.mark.parametrize(
    ("patch", "message"),
    [
        pytest.param(None, "Invalid JSON Patch", id="null is no patch"),
        pytest.param([], "error decoding patch: json: cannot unmarshal array into Go value", id="nor is a list"),
        pytest.param("x", "error decoding patch: json: cannot unmarshal string into Go value", id="nor is a string"),
        pytest.param(5, "error decoding patch: json: cannot unmarshal number into Go value", id="nor is a number"),
    ],
)
def test_what_is_no_patch(patch: object, message: str) -> None:
    with pytest.raises(BadRequest) as caught:
        merge_patch({}, patch)
    assert caught.value.message == message


def bare(value: Any) -> Any:
    """Without null members, which decoding drops: a list that replaces an object keeps them at first."""
    if isinstance(value, dict):
        return {key: bare(item) for key, item in value.items() if item is not None}
    return [bare(item) for item in value] if isinstance(value, list) else value


@given(_DOCS, _DOCS)
def test_merging_twice_is_merging_once_and_changes_no_argument(old: Doc, patch: Doc) -> None:
    before = copy.deepcopy((old, patch))
    once = merge_patch(old, patch)
    assert bare(merge_patch(once, patch)) == bare(once)
    assert (old, patch) == before
