"""Events go an hour after they were last seen. One timer an Event; repeats in the meantime cost nothing.

Source of truth: kube-apiserver's --event-ttl, an hour by default, counted from the last write.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from bayplan.cluster.embedded.controllers.contract import NOTHING, Concern, Delete, Outcome, View
from bayplan.cluster.embedded.store import Change, ChangeType, Key
from bayplan.cluster.kinds import EVENT, Kind
from bayplan.cluster.objects import Object
from bayplan.model.clock import SECOND, Instant, parse_rfc3339
from bayplan.model.policies import Event

LIFE = 3600 * SECOND


def _new(change: Change, _view: View) -> Iterable[Key]:
    return (change.new.key,) if change.type is ChangeType.ADDED else ()


class EventExpiry:
    """Deletes old Events."""

    name = "event-expiry"
    watches: Mapping[Kind, Concern] = {EVENT: _new}

    def reconcile(self, key: Key, view: View, now: Instant) -> Outcome:
        item = view.get(EVENT, *key)
        if item is None:
            return NOTHING
        expires = Instant(last_seen(item) + LIFE)
        return Outcome([Delete(item)]) if expires <= now else Outcome(again=expires)


def last_seen(item: Object) -> Instant:
    """When an Event last happened, by whichever of its times is set: series, older form, newer form, creation."""
    section = item.sections.get("lastTimestamp")
    quick = None if section is None else section.plain()  # nearly all have it: no need to read the rest
    if quick is None:
        event = item.view(Event)
        series = event.series.last_observed_time if event.series is not None else None
        quick = series or event.event_time or item.meta.creation_timestamp
    return parse_rfc3339(quick) if quick else Instant(0)
