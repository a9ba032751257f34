"""One document laid over another, and fields taken out of one: the two changes that server-side apply makes.

Source of truth: structured-merge-diff v6, typed/merge.go and typed/remove.go. Arguments are never changed; results may
share parts with them.
"""

from __future__ import annotations

from typing import Any

from bayplan.cluster.embedded.patch.fieldsets import END, FieldSet
from bayplan.cluster.embedded.patch.shapes import List, Map, Shape
from bayplan.cluster.embedded.patch.typed import ABSENT, by_element, child_shape, item_element, settled


def merged(live: Any, config: Any, shape: Shape) -> Any:
    """`live` with `config` laid over it. Where one side is ABSENT the other counts."""
    if config is ABSENT:
        return live
    if live is ABSENT:
        return config
    shape = settled(shape, config if config is not None else live)
    if (not live and not config) or not isinstance(shape, Map | List) or shape.atomic:
        return config
    if isinstance(shape, Map) and isinstance(live, dict | None):
        return _merged_maps(live or {}, config or {}, shape)
    if isinstance(shape, List) and isinstance(live, list | None):
        return _merged_lists(live or [], config or [], shape)
    return config  # a shape that follows its value, and the value is of another sort now


def _merged_maps(live: dict[str, Any], config: dict[str, Any], shape: Map) -> dict[str, Any]:
    result = dict(live)
    for key, value in config.items():
        result[key] = merged(live.get(key, ABSENT), value, child_shape(shape, key))
    return result


def _merged_lists(live: list[Any], config: list[Any], shape: List) -> list[Any]:
    """The order of `config` among the items it names; the other items of `live` keep their places between them."""
    ours = {item_element(shape, item): item for item in config}
    theirs = [(item_element(shape, item), item) for item in live]
    # A repeated item of the stored object is not merged with: what config says replaces it.
    single = {element: items[0] for element, items in by_element(live, shape).items() if len(items) == 1}
    present = {element for element, _ in theirs}
    shared = [element for element in ours if element in present]
    order = list(ours)
    result: list[Any] = []
    done: set[str] = set()
    left = right = 0
    while left < len(theirs) or right < len(order):
        element = theirs[left][0] if left < len(theirs) else ""
        wanted = order[right] if right < len(order) else ""
        if element and element not in ours:
            result.append(theirs[left][1])
            left += 1
            continue
        if element and wanted and element != wanted and shared and shared[0] != element:
            left += 1  # named by config, but not next in its order: it comes when its turn does
            continue
        left += element == wanted or element in done
        if wanted:
            before = single.get(wanted, None if wanted in present else ABSENT)
            result.append(merged(before, ours[wanted], shape.element))
            done.add(wanted)
            shared = shared[shared[:1] == [wanted] :]
            right += 1
    return result


def removed(value: Any, fields: FieldSet, shape: Shape) -> Any:
    """The value without the fields of the set. What is emptied by that becomes null."""
    shape = settled(shape, value)
    if not isinstance(shape, Map | List):
        return value
    if not value or shape.atomic:
        return None
    if isinstance(shape, List):
        return _removed_items(value, fields, shape)
    result: dict[str, Any] = {}
    for key, item in value.items():
        below = fields.get(f"f:{key}")
        if below is None:
            result[key] = item
        elif END not in below:
            result[key] = removed(item, below, child_shape(shape, key))
    return result or None


def _removed_items(value: list[Any], fields: FieldSet, shape: List) -> list[Any] | None:
    result: list[Any] = []
    for item in value:
        below = fields.get(item_element(shape, item))
        if below is None:
            result.append(item)
        elif END not in below:
            result.append(removed(item, below, shape.element))
    return result or None


def with_structs(fields: FieldSet, shape: Shape | None) -> FieldSet:
    """The set with every declared field on the way to its paths as a path of its own."""
    result: FieldSet = {END: {}} if END in fields else {}
    for key, below in fields.items():
        if key == END:
            continue
        inner = _shape_below(shape, key)
        node = with_structs(below, inner)
        if isinstance(shape, Map) and key[:2] == "f:" and key[2:] in shape.fields and END not in node:
            node = {END: {}, **node}
        result[key] = node
    return result


def _shape_below(shape: Shape | None, key: str) -> Shape | None:
    if isinstance(shape, Map) and key[:2] == "f:":
        return shape.fields.get(key[2:]) or shape.element
    return shape.element if isinstance(shape, List) and key[:2] == "k:" else None
