"""Reading an object as far as it can be read. Nothing here raises: what cannot be read is passed over, and said.

A good object costs one decoding. Of a bad one, what does not fit is left out and comes back as `Odd`.
"""

from __future__ import annotations

import functools
from typing import TypeVar

import msgspec

from bayplan.cluster.objects import Object
from bayplan.cluster.salvage import UNREADABLE, salvaged
from bayplan.model.clock import SECOND, Instant, parse_rfc3339
from bayplan.model.meta import Wire

W = TypeVar("W", bound=Wire)

WRONG_FIELD = "BP-D020"
WRONG_QUANTITY = "BP-D021"
WRONG_TIME = "BP-D022"
WRONG_IDENTITY = "BP-D023"
CUT = "BP-D024"

NAME = 253
WORD = 63
TEXT = 32_768
"""The longest message that metav1.Condition allows; a MySQL TEXT holds it in any alphabet up to two bytes."""
LARGEST = 2**63 - 1
_LARGEST_COUNT = 2**31 - 1
_AHEAD = 3600 * SECOND
"""Clocks of a cluster differ; a time further ahead than this is no time but a mistake."""


class Odd(msgspec.Struct, frozen=True):
    """Something about an object that could not be taken as it stands."""

    code: str
    what: str


def section(obj: Object, name: str, kind: type[W], odd: list[Odd]) -> W:
    """A section as a struct, without the fields that are not what they should be."""
    found = obj.sections.get(name)
    if found is None:
        return kind()
    try:
        view: W = found.view(kind)
    except UNREADABLE:
        view, faults = salvaged(found.raw, msgspec.json.Decoder(kind), name)
        odd += [Odd(WRONG_FIELD, fault) for fault in faults]
    return view


@functools.lru_cache(maxsize=65_536)
def instant(text: str | None) -> Instant | None:
    """The instant of a time field; None where it is missing, Go's zero time, or no time."""
    if not text or text.startswith("0001-"):
        return None
    try:
        return parse_rfc3339(text)
    except ValueError:
        return None


def sound(time: str | Instant | None, seen_at: Instant) -> Instant | None:
    """The instant of a time, and None for what lies in a future that no clock of a cluster can have reached."""
    at = instant(time) if time is None or isinstance(time, str) else time
    return None if at is None or at > seen_at + _AHEAD else at


def fit(text: str, most: int = NAME) -> str:
    """A text as a column takes it: no longer than that, and without NUL, which PostgreSQL refuses."""
    if "\0" in text:
        text = text.replace("\0", "\ufffd")
    return text if len(text) <= most else text[:most]


def count(value: int) -> int:
    """A counter as a column takes it."""
    if -_LARGEST_COUNT <= value <= _LARGEST_COUNT:
        return value
    return _LARGEST_COUNT if value > 0 else -_LARGEST_COUNT


def version(obj: Object) -> int:
    """The resourceVersion as a column takes it."""
    return min(obj.version, LARGEST)


def identity(obj: Object) -> str:
    """The uid; where somebody left it out, the name stands for it."""
    return fit(obj.uid) if obj.uid else fit(f"{obj.namespace}/{obj.name}")


def anonymous(obj: Object) -> list[Odd]:
    """What is wrong with the fields that tell an object and its versions apart."""
    odd = [] if obj.uid else [Odd(WRONG_IDENTITY, "there is no uid")]
    if not obj.version:
        odd.append(Odd(WRONG_IDENTITY, f"resourceVersion is {obj.meta.resource_version!r:.60}"))
    return odd
