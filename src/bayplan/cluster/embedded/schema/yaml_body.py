"""YAML as kube-apiserver reads it: version 1.1 by the rules of goyaml v2, then made JSON.

So `y`, `yes` and `on` are true even as keys, a key is always text in the end, a float that is whole becomes an integer,
a time stays text, and a key that stands twice is worth a warning with its line.
"""

from __future__ import annotations

import re
from typing import Any

import yaml

from bayplan.cluster.embedded.admission.fields import quoted
from bayplan.cluster.embedded.schema.document import MalformedBodyError

_TAG = "tag:yaml.org,2002:"
_TRUE = {"y", "yes", "true", "on"}
_INT = r"[-+]?(?:0b[01_]+|0o?[0-7_]+|0x[0-9a-fA-F_]+|0|[1-9][0-9_]*)"
_FLOAT = r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?"
_BOOL = "y|Y|yes|Yes|YES|n|N|no|No|NO|true|True|TRUE|false|False|FALSE|on|On|ON|off|Off|OFF"


class _Loader(yaml.CSafeLoader):
    """libyaml with goyaml's idea of which plain scalars are more than text."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012 - replaces the parent's


for _name, _pattern, _starts in (
    ("bool", _BOOL, "yYnNtTfFoO"),
    ("int", _INT, "-+0123456789"),
    ("float", _FLOAT, "-+.0123456789"),
    ("null", "~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("merge", "<<", "<"),
):
    _Loader.add_implicit_resolver(_TAG + _name, re.compile(f"^(?:{_pattern})$"), list(_starts))


def read_yaml(body: bytes) -> tuple[Any, list[str]]:
    """The first document of a body as plain values, and its repeated keys. Raises MalformedBodyError."""
    repeated: list[str] = []
    try:
        loader = _Loader(body.decode("utf-8", errors="replace"))
        node = loader.get_node() if loader.check_node() else None
    except yaml.MarkedYAMLError as error:
        raise MalformedBodyError(_go_text(error, body)) from None
    except yaml.YAMLError as error:
        raise MalformedBodyError(f"yaml: {error}") from None
    try:
        return _value(node, repeated), repeated
    except RecursionError:
        raise MalformedBodyError("yaml: a value contains itself, or is too deep") from None


def _go_text(error: yaml.MarkedYAMLError, body: bytes) -> str:
    """goyaml counts the lines of its parser from nought and those of its scanner from one."""
    if error.problem == "found undefined alias" and error.problem_mark:
        anchor = re.match(r"[\w-]*", body.decode("utf-8", errors="replace")[error.problem_mark.index + 1 :])
        return f"yaml: unknown anchor '{anchor[0] if anchor else ''}' referenced"
    line = error.problem_mark.line if error.problem_mark else 0
    if line and isinstance(error, yaml.scanner.ScannerError):
        line += 1
    if not line and error.context_mark:
        line = error.context_mark.line
    return f"yaml: {f'line {line}: ' if line else ''}{error.problem}"


def _value(node: yaml.Node | None, repeated: list[str]) -> Any:
    if isinstance(node, yaml.MappingNode):
        return _mapping(node, repeated)
    if isinstance(node, yaml.SequenceNode):
        return [_value(item, repeated) for item in node.value]
    return None if node is None else _scalar(node)


def _mapping(node: yaml.MappingNode, repeated: list[str]) -> dict[str, Any]:
    inherited: dict[str, Any] = {}
    result: dict[str, Any] = {}
    for key_node, value_node in node.value:
        if key_node.tag == f"{_TAG}merge":
            merged = _value(value_node, repeated)
            for source in reversed(merged if isinstance(merged, list) else [merged]):
                if not isinstance(source, dict):
                    raise MalformedBodyError("yaml: map merge requires map or sequence of maps as the value")
                inherited |= source
            continue
        if not isinstance(key_node, yaml.ScalarNode):
            raise MalformedBodyError("yaml: invalid map key: map[...]")
        key = _scalar(key_node)
        text = key if isinstance(key, str) else _json_text(key)
        if text in result:
            shown = quoted(key) if isinstance(key, str) else text
            repeated.append(f"line {key_node.start_mark.line + 1}: key {shown} already set in map")
        result[text] = _value(value_node, repeated)
    return {**inherited, **result}


def _json_text(key: Any) -> str:
    return {True: "true", False: "false", None: "null"}[key] if key is None or isinstance(key, bool) else str(key)


def _scalar(node: yaml.Node) -> Any:
    text: str = node.value
    sort = node.tag.removeprefix(_TAG)
    if sort == "null":
        return None
    if sort == "bool":
        return text.lower() in _TRUE
    if sort == "int":
        return _integer(text.replace("_", ""))
    if sort == "float":
        number = float(text)
        return int(number) if number.is_integer() else number
    return text


def _integer(text: str) -> int:
    digits = text.lstrip("+-")
    octal = len(digits) > 1 and digits[0] == "0" and digits[1] not in "box"
    value = int(digits, 8) if octal else int(digits, 0)
    return -value if text.startswith("-") else value
