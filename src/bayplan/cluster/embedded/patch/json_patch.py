"""JSON patch (RFC 6902) with the leniencies of evanphx/json-patch v4, which kube-apiserver uses.

Objects are lax, lists are strict: `replace`, `test` and `copy` see an absent key of an object as null, but an index
must exist. Negative indexes count from the end. `~2` and other bad escapes are taken literally.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable
from typing import Any

from bayplan.cluster.embedded.admission.fields import Doc
from bayplan.cluster.embedded.patch.merge import cannot_unmarshal
from bayplan.model.errors import BadRequest, Invalid

_INDEX = re.compile(r"[+-]?[0-9]+")
_GO_FIELDS = {"op", "path", "from"}


class _FailedError(Exception):
    """An operation that does not apply; the API server does not say which."""


def json_patch(old: Doc, patch: object) -> Any:
    """The document after all operations; neither argument is changed. Raises BadRequest, Invalid.

    The result need not be an object: `replace` of the whole document may make it a list.
    """
    operations = _checked(patch)
    holder = {"": copy.deepcopy(old)}
    try:
        for operation in operations:
            _OPERATIONS.get(operation.get("op"), _unknown)(holder, operation)
    except _FailedError:
        raise Invalid("the server rejected our request due to an error in our request") from None
    return holder[""]


def _checked(patch: object) -> list[Doc]:
    if patch is None:
        return []
    if not isinstance(patch, list):
        raise BadRequest(f"error decoding patch: {cannot_unmarshal(patch)}")
    for operation in patch:
        if operation is not None and not isinstance(operation, dict):
            raise BadRequest(f"error decoding patch: {cannot_unmarshal(operation)}")
        for key, value in (operation or {}).items():
            if key in _GO_FIELDS and value is not None and not isinstance(value, str):
                text = cannot_unmarshal(value).replace("value", f"struct field {key}")
                raise BadRequest(f"error decoding patch: {text}")
    return [operation or {} for operation in patch]


def _text(operation: Doc, key: str) -> str:
    value = operation.get(key)
    if not isinstance(value, str):
        raise _FailedError
    return value


def _find(holder: Doc, pointer: str) -> tuple[Any, str]:
    """The container that a pointer leads to, and the last key. What stands before the first slash is ignored."""
    steps = [step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")]
    if len(steps) < 2:
        raise _FailedError
    container = holder[""]
    for step in steps[1:-1]:
        container = _get(container, step)
        if not isinstance(container, dict | list):
            raise _FailedError
    return container, steps[-1]


def _index(key: str, size: int) -> int:
    """A place in a list of that size, counted from the end when negative."""
    if not _INDEX.fullmatch(key) or not -size <= int(key) < size:
        raise _FailedError
    return int(key) % size


def _get(container: Any, key: str) -> Any:
    return container.get(key) if isinstance(container, dict) else container[_index(key, len(container))]


def _put(container: Any, key: str, value: Any) -> None:
    if isinstance(container, dict):
        container[key] = value
    elif key == "-":
        container.append(value)
    else:
        container.insert(_index(key, len(container) + 1), value)


def _drop(container: Any, key: str) -> None:
    if isinstance(container, list):
        del container[_index(key, len(container))]
    elif key in container:
        del container[key]
    else:
        raise _FailedError


def _add(holder: Doc, operation: Doc) -> None:
    _put(*_find(holder, _text(operation, "path")), copy.deepcopy(operation.get("value")))


def _remove(holder: Doc, operation: Doc) -> None:
    _drop(*_find(holder, _text(operation, "path")))


def _replace(holder: Doc, operation: Doc) -> None:
    path, value = _text(operation, "path"), copy.deepcopy(operation.get("value"))
    if path == "":
        if not isinstance(value, dict | list):
            raise _FailedError
        holder[""] = value
        return
    container, key = _find(holder, path)
    if isinstance(container, dict):
        container[key] = value
    else:
        container[_index(key, len(container))] = value


def _move(holder: Doc, operation: Doc) -> None:
    source, key = _find(holder, _text(operation, "from"))
    value = _get(source, key)
    _drop(source, key)
    _put(*_find(holder, _text(operation, "path")), value)


def _copy(holder: Doc, operation: Doc) -> None:
    value = _get(*_find(holder, _text(operation, "from")))
    _put(*_find(holder, _text(operation, "path")), copy.deepcopy(value))


def _test(holder: Doc, operation: Doc) -> None:
    path = _text(operation, "path")
    found = holder[""] if path == "" else _get(*_find(holder, path))
    if not same(found, operation.get("value")):
        raise _FailedError


def _unknown(_holder: Doc, _operation: Doc) -> None:
    raise _FailedError


_OPERATIONS: dict[object, Callable[[Doc, Doc], None]] = {
    "add": _add,
    "remove": _remove,
    "replace": _replace,
    "move": _move,
    "copy": _copy,
    "test": _test,
}


def same(left: Any, right: Any) -> bool:
    """Equal as JSON: 1, 1.0 and true are three different values."""
    if type(left) is not type(right):
        return False
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(same(value, right[key]) for key, value in left.items())
    if isinstance(left, list):
        return len(left) == len(right) and all(map(same, left, right))
    return bool(left == right)
