"""The body of a patch: which type it is, and what it holds.

Strict readers' complaints (repeated keys, unknown members of an operation) are collected, not raised: whether they
refuse the patch, warn or are passed over in silence is the request's `fieldValidation`.
"""

from __future__ import annotations

from typing import Any

import msgspec

from bayplan.cluster.embedded.patch.merge import cannot_unmarshal
from bayplan.cluster.embedded.schema.document import MalformedBodyError, Pairs, plain, read_json
from bayplan.cluster.embedded.schema.yaml_body import read_yaml
from bayplan.model.errors import BadRequest, UnsupportedMediaType

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"
TYPES = (JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, APPLY_PATCH)

_REFUSED = {JSON_PATCH: "error decoding patch: ", MERGE_PATCH: "error decoding patch: ", STRATEGIC_PATCH: ""}
_OPERATION = {"op", "path", "from", "value"}


class Body(msgspec.Struct, frozen=True):
    """A patch as sent. `type` is one of TYPES."""

    type: str
    patch: Any
    problems: tuple[str, ...] = ()
    """What a strict reader would say."""


def patch_type(content_type: str) -> str:
    """The media type of a patch, one of TYPES; looked at before anything else. Raises UnsupportedMediaType."""
    type_ = content_type.partition(";")[0]
    if type_ not in TYPES:
        raise UnsupportedMediaType("415: Unsupported Media Type")
    return type_


def read_patch(content_type: str, body: bytes) -> Body:
    """The patch of a request. Raises UnsupportedMediaType, BadRequest."""
    type_ = patch_type(content_type)
    if type_ == APPLY_PATCH:
        return _read_apply(body)
    try:
        tree = read_json(body)
    except MalformedBodyError as error:
        raise BadRequest(f"{_REFUSED[type_]}{error}") from None
    problems = _unknown_members(tree) + repeated_fields(tree) if type_ == JSON_PATCH else repeated_fields(tree)
    prefix = "json patch " if type_ == JSON_PATCH else ""
    return Body(type_, plain(tree), tuple(prefix + problem for problem in problems))


def _read_apply(body: bytes) -> Body:
    try:
        config, repeated = read_yaml(body)
    except MalformedBodyError as error:
        raise BadRequest(f"error decoding YAML: error converting YAML to JSON: {error}") from None
    if config is not None and not isinstance(config, dict):
        raise BadRequest(
            f"error decoding YAML: error unmarshaling JSON: while decoding JSON: {cannot_unmarshal(config)}"
        )
    return Body(APPLY_PATCH, config or {}, tuple(repeated))


def _unknown_members(tree: Any) -> list[str]:
    operations = enumerate(tree) if isinstance(tree, list) and not isinstance(tree, Pairs) else ()
    return [
        f'unknown field "[{index}].{key}"'
        for index, operation in operations
        if isinstance(operation, Pairs)
        for key, _ in operation
        if key not in _OPERATION
    ]


def repeated_fields(tree: Any, path: str = "") -> list[str]:
    """The keys that stand twice in one object, with their paths."""
    found: list[str] = []
    if isinstance(tree, Pairs):
        seen: set[str] = set()
        for key, value in tree:
            here = f"{path}.{key}" if path else key
            if key in seen:
                found.append(f'duplicate field "{here}"')
            seen.add(key)
            found += repeated_fields(value, here)
    elif isinstance(tree, list):
        for index, item in enumerate(tree):
            found += repeated_fields(item, f"{path}[{index}]")
    return found
