"""What is wrong with a document: all of it, each with its path.

What follows from a fault is not told again: under a path that is wrong already, nothing else is.
"""

from __future__ import annotations

import difflib
import json
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from collections.abc import Collection


class Fault(msgspec.Struct, frozen=True):
    """One mistake. `line` is 0 where no file is known."""

    path: str
    message: str
    line: int = 0

    def text(self, source: str) -> str:
        """As a person reads it: `file:line: path: what is wrong`."""
        place = f"{source}:{self.line}" if self.line else source
        return ": ".join(part for part in (place, self.path, self.message) if part)


class Faults:
    """Faults in the order in which they are found."""

    def __init__(self) -> None:
        self.found: dict[str, Fault] = {}

    def add(self, path: str, message: str) -> None:
        """Note a fault, unless its place or one around it is wrong already."""
        if not any(_is_in(path, wrong) for wrong in self.found):
            self.found[path] = Fault(path, message)

    def below(self, path: str) -> bool:
        """Whether something is wrong at or under a path."""
        return any(_is_in(wrong, path) for wrong in self.found)


def _is_in(path: str, other: str) -> bool:
    return path == other or path.startswith((f"{other}.", f"{other}["))


def below(path: str, name: str) -> str:
    """The path of a field."""
    return f"{path}.{name}" if path else name


def invalid(value: Any, why: str) -> str:
    """A value that breaks a rule, in upstream's form."""
    return f"Invalid value: {shown(value)}: {why}"


def shown(value: Any) -> str:
    """A value as it would stand in JSON."""
    return json.dumps(value, ensure_ascii=False, default=str)


def unknown(what: str, given: str, allowed: Collection[str]) -> str:
    """A name that means nothing here, and what may have been meant."""
    near = difflib.get_close_matches(given, allowed, n=1)
    return f"unknown {what}; did you mean {near[0]}?" if near else f"unknown {what}; allowed are {', '.join(allowed)}"
