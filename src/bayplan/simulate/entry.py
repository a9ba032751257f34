"""What everything in a scenario file is made of: entries that know their keys, and the words that values have."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from bayplan.service.durations import Duration

MOST = 1_000_000
"""Of anything that is counted: more would fit into no machine's memory, and is a slip of the hand."""
Positive = Annotated[float, Meta(gt=0)]
Count = Annotated[int, Meta(ge=0, le=MOST)]
Some = Annotated[int, Meta(ge=1, le=MOST)]
Level = Annotated[float, Meta(ge=0, le=1)]
Share = Annotated[str, Meta(pattern=r"^[0-9]+%$")]
Name = Annotated[str, Meta(pattern="^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", max_length=40)]

Quantities = dict[str, str | int | float]
"""A Kubernetes resource list; as there, a number needs no quotes."""
Behaviour = dict[str, str | int]
"""Behaviour annotations (docs/behaviour.md) without their prefix."""


def span(text: str) -> Any:
    """The default of a duration. By a factory, since a JSON schema cannot write it."""
    return msgspec.field(default_factory=lambda: Duration.parse(text))


class Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel", kw_only=True):
    """The base of everything in a scenario."""


class Spread(Entry, frozen=True):
    """A log-normal span. Two thirds lie between median / spread and median * spread; none is longer than `most`."""

    median: Duration
    spread: Annotated[float, Meta(ge=1)] = 1.0
    most: Duration | None = None


class Amounts(Entry, frozen=True):
    """A log-normal quantity, as a span is one."""

    median: str | int | float
    spread: Annotated[float, Meta(ge=1)] = 1.0
    most: str | int | float | None = None
