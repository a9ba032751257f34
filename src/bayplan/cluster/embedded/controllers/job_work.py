"""How many pods of a Job should run now: which are made, which go.

Deletions come before creations, and only one of the two happens at a look. What is made is made last, after the status
is written, so that a refused pod holds up nothing else. Source of truth: manageJob.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from bayplan.cluster.embedded.controllers import job_indexes
from bayplan.cluster.embedded.controllers.contract import Create, Write
from bayplan.cluster.embedded.controllers.job_backoff import finished_at, next_after, next_try
from bayplan.cluster.embedded.controllers.job_pods import (
    COMPONENT,
    Stamp,
    all_failures_of,
    first_to_go,
    index_of,
    is_failed,
    is_tracked,
    replaces_only_failed,
    untracked,
)
from bayplan.cluster.embedded.controllers.job_view import Seen
from bayplan.cluster.embedded.controllers.readiness import is_ready, is_terminating
from bayplan.cluster.embedded.controllers.stamping import delete_pod
from bayplan.cluster.objects import Object
from bayplan.model.clock import Instant
from bayplan.model.pods import Pod

_MOST = 500
"""Pods made or deleted at a look."""


class Work(msgspec.Struct, frozen=True):
    """What is to be done about the pods, and how many there are once the deletions are under way."""

    active: int
    ready: int
    leaving: int
    deletes: Sequence[Write] = ()
    creates: Sequence[Create] = ()
    again: Instant | None = None
    """When a pod may be made for which it is too early."""


def at_rest(seen: Seen) -> Work:
    """Nothing is done."""
    return Work(len(seen.active), _ready(seen.active), seen.leaving)


def ended(seen: Seen) -> Work:
    """The Job is at its end: what runs is deleted, and goes when it is counted."""
    return _without(seen, seen.active, [delete_pod(seen.item, each, COMPONENT) for each in seen.active])


def managed(seen: Seen) -> Work:
    """The right number of pods, or a step towards it."""
    wanted = 0 if seen.spec.suspend else _wanted(seen)
    surplus = _surplus(seen, max(len(seen.active) - wanted, 0))
    if not seen.spec.suspend:
        surplus = surplus[:_MOST]
    if surplus:
        writes: list[Write] = []
        for each in surplus:
            writes += [untracked(each)] if is_tracked(each) else []
            writes.append(delete_pod(seen.item, each, COMPONENT))
        return _without(seen, surplus, writes)
    leaving = seen.leaving if replaces_only_failed(seen.spec) else 0
    missing = wanted - leaving - len(seen.active)
    return _filled(seen, min(missing, _MOST)) if missing > 0 else at_rest(seen)


def _wanted(seen: Seen) -> int:
    spec = seen.spec
    if spec.completions is None:  # one success is enough; after it nothing new is started
        return len(seen.active) if seen.succeeded else spec.parallelism
    return max(min(spec.completions - seen.succeeded, spec.parallelism), 0)


def _surplus(seen: Seen, count: int) -> list[Object]:
    """At least `count` active pods to delete: those without a place of their own, then those that did least."""
    going, staying = list[Object](), seen.active
    if seen.indexed:
        going, staying = _without_place(seen)
    return going + (first_to_go(staying)[: count - len(going)] if count > len(going) else [])


def _without_place(seen: Seen) -> tuple[list[Object], list[Object]]:
    """Pods without a valid index or with that of another pod, and the others."""
    going: list[Object] = []
    by_index: dict[int, list[Object]] = {}
    for each in seen.active:
        index = index_of(each)
        if index is None or index >= (seen.spec.completions or 0):
            going.append(each)
        else:
            by_index.setdefault(index, []).append(each)
    staying = []
    for _, rivals in sorted(by_index.items()):
        *others, best = first_to_go(rivals) if len(rivals) > 1 else rivals
        going += others
        staying.append(best)
    return going, staying


def _filled(seen: Seen, missing: int) -> Work:
    rest = at_rest(seen)
    per_index = seen.spec.backoff_limit_per_index is not None
    if not per_index:
        views = [*(each.view(Pod) for each in seen.settled), *seen.views()]
        failed = [pod for pod in views if is_failed(seen.spec, pod)]
        due = next_try((pod for pod in views if failed and pod.status.phase == "Succeeded"), failed)
        if due > seen.now:
            return msgspec.structs.replace(rest, again=due)
    stamp = Stamp(seen.item, seen.spec)
    if not seen.indexed:
        return msgspec.structs.replace(rest, creates=[stamp.pod()] * missing)
    indexes = job_indexes.first_missing(_taken(seen), missing, seen.spec.completions or 0)
    due_at = {index: _index_due(seen.held.get(index)) for index in indexes}
    now = [index for index in indexes if due_at[index] <= seen.now]
    if not now:
        return msgspec.structs.replace(rest, again=min(due_at.values(), default=None))
    return msgspec.structs.replace(rest, creates=[stamp.indexed_pod(each, seen.held.get(each)) for each in now])


def _index_due(failed: Object | None) -> Instant:
    """From when on the pod of an index may be replaced."""
    if failed is None:
        return Instant(0)
    return next_after(all_failures_of(failed) + 1, finished_at(failed.view(Pod)))


def _taken(seen: Seen) -> job_indexes.Indexes:
    """The indexes for which no pod is to be made."""
    holding = list(seen.active)
    if replaces_only_failed(seen.spec):
        holding += [each for each in seen.pods if is_terminating(each.view(Pod))]
    held = [index for each in holding if (index := index_of(each)) is not None]
    return job_indexes.with_indexes((*seen.done, *(seen.lost or ())), held)


def _without(seen: Seen, going: Sequence[Object], deletes: Sequence[Write]) -> Work:
    return Work(
        active=len(seen.active) - len(going),
        ready=_ready(seen.active) - _ready(going),
        leaving=seen.leaving + len(going),
        deletes=deletes,
    )


def _ready(pods: Sequence[Object]) -> int:
    return sum(is_ready(each.view(Pod)) for each in pods)
