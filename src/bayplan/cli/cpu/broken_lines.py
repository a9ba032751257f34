"""Sentences broken at the terminal's width; what goes on stands further in than what begins."""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
from collections.abc import Iterable, Iterator

_NARROWEST = 40
"""With less room than that, broken lines are no easier to read."""


def text_width() -> int:
    """The terminal's width for `broken`; 0 in a pipe, unless COLUMNS asks for one."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() or "COLUMNS" in os.environ else 0


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
