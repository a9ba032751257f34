"""The columns of a custom kind: those that its definition names, found by JSONPath; its age where it names none.

Of JSONPath there is what definitions use: fields (`.a.b`, `.a\\.b`, `['a.b']`), items (`[0]`, `[-1]`, `[*]`), filters
(`[?(@.type=="Ready")]`). Source of truth: apiextensions-apiserver, registry/customresource/tableconvertor.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec

from bayplan.cluster.tables.columns import AGE, NAME, Cell, CellOf, Column, Columns, Doc
from bayplan.model.ages import age
from bayplan.model.clock import Instant, parse_rfc3339

Step = Callable[[Any], Iterable[Any]]
_STEP = re.compile(
    r"\.?\[\?\(\s*@(?P<path>[^=!<>\s]*)\s*(?P<test>[=!]=)\s*(?P<value>\"[^\"]*\"|'[^']*'|[^)\s]+)\s*\)\]"
    r"|\.?\[(?:'(?P<quoted>[^']*)'|\"(?P<doubled>[^\"]*)\"|(?P<index>-?[0-9]+)|(?P<all>\*))\]"
    r"|\.(?P<field>(?:\\.|[^.\[\\])+)"
)


class JsonPathError(ValueError):
    """A path that cannot be read."""


@functools.lru_cache(maxsize=1024)
def steps(path: str) -> tuple[Step, ...]:
    """The steps of a path. Raises JsonPathError."""
    found, at = [], 0
    while at < len(path):
        part = _STEP.match(path, at)
        if part is None:
            raise JsonPathError(f"unrecognized path {path!r} at {path[at:]!r}")
        found.append(_step(part))
        at = part.end()
    return tuple(found)


def _step(part: re.Match[str]) -> Step:
    if part["path"] is not None:
        return _filter(part["path"], part["test"], part["value"])
    if part["index"] is not None:
        return _item(int(part["index"]))
    if part["all"] is not None:
        return lambda value: [*value.values()] if isinstance(value, dict) else value if isinstance(value, list) else ()
    name = part["quoted"] or part["doubled"] or re.sub(r"\\(.)", r"\1", part["field"])
    return lambda value: (value[name],) if isinstance(value, dict) and name in value else ()


def _item(index: int) -> Step:
    return lambda value: (value[index],) if isinstance(value, list) and -len(value) <= index < len(value) else ()


def _filter(path: str, test: str, text: str) -> Step:
    wanted = text[1:-1] if text[0] in "\"'" else msgspec.json.decode(text)

    def step(value: Any) -> Iterable[Any]:
        for item in value if isinstance(value, list) else ():
            found = results(item, path)
            if bool(found) and (found[0] == wanted) == (test == "=="):
                yield item

    return step


def results(value: Any, path: str) -> list[Any]:
    """Everything that a path leads to."""
    values = [value]
    for step in steps(path):
        values = [found for each in values for found in step(each)]
    return values


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return "<nil>" if value is None else msgspec.json.encode(value).decode()


def _date(value: Any, now: Instant) -> Cell:
    if not isinstance(value, str):
        return None
    try:
        return age(parse_rfc3339(value), now)
    except ValueError:
        return "<invalid>"


_CELLS: dict[str, Callable[[Any, Instant], Cell]] = {
    "integer": lambda value, _now: int(value) if _is_number(value) else None,
    "number": lambda value, _now: value if _is_number(value) else None,
    "boolean": lambda value, _now: value if isinstance(value, bool) else None,
    "string": lambda value, _now: _text(value),
    "date": _date,
}


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _cell(definition: Doc) -> CellOf:
    path, convert = definition["jsonPath"], _CELLS[definition["type"]]

    def cell(document: Doc, now: Instant) -> Cell:
        try:
            found = results(document, path)
        except JsonPathError:
            return None
        return convert(found[0], now) if found else None

    return cell


def columns_from(definitions: Sequence[Doc]) -> Columns:
    """The columns that a definition asks for."""
    if not definitions:
        return (NAME, AGE)
    asked = (
        Column(each["name"], _cell(each), each["type"], each.get("format", ""), each.get("priority", 0))
        for each in definitions
    )
    return (NAME, *asked)
