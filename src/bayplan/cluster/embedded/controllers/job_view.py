"""What one look at a Job finds: its pods sorted by what became of them, and the counts that follow.

A pod's end is *new* until its uid stands in the status or its finalizer is gone: only new ends are added to the counts
of the status. Source of truth: syncJob in pkg/controller/job/job_controller.go.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from bayplan.cluster.embedded.controllers import job_indexes
from bayplan.cluster.embedded.controllers.job_backoff import finished_at
from bayplan.cluster.embedded.controllers.job_indexes import Indexes
from bayplan.cluster.embedded.controllers.job_pods import (
    all_failures_of,
    index_of,
    is_failed,
    is_index_failed,
    is_tracked,
    valid_index,
)
from bayplan.cluster.embedded.controllers.job_policies import judge
from bayplan.cluster.embedded.controllers.readiness import is_active, is_terminating
from bayplan.cluster.objects import Object
from bayplan.model.clock import Instant
from bayplan.model.pods import Pod
from bayplan.model.workloads import Job, JobSpec, JobStatus, UncountedTerminatedPods


class Seen(msgspec.Struct, frozen=True, eq=False):
    """A Job and its pods at one instant."""

    item: Object
    spec: JobSpec
    status: JobStatus
    now: Instant
    pods: list[Object]
    """Those that run or are still to be counted."""
    settled: list[Object]
    """Those that ended and are counted: only the back-off still asks for them."""
    active: list[Object]
    leaving: int
    """Pods that are being deleted and still run."""
    succeeded: int
    failed: int
    done: Indexes = job_indexes.NONE
    lost: Indexes | None = None
    """Failed indexes; None where the Job does not limit failures by index."""
    held: dict[int, Object] = {}
    """By index, the failed pod that must stay until its successor has taken over its failure count."""

    @property
    def indexed(self) -> bool:
        """Whether each completion has a number."""
        return self.spec.completion_mode == "Indexed"

    def views(self) -> list[Pod]:
        """The pods as structs."""
        return [each.view(Pod) for each in self.pods]


def see(item: Object, pods: Iterable[Object], now: Instant) -> Seen:
    """Look at a Job."""
    job = item.view(Job)
    spec, status = job.spec, job.status
    uncounted = status.uncounted_terminated_pods or UncountedTerminatedPods()
    settled, open_ = list[Object](), list[Object]()
    for each in pods:
        (settled if each.view(Pod).is_terminal and not is_tracked(each) else open_).append(each)
    pods = open_
    active = [each for each in pods if is_active(each.view(Pod))]
    new = [each for each in pods if is_tracked(each) and valid_index(spec, each)]
    succeeded = [
        each for each in new if each.view(Pod).status.phase == "Succeeded" and each.uid not in uncounted.succeeded
    ]
    failed = [each for each in new if each.uid not in uncounted.failed and is_failed(spec, each.view(Pod))]
    counted = sum(judge(spec, each.view(Pod)).counts for each in failed)
    seen = Seen(
        item=item,
        spec=spec,
        status=status,
        now=now,
        pods=pods,
        settled=settled,
        active=active,
        leaving=sum(is_terminating(each.view(Pod)) for each in pods),
        succeeded=status.succeeded + len(succeeded) + len(uncounted.succeeded),
        failed=status.failed + counted + len(uncounted.failed),
    )
    return _indexes_seen(seen, new) if seen.indexed else seen


def _indexes_seen(seen: Seen, new: list[Object]) -> Seen:
    """The same with what is known of each index."""
    spec, status = seen.spec, seen.status
    completions = spec.completions or 0
    ended = [_index(each) for each in new if each.view(Pod).status.phase == "Succeeded"]
    done = job_indexes.with_indexes(job_indexes.parse(status.completed_indexes, completions), ended)
    lost, held = None, dict[int, Object]()
    if spec.backoff_limit_per_index is not None:
        failed = [_index(each) for each in new if is_index_failed(spec, each)]
        lost = job_indexes.with_indexes(job_indexes.parse(status.failed_indexes, completions), failed)
        held = _held(seen, new, done, lost)
    return msgspec.structs.replace(
        seen,
        pods=sorted(seen.pods, key=lambda each: -1 if (index := index_of(each)) is None else index),
        succeeded=job_indexes.total(done),
        done=done,
        lost=lost,
        held=held,
    )


def _held(seen: Seen, new: list[Object], done: Indexes, lost: Indexes) -> dict[int, Object]:
    settled = job_indexes.merged((*done, *lost))
    running = {index_of(each) for each in seen.active}
    held: dict[int, Object] = {}
    for each in new:
        index = _index(each)
        if not is_failed(seen.spec, each.view(Pod)) or index in running or job_indexes.has(settled, index):
            continue
        if index not in held or _supersedes(each, held[index]):
            held[index] = each
    return held


def _supersedes(one: Object, other: Object) -> bool:
    later = finished_at(one.view(Pod)) >= finished_at(other.view(Pod))
    return later and all_failures_of(one) >= all_failures_of(other)


def _index(pod: Object) -> int:
    index = index_of(pod)
    assert index is not None  # only pods with a valid index are asked
    return index
