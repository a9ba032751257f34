"""Sets of CPUs and of NUMA nodes are integers: bit i stands for id i.

Union is |, intersection &, difference & ~, size `bit_count()`. Written as the kernel writes them: `0-3,8,10-11`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from bayplan.model.errors import PermanentError

CpuSet = int
NodeSet = int

HIGHEST_ID = 8191
"""The largest CPU id that Linux can be built for; a list that names more is a mistake, not a machine."""

_MOST_DIGITS = 20


class BadListError(PermanentError):
    """A list of CPUs or NUMA nodes that cannot be read."""

    code = "BP-N001"


def mask_of(ids: Iterable[int]) -> int:
    """The set of these ids."""
    mask = 0
    for each in ids:
        mask |= 1 << each
    return mask


def ids_of(mask: int) -> Iterator[int]:
    """The ids in a set, ascending."""
    while mask:
        lowest = mask & -mask
        yield lowest.bit_length() - 1
        mask ^= lowest


def lowest_bits(mask: int, count: int) -> int:
    """The `count` lowest members of a set, as a set; all of it where it has fewer."""
    taken = 0
    while mask and count > 0:
        lowest = mask & -mask
        taken |= lowest
        mask ^= lowest
        count -= 1
    return taken


def parse_list(text: str) -> int:
    """A set from the kernel's list format; the empty text is the empty set. Raises BadListError."""
    mask = 0
    for part in text.strip().split(",") if text.strip() else ():
        first, dash, last = part.strip().partition("-")
        if not _is_number(first) or (dash and not _is_number(last)):
            raise _bad(text, f'"{part.strip()}" is neither a number nor a range')
        low, high = _number(first), _number(last or first)
        if high < low or high > HIGHEST_ID:
            raise _bad(text, f"{low}-{high} runs backwards" if high < low else f"{high} is above {HIGHEST_ID}")
        mask |= ((1 << (high - low + 1)) - 1) << low
    return mask


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit()


def _number(digits: str) -> int:
    """The number, be the text as long as it may; one that has more digits than any id is too large all the same."""
    return int(digits.lstrip("0")[:_MOST_DIGITS] or "0")


def _bad(text: str, why: str) -> BadListError:
    return BadListError(f'list "{text}": {why}', hint="write ids and ranges with commas: 0-3,8,10-11")


def format_list(mask: int) -> str:
    """A set in the kernel's list format."""
    parts = []
    while mask:
        low = (mask & -mask).bit_length() - 1
        run = (~(mask >> low) & ((mask >> low) + 1)).bit_length() - 1
        parts.append(str(low) if run == 1 else f"{low}-{low + run - 1}")
        mask &= ~(((1 << run) - 1) << low)
    return ",".join(parts)
