"""Bodies as they came: JSON with its order, its repeated keys and its numbers' own spelling; YAML made into the same.

The careful decoder (`walk`) needs what a plain parser throws away: which key came twice, and whether a number was
written 1, 1.0 or 1e0.
"""

from __future__ import annotations

import json
from typing import Any, NoReturn

import yaml


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

_GO_WORDS = {
    "Expecting value": "looking for beginning of value",
    "Expecting property name enclosed in double quotes": "looking for beginning of object key string",
    "Expecting ':' delimiter": "after object key",
    "Extra data": "after top-level value",
    "Invalid control character at": "in string literal",
    "Invalid \\escape": "in string escape code",
}


def read_json(body: bytes) -> Any:
    """The body as a tree of Pairs, lists, str, Number, bool and None. Raises MalformedBodyError."""
    text = body.decode("utf-8", errors="replace")
    try:
        return _DECODER.decode(text)
    except json.JSONDecodeError as error:
        raise MalformedBodyError(_go_text(error)) from None


def _go_text(error: json.JSONDecodeError) -> str:
    if error.pos >= len(error.doc.rstrip()) or error.msg.startswith("Unterminated string"):
        return "unexpected end of JSON input"
    character = error.doc[error.pos]
    shown = {"'": r"'\''", '"': "'\"'"}.get(character, f"'{character}'")
    words = _GO_WORDS.get(error.msg.rstrip(": "))
    if words is None:
        words = "after object key:value pair" if _inside_object(error.doc[: error.pos]) else "after array element"
    return f"invalid character {shown} {words}"


def _inside_object(text: str) -> bool:
    depth, in_string, escaped = [""], False, False
    for character in text:
        if in_string:
            in_string = escaped or character != '"'
            escaped = character == "\\" and not escaped
        elif character == '"':
            in_string = True
        elif character in "{[":
            depth.append(character)
        elif character in "}]" and len(depth) > 1:
            depth.pop()
    return depth[-1] == "{"


def read_yaml(body: bytes) -> tuple[Any, list[str]]:
    """A YAML body as the same tree, and what a strict reader would say of repeated keys. Raises MalformedBodyError."""
    problems: list[str] = []
    try:
        node = yaml.compose(body.decode("utf-8", errors="replace"), Loader=yaml.CSafeLoader)
    except yaml.YAMLError as error:
        raise MalformedBodyError(f"yaml: {str(error).splitlines()[0]}") from None
    return (None if node is None else _from_node(node, problems)), problems


def _from_node(node: yaml.Node, problems: list[str]) -> Any:
    if isinstance(node, yaml.SequenceNode):
        return [_from_node(item, problems) for item in node.value]
    if isinstance(node, yaml.MappingNode):
        members: dict[str, Any] = {}
        for key_node, value_node in node.value:
            key = _scalar(key_node)
            text = {True: "true", False: "false", None: "null"}.get(key, str(key)) if not isinstance(key, str) else key
            if text in members:
                problems.append(f'line {key_node.start_mark.line + 1}: key "{text}" already set in map')
            members[text] = _from_node(value_node, problems)
        return Pairs(members.items())
    return _scalar(node)


def _scalar(node: yaml.Node) -> Any:
    value = _construct(node)
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return value
    if isinstance(value, int | float):
        return Number(json.dumps(value))
    return str(node.value)  # a date or binary: Kubernetes reads the text


def _construct(node: yaml.Node) -> Any:
    loader = yaml.SafeLoader("")
    try:
        return loader.construct_object(node, deep=True)
    finally:
        loader.dispose()


def plain(tree: Any) -> Any:
    """The tree as plain JSON values; of repeated keys the last one counts."""
    if isinstance(tree, Pairs):
        return {key: plain(value) for key, value in tree}
    if isinstance(tree, Number):
        return json.loads(tree)
    if isinstance(tree, list):
        return [plain(item) for item in tree]
    return tree
