"""Reading an object as far as it can be read. Nothing here raises: what cannot be read is passed over, and said.

A good object costs one decoding. For a bad one, each field that the decoder names is taken out and the rest is tried
again; what was taken out comes back as `Odd`.
"""

from __future__ import annotations

import functools
import json
import re
from typing import Any, TypeVar

import msgspec

from bayplan.cluster.objects import Object
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
_MOST_FAULTS = 100
_WHERE = re.compile(r" - at `\$([^`]*)`")
_STEP = re.compile(r"\.(\w+)|\[(\d+)\]|\[(\.\.\.)\]")


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
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return _salvaged(found.raw, kind, name, odd)
    return view


def _salvaged(raw: bytes, kind: type[W], name: str, odd: list[Odd]) -> W:
    try:
        value = _cleaned(json.loads(raw.decode(errors="replace")))  # takes half a character, which msgspec refuses
    except (ValueError, RecursionError) as error:
        odd.append(Odd(WRONG_FIELD, f"{name} cannot be read: {error}"))
        return kind()
    for _ in range(_MOST_FAULTS):
        try:
            return msgspec.convert(value, kind)
        except msgspec.ValidationError as error:
            odd.append(Odd(WRONG_FIELD, f"{name}: {error}"))
            if not _taken_out(value, str(error)):
                break
    return kind()


def _cleaned(value: Any) -> Any:
    """Without nulls, which Go reads as not given, and without halves of characters."""
    if isinstance(value, dict):
        return {_cleaned(key): _cleaned(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_cleaned(item) for item in value]
    return value.encode(errors="replace").decode() if isinstance(value, str) else value


def _taken_out(value: Any, error: str) -> bool:
    """Remove what the error names; whether there was anything to remove."""
    where = _WHERE.search(error)
    steps = _STEP.findall(where[1]) if where else []
    for at, (name, index, _any) in enumerate(steps):
        last = at == len(steps) - 1
        if not name and not index:  # a mapping of texts: the decoder does not say which of its values
            wrong = [key for key, item in value.items() if not isinstance(item, str)]
            for key in wrong:
                del value[key]
            return bool(wrong)
        key = name or int(index)
        if last:
            del value[key]
            return True
        value = value[key]
    return False


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
    return min(max(value, -_LARGEST_COUNT), _LARGEST_COUNT)


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
