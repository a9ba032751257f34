"""Where the load comes from: workloads and VMs, each with chance of its own.

A source tells what it does in order of time. One whose pace an event may change tells candidates at its fastest pace,
and each is taken or passed over when its time has come.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec

from bayplan.cluster.kinds import KINDS, POD, Kind
from bayplan.simulate import chance as drawing
from bayplan.simulate import manifests
from bayplan.simulate.actions import Action, Create, CreateOwned, Delete, Patch, Scale
from bayplan.simulate.chance import HOUR, Offset, level
from bayplan.simulate.entry import Spread
from bayplan.simulate.manifests import Made
from bayplan.simulate.scenario import Arrivals, Daily, Mishap, Scenario, Size, VmGroup, Workload
from bayplan.simulate.seats import PodKey
from bayplan.simulate.vm_owners import has_owners, owner
from bayplan.simulate.vm_pods import drawn, pod
from bayplan.simulate.vms.launcher import VIRTUAL_MACHINE
from bayplan.simulate.vms.vm import VM

ROLLOUT = "bayplan.dev/rollout"
_LAUNCHER = "virt-launcher-"
_SETTLED = 48 * HOUR
"""A curve that asked for nothing new in two days never will."""

Stream = Iterator[tuple[Offset, Action]]
Leavings = list[tuple[Offset, int, Action]]
"""A heap: when, and the number of whom, so that actions are never compared."""


class Arrival(NamedTuple):
    """One that comes, and when it goes."""

    name: str
    action: Create
    until: tuple[Offset, Action] | None = None


class Source:
    """What arrives, at a pace that may change, and what is there of it."""

    class Chance(Action, frozen=True):
        """A candidate: whether it comes is decided when its time has come."""

        source: Source
        drawn: float

        def taken(self, offset: Offset) -> Arrival | None:
            """What comes, if anything."""
            return self.source.decide(self.drawn, offset)

    class Leaving(Action, frozen=True):
        """One goes, from wherever it is by then, unless it is gone already."""

        source: Source
        name: str

        def now(self) -> Iterator[Delete]:
            """What is deleted, if anything."""
            if self.name in self.source.alive:
                yield from self.source.gone(self.name)

    def __init__(self, name: str, namespace: str, arrivals: Arrivals | None, scenario: Scenario, seed: int) -> None:
        self.name = name
        self.full_name = f"{namespace}/{name}"
        self.arrivals = arrivals
        self.curves = {curve.name: curve.hours for curve in scenario.curves}
        self.chance = random.Random(f"{seed}/{namespace}/{name}")
        paces = [event.do.arrivals for event in scenario.events if event.do.arrivals is not None]
        factors = [pace.factor for pace in paces if pace.workload in (self.name, self.full_name)]
        self.peak = max(1.0, *factors) if factors else None
        """How fast it may ever come; None where nothing changes that."""
        self.factor = 1.0
        self.alive: dict[str, tuple[Kind, str, str]] = {}
        """Those that have come and not left, the oldest first: kind, namespace and name of what runs each."""
        self.number = 0
        self._arrived = 0
        self._credit = 0.0

    def one(self, offset: Offset) -> Arrival:
        """The next one, as it comes."""
        arrival = self._next(offset)
        self._come(arrival)
        return arrival

    def _next(self, offset: Offset) -> Arrival:
        self.number += 1
        name = f"{self.name}-{self.number}"
        action, lifetime = self.make()
        if lifetime is None:
            return Arrival(name, action)
        leaves = offset + drawing.span(lifetime, self.chance).micros
        return Arrival(name, action, (leaves, Source.Leaving(self, name)))

    def _come(self, arrival: Arrival) -> None:
        made = arrival.action.made
        self.alive[arrival.name] = made.kind, made.namespace, made.name

    def _told(self, arrival: Arrival, at: Offset, leaving: Leavings) -> Stream:
        """An arrival of a stream. Streams are asked ahead of time, but go on only when what they told is due."""
        yield at, arrival.action
        self._come(arrival)
        if arrival.until is not None:
            heapq.heappush(leaving, (arrival.until[0], self.number, arrival.until[1]))

    def stream(self) -> Stream:
        """What is done for it, in order."""
        raise NotImplementedError

    def make(self) -> tuple[Create, Spread | None]:
        """The one of the present number, and how long it stays."""
        raise NotImplementedError

    def decide(self, number: float, offset: Offset) -> Arrival | None:
        """A candidate's time has come."""
        assert self.arrivals is not None
        assert self.peak is not None
        if self.arrivals.count is not None and self._arrived >= self.arrivals.count:
            return None
        if self.arrivals.per_hour is not None:
            comes = number < self.factor / self.peak
        else:
            self._credit += self.factor / self.peak
            comes = self._credit >= 1
            self._credit -= comes
        self._arrived += comes
        return self.one(offset) if comes else None

    def fewer(self, count: int | None) -> Iterator[Delete]:
        """The oldest go."""
        for name in [*self.alive][:count]:
            yield from self.gone(name)

    def gone(self, name: str) -> Iterator[Delete]:
        """One of those that are there goes."""
        yield Delete(*self.alive.pop(name))

    def arriving(self) -> Stream:
        """What comes in time, and what goes."""
        assert self.arrivals is not None
        if self.peak is not None:
            for at in drawing.arrival_times(self.arrivals, self.curves, self.chance, self.peak):
                yield at, Source.Chance(self, self.chance.random())
            return
        leaving: Leavings = []
        for at in drawing.arrival_times(self.arrivals, self.curves, self.chance):
            while leaving and leaving[0][0] <= at:
                yield _left(leaving)
            yield from self._told(self._next(at), at, leaving)
        while leaving:
            yield _left(leaving)


