"""Strategic merge patch, on the fields of a Deployment."""

from __future__ import annotations

from typing import Any

import pytest

from bayplan.cluster.embedded.admission.fields import Doc
from bayplan.cluster.embedded.patch.strategic import strategic_merge
from bayplan.model.errors import ApiError, BadRequest, Invalid, ServerError

DEPLOYMENT = "apps.v1.Deployment"


def deployment(**spec: Any) -> Doc:
    return {"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"template": {"spec": spec}}}


def patched(old: Doc, patch: Doc) -> Doc:
    result = strategic_merge(old, {"spec": {"template": {"spec": patch}}}, DEPLOYMENT)
    pod_spec: Doc = result["spec"]["template"]["spec"]
    return pod_spec


def names(*letters: str) -> list[Doc]:
    return [{"name": letter} for letter in letters]


@pytest.mark.parametrize(
    ("old", "patch", "expected"),
    [
        pytest.param(names("a", "b"), {"containers": names("n")}, names("n", "a", "b"), id="new items go first"),
        pytest.param(
            names("a", "b"),
            {"containers": [{"name": "b", "image": "i"}]},
            [{"name": "a"}, {"name": "b", "image": "i"}],
            id="a known item is merged where it stands",
        ),
        pytest.param(
            names("a", "b"),
            {"$setElementOrder/containers": names("n", "b", "a"), "containers": names("n")},
            names("n", "b", "a"),
            id="$setElementOrder gives the order",
        ),
        pytest.param(
            names("a", "b"),
            {"containers": [{"name": "a", "$patch": "delete"}, {"name": "x", "$patch": "delete"}]},
            names("b"),
            id="delete removes, and a missing item is fine",
        ),
        pytest.param(
            names("a", "b"),
            {"containers": [{"name": "c"}, {"$patch": "replace"}]},
            names("c"),
            id="replace as an item replaces the list",
        ),
        pytest.param(names("a"), {"containers": []}, names("a"), id="an empty list changes nothing"),
        pytest.param(names("a"), {"containers": None}, None, id="null removes the list"),
        pytest.param(
            names("a"),
            {"containers": [{"name": "a", "image": "1"}, {"name": "a", "image": "2"}]},
            [{"name": "a", "image": "2"}],
            id="repeated items merge one after the other",
        ),
    ],
)
def test_lists_with_a_merge_key(old: list[Doc], patch: Doc, expected: list[Doc] | None) -> None:
    assert patched(deployment(containers=old), patch).get("containers") == expected


@pytest.mark.parametrize(
    ("field", "old", "patch", "expected"),
    [
        pytest.param("tolerations", [{"key": "a"}], [{"key": "b"}], [{"key": "b"}], id="a list without key replaces"),
        pytest.param("nodeSelector", {"a": "1"}, {"b": "2"}, {"a": "1", "b": "2"}, id="maps merge"),
        pytest.param("nodeSelector", {"a": "1"}, {"a": None}, {}, id="null removes a key"),
        pytest.param(
            "nodeSelector", {"a": "1"}, {"$patch": "replace", "b": "2"}, {"b": "2"}, id="maps can be replaced"
        ),
        pytest.param("nodeSelector", {"a": "1"}, {"$patch": "delete"}, {}, id="maps can be emptied"),
        pytest.param(
            "volumes",
            [{"name": "v", "configMap": {"name": "c"}}],
            [{"name": "v", "$retainKeys": ["name", "emptyDir"], "emptyDir": {}}],
            [{"name": "v", "emptyDir": {}}],
            id="$retainKeys drops the other keys",
        ),
        pytest.param(
            "topologySpreadConstraints",
            [{"topologyKey": "z", "whenUnsatisfiable": "A"}],
            [{"topologyKey": "z", "whenUnsatisfiable": "B"}],
            [{"topologyKey": "z", "whenUnsatisfiable": "B"}],
            id="the merge key is one key, whatever server-side apply uses",
        ),
    ],
)
def test_other_fields(field: str, old: Any, patch: Any, expected: Any) -> None:
    assert patched(deployment(**{field: old}), {field: patch})[field] == expected


@pytest.mark.parametrize(
    ("patch", "expected"),
    [
        pytest.param({"finalizers": ["n"]}, ["n", "a", "b"], id="a set is united, new members first"),
        pytest.param({"finalizers": ["b"]}, ["a", "b"], id="a known member changes nothing"),
        pytest.param({"$deleteFromPrimitiveList/finalizers": ["a"]}, ["b"], id="members can be deleted"),
        pytest.param({"$setElementOrder/finalizers": ["b", "a"]}, ["b", "a"], id="and ordered"),
    ],
)
def test_sets(patch: Doc, expected: list[str]) -> None:
    old = {"metadata": {"finalizers": ["a", "b"]}}
    assert strategic_merge(old, {"metadata": patch}, DEPLOYMENT)["metadata"]["finalizers"] == expected


def test_kind_and_api_version_are_ignored() -> None:
    result = strategic_merge(deployment(), {"kind": "Foo", "apiVersion": "v9"}, DEPLOYMENT)
    assert (result["kind"], result["apiVersion"]) == ("Deployment", "apps/v1")


NO_KEY = "map: map[...] does not contain declared merge key: name"
ORDER = "The order in patch list:\n[map[...]]\n doesn't match $setElementOrder list:\n[map[...]]\n"


@pytest.mark.parametrize(
    ("patch", "error", "message"),
    [
        pytest.param({"containers": [{"image": "x"}]}, ServerError, NO_KEY, id="an item without its merge key"),
        pytest.param(
            {"nodeSelector": {"$patch": "merge"}},
            ServerError,
            "unknown patch type: merge in map: map[...]",
            id="an unknown directive in a map",
        ),
        pytest.param(
            {"containers": [{"name": "a", "$patch": "merge"}]},
            ServerError,
            "merging lists cannot yet be specified in the patch",
            id="merge as a directive of an item",
        ),
        pytest.param(
            {"$setElementOrder/containers": names("a"), "containers": names("b")},
            ServerError,
            ORDER,
            id="an item that the order list leaves out",
        ),
        pytest.param(
            {"volumes": [{"name": "v", "$retainKeys": ["name"], "emptyDir": {}}]},
            BadRequest,
            "invalid patch format of retainKeys",
            id="$retainKeys that leaves out what the patch sets",
        ),
        pytest.param(
            {"containers": {"name": "a"}},
            Invalid,
            ' "" is invalid: patch: Invalid value: "...": cannot restore slice from map',
            id="an object for a list",
        ),
        pytest.param(
            {"containers": [{"name": "a", "image": 5}]},
            Invalid,
            ' "" is invalid: patch: Invalid value: "...": cannot convert int64 to string',
            id="a number for a text",
        ),
        pytest.param(
            {"nodeSelector": "x"},
            Invalid,
            ' "" is invalid: patch: Invalid value: "...": cannot restore map from string',
            id="a text for a map",
        ),
    ],
)
def test_refusals(patch: Doc, error: type[ApiError], message: str) -> None:
    old = deployment(containers=names("a"), nodeSelector={"a": "1"}, volumes=names("v"))
    with pytest.raises(error) as caught:
        patched(old, patch)
    assert caught.value.message == message


def test_a_whole_float_is_an_integer() -> None:
    assert strategic_merge({}, {"spec": {"replicas": 2.0}}, DEPLOYMENT)["spec"] == {"replicas": 2}


def test_the_arguments_are_left_alone() -> None:
    old, patch = deployment(containers=names("a")), {"containers": [{"name": "a", "image": "i"}, {"name": "b"}]}
    patched(old, patch)
    assert old == deployment(containers=names("a"))
    assert patch == {"containers": [{"name": "a", "image": "i"}, {"name": "b"}]}
