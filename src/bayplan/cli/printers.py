"""How results look: kubectl's columns for people, JSON, YAML, names and CSV for programs.

Nothing here writes: every printer returns text, and the verb puts it on standard output.
"""

from __future__ import annotations

import functools
import itertools
import os
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TextIO

    import yaml

OUTPUTS = ("wide", "json", "yaml", "name", "csv")

# kubectl's tab writer: a column is as wide as its widest cell and three spaces, and at least six.
_PADDING, _NARROWEST = 3, 6


class Column(msgspec.Struct, frozen=True):
    """A column of a listing; a wide one is shown by `-o wide` and in CSV."""

    name: str
    wide: bool = False


class Row(msgspec.Struct, frozen=True):
    """One object: its cells, `type/name`, and itself."""

    cells: Sequence[object]
    name: str
    item: Any


class Listing(msgspec.Struct, frozen=True):
    """What `get` prints."""

    columns: Sequence[Column]
    rows: Sequence[Row]


def render(listing: Listing, output: str | None = None, *, headers: bool = True) -> str:
    """The listing in one of OUTPUTS, or in plain columns."""
    if output in ("json", "yaml"):
        return document({"apiVersion": "v1", "kind": "List", "items": [row.item for row in listing.rows]}, output)
    if output == "name":
        return "".join(f"{row.name}\n" for row in listing.rows)
    lines = table_lines(listing, wide=output in ("wide", "csv"), headers=headers)
    return _csv(lines) if output == "csv" else columns(lines)


def table_lines(listing: Listing, *, wide: bool, headers: bool) -> list[list[str]]:
    """The cells of a listing as texts, below the columns' names."""
    shown = [index for index, column in enumerate(listing.columns) if wide or not column.wide]
    head = [[listing.columns[index].name.upper() for index in shown]] if headers else []
    return head + [["" if row.cells[i] is None else str(row.cells[i]) for i in shown] for row in listing.rows]


def columns(lines: Sequence[Sequence[str]]) -> str:
    """Aligned columns, three spaces apart, as kubectl prints them."""
    return Aligned().text(lines)


class Aligned:
    """Aligned columns that go on: they only grow, so that later lines stand below the earlier ones."""

    def __init__(self) -> None:
        self._widths: list[int] = []

    def text(self, lines: Sequence[Sequence[str]]) -> str:
        """The next lines."""
        cells = [[_one_line(cell) for cell in line] for line in lines]
        fresh = [max(max(map(len, column)) + _PADDING, _NARROWEST) for column in zip(*cells, strict=True)]
        self._widths = [max(old, new) for old, new in itertools.zip_longest(self._widths, fresh, fillvalue=0)]
        pairs = ((line, zip(line[:-1], self._widths, strict=False)) for line in cells if line)
        return "".join("".join([*(f"{c:{w}}" for c, w in padded), line[-1]]) + "\n" for line, padded in pairs)


def _one_line(cell: str) -> str:
    """A cell's first line; the escape character is shown, not obeyed."""
    first = cell.split("\n")[0].split("\r")[0].split("\f")[0]
    return (cell if first == cell else f"{first}...").replace("\x1b", "^[")


def _csv(lines: Sequence[Sequence[str]]) -> str:
    import csv
    import io

    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(lines)
    return text.getvalue()


def document(value: Any, output: str) -> str:
    """One value as JSON (indented by four, as kubectl's) or YAML."""
    if output == "json":
        return msgspec.json.format(msgspec.json.encode(value), indent=4).decode() + "\n"
    import yaml

    plain = msgspec.to_builtins(value)
    return yaml.dump(plain, Dumper=_dumper(), sort_keys=False, allow_unicode=True, width=2**31 - 1)


@functools.cache
def _dumper() -> type[yaml.CSafeDumper]:
    """YAML in which a text of several lines stands as it is read."""
    import yaml

    class Dumper(yaml.CSafeDumper):
        pass

    def text(dumper: yaml.CSafeDumper, value: str) -> yaml.ScalarNode:
        return dumper.represent_scalar("tag:yaml.org,2002:str", value, style="|" if "\n" in value else None)

    Dumper.add_representer(str, text)
    return Dumper


def ordered(value: Any) -> Any:
    """A value with its keys in order, all the way down: kubectl prints and compares it so."""
    if isinstance(value, dict):
        return {key: ordered(value[key]) for key in sorted(value)}
    return [ordered(each) for each in value] if isinstance(value, list) else value


def coloured(stream: TextIO) -> bool:
    """Whether colour is welcome: a terminal, and NO_COLOR (no-color.org) is not set."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
