"""Queues in a few words: who stands in them, who is refused when, who can be popped."""

from __future__ import annotations

from bayplan.model.clock import SECOND, Instant
from bayplan.scheduling.plugins.scheduling_gates import SchedulingGates
from bayplan.scheduling.pods import PodInfo
from bayplan.scheduling.queue.queue import Lane, Pool, QueueSettings, SchedulingQueue
from bayplan.testing.pods import PodManifest, pod

FIT = frozenset({"NodeResourcesFit"})
AFFINITY = frozenset({"NodeAffinity"})
DEFAULTS = QueueSettings()


def at(seconds: float) -> Instant:
    return Instant(round(seconds * SECOND))


def info(what: PodManifest | str, priority: int = 0) -> PodInfo:
    manifest = pod(what) if isinstance(what, str) else what
    return PodInfo(manifest.pod_having("priority", priority).view())


def queue_of(*pods: PodInfo, settings: QueueSettings = DEFAULTS, start: float = 0) -> SchedulingQueue:
    queue = SchedulingQueue({"default-scheduler": Lane((SchedulingGates(),))}, settings, at(start))
    for each in pods:
        queue.add(each, at(0))
    return queue


def names(queue: SchedulingQueue, now: Instant) -> list[str]:
    """All that can be popped now, in order."""
    found = []
    while (each := queue.pop(now)) is not None:
        found.append(each.key[1])
    return found


def fail(queue: SchedulingQueue, plugins: frozenset[str], *times: float) -> None:
    """Pop the first pod and refuse it, again and again."""
    for each in times:
        popped = queue.pop(at(each))
        assert popped is not None
        queue.failed(popped, plugins, at(each))


def pool_of(queue: SchedulingQueue, name: str, now: Instant) -> Pool | None:
    found = queue.why(("default", name), now)
    return found.pool if found else None
