"""Bodies as they came: JSON with its order, its repeated keys and its numbers' own spelling.

The careful decoder (`walk`) needs what a plain parser throws away: which key came twice, and whether a number was
written 1, 1.0 or 1e0.
"""

from __future__ import annotations

import json
import re
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


def _number(text: str) -> Number:
    if len(text) > _LONGEST_NUMBER:
        raise MalformedBodyError(f"json: cannot unmarshal number {text} into Go value")
    return Number(text)


_DECODER = json.JSONDecoder(object_pairs_hook=Pairs, parse_int=_number, parse_float=_number, parse_constant=_not_json)
_TOO_DEEP = "exceeded max depth"
_DEEPEST = 250
_LONGEST_NUMBER = 400  # digits: no float is longer, and beyond 4,300 Python itself refuses
_ESCAPE = re.compile(r"\\(?:u[dD][89abAB]\w\w(?:\\u[dD][c-fC-F]\w\w)?|u[dD][c-fC-F]\w\w|.)", re.DOTALL)


def _paired(escape: re.Match[str]) -> str:
    """Half of a surrogate pair is no character: Go puts U+FFFD in its place."""
    text = escape[0]
    return r"\ufffd" if len(text) == len(r"\ud800") else text


def read_json(body: bytes) -> Any:
    """The body as a tree of Pairs, lists, str, Number, bool and None. Raises MalformedBodyError."""
    text = body.decode("utf-8", errors="replace")
    if "\\ud" in text or "\\uD" in text:
        text = _ESCAPE.sub(_paired, text)
    try:
        tree = _DECODER.decode(text)
    except json.JSONDecodeError as error:
        raise MalformedBodyError(json_fault(text) or str(error)) from None
    except RecursionError:
        raise MalformedBodyError(_TOO_DEEP) from None
    _check_depth(tree)
    return tree


def _check_depth(tree: Any) -> None:
    """Whoever walks the tree does so by recursion, so its depth has a limit of our own. Raises MalformedBodyError."""
    level = [tree]
    for _ in range(_DEEPEST):
        holders = [each for each in level if isinstance(each, list)]
        level = [
            inner for each in holders for inner in ([value for _, value in each] if isinstance(each, Pairs) else each)
        ]
        if not level:
            return
    raise MalformedBodyError(_TOO_DEEP)


def plain(tree: Any) -> Any:
    """The tree as plain JSON values; of repeated keys the last one counts."""
    if isinstance(tree, Pairs):
        return {key: plain(value) for key, value in tree}
    if isinstance(tree, Number):
        return json.loads(tree)
    if isinstance(tree, list):
        return [plain(item) for item in tree]
    return tree
