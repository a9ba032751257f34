"""Sentences broken at the terminal's width; what goes on stands further in than what begins."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator

_NARROWEST = 40
"""With less room than that, broken lines are no easier to read."""


def broken(lines: Iterable[str], width: int) -> Iterator[str]:
    """The lines, none wider than the width; 0 leaves them whole, for those who search in them."""
    for line in lines:
        if len(line) <= width or width < _NARROWEST:
            yield line
            continue
        indent = " " * (len(line) - len(line.lstrip()))
        yield from textwrap.wrap(
            line, width, initial_indent="", subsequent_indent=f"{indent}  ", break_on_hyphens=False
        )
