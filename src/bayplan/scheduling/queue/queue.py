"""The queue of pods that wait for a place, in virtual time: `now` comes with every call and never goes back.

              gates                    pop                   refused
    added -----------> active -----------------> in flight -----------> unschedulable
      |  ^ opened        ^  back-off is over         |  error,                |
      v  |               |                           v  or helped meanwhile   |
     gated               +---------------------- backing off <----------------+ an event may help, or five minutes

Active pods go by priority, then by the time at which they came or came back. A pod that was refused waits until a
plugin that refused it says that a change may help (`hints`). Back-off holds pods back while others wait; when nobody
else does, the one that would be free first is tried at once, unless it was an error that brought it there.

Source of truth: kube-scheduler 1.36 backend/queue with its default feature gates.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Self

import msgspec

from bayplan.model.clock import SECOND, Instant
from bayplan.scheduling.arguments import NodeAffinityArgs
from bayplan.scheduling.framework import Plugin, Profile
from bayplan.scheduling.plugins.node_affinity import NodeAffinity
from bayplan.scheduling.queue.attempts import Attempts
from bayplan.scheduling.queue.events import pod_events
from bayplan.scheduling.queue.heap import LazyHeap
from bayplan.scheduling.queue.hints import NEVER, Hints, ask, default_interests

if TYPE_CHECKING:
    from bayplan.scheduling.pods import PodInfo, PodKey
    from bayplan.scheduling.queue.events import ClusterEvent, Subject

_WINDOW = SECOND
"""Back-offs end together at whole seconds, so that priority decides among those of one second."""
_FLUSH_EVERY = 30 * SECOND


class QueueSettings(msgspec.Struct, frozen=True):
    """Spans in the unit of Instant. A most of 0 is no back-off at all."""

    initial_backoff: int = SECOND
    max_backoff: int = 10 * SECOND
    max_unschedulable: int = 300 * SECOND


_DEFAULTS = QueueSettings()
_EPOCH = Instant(0)


class Lane(msgspec.Struct, frozen=True):
    """What the queue must know of a profile: who keeps pods out of it, and what may help those that it refused."""

    gates: tuple[Plugin, ...] = ()
    hints: Hints = Hints(default_interests())

    @classmethod
    def of(cls, profile: Profile) -> Self:
        """The lane of a profile."""
        affinity = next((each.args for each in profile.filters if isinstance(each, NodeAffinity)), NodeAffinityArgs())
        return cls(profile.gates, Hints(default_interests(affinity)))


class Pool(StrEnum):
    """Where a pod waits."""

    ACTIVE = "active"
    BACKOFF = "backoff"
    UNSCHEDULABLE = "unschedulable"
    GATED = "gated"
    IN_FLIGHT = "in flight"


class Waiting(msgspec.Struct, frozen=True):
    """Why a pod waits. `due` is when it moves on by itself: None where that takes someone else."""

    pool: Pool
    attempts: int
    since: Instant
    due: Instant | None
    plugins: frozenset[str]
    """Who refused it last; none after an error."""


class _Entry:
    """A pod in the queue. `free_at` is the end of its back-off, `order` breaks ties of the clock."""

    __slots__ = ("attempts", "errors", "free_at", "gate", "order", "plugins", "pod", "pool", "refusals", "since")

    def __init__(self, pod: PodInfo, now: Instant, order: int) -> None:
        self.pod = pod
        self.since = now
        self.order = order
        self.pool = Pool.ACTIVE
        self.attempts = self.refusals = self.errors = 0
        self.free_at = _EPOCH
        self.plugins: frozenset[str] = frozenset()
        self.gate = ""

    @property
    def rank(self) -> tuple[int, int, int]:
        """The smaller, the sooner."""
        return -self.pod.priority, self.since, self.order

    @property
    def lane(self) -> str:
        """The profile that it goes by."""
        return self.pod.pod.spec.scheduler_name


class SchedulingQueue:
    """Pods by lane (the profile's `schedulerName`). One caller, who tells of every change and tries what it pops."""

    def __init__(
        self,
        lanes: Mapping[str, Lane],
        settings: QueueSettings = _DEFAULTS,
        start: Instant = _EPOCH,
    ) -> None:
        """`start` is when the scheduler began: overdue pods are looked for every 30 seconds from then on."""
        self.lanes = lanes
        self._settings = settings
        self._start = start
        self._entries: dict[PodKey, _Entry] = {}
        self._active: LazyHeap[PodKey, _Entry] = LazyHeap()
        self._backoff: LazyHeap[PodKey, _Entry] = LazyHeap()
        self._errors: LazyHeap[PodKey, _Entry] = LazyHeap()
        self._unschedulable: dict[PodKey, _Entry] = {}  # by `since`, as it is set on entering
        self._gated: dict[PodKey, _Entry] = {}
        self._refused: dict[tuple[str, str], dict[PodKey, _Entry]] = {}  # the two above, by lane and plugin
        self._attempts = Attempts()
        self._orders = itertools.count()

    # --- what happens to waiting pods

    def add(self, pod: PodInfo, now: Instant) -> None:
        """A pod came that waits for a place. One of that name which was here is forgotten."""
        self.delete(pod.key)
        entry = self._entries[pod.key] = _Entry(pod, now, next(self._orders))
        self._requeue(entry, now)

    def update(self, old: PodInfo, new: PodInfo, now: Instant) -> None:
        """A waiting pod changed. If it was refused, that may help it; if it is in flight, it may have helped."""
        self._advance(now)
        entry = self._entries.get(new.key)
        if entry is None or entry.pod.pod.metadata.uid != new.pod.metadata.uid:
            self.add(new, now)
            return
        entry.pod = new
        events = pod_events(old, new)
        if entry.pool is Pool.IN_FLIGHT:
            for event in events:
                self._attempts.record(event, old, new)
        elif entry.pool in (Pool.UNSCHEDULABLE, Pool.GATED):
            if any(self._helps(entry, event, old, new) for event in events):
                self._take_out(entry)
                self._requeue(entry, now)
        else:
            self._put(entry, entry.pool)

    def delete(self, key: PodKey) -> None:
        """A pod is gone, or has a place: whatever becomes of an attempt that is under way no longer matters."""
        entry = self._entries.pop(key, None)
        if entry is not None:
            self._take_out(entry)

    # --- trying them

    def pop(self, now: Instant) -> PodInfo | None:
        """The pod to try next. It is in flight until `failed`, `done` or `delete`."""
        self._advance(now)
        entry = self._active.pop() or self._backoff.pop()
        if entry is None:
            return None
        entry.attempts += 1
        entry.pool = Pool.IN_FLIGHT
        self._attempts.begin(entry.pod.key)
        return entry.pod

    def failed(self, pod: PodInfo, plugins: frozenset[str], now: Instant) -> None:
        """A popped pod found no place, for these plugins; none is an error. One that is gone meanwhile is let go."""
        self._advance(now)
        entry = self._entries.get(pod.key)
        if entry is None or entry.pool is not Pool.IN_FLIGHT or entry.pod.pod.metadata.uid != pod.pod.metadata.uid:
            return
        happened = self._attempts.end(pod.key)
        entry.plugins, entry.gate = plugins, ""
        if plugins:
            entry.refusals, entry.errors = entry.refusals + 1, 0
        else:
            entry.errors += 1
        entry.since, entry.order = now, next(self._orders)
        entry.free_at = self._end_of_backoff(entry)
        if not plugins or any(self._helps(entry, *each) for each in happened):
            self._requeue(entry, now)
        else:
            self._put(entry, Pool.UNSCHEDULABLE)

    def done(self, key: PodKey) -> None:
        """A popped pod has its place."""
        entry = self._entries.get(key)
        if entry is not None and entry.pool is Pool.IN_FLIGHT:
            self.delete(key)

    # --- what happens around them

    def on_event(
        self,
        event: ClusterEvent,
        old: Subject | None,
        new: Subject | None,
        now: Instant,
        at_most: int | None = None,
    ) -> None:
        """Something changed: move those whom it may help. With `at_most`, only pods of that priority or less."""
        self._advance(now)
        self._attempts.record(event, old, new)
        for (name, plugin), refused in tuple(self._refused.items()):
            judge = self.lanes[name].hints.judge(plugin, event, old, new)
            if judge is NEVER:
                continue
            for entry in tuple(refused.values()):
                if at_most is not None and entry.pod.priority > at_most:
                    continue
                if self._may_open(entry, event) and ask(judge, entry.pod):
                    self._take_out(entry)
                    self._requeue(entry, now)

    def next_wakeup(self, now: Instant) -> Instant | None:
        """When `pop` will have something, if nothing changes until then: `now` if it has, None if it never will."""
        self._advance(now)
        if self._active or self._backoff:
            return now
        failing = self._errors.peek()
        overdue = next(iter(self._unschedulable.values()), None)
        due = [] if failing is None else [failing.free_at]
        due += [] if overdue is None else [self._flushed_at(overdue)]
        return min(due, default=None)

    # --- looking at it

    def pending(self, now: Instant) -> Mapping[Pool, int]:
        """How many pods are where."""
        self._advance(now)
        return {
            Pool.ACTIVE: len(self._active),
            Pool.BACKOFF: len(self._backoff) + len(self._errors),
            Pool.UNSCHEDULABLE: len(self._unschedulable),
            Pool.GATED: len(self._gated),
            Pool.IN_FLIGHT: len(self._attempts),
        }

    def why(self, key: PodKey, now: Instant) -> Waiting | None:
        """Where a pod is and why; None if it is not here."""
        self._advance(now)
        entry = self._entries.get(key)
        if entry is None:
            return None
        return Waiting(entry.pool, entry.attempts, entry.since, self._due(entry), entry.plugins)

    # --- time

    def _advance(self, now: Instant) -> None:
        """Move what is due."""
        if not (self._unschedulable or self._backoff or self._errors):
            return
        while self._unschedulable:
            entry = next(iter(self._unschedulable.values()))
            if self._flushed_at(entry) > now:
                break
            self._take_out(entry)
            self._requeue(entry, now)
        for heap in (self._backoff, self._errors):
            while (first := heap.peek()) is not None and first.free_at <= now:
                heap.pop()
                self._put(first, Pool.ACTIVE)

    def _due(self, entry: _Entry) -> Instant | None:
        if entry.pool is Pool.BACKOFF:
            return entry.free_at
        return self._flushed_at(entry) if entry.pool is Pool.UNSCHEDULABLE else None

    def _flushed_at(self, entry: _Entry) -> Instant:
        """The first look for overdue pods at which it is one: it must have waited for longer than allowed."""
        since_start = entry.since + self._settings.max_unschedulable - self._start
        return Instant(self._start + (since_start // _FLUSH_EVERY + 1) * _FLUSH_EVERY)

    def _end_of_backoff(self, entry: _Entry) -> Instant:
        """Errors in a row count by themselves, refusals for good. The window that it falls into is waited out."""
        first, most = self._settings.initial_backoff, self._settings.max_backoff
        count = entry.errors or entry.refusals
        if not most:
            return _EPOCH
        span = most if first > most >> (count - 1) else first << (count - 1)
        return Instant(((entry.since + span) // _WINDOW + 1) * _WINDOW)

    # --- moves

    def _helps(self, entry: _Entry, event: ClusterEvent, old: Subject | None, new: Subject | None) -> bool:
        hints = self.lanes[entry.lane].hints
        return any(ask(hints.judge(plugin, event, old, new), entry.pod) for plugin in entry.plugins)

    def _may_open(self, entry: _Entry, event: ClusterEvent) -> bool:
        """A gated pod is looked at only for what its gate cares about."""
        return not entry.gate or self.lanes[entry.lane].hints.cares(entry.gate, event)

    def _requeue(self, entry: _Entry, now: Instant) -> None:
        """To be tried again, as soon as its gates and its back-off let it."""
        entry.gate = ""
        for each in self.lanes[entry.lane].gates:
            if each.enqueue(entry.pod):
                entry.gate = each.name
                break
        if entry.gate:
            entry.plugins |= {entry.gate}
            self._put(entry, Pool.GATED)
        else:
            self._put(entry, Pool.BACKOFF if entry.free_at > now else Pool.ACTIVE)

    def _put(self, entry: _Entry, pool: Pool) -> None:
        key = entry.pod.key
        entry.pool = pool
        if pool is Pool.ACTIVE:
            self._active.push(key, entry.rank, entry)
        elif pool is Pool.BACKOFF:
            heap = self._backoff if entry.plugins else self._errors
            heap.push(key, (entry.free_at, *entry.rank), entry)
        else:
            (self._gated if pool is Pool.GATED else self._unschedulable)[key] = entry
            for plugin in entry.plugins:
                self._refused.setdefault((entry.lane, plugin), {})[key] = entry

    def _take_out(self, entry: _Entry) -> None:
        key, pool = entry.pod.key, entry.pool
        if pool is Pool.IN_FLIGHT:
            self._attempts.end(key)
        elif pool in (Pool.ACTIVE, Pool.BACKOFF):
            for heap in (self._active, self._backoff, self._errors):
                heap.discard(key)
        else:
            del (self._gated if pool is Pool.GATED else self._unschedulable)[key]
            for plugin in entry.plugins:
                refused = self._refused[entry.lane, plugin]
                del refused[key]
                if not refused:
                    del self._refused[entry.lane, plugin]
