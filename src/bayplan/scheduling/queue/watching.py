"""Changes of objects, told to the queue: pods that wait go in and out of it, all else may help those that are in it.

Pods that have run their course count as gone: kube-scheduler does not see them.

Source of truth: kube-scheduler 1.36 eventhandlers.go.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bayplan.scheduling.pods import PodInfo
from bayplan.scheduling.queue.events import ASSIGNED_POD_ADD, ASSIGNED_POD_DELETE, object_events, pod_events

if TYPE_CHECKING:
    from bayplan.model.clock import Instant
    from bayplan.model.meta import KubernetesObject
    from bayplan.scheduling.queue.queue import SchedulingQueue


def observe(queue: SchedulingQueue, old: KubernetesObject | None, new: KubernetesObject | None, now: Instant) -> None:
    """An object that is no pod came (no `old`), changed or went (no `new`)."""
    for event in object_events(old, new):
        queue.on_event(event, old, new, now)


def observe_pod(queue: SchedulingQueue, old: PodInfo | None, new: PodInfo | None, now: Instant) -> None:
    """A pod came, changed or went. Whoever waits in the queue is kept there; a bound one leaves it."""
    old = None if old is None or old.pod.is_terminal else old
    new = None if new is None or new.pod.is_terminal else new
    if old is not None and old.pod.spec.node_name:
        _assigned_changed(queue, old, new, now)
    elif new is not None and new.pod.spec.node_name:
        queue.on_event(ASSIGNED_POD_ADD, None, new, now)
        queue.delete(new.key)
    else:
        _unscheduled_changed(queue, old, new, now)


def _assigned_changed(queue: SchedulingQueue, old: PodInfo, new: PodInfo | None, now: Instant) -> None:
    if new is None:
        queue.on_event(ASSIGNED_POD_DELETE, old, None, now)
        return
    for event in pod_events(old, new):
        queue.on_event(event, old, new, now)


def _unscheduled_changed(queue: SchedulingQueue, old: PodInfo | None, new: PodInfo | None, now: Instant) -> None:
    known = new if new is not None else old
    if known is None or known.pod.spec.scheduler_name not in queue.lanes:
        return
    if new is None:
        queue.delete(known.key)
    elif old is None:
        queue.add(new, now)
    else:
        queue.update(old, new, now)
    nominated = old.pod.status.nominated_node_name if old is not None else ""
    if old is not None and nominated and (new is None or new.pod.status.nominated_node_name != nominated):
        # The room that was kept for it is free, for those who had to respect it.
        queue.on_event(ASSIGNED_POD_DELETE, old, None, now, at_most=old.priority)
