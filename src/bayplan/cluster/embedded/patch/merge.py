"""JSON merge patch (RFC 7386): null removes, objects merge, everything else replaces.

Source of truth: evanphx/json-patch v4 as kube-apiserver uses it. A null inside a *new* object or list item is pruned;
a null that is itself a list item stays.
"""

from __future__ import annotations

from typing import Any

from bayplan.cluster.embedded.admission.fields import Doc
from bayplan.model.errors import BadRequest

_GO_NAMES = {list: "array", str: "string", bool: "bool", int: "number", float: "number", dict: "object"}


def cannot_unmarshal(value: object) -> str:
    """Go's words for a JSON value of the wrong sort."""
    return f"json: cannot unmarshal {_GO_NAMES[type(value)]} into Go value"


def merge_patch(old: Doc, patch: object) -> Doc:
    """The document with the patch merged in; neither argument is changed. Raises BadRequest."""
    if patch is None:
        raise BadRequest("Invalid JSON Patch")
    if not isinstance(patch, dict):
        raise BadRequest(f"error decoding patch: {cannot_unmarshal(patch)}")
    return _merged(old, patch)


def _merged(old: Doc, patch: Doc) -> Doc:
    result = dict(old)
    for key, value in patch.items():
        current = result.get(key)
        if value is None:
            result.pop(key, None)
        elif isinstance(current, dict):
            result[key] = _merged(current, value) if isinstance(value, dict) else value
        else:
            result[key] = _pruned(value)
    return result


def _pruned(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _pruned(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_pruned(item) for item in value]
    return value
