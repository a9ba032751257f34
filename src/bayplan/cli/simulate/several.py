"""Several names or numbers on the command line: with commas, in repeated options, or both; each counts once."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Sequence

MOST_SEEDS = 10_000
_SEEDS = re.compile(r"([0-9]{1,18})(?:-([0-9]{1,18}))?")


def names(_ctx: click.Context, _param: click.Parameter, values: Sequence[str]) -> tuple[str, ...]:
    """The callback of an option that takes names: `--policy fgd,bestfit --policy random`."""
    found = tuple(dict.fromkeys(part.strip().lower() for value in values for part in value.split(",")))
    if "" in found:
        raise click.BadParameter("a name is empty")
    return found


def seeds(_ctx: click.Context, _param: click.Parameter, value: str) -> tuple[int, ...]:
    """The callback of an option that takes seeds: `42`, `42-51` or `1,2,5-7`."""
    found: dict[int, None] = {}
    for part in value.split(","):
        match = _SEEDS.fullmatch(part.strip())
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
        if first > last:
            raise click.BadParameter(f'"{part}" is neither a seed nor a range such as 42-51')
        if last - first >= MOST_SEEDS or len(found := found | dict.fromkeys(range(first, last + 1))) > MOST_SEEDS:
            raise click.BadParameter(f"expected at most {MOST_SEEDS} seeds")
    return tuple(found)
