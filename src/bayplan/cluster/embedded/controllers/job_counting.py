"""Counting the ends of a Job's pods, each exactly once.

Three steps, each safe to be the last: the status names the pods that ended (`uncountedTerminatedPods`), their
finalizers go, the counts rise by the pods that are named and have no finalizer any more. Indexed successes need no
names: their index says whether they were counted. Source of truth: trackJobStatusAndRemoveFinalizers.
"""

from __future__ import annotations

from collections.abc import Collection

import msgspec

from bayplan.cluster.embedded.controllers import job_indexes
from bayplan.cluster.embedded.controllers.contract import Patch
from bayplan.cluster.embedded.controllers.job_pods import is_failed, is_tracked, untracked, valid_index
from bayplan.cluster.embedded.controllers.job_policies import judge
from bayplan.cluster.embedded.controllers.job_verdict import FAILURE, Verdict, is_true
from bayplan.cluster.embedded.controllers.job_view import Seen
from bayplan.cluster.objects import Object
from bayplan.model.pods import Pod
from bayplan.model.workloads import JobStatus, UncountedTerminatedPods

_MOST = 500
"""Pods counted at a look, so that the status stays small."""


class Count(msgspec.Struct, frozen=True):
    """The steps: write `named`, let the pods go, write `counted`."""

    named: JobStatus
    releases: list[Patch]
    counted: JobStatus
    whole: bool
    """Whether every pod that ended is counted."""


def count(seen: Seen, status: JobStatus, verdict: Verdict | None) -> Count:
    """Count what ended. `status` is what else the status will say."""
    tracked = [each for each in seen.pods if is_tracked(each)]
    held = {each.uid for each in tracked}
    status = _counted(status, held)
    names = status.uncounted_terminated_pods or UncountedTerminatedPods()
    ended, whole = _ended(seen, tracked, verdict)
    succeeded = [each.uid for each in ended if not seen.indexed and _succeeded(each)]
    failed = [each.uid for each in ended if not _succeeded(each) and _counts(seen, each, verdict)]
    names = UncountedTerminatedPods(_joined(names.succeeded, succeeded), _joined(names.failed, failed))
    named = msgspec.structs.replace(status, uncounted_terminated_pods=names)
    if seen.indexed:
        named = msgspec.structs.replace(
            named,
            succeeded=job_indexes.total(seen.done),
            completed_indexes=job_indexes.text(seen.done),
            failed_indexes=None if seen.lost is None else job_indexes.text(seen.lost),
        )
    if verdict is not None and not is_true(named, verdict.kind):
        conditions = (*named.conditions, verdict.told(verdict.kind, seen.now))
        named = msgspec.structs.replace(named, conditions=conditions)
    counted = _counted(named, held.difference(each.uid for each in ended))
    return Count(named, [untracked(each) for each in ended], counted, whole)


def finished(seen: Seen, result: Count, verdict: Verdict) -> JobStatus | None:
    """The status that ends the Job; None while pods are uncounted or on their way out."""
    status = result.counted
    names = status.uncounted_terminated_pods
    if not result.whole or status.terminating or names != UncountedTerminatedPods():
        return None
    end = verdict.told(verdict.final, seen.now)
    completed = None if verdict.kind == FAILURE else end.last_transition_time
    return msgspec.structs.replace(status, conditions=(*status.conditions, end), completion_time=completed)


def _ended(seen: Seen, tracked: list[Object], verdict: Verdict | None) -> tuple[list[Object], bool]:
    """The pods whose finalizer can go now, and whether those are all of them."""
    over = verdict is not None or seen.item.meta.deletion_timestamp is not None
    waiting = {each.uid for each in seen.held.values()}
    ended = [
        each
        for each in tracked
        if over or _succeeded(each) or (is_failed(seen.spec, each.view(Pod)) and each.uid not in waiting)
    ]
    return ended[:_MOST], len(ended) <= _MOST


def _succeeded(pod: Object) -> bool:
    return pod.view(Pod).status.phase == "Succeeded"


def _counts(seen: Seen, pod: Object, verdict: Verdict | None) -> bool:
    """Whether a pod that did not succeed is a failure. In a Job that failed, all that still ran are."""
    failed = is_failed(seen.spec, pod.view(Pod)) or (verdict is not None and verdict.kind == FAILURE)
    return failed and valid_index(seen.spec, pod) and judge(seen.spec, pod.view(Pod)).counts


def _counted(status: JobStatus, held: Collection[str]) -> JobStatus:
    """The status with those pods counted that are named and have been let go."""
    names = status.uncounted_terminated_pods or UncountedTerminatedPods()
    left = UncountedTerminatedPods(
        tuple(uid for uid in names.succeeded if uid in held), tuple(uid for uid in names.failed if uid in held)
    )
    return msgspec.structs.replace(
        status,
        succeeded=status.succeeded + len(names.succeeded) - len(left.succeeded),
        failed=status.failed + len(names.failed) - len(left.failed),
        uncounted_terminated_pods=left,
    )


def _joined(present: tuple[str, ...], more: list[str]) -> tuple[str, ...]:
    return (*present, *(uid for uid in more if uid not in present))
