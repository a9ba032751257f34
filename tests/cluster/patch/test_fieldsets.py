"""Sets of fields: their algebra, held against sets of plain paths, and their wire form."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bayplan.cluster.embedded.patch import fieldsets
from bayplan.cluster.embedded.patch.fieldsets import (
    END,
    FieldSet,
    Path,
    decode,
    difference,
    encode,
    field_set,
    intersection,
    key_element,
    path_text,
    paths,
    union,
    value_element,
    within_trees,
    without_trees,
)

_ELEMENTS = ["f:a", "f:b", key_element([("name", "x")]), key_element([("port", 80), ("a", "b")]), value_element("v")]
_PATHS = st.lists(st.sampled_from(_ELEMENTS), min_size=1, max_size=3).map(tuple)
_SETS = st.sets(_PATHS, max_size=8)


def of(members: set[Path]) -> FieldSet:
    result: FieldSet = {}
    for path in members:
        node = result
        for element in path:
            node = node.setdefault(element, {})
        node[END] = {}
    return result


@given(_SETS, _SETS)
def test_the_algebra_is_that_of_sets_of_paths(left: set[Path], right: set[Path]) -> None:
    assert set(paths(union(of(left), of(right)))) == left | right
    assert set(paths(intersection(of(left), of(right)))) == left & right
    assert set(paths(difference(of(left), of(right)))) == left - right


@given(_SETS, _SETS)
def test_a_tree_goes_with_its_root(left: set[Path], roots: set[Path]) -> None:
    kept = {path for path in left if not any(path[: len(root)] == root for root in roots)}
    assert set(paths(without_trees(of(left), of(roots)))) == kept


@given(_SETS)
def test_the_wire_form_is_read_back(members: set[Path]) -> None:
    assert decode(encode(of(members))) == of(members)


def test_a_lone_member_is_written_as_an_empty_object() -> None:
    written = encode(of({("f:b",), ("f:a", "f:x"), ("f:a",)}))
    assert written == {"f:a": {".": {}, "f:x": {}}, "f:b": {}}
    assert list(written) == ["f:a", "f:b"]


def test_unknown_elements_are_dropped() -> None:
    assert decode({"z:new": {}, "f:a": {}}) == {"f:a": {END: {}}}


def test_paths_come_in_order_members_before_what_is_below() -> None:
    fields = of({("f:b",), ("f:a", "f:z"), ("k:" + '{"p":80}',), ("k:" + '{"p":443}',), ("f:a",)})
    assert [path_text(path) for path in paths(fields)] == [".a", ".b", "[p=80]", "[p=443]", ".a.z"]


def test_paths_read_as_conflicts_print_them() -> None:
    port = key_element([("protocol", "TCP"), ("containerPort", 80)])
    assert path_text(("f:ports", port, "f:name")) == '.ports[containerPort=80,protocol="TCP"].name'
    assert path_text(("f:finalizers", value_element("a/b"))) == '.finalizers[="a/b"]'


def test_within_trees_keeps_the_way_to_a_root() -> None:
    fields = of({("f:a", "f:b", "f:c"), ("f:a", "f:b"), ("f:a", "f:x"), ("f:y",)})
    assert set(paths(within_trees(fields, field_set("a.*.c")))) == {
        ("f:a", "f:b", "f:c"),
        ("f:a", "f:b"),
        ("f:a", "f:x"),
    }


def test_a_set_is_written_in_order_of_values_not_of_texts() -> None:
    keys = ['k:{"port":80}', 'k:{"port":443}', 'k:{"port":8080}']
    assert list(fieldsets.encode(of({(key,) for key in reversed(keys)}))) == keys
