"""Two tellings of one story side by side: every difference, where it is, and whether it is known."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from tests.stories.run import Seen
from tests.stories.story import Known, Story

NOTHING = "nothing"


class Difference(msgspec.Struct, frozen=True):
    """One place where the engines differ: after a step, at `part/object/field...`."""

    step: int
    place: str
    lab: Any
    embedded: Any
    known: Known | None = None

    def __str__(self) -> str:
        return f"step {self.step}: {self.place}\n      lab:      {self.lab}\n      embedded: {self.embedded}"


def compare(story: Story, lab: Sequence[Seen], embedded: Sequence[Seen]) -> list[Difference]:
    """Every difference between two tellings of a story."""
    pairs = enumerate(zip(lab, embedded, strict=True), 1)
    return [each for number, (real, ours) in pairs for each in differences(story, number, real, ours)]


def differences(story: Story, number: int, lab: Seen, embedded: Seen) -> Iterator[Difference]:
    """Those after one step."""
    for place, one, other in _walk("", msgspec.to_builtins(lab), msgspec.to_builtins(embedded)):
        known = next((each for each in story.differences if each.covers(number, place)), None)
        yield Difference(number, place, one, other, known)


def _walk(place: str, one: Any, other: Any) -> Iterator[tuple[str, Any, Any]]:
    if isinstance(one, dict) and isinstance(other, dict):
        for key in sorted(one.keys() | other.keys()):
            yield from _walk(f"{place}/{key}", one.get(key, NOTHING), other.get(key, NOTHING))
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for number, (left, right) in enumerate(zip(one, other, strict=True)):
            yield from _walk(f"{place}/{number}", left, right)
    elif one != other:
        yield place, one, other