def _left(leaving: Leavings) -> tuple[Offset, Action]:
    at, _, action = heapq.heappop(leaving)
    return at, action


class WorkloadSource(Source):
    """One workload."""

    def __init__(self, workload: Workload, scenario: Scenario, seed: int) -> None:
        super().__init__(workload.name, workload.namespace, workload.arrivals, scenario, seed)
        usage = [model.behaviour() for model in scenario.usage_models if model.name == workload.usage]
        behaviour = {**(usage[0] if usage else {}), **workload.behaviour}
        self._workload = msgspec.structs.replace(workload, behaviour=behaviour)
        self._target = KINDS[workload.kind], workload.namespace, workload.name
        self._specs: dict[int, dict[str, Any]] = {}
        """Of pods, by their size, which the workload keeps."""

    def stream(self) -> Stream:
        """What is done for it, in order."""
        if self._workload.arrivals is not None:
            return self.arriving()
        streams = [self._once()]
        if self._workload.replicas is not None:
            streams.append(self._following(self._workload.replicas))
        if self._workload.rollouts is not None:
            streams.append(self._changing())
        return heapq.merge(*streams, key=lambda timed: timed[0])

    def make(self) -> tuple[Create, Spread | None]:
        """See Source."""
        mishap = self._mishap()
        made = self._made(f"{self.name}-{self.number}", mishap)
        if mishap is not None and mishap.lifetime is not None:
            return made, mishap.lifetime
        return made, self._workload.lifetime

    def _made(self, name: str, mishap: Mishap | None, replicas: int | None = None) -> Create:
        workload, chance = self._workload, self.chance
        behaviour: dict[str, object] = {}
        if workload.run_time is not None:
            behaviour["run-for"] = drawing.span(workload.run_time, chance)
        if mishap is not None:
            behaviour |= mishap.behaviour
        size = drawing.size(workload.sizes, chance) if workload.sizes else None
        spec = self._spec_of(size) if workload.kind == "Pod" else None
        return Create(manifests.workload(workload, name, behaviour=behaviour, size=size, replicas=replicas, spec=spec))

    def _spec_of(self, size: Size | None) -> dict[str, Any]:
        known = self._specs.get(id(size))
        if known is None:
            known = self._specs[id(size)] = manifests.sized(self._workload, size)
        return known

    def _once(self) -> Stream:
        daily = self._workload.replicas
        replicas = None if daily is None else self._wanted(daily, 0)
        yield 0, self._made(self._workload.name, self._mishap(), replicas)

    def _mishap(self) -> Mishap | None:
        return drawing.mishap(self._workload.mishaps, self.chance)

    def _wanted(self, daily: Daily, at: Offset) -> int:
        return daily.low + round((daily.high - daily.low) * level(self.curves, daily.curve, at))

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
        chance = random.Random(f"{self.chance.random()}")
        for number, at in enumerate(drawing.arrival_times(self._workload.rollouts, self.curves, chance), 1):
            annotations = {ROLLOUT: str(number)}
            yield at, Patch(*self._target, {"spec": {"template": {"metadata": {"annotations": annotations}}}})

    def scaled(self, replicas: int) -> Scale:
        """Another number of replicas."""
        return Scale(*self._target, replicas)


