"""The load of a scenario: what the teams do, in order of time, for ever.

Pure: the same scenario and seed give the same actions. Each workload draws from a generator of its own, so changing
one leaves the others as they were. The actions are told as a cluster's users would do them; `driver` does them.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator

from bayplan.cluster.embedded.bootstrap import SYSTEM_NAMESPACES
from bayplan.cluster.embedded.kubelet.node import STOPPED
from bayplan.cluster.kinds import NODE
from bayplan.model.clock import Instant, rfc3339
from bayplan.simulate import manifests
from bayplan.simulate.actions import Action, Create, Patch, Timed
from bayplan.simulate.chance import Offset
from bayplan.simulate.scenario import Outage, Scenario
from bayplan.simulate.seats import PodKey
from bayplan.simulate.sources import Source, Stream, VmSource, WorkloadSource


class Load:
    """The actions of a scenario that begins at `start`."""

    def __init__(self, scenario: Scenario, seed: int, start: Instant) -> None:
        self.start = start
        self._sources: list[Source] = [WorkloadSource(each, scenario, seed) for each in scenario.workloads]
        self.vms = [VmSource(each, scenario, seed) for each in scenario.vms]
        self._sources += self.vms
        streams = [_standing(scenario), *(each.stream() for each in self._sources)]
        streams += [_outage(each, start) for each in scenario.outages]
        self._merged = heapq.merge(*streams, key=lambda timed: timed[0])
        self._next: tuple[Offset, Action] | None = next(self._merged, None)
        self._later: list[tuple[Offset, int, Action]] = []
        self._number = 0

    def source(self, name: str) -> Source:
        """A workload by its name, with or without its namespace, or VMs. Raises KeyError."""
        for each in self._sources:
            if name in (each.name, each.full_name):
                return each
        raise KeyError(name)

    def is_vm(self, pod: PodKey) -> bool:
        """Whether a pod runs one of the VMs, or is to."""
        return any(each.runs(pod) for each in self.vms)

    @property
    def next_at(self) -> Instant | None:
        """When something is due next."""
        offsets = [each[0] for each in (self._next, self._later[0] if self._later else None) if each is not None]
        return Instant(self.start + min(offsets)) if offsets else None

    def later(self, offset: Offset, action: Action) -> None:
        """Something else to do, in its time."""
        self._number += 1
        heapq.heappush(self._later, (offset, self._number, action))

    def until(self, end: Instant) -> Iterator[Timed]:
        """The actions that are due up to and including an instant, in order; each is told once."""
        while (at := self.next_at) is not None and at <= end:
            for action in self._take(at - self.start):
                yield Timed(at, action)

    def _take(self, offset: Offset) -> Iterator[Action]:
        if self._later and self._later[0][0] == offset:
            action = heapq.heappop(self._later)[2]
        else:
            assert self._next is not None
            action = self._next[1]
            self._next = next(self._merged, None)
        if isinstance(action, Source.Leaving):
            yield from action.now()
        elif not isinstance(action, Source.Chance):
            yield action
        elif (made := action.taken(offset)) is not None:
            yield made.action
            if made.until is not None:
                self.later(*made.until)

    def more(self, name: str, count: int, offset: Offset) -> Iterator[Action]:
        """So many more of a workload, beside those that arrive."""
        source = self.source(name)
        for _ in range(count):
            made = source.one(offset)
            yield made.action
            if made.until is not None:
                self.later(*made.until)


def _standing(scenario: Scenario) -> Stream:
    """What is there from the beginning."""
    for group in scenario.nodes:
        for name in group.node_names():
            yield 0, Create(manifests.node(group, name))
    for priority in scenario.priority_classes:
        yield 0, Create(manifests.priority_class(priority))
    for team in scenario.teams:
        if team.name not in SYSTEM_NAMESPACES:
            yield 0, Create(manifests.namespace(team))
        for made in manifests.quota(team):
            yield 0, Create(made)
    for budget in scenario.budgets:
        yield 0, Create(manifests.budget(budget, scenario))


def _outage(outage: Outage, start: Instant) -> Stream:
    at = outage.at.micros
    while True:
        yield at, silence(outage.node, Instant(start + at))
        yield at + outage.lasts.micros, silence(outage.node, None)
        if outage.every is None:
            return
        at += outage.every.micros


def next_outages(scenario: Scenario, start: Instant, now: Instant) -> Iterator[tuple[Instant, Outage]]:
    """The outages that are still to come, each once."""
    for each in scenario.outages:
        at, every = start + each.at.micros, None if each.every is None else each.every.micros
        if at <= now and every:
            at += -(-(now + 1 - at) // every) * every
        if at > now:
            yield Instant(at), each


def silence(node: str, since: Instant | None) -> Patch:
    """A node's kubelet falls silent, or, without a time, comes back."""
    value = None if since is None else f"stopped-at={rfc3339(since)}"
    return Patch(NODE, "", node, {"metadata": {"annotations": {STOPPED: value}}})
