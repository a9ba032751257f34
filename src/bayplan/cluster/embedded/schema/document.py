"""Bodies as they came: JSON with its order, its repeated keys and its numbers' own spelling.

The careful decoder (`walk`) needs what a plain parser throws away: which key came twice, and whether a number was
written 1, 1.0 or 1e0.
"""

from __future__ import annotations

import json
from typing import Any, NoReturn

from bayplan.cluster.embedded.schema.json_faults import json_fault


class MalformedBodyError(ValueError):
    """The text is not JSON or YAML; the message is what Go's parser would say."""


class Number(str):
    """A JSON number by its own spelling."""

    __slots__ = ()


class Pairs(list[tuple[str, Any]]):
    """A JSON object: its members in order, repeats included."""

    __slots__ = ()


def _not_json(constant: str) -> NoReturn:
    raise MalformedBodyError(f"invalid character '{constant[0]}' looking for beginning of value")


_DECODER = json.JSONDecoder(object_pairs_hook=Pairs, parse_int=Number, parse_float=Number, parse_constant=_not_json)


def read_json(body: bytes) -> Any:
    """The body as a tree of Pairs, lists, str, Number, bool and None. Raises MalformedBodyError."""
    text = body.decode("utf-8", errors="replace")
    try:
        return _DECODER.decode(text)
    except json.JSONDecodeError as error:
        raise MalformedBodyError(json_fault(text) or str(error)) from None


def plain(tree: Any) -> Any:
    """The tree as plain JSON values; of repeated keys the last one counts."""
    if isinstance(tree, Pairs):
        return {key: plain(value) for key, value in tree}
    if isinstance(tree, Number):
        return json.loads(tree)
    if isinstance(tree, list):
        return [plain(item) for item in tree]
    return tree
