"""Documents read through their shape: do they fit it, which fields do they name, how do two of them differ.

Source of truth: structured-merge-diff v6, typed. Null is a value of every shape; an absent value is ABSENT.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from bayplan.cluster.embedded.patch.fieldsets import (
    END,
    LEAF,
    FieldSet,
    element_text,
    key_element,
    value_element,
)
from bayplan.cluster.embedded.patch.json_patch import same
from bayplan.cluster.embedded.patch.shapes import ANYTHING, Anything, List, Map, Scalar, Shape

ABSENT: Final = object()
_ANY_MAP = Map({}, ANYTHING, atomic=False)
_ANY_LIST = List(ANYTHING, atomic=True)
_UNTYPED = Scalar("untyped")
_SORTS = {
    "string": (str,),
    "numeric": (int, float),
    "boolean": (bool,),
    "untyped": (str, int, float, bool),
}
_GO_TYPES = {str: "string", bool: "bool", dict: "map[string]interface {}", list: "[]interface {}"}


class ItemError(ValueError):
    """A list item that cannot be told apart from the others; the message is upstream's."""


def settled(shape: Shape, value: Any) -> Scalar | Map | List:
    """The shape to read a value by: a value of no declared shape has its own."""
    if not isinstance(shape, Anything):
        return shape
    if isinstance(value, list):
        return _ANY_LIST
    return _ANY_MAP if isinstance(value, dict) or value is None else _UNTYPED


def child_shape(shape: Map, key: str) -> Shape:
    """The shape of a map's value. Undeclared fields are refused by `faults` before anything else is asked."""
    return shape.fields.get(key) or shape.element or ANYTHING


def item_element(shape: List, item: Any) -> str:
    """The path element of an item of a set or keyed list. Raises ItemError."""
    if not shape.keys:
        if isinstance(item, dict):
            raise ItemError("associative list without keys has an element that's a map type")
        if isinstance(item, list):
            raise ItemError("not supported: associative list with lists as elements")
        if item is None:
            raise ItemError("associative list without keys has an element that's an explicit null")
        return value_element(item)
    if not isinstance(item, dict):
        what = "a null element" if item is None else "non-map elements"
        raise ItemError(f"associative list with keys may not have {what}")
    keys = [(key, item.get(key, shape.key_defaults.get(key))) for key in shape.keys]
    found = [(key, value) for key, value in keys if value is not None or key in item]
    if not found:
        names = " ".join(f'"{key}"' for key in shape.keys)
        raise ItemError(
            f"associative list with keys has an element that omits all key fields [{names}]"
            " (and doesn't have default values for any key fields)"
        )
    return key_element(found)


def faults(value: Any, shape: Shape) -> list[tuple[str, str]]:
    """What does not fit the shape, as (path, words)."""
    shape = settled(shape, value)
    if value is None:
        return []
    if isinstance(shape, Scalar):
        return _scalar_faults(value, shape)
    if isinstance(shape, Map):
        return _map_faults(value, shape) if isinstance(value, dict) else [("", "expected map, got <value>")]
    return _list_faults(value, shape) if isinstance(value, list) else [("", "expected list, got <value>")]


def _scalar_faults(value: Any, shape: Scalar) -> list[tuple[str, str]]:
    if isinstance(value, _SORTS[shape.sort]) and (shape.sort != "numeric" or not isinstance(value, bool)):
        return []
    if shape.sort == "numeric":
        return [("", f"expected numeric (int or float), got {_GO_TYPES[type(value)]}")]
    return [("", f"expected {'any scalar' if shape.sort == 'untyped' else shape.sort}, got <value>")]


def _map_faults(value: dict[str, Any], shape: Map) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for key, item in value.items():
        declared = shape.fields.get(key) or shape.element
        if declared is None:
            found.append((f".{key}", "field not declared in schema"))
            break
        found += [(f".{key}{path}", words) for path, words in faults(item, declared)]
    return found


def _list_faults(value: list[Any], shape: List) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    seen: set[str] = set()
    for index, item in enumerate(value):
        element = f"i:{index}"
        if not shape.atomic:
            try:
                element = item_element(shape, item)
            except ItemError as error:
                found.append(("", f"element {index}: {error}"))
                break
            if element in seen:
                found.append(("", f"duplicate entries for key {element_text(element)}"))
            seen.add(element)
        found += [(element_text(element) + path, words) for path, words in faults(item, shape.element)]
    return found


def named_fields(value: Any, shape: Shape) -> FieldSet:
    """The set of the fields that a document names: leaves, items, keys of maps, and what is empty or null."""
    result = _named(value, shape)
    return {key: below for key, below in result.items() if key != END}


