"""The columns of events. The two generations of the Event API fill different fields; here they meet."""

from __future__ import annotations

from bayplan.cluster.tables.columns import NAME, Column, Columns, Doc, at, field, since
from bayplan.model.clock import Instant

_SINCE_FIRST, _SINCE_TIME = since("firstTimestamp"), since("eventTime")
_SINCE_LAST, _SINCE_OBSERVED = since("lastTimestamp"), since("series.lastObservedTime")


def _first_seen(event: Doc, now: Instant) -> str:
    return str((_SINCE_FIRST if event.get("firstTimestamp") else _SINCE_TIME)(event, now))


def _last_seen(event: Doc, now: Instant) -> str:
    if event.get("series") is not None:
        return str(_SINCE_OBSERVED(event, now))
    return str(_SINCE_LAST(event, now)) if event.get("lastTimestamp") else _first_seen(event, now)


def _count(event: Doc, _now: Instant) -> int:
    series = event.get("series")
    return (event.get("count") or 1) if series is None else series.get("count", 0)


def _object(event: Doc, _now: Instant) -> str:
    kind = (at(event, "involvedObject.kind") or "").lower()
    name = at(event, "involvedObject.name")
    return f"{kind}/{name}" if name else kind


def _source(event: Doc, _now: Instant) -> str:
    component = at(event, "source.component") or event.get("reportingComponent") or ""
    host = at(event, "source.host") or event.get("reportingInstance")
    return f"{component}, {host}" if host else component


EVENT: Columns = (
    Column("Last Seen", _last_seen),
    Column("Type", field("type")),
    Column("Reason", field("reason")),
    Column("Object", _object),
    Column("Subobject", field("involvedObject.fieldPath"), priority=1),
    Column("Source", _source, priority=1),
    Column("Message", lambda event, _now: (event.get("message") or "").strip()),
    Column("First Seen", _first_seen, priority=1),
    Column("Count", _count, priority=1),
    Column("Name", NAME.cell, format="name", priority=1),
)
