"""Sets of fields: who owns what, as a trie of path elements.

An element is written as on the wire: `f:name` a field, `k:{"name":"a"}` an item of a list by its keys, `v:"x"` a member
of a set, `i:0` an index. Inside, a path that is in the set ends in the key `.`, so every operation is one plain walk
over dicts; on the wire (`fieldsV1`) a node with nothing but `.` is written `{}`. Nodes are shared, never changed once
built. Source of truth: structured-merge-diff v6, fieldpath.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable, Iterator
from typing import Any, TypeAlias

from bayplan.cluster.embedded.admission.fields import Doc, quoted

FieldSet: TypeAlias = dict[str, Any]
Path: TypeAlias = tuple[str, ...]

END = "."
LEAF: FieldSet = {END: {}}
"""A node that is in the set and has nothing below it."""


def union(left: FieldSet, right: FieldSet) -> FieldSet:
    """What is in either."""
    if not left or not right:
        return left or right
    result = dict(left)
    for key, below in right.items():
        mine = result.get(key)
        result[key] = below if mine is None else union(mine, below)
    return result


def intersection(left: FieldSet, right: FieldSet) -> FieldSet:
    """What is in both."""
    result: FieldSet = {}
    for key, below in left.items():
        if key not in right:
            continue
        if key == END:
            result[key] = below
        elif both := intersection(below, right[key]):
            result[key] = both
    return result


def difference(left: FieldSet, right: FieldSet) -> FieldSet:
    """What is in `left` only. A path that is taken away leaves the paths below it."""
    result: FieldSet = {}
    for key, below in left.items():
        if key not in right:
            result[key] = below
        elif key != END and (rest := difference(below, right[key])):
            result[key] = rest
    return result


def without_trees(left: FieldSet, roots: FieldSet) -> FieldSet:
    """`left` without the paths of `roots` and everything below them."""
    result: FieldSet = {}
    for key, below in left.items():
        if key not in roots:
            result[key] = below
        elif END not in roots[key] and (rest := without_trees(below, roots[key])):
            result[key] = rest
    return result


def within_trees(left: FieldSet, roots: FieldSet) -> FieldSet:
    """The part of `left` on the way to the paths of `roots` or below them; the root `*` stands for any element."""
    result: FieldSet = {}
    for key, below in left.items():
        pattern = roots.get(key) or (roots.get("*") if key != END else None)
        if pattern is None:
            continue
        kept = below if END in pattern else within_trees(below, pattern)
        if END in below:
            kept = {END: {}, **kept}
        if kept:
            result[key] = kept
    return result


def field_set(*paths: str) -> FieldSet:
    """The set of the given paths of plain fields: `metadata.labels`; `*` is kept as a pattern."""
    result: FieldSet = {}
    for path in paths:
        node = result
        for name in path.split("."):
            node = node.setdefault(name if name == "*" else f"f:{name}", {})
        node[END] = {}
    return result


def encode(fields: FieldSet) -> Doc:
    """The set as `fieldsV1` carries it, in upstream's order."""
    keys = sorted((key for key in fields if key != END), key=_order)
    written: Doc = {key: encode(fields[key]) for key in keys}
    return {END: {}, **written} if END in fields and written else written


def decode(fields: Doc) -> FieldSet:
    """The set that `fieldsV1` carries. Elements of an unknown sort are dropped. Raises ValueError."""
    if not isinstance(fields, dict):
        raise ValueError(f"expected an object of fields, found {fields!r}")
    return {_readable(key): _decoded(below) for key, below in fields.items() if key[:2] in _SORTS}


@functools.lru_cache(maxsize=4096)
def _readable(element: str) -> str:
    try:
        _order(element)
    except (ValueError, AttributeError, KeyError) as error:
        raise ValueError(f"{element} is no element of a path") from error
    return element


def _decoded(node: Doc) -> FieldSet:
    below = decode(node)
    return {END: {}, **below} if END in node or not below else below


def paths(fields: FieldSet, prefix: Path = ()) -> Iterator[Path]:
    """Every path of the set, in upstream's order: on each level first the paths that end there."""
    keys = sorted((key for key in fields if key != END), key=_order)
    for key in keys:
        if END in fields[key]:
            yield (*prefix, key)
    for key in keys:
        yield from paths(fields[key], (*prefix, key))


def path_text(path: Iterable[str]) -> str:
    """`.spec.containers[name="a"].image`: as conflicts name a field."""
    return "".join(map(element_text, path))


@functools.lru_cache(maxsize=4096)
def element_text(element: str) -> str:
    """One step of a path as people read it."""
    sort, content = element[:2], element[2:]
    if sort == "f:":
        return f".{content}"
    if sort == "k:":
        return "[" + ",".join(f"{key}={value_text(value)}" for key, value in json.loads(content).items()) + "]"
    return f"[={value_text(json.loads(content))}]" if sort == "v:" else f"[{content}]"


def value_text(value: object) -> str:
    """A key's value inside a path."""
    return quoted(value) if isinstance(value, str) else json.dumps(value)


def key_element(keys: Iterable[tuple[str, Any]]) -> str:
    """The element of a list item by its keys."""
    return "k:{" + ",".join(f'"{name}":{_json(value)}' for name, value in sorted(keys, key=_first)) + "}"


def value_element(value: Any) -> str:
    """The element of a set's member."""
    return f"v:{_json(value)}"


def _first(pair: tuple[str, Any]) -> str:
    return pair[0]


def _json(value: Any) -> str:
    return _json_text(value) if type(value) is str else json.dumps(value, separators=(",", ":"), ensure_ascii=False)


@functools.lru_cache(maxsize=4096)
def _json_text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


_SORTS = {"f:": 0, "k:": 1, "v:": 2, "i:": 3}
_VALUE_ORDER = {float: 0, int: 0, str: 1, bool: 2, list: 3, dict: 4, type(None): 5}


@functools.lru_cache(maxsize=4096)
def _order(element: str) -> tuple[Any, ...]:
    sort, content = element[:2], element[2:]
    if sort == "f:":
        return (0, content)
    if sort == "k:":
        return (1, [(name, *_rank(value)) for name, value in json.loads(content).items()])
    return (2, *_rank(json.loads(content))) if sort == "v:" else (3, int(content))


def _rank(value: Any) -> tuple[int, Any]:
    rank = _VALUE_ORDER[type(value)]
    return rank, value if rank <= 2 else json.dumps(value)
