"""What happened to pods and GPUs while one looked on: counts, GPU-hours by namespace, waits.

It is told of every change of pods and nodes and of the time at which it happened, and adds up; a pod holds its GPUs
from its binding until it has ended or is gone.
"""

from __future__ import annotations

import bisect
import math
import statistics
from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from bayplan.cluster.kinds import NODE, POD
from bayplan.cluster.objects import Object
from bayplan.model.clock import SECOND, Instant
from bayplan.model.nodes import Node
from bayplan.model.pods import Pod
from bayplan.simulate.gpus import gpus_of_pod, gpus_offered

_HOUR = 3600 * SECOND


class Usage(msgspec.Struct, frozen=True):
    """The account of a span of time."""

    span: int
    created: int
    succeeded: int
    failed: int
    """Without those that somebody was deleting already."""
    running: int
    pending: int
    waits: int
    """How many pods that came in that time were placed."""
    median_wait: float | None
    """Seconds from creation to placement, of those."""
    longest_wait: float | None
    gpu_hours: dict[str, float]
    """GPU-hours held, by namespace."""
    idle_gpu_hours: float
    """GPU-hours that nobody held."""


class Wait(NamedTuple):
    """Seconds from creation to placement; for some that never were placed, it is at least that."""

    seconds: float
    at_least: bool


class Tally:
    """A running account."""

    def __init__(self, start: Instant) -> None:
        self._start = self._at = start
        self._phases: dict[str, str] = {}
        self._holds: dict[str, tuple[str, float]] = {}  # by pod: namespace and GPUs
        self._offered: dict[str, float] = {}  # by node
        self._offered_in_all = 0.0
        self._held_in_all = 0.0
        self._came: dict[str, Instant] = {}  # by pod that has no node yet
        self._waited_before: set[str] = set()  # pods without a node that were there before the account began
        self._labels: dict[str, Mapping[str, str]] = {}  # by node
        self._allocatable: dict[str, Mapping[str, str]] = {}  # by node
        self._held: dict[str, float] = {}  # by namespace
        self._micros: dict[str, float] = {}
        self._idle = 0.0
        self._waits: list[float] = []
        self._in_vain: list[float] = []  # of pods that went without ever having had a node
        self._counts: Counter[str] = Counter()

    def note(self, item: Object, now: Instant, *, gone: bool) -> None:
        """A pod or node has changed, or is gone."""
        if item.kind is POD:
            self._pass_to(now)
            self._note_pod(item, now, gone)
        elif item.kind is NODE:
            self._note_node(item, now, gone)

    def meet(self, item: Object, now: Instant) -> None:
        """A pod or node that was there before the account began: it counts, but neither its coming nor its wait."""
        self.note(item, now, gone=False)
        self.begin()

    def begin(self) -> None:
        """What was noted so far was there before: it counts, but neither its coming nor its wait."""
        self._waited_before.update(self._came)
        self._came.clear()
        self._counts.clear()
        self._waits.clear()
        self._in_vain.clear()

    def _note_node(self, item: Object, now: Instant, gone: bool) -> None:
        allocatable: Mapping[str, str] = {} if gone else item.view(Node).status.allocatable
        if allocatable == self._allocatable.get(item.name) and item.meta.labels == self._labels[item.name]:
            return  # most changes of nodes are of other things
        self._allocatable[item.name], self._labels[item.name] = allocatable, item.meta.labels
        offered = gpus_offered(item.view(Node)) if allocatable else 0.0
        if offered != self._offered.get(item.name):
            self._pass_to(now)
            self._offered_in_all += offered - self._offered.get(item.name, 0)
            self._offered[item.name] = offered

    def _note_pod(self, item: Object, now: Instant, gone: bool) -> None:
        pod = item.view(Pod)
        uid, phase = item.uid, pod.status.phase
        before = self._phases.get(uid)
        if before is None:
            self._counts["created"] += 1
            self._came[uid] = now
        if phase != before and (phase == "Succeeded" or (phase == "Failed" and not pod.metadata.deletion_timestamp)):
            self._counts[phase] += 1
        if pod.spec.node_name or pod.is_terminal or gone:
            self._wait_is_over(uid, now, placed=bool(pod.spec.node_name))
        holds = bool(pod.spec.node_name) and not pod.is_terminal and not gone
        if holds and uid not in self._holds:
            self._hold(pod)
        elif not holds and uid in self._holds:
            namespace, gpus = self._holds.pop(uid)
            self._held[namespace] -= gpus
            self._held_in_all -= gpus
        if gone:
            self._phases.pop(uid, None)
        else:
            self._phases[uid] = phase

    def _wait_is_over(self, uid: str, now: Instant, *, placed: bool) -> None:
        if uid in self._came:
            waits = self._waits if placed else self._in_vain
            waits.append((now - self._came.pop(uid)) / SECOND)
        elif uid in self._waited_before:
            self._waited_before.remove(uid)
        else:
            return
        self._counts["placed"] += placed

    def _hold(self, pod: Pod) -> None:
        namespace = pod.metadata.namespace
        gpus = gpus_of_pod(pod, self._labels.get(pod.spec.node_name, {}))
        self._holds[pod.metadata.uid] = (namespace, gpus)
        self._held[namespace] = self._held.get(namespace, 0.0) + gpus
        self._held_in_all += gpus

    def _pass_to(self, now: Instant) -> None:
        passed = now - self._at
        if passed <= 0:
            return
        for namespace, gpus in self._held.items():
            if gpus:
                self._micros[namespace] = self._micros.get(namespace, 0.0) + gpus * passed
        self._idle += max(0.0, self._offered_in_all - self._held_in_all) * passed
        self._at = now

    @property
    def placed(self) -> int:
        """How many pods were placed, with those that waited before the account began."""
        return self._counts["placed"]

    def unplaced(self, now: Instant) -> list[float]:
        """Seconds that pods without a node have waited so far, or did until they went; of those that waited at all."""
        waiting = ((now - came) / SECOND for came in self._came.values())
        return [each for each in (*self._in_vain, *waiting) if each > 0]

    def waited(self, now: Instant, *shares: float) -> list[Wait]:
        """What so large a share of pods waited at most, by nearest rank; nothing where there were none.

        A pod without a node would have waited for longer than it did: from the first such on it is at least that.
        """
        vain, placed = self.unplaced(now), sorted(self._waits)
        known = bisect.bisect_right(placed, min(vain, default=math.inf))
        waits = sorted(placed + vain)
        places = [max(0, math.ceil(share * len(waits)) - 1) for share in shares] if waits else []
        return [Wait(waits[place], place >= known) for place in places]

    def usage(self, now: Instant) -> Usage:
        """The account up to now."""
        self._pass_to(now)
        phases = Counter(self._phases.values())
        return Usage(
            span=now - self._start,
            created=self._counts["created"],
            succeeded=self._counts["Succeeded"],
            failed=self._counts["Failed"],
            running=phases["Running"],
            pending=phases["Pending"],
            waits=len(self._waits),
            median_wait=statistics.median(self._waits) if self._waits else None,
            longest_wait=max(self._waits, default=None),
            gpu_hours={namespace: micros / _HOUR for namespace, micros in sorted(self._micros.items())},
            idle_gpu_hours=self._idle / _HOUR,
        )