class Placed(msgspec.Struct):
    """A VM that came, and the pod that runs it."""

    vm: VM
    turn: int = 1

    @property
    def pod(self) -> str:
        """The pod's name."""
        return self._named(self.turn)

    @property
    def next_pod(self) -> str:
        """The name of the pod that it would migrate to."""
        return self._named(self.turn + 1)

    def _named(self, turn: int) -> str:
        return f"{_LAUNCHER}{self.vm.id}-{turn}"


class VmSource(Source):
    """VMs of one group."""

    def __init__(self, group: VmGroup, scenario: Scenario, seed: int) -> None:
        super().__init__(group.name, group.namespace, group.arrivals, scenario, seed)
        self.group = group
        self._scenario = scenario
        self.there: dict[str, Placed] = {}
        """By id."""
        self._owned = has_owners(group, scenario)

    def stream(self) -> Stream:
        """Those from the start, then those that arrive."""
        streams = [self._standing()]
        if self.arrivals is not None:
            streams.append(self.arriving())
        return heapq.merge(*streams, key=lambda timed: timed[0])

    def _standing(self) -> Stream:
        leaving: Leavings = []
        for _ in range(self.group.count):
            yield from self._told(self._next(0), 0, leaving)
        while leaving:
            yield _left(leaving)

    def make(self) -> tuple[Create, Spread | None]:
        """See Source."""
        vm = drawn(self.group, self.number, self.chance)
        self.there[vm.id] = Placed(vm)
        wished = self.group.wished
        made = pod(vm, self.group, self._scenario, wished=wished[(self.number - 1) % len(wished)] if wished else "")
        return self._creating(vm, made), self.group.lifetime

    def _creating(self, vm: VM, made: Made) -> Create:
        return CreateOwned(made, owner(vm, self.group)) if self._owned else Create(made)

    def gone(self, name: str) -> Iterator[Delete]:
        """See Source."""
        yield from super().gone(name)
        if self._owned:
            yield Delete(VIRTUAL_MACHINE, self.group.namespace, name)

    def runs(self, pod: PodKey) -> bool:
        """Whether a pod is one of theirs."""
        return pod[0] == self.group.namespace and pod[1].removeprefix(_LAUNCHER).rpartition("-")[0] in self.there

    def next_pod(self, there: Placed, source: str, wished: str) -> Create:
        """The pod that a VM would migrate to."""
        made = pod(there.vm, self.group, self._scenario, turn=there.turn + 1, wished=wished, never=source)
        return self._creating(there.vm, made)

    def moved(self, there: Placed) -> None:
        """The next pod is the VM's now."""
        there.turn += 1
        if there.vm.id in self.alive:
            self.alive[there.vm.id] = POD, self.group.namespace, there.pod
