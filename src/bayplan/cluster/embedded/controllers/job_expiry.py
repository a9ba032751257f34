"""Finished Jobs go after their `ttlSecondsAfterFinished`, and their pods before them.

Source of truth: pkg/controller/ttlafterfinished.
"""

from __future__ import annotations

from collections.abc import Mapping

from bayplan.cluster.embedded.controllers.contract import NOTHING, Concern, Delete, Outcome, View, itself
from bayplan.cluster.embedded.controllers.job_verdict import COMPLETE, FAILED
from bayplan.cluster.embedded.store import Key
from bayplan.cluster.kinds import JOB, Kind
from bayplan.model.clock import SECOND, Instant, parse_rfc3339
from bayplan.model.workloads import Job


class JobExpiry:
    """Deletes Jobs that are long over."""

    name = "ttl-after-finished-controller"
    watches: Mapping[Kind, Concern] = {JOB: itself}

    def reconcile(self, key: Key, view: View, now: Instant) -> Outcome:
        item = view.get(JOB, *key)
        expires = None if item is None or item.meta.deletion_timestamp is not None else _expiry(item.view(Job))
        if item is None or expires is None:
            return NOTHING
        return Outcome([Delete(item, propagation="Foreground")]) if expires <= now else Outcome(again=expires)


def _expiry(job: Job) -> Instant | None:
    """When a Job may go; None while it runs or where it stays."""
    ttl = job.spec.ttl_seconds_after_finished
    for condition in job.status.conditions:
        if condition.type in (COMPLETE, FAILED) and condition.status == "True" and condition.last_transition_time:
            return None if ttl is None else Instant(parse_rfc3339(condition.last_transition_time) + ttl * SECOND)
    return None
