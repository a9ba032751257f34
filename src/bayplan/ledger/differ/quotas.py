"""Pods that were never made because a quota forbade them.

There is no pod to tell of, only its workload's Event `FailedCreate`, repeated for as long as it lasts. So the period
stands under the workload's uid, from the Event's first time to its last, and grows with each repetition. Attempts that
an Event of their own tells of are periods of no length: how long the workload waited, `questions/refusals.py` says.
"""

from __future__ import annotations

from bayplan.cluster.objects import Object
from bayplan.ledger.differ.reading import version
from bayplan.ledger.differ.seen import Seen
from bayplan.ledger.differ.told import event_times, read_event
from bayplan.ledger.rows import PendingPeriod

REASON = "QuotaExceeded"
_WORDS = "exceeded quota"


def from_event(obj: Object, seen: Seen) -> PendingPeriod | None:
    """The wait that a core Event tells of, if it tells of one."""
    event = read_event(obj)
    if event.reason != "FailedCreate" or _WORDS not in event.message or not event.involved_object.uid:
        return None
    first, last = event_times(event, seen)
    return PendingPeriod(
        cluster=seen.cluster,
        pod_uid=event.involved_object.uid,
        start_at=first,
        end_at=last,
        resource_version=version(obj),
        reason=REASON,
        message=event.message,
    )
