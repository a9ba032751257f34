"""Core Events as a source: read as far as they can be read, with the times between which they were told."""

from __future__ import annotations

import msgspec

from bayplan.cluster.objects import Object
from bayplan.ledger.differ.reading import sound
from bayplan.ledger.differ.seen import Seen
from bayplan.model.clock import Instant
from bayplan.model.policies import Event


def read_event(obj: Object) -> Event:
    """The Event, or an empty one where it cannot be read: others will tell the same."""
    try:
        return obj.view(Event)
    except (msgspec.MsgspecError, ValueError):
        return Event()


def event_times(event: Event, seen: Seen) -> tuple[Instant, Instant]:
    """When it happened first and last; the older and the newer form of Events keep it in different fields."""
    created = event.metadata.creation_timestamp
    first = sound(event.first_timestamp, seen.at) or sound(event.event_time, seen.at) or sound(created, seen.at)
    first = first or seen.at
    last = sound(event.series.last_observed_time, seen.at) if event.series else None
    last = last or sound(event.last_timestamp, seen.at) or first
    return first, max(first, last)
