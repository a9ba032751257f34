"""A span of time as a setting: "250ms", "5m", "1h30m", never negative. The grammar is Go's (model/durations.py)."""

from __future__ import annotations

import re
from typing import ClassVar

from bayplan.model.durations import DurationError, format_duration, parse_duration

_EMPTY_TAIL = re.compile(r"(?<=[hm])0[ms]")


class Duration:
    """A span of whole microseconds, zero or more."""

    __slots__ = ("micros",)
    schema: ClassVar = {"type": "string", "examples": ["250ms", "5m", "1h30m"]}

    def __init__(self, micros: int) -> None:
        self.micros = micros

    @classmethod
    def parse(cls, text: str) -> Duration:
        """Read "1h30m". Raises ValueError with what was expected and what was given."""
        try:
            micros = parse_duration(text)
        except DurationError:
            micros = -1
        if micros < 0:
            raise ValueError(f'expected a duration such as "250ms", "5m" or "1h30m"; got "{text}"')
        return cls(micros)

    @property
    def seconds(self) -> float:
        """For the interfaces that count in seconds."""
        return self.micros / 1_000_000

    def __str__(self) -> str:
        return _EMPTY_TAIL.sub("", format_duration(self.micros))

    def __repr__(self) -> str:
        return f"Duration({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Duration) and other.micros == self.micros

    def __hash__(self) -> int:
        return hash(self.micros)
