"""What the scheduler knows of the cluster: the state that decisions are made on, and the queue.

Changes are noted as they happen and taken in at the next look, which knows the time. Most changes are kubelets telling
how their pods are: they matter to nobody but preemption, which asks since when pods have run, and NodeTopology, which
asks whether they were taken; so they are only remembered until then (`refresh`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bayplan.cluster.embedded.store import ChangeType
from bayplan.cluster.kinds import (
    NAMESPACE,
    NODE,
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    POD,
    POD_DISRUPTION_BUDGET,
    REPLICA_SET,
    REPLICATION_CONTROLLER,
    SERVICE,
    STATEFUL_SET,
    STORAGE_CLASS,
    Kind,
)
from bayplan.model.meta import condition
from bayplan.model.nodes import Node
from bayplan.model.pods import ContainerStatus, Pod, PodStatus
from bayplan.model.policies import Namespace, PersistentVolume, PersistentVolumeClaim, PodDisruptionBudget, Service
from bayplan.model.resources import pod_requests
from bayplan.model.storage import StorageClass
from bayplan.model.workloads import ReplicaSet, ReplicationController, StatefulSet
from bayplan.node.annotations.holdings import HOLDINGS
from bayplan.node.annotations.managers import seen_of
from bayplan.scheduling.gpus.asking import DEVICES, SHARE
from bayplan.scheduling.pods import PodInfo
from bayplan.scheduling.queue.watching import observe, observe_pod

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bayplan.cluster.embedded.store import Change
    from bayplan.cluster.objects import Object
    from bayplan.model.clock import Instant
    from bayplan.model.meta import KubernetesObject
    from bayplan.scheduling.fast.scheduler import FastScheduler
    from bayplan.scheduling.pods import PodKey
    from bayplan.scheduling.queue.queue import SchedulingQueue

_SELECTING: Mapping[Kind, type[KubernetesObject]] = {
    SERVICE: Service,
    REPLICATION_CONTROLLER: ReplicationController,
    REPLICA_SET: ReplicaSet,
    STATEFUL_SET: StatefulSet,
}
"""What they select is spread. Only their spec matters."""
_STORAGE: Mapping[Kind, type[KubernetesObject]] = {
    PERSISTENT_VOLUME_CLAIM: PersistentVolumeClaim,
    PERSISTENT_VOLUME: PersistentVolume,
    STORAGE_CLASS: StorageClass,
}
"""Their changes may help those who wait."""
_OTHERS: Mapping[Kind, type[KubernetesObject]] = {
    NAMESPACE: Namespace,
    POD_DISRUPTION_BUDGET: PodDisruptionBudget,
    **_SELECTING,
    **_STORAGE,
}
KINDS = (POD, NODE, *_OTHERS)
"""All that it hears of."""


class Knowledge:
    """The state of a scheduler and its queue, kept up to date."""

    def __init__(self, scheduler: FastScheduler, queue: SchedulingQueue) -> None:
        self._scheduler = scheduler
        self._queue = queue
        self._news: list[Change] = []
        self._waiting: dict[PodKey, PodInfo] = {}  # all that are not bound, whoever schedules them
        self._lately: dict[PodKey, Object] = {}  # bound pods with a newer status than the state has
        self.version = 0
        """Grows with every change that decisions may depend on."""

    def note(self, change: Change) -> bool:
        """Take note of a change; whether it needs a look."""
        if change.old is not None and change.type is ChangeType.MODIFIED and self._is_nothing(change.old, change.new):
            return False
        self._news.append(change)
        if change.kind is POD:
            self._lately.pop(change.new.key, None)
        return True

    def _is_nothing(self, old: Object, new: Object) -> bool:
        if old.sections.get("spec") is not new.sections.get("spec"):
            return False
        if new.kind is not POD:
            return new.kind in _SELECTING
        pod, before = new.view(Pod), old.view(Pod)
        if not pod.spec.node_name or pod.is_terminal != before.is_terminal or _takes_another_amount(before, pod):
            return False
        if old.meta.deletion_timestamp != new.meta.deletion_timestamp or old.meta.labels != new.meta.labels:
            return False
        if _holds_otherwise(before, pod) or any(
            old.meta.annotations.get(name) != new.meta.annotations.get(name) for name in (SHARE, DEVICES)
        ):
            return False
        if not pod.is_terminal:
            self._lately[new.key] = new
        return True

    def catch_up(self, now: Instant) -> None:
        """Take in what has been noted."""
        news, self._news = self._news, []
        for change in news:
            if change.kind is POD:
                self._take_in_pod(change, now)
            elif change.kind is NODE:
                self._take_in_node(change, now)
            else:
                self._take_in(change, now)

    def refresh(self) -> None:
        """Take in the newest status of every pod that is placed."""
        for key, item in self._lately.items():
            known = self._scheduler.state.pod(key)
            if known is not None:
                known.pod = item.view(Pod)
        self._lately.clear()

    def waiting(self, key: PodKey) -> PodInfo | None:
        """A pod that is there and not bound."""
        return self._waiting.get(key)

    # --- one change

    def _take_in_node(self, change: Change, now: Instant) -> None:
        self.version += 1
        known = self._scheduler.state.node(change.new.name)
        old = known.node if known is not None else None
        new = None if change.type is ChangeType.DELETED else change.new.view(Node)
        if new is None:
            self._scheduler.drop_node(change.new.name)
        else:
            self._scheduler.put_node(new)
        observe(self._queue, old, new, now)

    def _take_in(self, change: Change, now: Instant) -> None:
        self.version += 1
        kind = _OTHERS[change.kind]
        item, gone = change.new.view(kind), change.type is ChangeType.DELETED
        old = self._scheduler.state.find(kind, *change.new.key)
        if gone:
            self._scheduler.drop(item)
        else:
            self._scheduler.put(item)
        if change.kind in _STORAGE:
            observe(self._queue, old, None if gone else item, now)

    def _take_in_pod(self, change: Change, now: Instant) -> None:
        key, pod = change.new.key, change.new.view(Pod)
        before = self._waiting.pop(key, None) or self._scheduler.state.pod(key)
        if change.type is ChangeType.DELETED or pod.is_terminal:
            self.version += 1
            observe_pod(self._queue, before, None, now)
            self._scheduler.drop_pod(key)
            return
        if before is not None and change.old is not None and _is_same_but_bound(change.old, change.new):
            after = PodInfo(pod, before.wants)
        else:
            after = PodInfo(pod)
        observe_pod(self._queue, before, after, now)
        if pod.spec.node_name:
            self._place(after)
        else:
            self._waiting[key] = after
            self._nominate(before, after)

    def _place(self, pod: PodInfo) -> None:
        """A pod is bound; mostly to where it counts already, having been placed by the scheduler itself."""
        self.version += 1
        state, node = self._scheduler.state, pod.pod.spec.node_name
        known = state.pod(pod.key)
        if known is None or state.place_of(pod.key) != node or _faces(known) != _faces(pod):
            self._scheduler.put_pod(pod, node)
        else:
            known.pod = pod.pod

    def _nominate(self, before: PodInfo | None, pod: PodInfo) -> None:
        node = pod.pod.status.nominated_node_name
        if node and pod.pod.spec.scheduler_name in self._queue.lanes:
            self.version += 1
            self._scheduler.state.nominate(pod, node)
        elif before is not None and before.pod.status.nominated_node_name:
            self.version += 1
            self._scheduler.state.withdraw(pod.key)


def _takes_another_amount(old: Pod, new: Pod) -> bool:
    """Whether a status says so: the spec is the same. Mostly both say the same, or nothing."""
    if old.status is new.status:
        return False
    return _in_force(old.status) != _in_force(new.status) and pod_requests(old) != pod_requests(new)


def _holds_otherwise(old: Pod, new: Pod) -> bool:
    """Whether a pod that holds something of its node's machine says so, or has come further than before."""
    told = HOLDINGS in new.metadata.annotations or HOLDINGS in old.metadata.annotations
    return told and seen_of(old) != seen_of(new)


def _in_force(status: PodStatus) -> tuple[object, ...]:
    """All of a status that has a word in what the pod takes."""
    statuses = (*status.container_statuses, *status.init_container_statuses)
    return (
        [(each.name, each.resources, each.allocated_resources) for each in statuses if _speaks(each)],
        status.resources, status.allocated_resources, condition(status.conditions, "PodResizePending"),
    )  # fmt: skip


def _speaks(status: ContainerStatus) -> bool:
    return status.resources is not None or bool(status.allocated_resources)


def _is_same_but_bound(old: Object, new: Object) -> bool:
    """Whether a pod asks for what it asked for before: its spec is the same, or has got a node."""
    if old.sections["spec"] is new.sections["spec"]:
        return True
    return bool(new.view(Pod).spec.node_name) and not old.view(Pod).spec.node_name


def _faces(pod: PodInfo) -> tuple[object, ...]:
    """What others see of a placed pod."""
    return pod.labels, pod.wants, pod.priority, pod.terminating, pod.requests, pod.gpus
