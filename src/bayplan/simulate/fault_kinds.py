"""The kinds of faults that a scenario can have, each with a code that stays."""

from __future__ import annotations

import re
from enum import Enum
from typing import NamedTuple

import msgspec


class FaultKind(Enum):
    """What sort of mistake it is."""

    YAML = "BP-X002"
    """No YAML, or a key that stands twice."""
    UNKNOWN = "BP-X003"
    """A key that there is not."""
    VALUE = "BP-X004"
    """A value of the wrong type, or out of range."""
    MISSING = "BP-X005"
    """A key that there has to be."""
    NAME = "BP-X006"
    """The name of something that is not there."""
    TWICE = "BP-X007"
    """A name that two things have."""
    TOGETHER = "BP-X008"
    """Keys that do not go together."""
    QUANTITY = "BP-X009"
    """No quantity."""
    BEHAVIOUR = "BP-X010"
    """A behaviour or a usage curve that is none."""
    OBJECT = "BP-X011"
    """An object that an API server refuses."""
    CIRCLE = "BP-X012"
    """Events that wait for one another in a circle."""


class Fault(NamedTuple):
    """A path and what is wrong there."""

    path: str
    message: str
    kind: FaultKind


_AT = re.compile(r"(?s)(.*) - at (?:`key` in )?`\$\.?(.*)`")
_UNKNOWN = re.compile(r"Object contains unknown field `(.*)`")
_MISSING = re.compile(r"Object missing required field `(.*)`")


def fault_of(error: msgspec.ValidationError) -> Fault:
    """The fault that an error tells of: msgspec's words as a path and a sentence of the house."""
    match = _AT.fullmatch(str(error))
    message, path = (match[1], match[2]) if match else (str(error), "")
    if unknown := _UNKNOWN.fullmatch(message):
        return Fault(f"{path}.{unknown[1]}" if path else unknown[1], "unknown key", FaultKind.UNKNOWN)
    kind = FaultKind.MISSING if _MISSING.fullmatch(message) else FaultKind.VALUE
    return Fault(path, message[:1].lower() + message[1:].replace("`", ""), kind)
