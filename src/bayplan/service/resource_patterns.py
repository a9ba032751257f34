"""Some extended resources as a setting: `rebellions.ai/ATOM,furiosa.ai/*`, each once, or `none`.

A pattern's domain stands as it is, so that whoever looks for such resources can pass over most of what asks for none.
"""

from __future__ import annotations

import re
from typing import ClassVar

_NONE = "none"
_LABEL = r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"
_PATTERN = re.compile(rf"{_LABEL}(\.{_LABEL})*/(?=[^/]*[A-Za-z0-9*])[A-Za-z0-9._*?-]{{1,63}}")
_KUBERNETES = re.compile(r"(.*\.)?kubernetes\.io/")


class ResourcePatterns:
    """Names of resources, or shell patterns of such, in the order in which they were given."""

    __slots__ = ("patterns",)
    schema: ClassVar = {
        "type": "string",
        "examples": [_NONE, "rebellions.ai/ATOM", "example.com/npu-*,furiosa.ai/rngd"],
    }

    def __init__(self, *patterns: str) -> None:
        self.patterns = patterns

    @classmethod
    def parse(cls, text: str) -> ResourcePatterns:
        """Read `rebellions.ai/ATOM`. Raises ValueError with what was expected and what was given."""
        if text.strip() == _NONE:
            return cls()
        words = [word.strip() for word in text.split(",")]
        sound = [_PATTERN.fullmatch(word) and not _KUBERNETES.match(word) for word in words]
        if len(set(words)) < len(words) or not all(sound):
            raise ValueError(
                'expected extended resources as DOMAIN/NAME, each once, with "*" and "?" in names alone, such as '
                f'"rebellions.ai/ATOM,example.com/npu-*", or "{_NONE}"; got "{text}"'
            )
        return cls(*words)

    def __str__(self) -> str:
        return ",".join(self.patterns) or _NONE

    def __repr__(self) -> str:
        return f"ResourcePatterns({', '.join(map(repr, self.patterns))})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ResourcePatterns) and other.patterns == self.patterns

    def __hash__(self) -> int:
        return hash(self.patterns)