def _named(value: Any, shape: Shape) -> FieldSet:
    """The node of a value; with END where the value itself is a leaf."""
    shape = settled(shape, value)
    if isinstance(shape, Scalar):
        return LEAF
    return _named_in_map(value or {}, shape) if isinstance(shape, Map) else _named_in_list(value or [], shape)


def _named_in_map(value: dict[str, Any], shape: Map) -> FieldSet:
    if shape.atomic:
        return LEAF
    result: FieldSet = {}
    for key, item in value.items():
        node = _named(item, child_shape(shape, key))
        if item is None or item == {} or key not in shape.fields:
            node = {END: {}, **node}
        if node:
            result[f"f:{key}"] = node
    return result


def _named_in_list(value: list[Any], shape: List) -> FieldSet:
    if shape.atomic:
        return LEAF
    return {
        element: LEAF if len(items) > 1 else {END: {}, **_named(items[0], shape.element)}
        for element, items in by_element(value, shape).items()
    }


def by_element(value: list[Any], shape: List) -> dict[str, list[Any]]:
    """The items of a set or keyed list by their elements; several under one where a stored object repeats itself."""
    result: dict[str, list[Any]] = {}
    for item in value:
        result.setdefault(item_element(shape, item), []).append(item)
    return result


class Changes(msgspec.Struct):
    """How one document differs from another: three sets of fields (nodes, with END for the value itself)."""

    removed: FieldSet
    modified: FieldSet
    added: FieldSet


def compare(old: Any, new: Any, shape: Shape) -> Changes:
    """What changes from `old` to `new`."""
    if old is ABSENT:
        return Changes({}, {}, _whole(new, shape))
    if new is ABSENT:
        return Changes(_whole(old, shape), {}, {})
    if old is new:
        return Changes({}, {}, {})
    return _compare_both(old, new, settled(shape, old if new is None else new))


def _compare_both(old: Any, new: Any, shape: Scalar | Map | List) -> Changes:
    if isinstance(shape, Scalar) or (not old and not new) or shape.atomic:
        return Changes({}, {} if same(old, new) else LEAF, {})
    if isinstance(shape, Map):
        return _compare_maps(_as_map(old), _as_map(new), shape)
    return _compare_lists(_as_list(old), _as_list(new), shape)


def _as_map(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _compare_maps(old: dict[str, Any], new: dict[str, Any], shape: Map) -> Changes:
    result = Changes({}, {}, {})
    for key, value in new.items():
        before = old.get(key, ABSENT)
        if before is not value:
            _note(result, f"f:{key}", compare(before, value, child_shape(shape, key)))
    for key, value in old.items():
        if key not in new:
            result.removed[f"f:{key}"] = _whole(value, child_shape(shape, key))
    return result


def _compare_lists(old: list[Any], new: list[Any], shape: List) -> Changes:
    before, after = by_element(old, shape), by_element(new, shape)
    result = Changes({}, {}, {})
    for element in before.keys() | after.keys():
        left, right = before.get(element, []), after.get(element, [])
        if len(left) < 2 and len(right) < 2:
            one, other = left[0] if left else ABSENT, right[0] if right else ABSENT
            _note(result, element, compare(one, other, shape.element))
        else:
            _note(result, element, _compare_repeated(left, right, shape.element))
    return result


def _compare_repeated(left: list[Any], right: list[Any], shape: Shape) -> Changes:
    """Items that share one element are owned as one piece, without their fields."""
    if len(left) > 1 and len(right) > 1:
        return Changes({}, {} if same(left, right) else LEAF, {})
    if len(left) > 1:
        return Changes(LEAF, {}, _whole(right[0], shape) if right else {})
    return Changes(_whole(left[0], shape) if left else {}, {}, LEAF)


def _note(result: Changes, element: str, below: Changes) -> None:
    if below.removed:
        result.removed[element] = below.removed
    if below.modified:
        result.modified[element] = below.modified
    if below.added:
        result.added[element] = below.added


def _whole(value: Any, shape: Shape) -> FieldSet:
    """The node of a value that was not there before, or is gone: itself and everything in it."""
    shape = settled(shape, value)
    if not value or isinstance(shape, Scalar) or shape.atomic:
        return LEAF
    result: FieldSet = {END: {}}
    if isinstance(shape, Map):
        for key, item in value.items():
            result[f"f:{key}"] = _whole(item, child_shape(shape, key))
        return result
    for element, items in by_element(value, shape).items():
        result[element] = LEAF if len(items) > 1 else _whole(items[0], shape.element)
    return result
