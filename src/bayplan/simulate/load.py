"""The load of a scenario: what the teams do, in order of time, for ever.

Pure: the same scenario and seed give the same actions. Each workload draws from a generator of its own, so changing
one leaves the others as they were. The actions are told as a cluster's users would do them; `driver` does them.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Iterator
from typing import Any

import msgspec

from bayplan.cluster.embedded.kubelet.node import STOPPED
from bayplan.cluster.kinds import KINDS, NODE, Kind
from bayplan.model.clock import Instant, rfc3339
from bayplan.simulate import chance as drawing
from bayplan.simulate import manifests
from bayplan.simulate.chance import HOUR, Offset, level
from bayplan.simulate.manifests import Made
from bayplan.simulate.scenario import Daily, Mishap, Outage, Scenario, Workload

ROLLOUT = "bayplan.dev/rollout"
_SETTLED = 48 * HOUR
"""A curve that asked for nothing new in two days never will."""


class Action(msgspec.Struct, frozen=True):
    """Something that somebody does to the cluster."""


class Create(Action, frozen=True):
    """Create an object."""

    made: Made


class Target(Action, frozen=True):
    """Something done to an object that is there, or was."""

    kind: Kind
    namespace: str
    name: str


class Delete(Target, frozen=True):
    """Delete it."""


class Scale(Target, frozen=True):
    """Set its replicas."""

    replicas: int


class Patch(Target, frozen=True):
    """Merge-patch it."""

    patch: dict[str, Any]


class Timed(msgspec.Struct, frozen=True):
    """An action and when it is due."""

    at: Instant
    action: Action


Stream = Iterator[tuple[Offset, Action]]


class Load:
    """The actions of a scenario that begins at `start`."""

    def __init__(self, scenario: Scenario, seed: int, start: Instant) -> None:
        self.start = start
        streams = [_standing(scenario)]
        streams += [_Workload(each, scenario, seed).stream() for each in scenario.workloads]
        streams += [_outage(each, start) for each in scenario.outages]
        self._merged = heapq.merge(*streams, key=lambda timed: timed[0])
        self._next: tuple[Offset, Action] | None = next(self._merged, None)

    def until(self, end: Instant) -> Iterator[Timed]:
        """The actions that are due up to and including an instant, in order; each is told once."""
        while self._next is not None and (at := Instant(self.start + self._next[0])) <= end:
            timed = Timed(at, self._next[1])
            self._next = next(self._merged, None)
            yield timed


def _standing(scenario: Scenario) -> Stream:
    """What is there from the beginning."""
    for group in scenario.nodes:
        for name in group.node_names():
            yield 0, Create(manifests.node(group, name))
    for priority in scenario.priority_classes:
        yield 0, Create(manifests.priority_class(priority))
    for team in scenario.teams:
        yield 0, Create(manifests.namespace(team))
        for made in manifests.quota(team):
            yield 0, Create(made)


def _outage(outage: Outage, start: Instant) -> Stream:
    at = outage.at.micros
    while True:
        stopped = f"stopped-at={rfc3339(Instant(start + at))}"
        yield at, _annotate(outage.node, stopped)
        yield at + outage.lasts.micros, _annotate(outage.node, None)
        if outage.every is None:
            return
        at += outage.every.micros


def _annotate(node: str, value: str | None) -> Patch:
    return Patch(NODE, "", node, {"metadata": {"annotations": {STOPPED: value}}})


class _Workload:
    """The stream of one workload."""

    def __init__(self, workload: Workload, scenario: Scenario, seed: int) -> None:
        self._workload = workload
        self._curves = {curve.name: curve.hours for curve in scenario.curves}
        self._chance = random.Random(f"{seed}/{workload.namespace}/{workload.name}")
        self._target = KINDS[workload.kind], workload.namespace, workload.name

    def stream(self) -> Stream:
        """What is done for it, in order."""
        if self._workload.arrivals is not None:
            return self._arriving()
        streams = [self._once()]
        if self._workload.replicas is not None:
            streams.append(self._following(self._workload.replicas))
        if self._workload.rollouts is not None:
            streams.append(self._changing())
        return heapq.merge(*streams, key=lambda timed: timed[0])

    def _made(self, name: str, mishap: Mishap | None, replicas: int | None = None) -> Create:
        workload, chance = self._workload, self._chance
        behaviour: dict[str, object] = {}
        if workload.run_time is not None:
            behaviour["run-for"] = drawing.span(workload.run_time, chance)
        if mishap is not None:
            behaviour |= mishap.behaviour
        resources = drawing.size(workload.sizes, chance).resources if workload.sizes else None
        return Create(manifests.workload(workload, name, behaviour=behaviour, resources=resources, replicas=replicas))

    def _once(self) -> Stream:
        daily = self._workload.replicas
        replicas = None if daily is None else self._wanted(daily, 0)
        yield 0, self._made(self._workload.name, self._mishap(), replicas)

    def _mishap(self) -> Mishap | None:
        return drawing.mishap(self._workload.mishaps, self._chance)

    def _arriving(self) -> Stream:
        arrivals = self._workload.arrivals
        assert arrivals is not None
        leaving: list[tuple[Offset, int]] = []
        for number, at in enumerate(drawing.arrival_times(arrivals, self._curves, self._chance), 1):
            while leaving and leaving[0][0] <= at:
                yield self._left(*heapq.heappop(leaving))
            mishap = self._mishap()
            yield at, self._made(f"{self._workload.name}-{number}", mishap)
            lifetime = (
                mishap.lifetime if mishap is not None and mishap.lifetime is not None else self._workload.lifetime
            )
            if lifetime is not None:
                heapq.heappush(leaving, (at + drawing.span(lifetime, self._chance).micros, number))

    def _left(self, at: Offset, number: int) -> tuple[Offset, Action]:
        kind, namespace, name = self._target
        return at, Delete(kind, namespace, f"{name}-{number}")

    def _wanted(self, daily: Daily, at: Offset) -> int:
        return daily.low + round((daily.high - daily.low) * level(self._curves, daily.curve, at))

    def _following(self, daily: Daily) -> Stream:
        at = changed = 0
        before = self._wanted(daily, 0)
        while at - changed < _SETTLED:
            at += daily.every.micros
            wanted = self._wanted(daily, at)
            if wanted != before:
                yield at, Scale(*self._target, wanted)
                before, changed = wanted, at

    def _changing(self) -> Stream:
        assert self._workload.rollouts is not None
        chance = random.Random(f"{self._chance.random()}")
        for number, at in enumerate(drawing.arrival_times(self._workload.rollouts, self._curves, chance), 1):
            annotations = {ROLLOUT: str(number)}
            yield at, Patch(*self._target, {"spec": {"template": {"metadata": {"annotations": annotations}}}})
