"""Some ports as a setting: `10250,10255`, each once."""

from __future__ import annotations

from typing import ClassVar

_HIGHEST = 65535


class PortNumbers:
    """One port or more, in the order in which they were given."""

    __slots__ = ("numbers",)
    schema: ClassVar = {"type": ["string", "integer"], "examples": ["10250", "10250,10255,4194"]}

    def __init__(self, *numbers: int) -> None:
        self.numbers = numbers

    @classmethod
    def parse(cls, text: str) -> PortNumbers:
        """Read `10250,10255`. Raises ValueError with what was expected and what was given."""
        words = [word.strip() for word in text.split(",")]
        numbers = [int(word) if word.isascii() and word.isdigit() else 0 for word in words]
        if len(set(numbers)) < len(numbers) or not all(1 <= number <= _HIGHEST for number in numbers):
            raise ValueError(f'expected ports from 1 to {_HIGHEST}, each once, such as "10250,10255"; got "{text}"')
        return cls(*numbers)

    def __str__(self) -> str:
        return ",".join(map(str, self.numbers))

    def __repr__(self) -> str:
        return f"PortNumbers({', '.join(map(str, self.numbers))})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PortNumbers) and other.numbers == self.numbers

    def __hash__(self) -> int:
        return hash(self.numbers)
