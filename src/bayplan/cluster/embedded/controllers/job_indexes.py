"""Sets of completion indexes in the form in which a Job's status has them: `0,2-5,7`.

A set is a sorted tuple of closed intervals that neither overlap nor touch, so a Job of a million indexes costs as many
intervals as it has gaps. Two neighbours are written `4,5`, three or more `4-6`, as upstream does.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable

Interval = tuple[int, int]
Indexes = tuple[Interval, ...]
NONE: Indexes = ()


def parse(text: str | None, completions: int) -> Indexes:
    """The indexes below `completions` that a text lists. What is no interval is passed over, as upstream does."""
    found: list[Interval] = []
    for part in (text or "").split(","):
        first, dash, last = part.partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()):
            continue
        if int(first) < completions:
            found.append((int(first), min(int(last or first), completions - 1)))
    return merged(found)


def merged(intervals: Iterable[Interval]) -> Indexes:
    """The union of intervals, in any order."""
    result: list[Interval] = []
    for first, last in sorted(intervals):
        if result and first <= result[-1][1] + 1:
            result[-1] = (result[-1][0], max(last, result[-1][1]))
        else:
            result.append((first, last))
    return tuple(result)


def with_indexes(indexes: Indexes, more: Iterable[int]) -> Indexes:
    """The set with some more indexes."""
    return merged((*indexes, *((each, each) for each in more)))


def total(indexes: Indexes) -> int:
    """How many there are."""
    return sum(last - first + 1 for first, last in indexes)


def has(indexes: Indexes, index: int) -> bool:
    """Whether an index is in the set."""
    at = bisect_left(indexes, index, key=lambda interval: interval[1])
    return at < len(indexes) and indexes[at][0] <= index


def common(one: Indexes, other: Indexes) -> int:
    """How many indexes two sets share."""
    return sum(max(0, min(a[1], b[1]) - max(a[0], b[0]) + 1) for a in one for b in other)


def text(indexes: Indexes) -> str:
    """The set as a status writes it."""
    return ",".join(
        str(first) if first == last else f"{first}{',' if last == first + 1 else '-'}{last}" for first, last in indexes
    )


def first_missing(indexes: Indexes, count: int, completions: int) -> list[int]:
    """The lowest `count` indexes below `completions` that are not in the set."""
    result: list[int] = []
    candidate = 0
    for first, last in (*indexes, (completions, completions)):
        result += range(candidate, min(first, completions, candidate + count - len(result)))
        candidate = last + 1
        if len(result) == count:
            break
    return result
