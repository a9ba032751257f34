"""StatefulSets: numbered pods, made in order, deleted in reverse, updated from the last to the first.

OrderedReady takes one step at a time and waits until its pod is available; Parallel makes and deletes all at once. A
rolling update replaces one pod at a time in either case (MaxUnavailableStatefulSet is off by default in 1.36).
Source of truth: pkg/controller/statefulset/stateful_set_control.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from bayplan.cluster.embedded.controllers.conditions import status_body
from bayplan.cluster.embedded.controllers.contract import (
    NOTHING,
    Concern,
    Delete,
    Outcome,
    SetStatus,
    View,
    Write,
    itself,
    owner_of,
)
from bayplan.cluster.embedded.controllers.ownership import controlled, ordinal_of, parted
from bayplan.cluster.embedded.controllers.readiness import is_available, is_ready, next_available
from bayplan.cluster.embedded.controllers.revisions import REVISION_LABEL, History, Revision, history
from bayplan.cluster.embedded.controllers.stamping import is_ending
from bayplan.cluster.embedded.controllers.stateful_set_claims import (
    COMPONENT,
    has_stale_claim,
    might_use,
    missing_claims,
    retention,
)
from bayplan.cluster.embedded.controllers.stateful_set_pods import corrections, create_pod, delete_pod
from bayplan.cluster.embedded.store import Change, ChangeType, Key
from bayplan.cluster.kinds import PERSISTENT_VOLUME_CLAIM, POD, STATEFUL_SET, Kind
from bayplan.cluster.objects import Object
from bayplan.model.clock import Instant
from bayplan.model.pods import Pod
from bayplan.model.workloads import StatefulSet, StatefulSetStatus

_HASH_LABEL = "controller.kubernetes.io/hash"


def _waits_for(change: Change, view: View) -> Iterable[Key]:
    """A claim that is gone makes room for a new one, for which a pod may be waiting."""
    if change.type is ChangeType.DELETED:
        for item in view.objects(STATEFUL_SET, change.new.namespace):
            if might_use(item.view(StatefulSet), change.new.name):
                yield item.key


class StatefulSetController:
    """Keeps numbered pods."""

    name = COMPONENT
    watches: Mapping[Kind, Concern] = {
        STATEFUL_SET: itself,
        POD: owner_of(STATEFUL_SET),
        PERSISTENT_VOLUME_CLAIM: _waits_for,
    }

    def reconcile(self, key: Key, view: View, now: Instant) -> Outcome:
        item = view.get(STATEFUL_SET, *key)
        if item is None:
            return NOTHING
        pods, released = parted(item, controlled(view, item, POD))
        return _Look(item, pods, view, now).outcome(released)


class Step(msgspec.Struct, frozen=True):
    """What is done about one pod, and whether the pods after it have to wait."""

    writes: list[Write]
    waits: bool = False


class _Look:
    """One look at one StatefulSet. `replicas` are by index, None where there is no pod; `condemned` the last first."""

    def __init__(self, item: Object, pods: list[Object], view: View, now: Instant) -> None:
        self.item = item
        self.wanted = wanted = item.view(StatefulSet)
        self.pods = pods
        self.view = view
        self.now = now
        self.first = wanted.spec.ordinals.start
        self.replicas: list[Object | None] = [None] * wanted.spec.replicas
        condemned = []
        for pod in pods:
            index = (ordinal_of(item.name, pod.name) or 0) - self.first
            if 0 <= index < len(self.replicas):
                self.replicas[index] = pod
            else:
                condemned.append((index, pod))
        self.condemned = [pod for _, pod in sorted(condemned, key=lambda one: -one[0])]
        self.is_ordered = wanted.spec.pod_management_policy != "Parallel"
        self.history = history(view, item, wanted.spec.template, wanted.status.collision_count or 0, _HASH_LABEL)
        self.current = self.history.named(wanted.status.current_revision) or self.history.update

    def outcome(self, released: Iterable[Write]) -> Outcome:
        steps: list[Write] = []
        updated: Object | None = None
        if self.wanted.metadata.deletion_timestamp is None and not is_ending(self.view, self.item.namespace):
            steps, is_steady = self._steps()
            if is_steady and (updated := self._to_update()) is not None:
                steps.append(delete_pod(self.item, updated))
        status = counted(self.wanted, [one.view(Pod) for one in self.pods], self.history, self.current, self.now)
        if updated is not None:
            status = msgspec.structs.replace(status, current_replicas=max(status.current_replicas - 1, 0))
        writes = [*released, *self.history.writes]
        if status != self.wanted.status:
            writes.append(SetStatus(self.item, status_body(status, "replicas", "availableReplicas")))
        writes += [*steps, *self._forgotten()]
        return Outcome(writes, self._again(status))

    def _again(self, status: StatefulSetStatus) -> Instant | None:
        if status.ready_replicas == status.available_replicas:
            return None
        return next_available((one.view(Pod) for one in self.pods), self.wanted.spec.min_ready_seconds, self.now)

    def _steps(self) -> tuple[list[Write], bool]:
        """What is to be made, mended and deleted; and whether that leaves the set as it should be."""
        writes: list[Write] = []
        for index in range(len(self.replicas)):
            step = self._kept(index)
            writes += step.writes
            if step.waits and self.is_ordered:
                return writes, False
        for pod in self.condemned:
            writes += retention(self.item, self.wanted, pod, ordinal_of(self.item.name, pod.name) or 0, self.view)
        sick = [pod for pod in self.condemned if not self._is_available(pod)]
        for pod in self.condemned:
            step = self._let_go(pod, is_first_sick=bool(sick) and pod is sick[-1])
            writes += step.writes
            if step.waits and self.is_ordered:
                return writes, False
        return writes, True

    def _kept(self, index: int) -> Step:
        pod, ordinal = self.replicas[index], self.first + index
        item, wanted, view = self.item, self.wanted, self.view
        if pod is None:
            if has_stale_claim(wanted, ordinal, view):
                return Step([], waits=True)
            return Step(create_pod(item, wanted, self._revision(ordinal), ordinal, view), waits=True)
        seen = pod.view(Pod)
        is_going = pod.meta.deletion_timestamp is not None
        if seen.is_terminal:
            return Step([] if is_going else [delete_pod(item, pod)], waits=True)
        writes: list[Write] = []
        if seen.status.phase == "Pending":
            writes = [*missing_claims(item, wanted, ordinal, view), *retention(item, wanted, pod, ordinal, view)]
        is_steady = not is_going and seen.status.phase == "Running" and self._is_available(pod)
        if self.is_ordered and not is_steady:
            return Step(writes, waits=True)
        return Step(writes or corrections(item, wanted, pod, ordinal, view))

    def _revision(self, ordinal: int) -> Revision:
        partition = self.wanted.spec.update_strategy.rolling_update.partition
        return self.current if ordinal < self.first + partition else self.history.update

    def _let_go(self, pod: Object, *, is_first_sick: bool) -> Step:
        if pod.meta.deletion_timestamp is not None:
            return Step([], waits=True)
        if self.is_ordered and not is_first_sick and not self._is_available(pod):
            return Step([], waits=True)
        return Step([delete_pod(self.item, pod)], waits=True)

    def _to_update(self) -> Object | None:
        """The last pod of another revision, once all after it are available."""
        strategy = self.wanted.spec.update_strategy
        if strategy.type == "OnDelete":
            return None
        for pod in reversed(self.replicas[strategy.rolling_update.partition :]):
            if pod is None:
                return None
            is_going = pod.meta.deletion_timestamp is not None
            if pod.meta.labels.get(REVISION_LABEL) != self.history.update.name and not is_going:
                return pod
            if is_going or not self._is_available(pod):
                return None
        return None

    def _is_available(self, pod: Object) -> bool:
        is_going = pod.meta.deletion_timestamp is not None
        return not is_going and is_available(pod.view(Pod), self.wanted.spec.min_ready_seconds, self.now)

    def _forgotten(self) -> list[Write]:
        """Revisions beyond the history limit that no pod is of."""
        live = {
            self.current.name,
            self.history.update.name,
            *(pod.meta.labels.get(REVISION_LABEL) for pod in self.pods),
        }
        past = [one.item for one in self.history.revisions if one.name not in live and one.item is not None]
        return [Delete(one) for one in past[: max(len(past) - self.wanted.spec.revision_history_limit, 0)]]


def counted(
    wanted: StatefulSet, pods: Iterable[Pod], kept: History, current: Revision, now: Instant
) -> StatefulSetStatus:
    """The status that these pods make. An update that has reached every pod becomes the current revision."""
    made = [pod for pod in pods if pod.status.phase]
    ready = [pod for pod in made if pod.status.phase == "Running" and is_ready(pod)]
    of = [pod.metadata.labels.get(REVISION_LABEL) for pod in made if pod.metadata.deletion_timestamp is None]
    status = StatefulSetStatus(
        observed_generation=wanted.metadata.generation,
        replicas=len(made),
        ready_replicas=len(ready),
        current_replicas=of.count(current.name),
        updated_replicas=of.count(kept.update.name),
        current_revision=current.name,
        update_revision=kept.update.name,
        collision_count=kept.collisions,
        available_replicas=sum(is_available(pod, wanted.spec.min_ready_seconds, now) for pod in ready),
    )
    counts = {status.updated_replicas, status.ready_replicas, status.replicas}
    if wanted.spec.update_strategy.type == "RollingUpdate" and counts == {wanted.spec.replicas}:
        return msgspec.structs.replace(
            status, current_replicas=status.updated_replicas, current_revision=status.update_revision
        )
    return status
