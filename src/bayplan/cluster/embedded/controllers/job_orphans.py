"""Pods whose Job is gone or over: nobody will count them any more, so their tracking finalizer is taken off.

Source of truth: syncOrphanPod in pkg/controller/job/job_controller.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from bayplan.cluster.embedded.controllers.contract import NOTHING, Concern, Outcome, View
from bayplan.cluster.embedded.controllers.job_pods import is_tracked, untracked
from bayplan.cluster.embedded.controllers.job_verdict import is_over
from bayplan.cluster.embedded.store import Change, ChangeType, Key
from bayplan.cluster.kinds import JOB, POD, Kind
from bayplan.cluster.objects import Object
from bayplan.model.clock import Instant
from bayplan.model.workloads import Job


def _pod(change: Change, view: View) -> Iterable[Key]:
    if change.type is not ChangeType.DELETED and is_tracked(change.new) and _is_forlorn(change.new, view):
        return (change.new.key,)
    return ()


def _job(change: Change, view: View) -> Iterable[Key]:
    if change.type is ChangeType.DELETED or is_over(change.new.view(Job).status):
        return [pod.key for pod in view.owned_by(change.new.uid, POD) if is_tracked(pod)]
    return ()


def _is_forlorn(pod: Object, view: View) -> bool:
    owner = pod.meta.controller
    if owner is None:
        return True
    if owner.kind != JOB.name or owner.api_version != JOB.api_version:
        return False
    job = view.get(JOB, pod.namespace, owner.name)
    return job is None or job.uid != owner.uid or is_over(job.view(Job).status)


class JobOrphans:
    """Lets go of the pods that Jobs left behind."""

    name = "job-orphans"
    watches: Mapping[Kind, Concern] = {POD: _pod, JOB: _job}

    def reconcile(self, key: Key, view: View, now: Instant) -> Outcome:  # noqa: ARG002 - the contract's signature
        pod = view.get(POD, *key)
        if pod is None or not is_tracked(pod) or not _is_forlorn(pod, view):
            return NOTHING
        return Outcome([untracked(pod)])
