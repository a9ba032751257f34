"""ReplicaSets: as many like pods as asked for.

Source of truth: pkg/controller/replicaset. Pods are made and deleted some at a look; their appearing brings the next
look. Upstream takes 500 at a time; a look costs as much as there are pods, so here it is at least as many as there are
already. A refused pod ends the look: the world waits longer each time before the next.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from bayplan.cluster.embedded.controllers.conditions import status_body, with_condition, without
from bayplan.cluster.embedded.controllers.contract import (
    NOTHING,
    Concern,
    Gathered,
    Outcome,
    SetStatus,
    View,
    Write,
    itself,
    owner_of,
)
from bayplan.cluster.embedded.controllers.ownership import controlled, parted, selector_of
from bayplan.cluster.embedded.controllers.readiness import (
    is_active,
    is_available,
    is_ready,
    is_terminating,
    next_available,
)
from bayplan.cluster.embedded.controllers.replica_set_ranking import doomed
from bayplan.cluster.embedded.controllers.stamping import create_pod, delete_pod, is_ending, pod_meta, spec_section
from bayplan.cluster.embedded.store import Key
from bayplan.cluster.kinds import POD, REPLICA_SET, Kind
from bayplan.cluster.objects import Object
from bayplan.model.clock import MILLISECOND, Instant, rfc3339
from bayplan.model.meta import Condition
from bayplan.model.pods import Pod
from bayplan.model.workloads import ReplicaSet, ReplicaSetStatus

BURST = 500
_LARGE = 100
_PACE = 50 * MILLISECOND
"""A look at a large set costs as much as it has pods, so the changes of its pods are gathered. Upstream comes to the
same: its controller writes at most 20 times a second."""
REPLICA_FAILURE = "ReplicaFailure"


def _is_large(key: Key, view: View) -> bool:
    item = view.get(REPLICA_SET, *key)
    return item is not None and item.view(ReplicaSet).spec.replicas > _LARGE


def _only_counts(key: Key, view: View) -> bool:
    """Whether a large set has all its pods, so that no more than their condition is to be told."""
    item = view.get(REPLICA_SET, *key)
    if item is None or not _is_large(key, view):
        return False
    wanted = item.view(ReplicaSet)
    known = wanted.status.observed_generation == wanted.metadata.generation
    return known and wanted.status.replicas == wanted.spec.replicas


class ReplicaSetController:
    """Keeps the number of pods."""

    name = "replicaset-controller"
    watches: Mapping[Kind, Concern] = {
        REPLICA_SET: Gathered(itself, _PACE, _only_counts),
        POD: Gathered(owner_of(REPLICA_SET), _PACE, _is_large),
    }

    def reconcile(self, key: Key, view: View, now: Instant) -> Outcome:
        item = view.get(REPLICA_SET, *key)
        return NOTHING if item is None else keep_number(item, item.view(ReplicaSet), view, now, self.name)


def keep_number(item: Object, wanted: ReplicaSet, view: View, now: Instant, component: str) -> Outcome:
    """One look at what keeps a number of pods. `wanted` is the item, or stands for it where that is of another kind."""
    owned = controlled(view, item, POD)
    active, released = parted(item, [one for one in owned if is_active(one.view(Pod))])
    selector = selector_of(item)
    leaving = sum(is_terminating(one.view(Pod)) and selector.matches(one.meta.labels) for one in owned)
    writes: list[Write] = [*released]
    status = counted(wanted, [one.view(Pod) for one in active], leaving if item.kind is REPLICA_SET else None, now)
    if status != wanted.status:
        writes.append(SetStatus(item, status_body(status, "replicas")))
    if wanted.metadata.deletion_timestamp is None:
        writes += _managed(item, wanted, active, status, view, now, component)
    again = None
    if status.ready_replicas != status.available_replicas:
        again = next_available((one.view(Pod) for one in active), wanted.spec.min_ready_seconds, now)
    return Outcome(writes, again)


def counted(wanted: ReplicaSet, active: Sequence[Pod], leaving: int | None, now: Instant) -> ReplicaSetStatus:
    """The status that these pods make. A failure stays until the number of pods is right."""
    needed, template = wanted.spec, wanted.spec.template.metadata.labels.items()
    ready = [pod for pod in active if is_ready(pod)]
    conditions = wanted.status.conditions
    return ReplicaSetStatus(
        replicas=len(active),
        fully_labeled_replicas=sum(template <= pod.metadata.labels.items() for pod in active),
        ready_replicas=len(ready),
        available_replicas=sum(is_available(pod, needed.min_ready_seconds, now) for pod in ready),
        terminating_replicas=leaving,
        observed_generation=wanted.metadata.generation,
        conditions=conditions if len(active) != needed.replicas else without(conditions, REPLICA_FAILURE),
    )


def failed(status: ReplicaSetStatus, reason: str, error: str, now: Instant) -> ReplicaSetStatus:
    """The status after a pod could not be made (FailedCreate) or deleted (FailedDelete)."""
    failure = Condition(
        type=REPLICA_FAILURE, status="True", last_transition_time=rfc3339(now), reason=reason, message=error
    )
    return msgspec.structs.replace(status, conditions=with_condition(status.conditions, failure))


def _managed(
    item: Object,
    wanted: ReplicaSet,
    active: Sequence[Object],
    status: ReplicaSetStatus,
    view: View,
    now: Instant,
    component: str,
) -> Sequence[Write]:
    missing, burst = wanted.spec.replicas - len(active), max(BURST, len(active))
    if missing > 0 and not is_ending(view, item.namespace):
        meta, spec = pod_meta(wanted.spec.template, item), spec_section(wanted.spec.template)
        create = create_pod(item, meta, spec, component)

        def tell(error: str) -> Sequence[Write]:
            return [SetStatus(item, status_body(failed(status, "FailedCreate", error, now), "replicas"))]

        return [msgspec.structs.replace(create, instead=tell)] * min(missing, burst)
    if missing < 0:
        going = doomed(active, _company(item, view), min(-missing, burst), now)
        return [delete_pod(item, one, component) for one in going]
    return ()


def _company(item: Object, view: View) -> list[Object]:
    """The pods of all ReplicaSets of the same controller."""
    owner = item.meta.controller
    if owner is None or item.kind is not REPLICA_SET:
        return []
    return [pod for one in view.owned_by(owner.uid, REPLICA_SET) for pod in view.owned_by(one.uid, POD)]
