"""The kinds of faults that a scenario can have, each with a code that stays."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple


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
