"""The scheduler as a controller: one pod at a time is tried, and placed or refused.

A look ends with the first pod about whom there is something to write, so that the next look sees what came of it; pods
that are refused as before are passed over in one go. A bind that was refused shows in the next look: the pod counts on
a node and is not bound.

Source of truth: kube-scheduler 1.36 schedule_one.go.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bayplan.cluster.embedded.controllers.contract import Concern, Outcome, View, Write
from bayplan.cluster.embedded.scheduler.knowledge import KINDS, Knowledge
from bayplan.cluster.embedded.scheduler.refusals import Refusals
from bayplan.cluster.embedded.scheduler.words import evicted, placed, refused, skipped, withdrawn
from bayplan.cluster.kinds import POD
from bayplan.model.clock import SECOND
from bayplan.scheduling.configuration import SchedulerConfiguration
from bayplan.scheduling.fast.scheduler import FastScheduler
from bayplan.scheduling.gpus.asking import DEVICES, written
from bayplan.scheduling.messages import event
from bayplan.scheduling.plugins.node_topology import NodeTopology
from bayplan.scheduling.preemption import aftermath, preempt
from bayplan.scheduling.profiles import default_profile
from bayplan.scheduling.queue.events import ASSIGNED_POD_DELETE
from bayplan.scheduling.queue.queue import Lane, QueueSettings, SchedulingQueue

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from bayplan.cluster.embedded.store import Change, Key
    from bayplan.cluster.kinds import Kind
    from bayplan.cluster.objects import Object
    from bayplan.model.clock import Instant
    from bayplan.scheduling.decision import Decision, Preemption
    from bayplan.scheduling.pods import PodInfo, PodKey

_QUEUE: tuple[Key] = (("", "queue"),)
_AT_ONCE = 200
"""Pods passed over in one look, so that a long queue does not hold up the rest of the world."""
_ERROR: frozenset[str] = frozenset()
"""Nobody refused the pod, and yet it has no place."""


class SchedulerController:
    """Binds pending pods, and makes room for the more important ones. Pods of other schedulers are left alone."""

    name = "default-scheduler"
    watches: Mapping[Kind, Concern]

    def __init__(self, configuration: SchedulerConfiguration | None = None) -> None:
        """As kube-scheduler with that configuration file; without one, as it is shipped."""
        configuration = configuration or SchedulerConfiguration((default_profile(),))
        self.watches = dict.fromkeys(KINDS, self._changed)
        self._profiles = configuration.by_name()
        self._scheduler = FastScheduler(*configuration.profiles)
        self._queue = SchedulingQueue(
            {name: Lane.of(profile) for name, profile in self._profiles.items()},
            QueueSettings(
                configuration.pod_initial_backoff_seconds * SECOND, configuration.pod_max_backoff_seconds * SECOND
            ),
        )
        self._known = Knowledge(self._scheduler, self._queue)
        self._foretelling = {
            name for name, each in self._profiles.items() if any(isinstance(one, NodeTopology) for one in each.filters)
        }
        """Profiles that ask which pods the kubelets have taken."""
        self._refusals = Refusals()
        self._binding: PodInfo | None = None

    def _changed(self, change: Change, _view: View) -> Iterable[Key]:
        return _QUEUE if self._known.note(change) else ()

    def reconcile(self, _key: Key, view: View, now: Instant) -> Outcome:
        """Try the next pod, and the ones after it as long as there is nothing to say."""
        self._known.catch_up(now)
        self._undo(now)
        writes: list[Write] = []
        for _ in range(_AT_ONCE):
            pod = self._queue.pop(now)
            if pod is None:
                break
            writes = self._try(pod, view, now)
            if writes:
                break
        return Outcome(writes, self._queue.next_wakeup(now))

    def _undo(self, now: Instant) -> None:
        """If the last bind was refused, the pod is not there after all, and waits where its status says."""
        pod, self._binding = self._binding, None
        state = self._scheduler.state
        waiting = self._known.waiting(pod.key) if pod is not None else None
        if pod is None or waiting is None or state.place_of(pod.key) is None:
            return
        self._scheduler.drop_pod(pod.key)
        if promised := waiting.pod.status.nominated_node_name:
            state.nominate(waiting, promised)
        self._queue.failed(pod, _ERROR, now)
        self._queue.on_event(ASSIGNED_POD_DELETE, pod, None, now)

    def _try(self, pod: PodInfo, view: View, now: Instant) -> list[Write]:
        item = _present(view, pod.key)
        if pod.terminating:
            self._queue.done(pod.key)
            return skipped(item)
        known = self._refusals.of(pod, self._known.version)
        if known is not None:
            return self._refuse(pod, item, *known, view, now)
        if pod.pod.spec.scheduler_name in self._foretelling:
            self._known.refresh()
        answer = self._scheduler.choose(pod)
        if isinstance(answer, str):
            devices = self._scheduler.devices(pod, answer)
            pod = pod.with_devices(devices)
            self._scheduler.put_pod(pod, answer)
            self._binding = pod
            return placed(item, answer, {DEVICES: written(devices)} if devices else {})
        preemption = self._make_room(pod, answer)
        self._refusals.keep(pod, answer, preemption)
        return self._refuse(pod, item, answer, preemption, view, now)

    def _make_room(self, pod: PodInfo, decision: Decision) -> Preemption:
        state = self._scheduler.state
        if state.has_pods_below(pod.priority):
            self._known.refresh()
        return preempt(state, self._profiles[pod.pod.spec.scheduler_name], pod, decision)

    def _refuse(
        self, pod: PodInfo, item: Object, decision: Decision, preemption: Preemption, view: View, now: Instant
    ) -> list[Write]:
        scheduler = pod.pod.spec.scheduler_name
        after = aftermath(self._scheduler.state, pod, preemption)
        self._queue.failed(pod, frozenset(decision.plugins), now)
        writes: list[Write] = []
        for key in after.withdrawn:
            writes += withdrawn(_present(view, key))
        for each in after.evictions:
            writes += evicted(_present(view, each.pod), each, item, scheduler, now)
        message = event(decision, self._profiles[scheduler], preemption)
        return [*writes, *refused(item, message, after.nomination, now)]


def _present(view: View, key: PodKey) -> Object:
    item = view.get(POD, *key)
    assert item is not None, f"{key} is known to be there"
    return item
