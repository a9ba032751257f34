"""Pods that were never made because a quota forbade them.

There is no pod to tell of, only its workload's Event `FailedCreate`, repeated for as long as it lasts. So the period
stands under the workload's uid, from the Event's first time to its last, and grows with each repetition. Attempts that
an Event of their own tells of are periods of no length: how long the workload waited, `questions/refusals.py` says.
"""

from __future__ import annotations

from typing import NamedTuple

from bayplan.cluster.objects import Object
from bayplan.ledger.differ.reading import version
from bayplan.ledger.differ.seen import Seen
from bayplan.ledger.differ.told import event_times, read_event
from bayplan.ledger.rows import PendingPeriod
from bayplan.model.meta import OwnerReference

REASON = "QuotaExceeded"
_WORDS = "exceeded quota"


class Refusal(NamedTuple):
    """A wait, and whose."""

    wait: PendingPeriod
    owner: OwnerReference
    namespace: str


def from_event(obj: Object, seen: Seen) -> Refusal | None:
    """What a core Event tells of, if it tells of a refusal."""
    event = read_event(obj)
    whose = event.involved_object
    if event.reason != "FailedCreate" or _WORDS not in event.message or not whose.uid:
        return None
    first, last = event_times(event, seen)
    wait = PendingPeriod(
        cluster=seen.cluster,
        pod_uid=whose.uid,
        start_at=first,
        end_at=last,
        resource_version=version(obj),
        reason=REASON,
        message=event.message,
    )
    owner = OwnerReference(api_version=whose.api_version, kind=whose.kind, name=whose.name, uid=whose.uid)
    return Refusal(wait, owner, whose.namespace)
