"""What a benchmark found, as an aligned table or as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Any

import msgspec

OURS = "bayplan"
"""The program that the others are compared with; a name that goes on (`bayplan (raw kept)`) is another way of ours."""


class Sort(Enum):
    """What a figure counts, hence which way is better and what growth means."""

    RATE = "a second"
    """Operations a second: more is better."""
    EACH = "each"
    """The cost of one operation or object: less is better."""
    WHOLE = "in all"
    """The cost of the whole size: less is better, and twice the size may cost twice as much."""


class Line(msgspec.Struct, frozen=True):
    """One measure of one program, by size. None: not measured at that size."""

    measure: str
    who: str
    sort: Sort
    values: tuple[float | None, ...]
    goal: float | None = None

    def at_largest(self, other: Line) -> tuple[float, float] | None:
        """Both figures at the largest size that both were measured at."""
        for mine, theirs in zip(reversed(self.values), reversed(other.values), strict=True):
            if mine and theirs:
                return mine, theirs
        return None


class Table(msgspec.Struct, frozen=True):
    """The figures of one benchmark. In every measure our line comes first, peers after it."""

    name: str
    title: str
    columns: tuple[str, ...]
    lines: tuple[Line, ...]
    sizes: tuple[int, ...] = ()
    """The columns as numbers, where they are sizes; without them there is no growth."""
    notes: tuple[str, ...] = ()


def growth(line: Line, sizes: Sequence[int]) -> float | None:
    """How many times as much one operation costs at the largest size as at the smallest. 1: flat."""
    smallest, largest = line.values[0], line.values[-1]
    if not sizes or not smallest or not largest:
        return None
    if line.sort is Sort.RATE:
        return smallest / largest
    return largest / smallest if line.sort is Sort.EACH else largest / smallest * sizes[0] / sizes[-1]


def ratio(ours: Line, peer: Line) -> float | None:
    """How many times better than the peer we are; below 1 we are worse."""
    pair = ours.at_largest(peer)
    if pair is None:
        return None
    mine, theirs = pair
    return mine / theirs if ours.sort is Sort.RATE else theirs / mine


def reached(line: Line) -> bool | None:
    """Whether the figure at the largest size reaches the goal."""
    value = line.values[-1]
    if line.goal is None or value is None:
        return None
    return value >= line.goal if line.sort is Sort.RATE else value <= line.goal


def _peer_ratio(table: Table, line: Line) -> float | None:
    if line.who.startswith(OURS):
        return None
    ours = next(each for each in table.lines if each.measure == line.measure)
    return ratio(ours, line)


def figure(value: float | None) -> str:
    """A number with three figures or so."""
    if value is None:
        return "-"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.1f}" if abs(value) >= 10 else f"{value:.3g}"


def _goal(line: Line) -> str:
    if line.goal is None:
        return ""
    verdict = {True: "reached", False: "MISSED", None: "not measured"}[reached(line)]
    return f"{'>=' if line.sort is Sort.RATE else '<='} {figure(line.goal)} {verdict}"


def render(table: Table) -> str:
    """The table as text."""
    rows = [["measure", "program", *table.columns, "growth", "ratio", "goal"]]
    before = ""
    for line in table.lines:
        grown, better = growth(line, table.sizes), _peer_ratio(table, line)
        rows.append(
            [
                "" if line.measure == before else line.measure,
                line.who,
                *map(figure, line.values),
                "" if grown is None else f"{grown:.2f}",
                "" if better is None else f"{figure(better)}x",
                _goal(line),
            ]
        )
        before = line.measure
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    texts = (0, 1, len(widths) - 1)
    aligned = [
        "  ".join(
            f"{cell:<{w}}" if i in texts else f"{cell:>{w}}"
            for i, (cell, w) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]
    body = "\n".join(line.rstrip() for line in aligned)
    return "\n".join([f"{table.name}: {table.title}", body, *(f"  {note}" for note in table.notes), ""])


def plain(table: Table) -> dict[str, Any]:
    """The table for a program to read."""
    lines = [
        {
            **msgspec.to_builtins(line),
            "growth": growth(line, table.sizes),
            "ratio": _peer_ratio(table, line),
            "reached": reached(line),
        }
        for line in table.lines
    ]
    return {**msgspec.to_builtins(table), "lines": lines}
