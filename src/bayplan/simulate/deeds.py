"""What an event does, as actions on the cluster: nodes are picked, workloads grow, VMs set out.

Chance is the scenario's own and drawn for nothing else, so the same seed picks the same nodes.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping

from bayplan.cluster.kinds import NODE, POD, Kind
from bayplan.model.clock import Instant
from bayplan.simulate import manifests
from bayplan.simulate.actions import Action, Create, Delete, Evict, Patch, Scale
from bayplan.simulate.entry import Entry
from bayplan.simulate.load import Load, silence
from bayplan.simulate.migrations import Migrations
from bayplan.simulate.observer import Observer
from bayplan.simulate.scenario import Scenario
from bayplan.simulate.seats import Seat
from bayplan.simulate.sources import WorkloadSource
from bayplan.simulate.timeline import AddNodes, Deeds, Fewer, Migrate, More, Pace, Pick, Resize


class Doer:
    """Turns deeds into actions; what is to be undone later is given to the load."""

    def __init__(
        self,
        scenario: Scenario,
        seed: int,
        load: Load,
        observer: Observer,
        migrations: Migrations,
        there: Mapping[str, Kind],
    ) -> None:
        self._load = load
        self._there = there
        """Workloads that are not the scenario's, by namespace and name."""
        self._observer = observer
        self._migrations = migrations
        self._groups = {group.name: group for group in scenario.nodes}
        self._numbers = {group.name: group.count for group in scenario.nodes}
        self._chance = random.Random(f"{seed}/events")
        self._on_nodes: Mapping[str, Callable[[str, Seat, Instant], Iterator[Action]]] = {
            "fail": lambda name, _seat, now: iter([silence(name, now)]),
            "recover": lambda name, _seat, _now: iter([silence(name, None)]),
            "cordon": lambda name, _seat, _now: iter([_mark(name, closed=True)]),
            "uncordon": lambda name, _seat, _now: iter([_mark(name, closed=False)]),
            "drain": self._drained,
            "removeNodes": lambda name, _seat, _now: iter([Delete(NODE, "", name)]),
        }

    def actions(self, deeds: Deeds, now: Instant) -> Iterator[Action]:
        """All that is to be done, in order."""
        for key, deed in deeds.each():
            if isinstance(deed, Fewer | Resize) and deed.workload in self._there:
                yield self._of_twin(deed)
            else:
                yield from self._of(key, deed, now)

    def _of_twin(self, deed: Fewer | Resize) -> Action:
        namespace, _, name = deed.workload.partition("/")
        kind = self._there[deed.workload]
        return Delete(kind, namespace, name) if isinstance(deed, Fewer) else Scale(kind, namespace, name, deed.replicas)

    def _of(self, key: str, deed: Entry, now: Instant) -> Iterator[Action]:
        offset = now - self._load.start
        match deed:
            case Pick():
                yield from self._pick(key, deed, now)
            case AddNodes(group=group, count=count):
                for _ in range(count):
                    yield Create(manifests.node(self._groups[group], self._next_name(group)))
            case More(workload=name, count=count):
                yield from self._load.more(name, count, offset)
            case Fewer(workload=name, count=most):
                yield from self._load.source(name).fewer(most)
            case Resize(workload=name, replicas=replicas):
                source = self._load.source(name)
                assert isinstance(source, WorkloadSource)
                yield source.scaled(replicas)
            case Pace(workload=name, factor=factor):
                self._load.source(name).factor = factor
            case Migrate():
                yield from self._migrations.begin(deed)
            case _:
                raise TypeError(f"no way to do {deed!r}")

    def _next_name(self, group: str) -> str:
        """A name that no node has."""
        while True:
            self._numbers[group] += 1
            name = f"{group}-{self._numbers[group]}"
            if name not in self._observer.seats:
                return name

    def _pick(self, key: str, pick: Pick, now: Instant) -> Iterator[Action]:
        for name in self._picked(key, pick):
            yield from self._on_nodes[key](name, self._observer.seats[name], now)
            if pick.for_ is not None:
                undone = silence(name, None) if key == "fail" else _mark(name, closed=False)
                self._load.later(now + pick.for_.micros - self._load.start, undone)

    def _picked(self, key: str, pick: Pick) -> list[str]:
        """The nodes, of those with whom it makes a difference."""
        seats = self._observer.seats
        able = [name for name, seat in seats.items() if _makes_sense(key, seat)]
        if isinstance(pick.nodes, tuple):
            return [name for name in pick.nodes if name in able]
        if pick.group:
            able = [name for name in able if name.rpartition("-")[0] == pick.group]
        able = [name for name in able if pick.labels.items() <= seats[name].labels.items()]
        if pick.nodes is None or pick.nodes >= len(able):
            return able
        chosen = set(self._chance.sample(range(len(able)), pick.nodes))
        return [name for place, name in enumerate(able) if place in chosen]

    def _drained(self, name: str, seat: Seat, _now: Instant) -> Iterator[Action]:
        yield _mark(name, closed=True)
        yield from self._migrations.leave(name)
        for pod in [*seat.pods]:
            if not self._observer.is_daemon(pod) and not self._load.is_vm(pod):
                yield Evict(POD, *pod)


def _makes_sense(key: str, seat: Seat) -> bool:
    if key in ("fail", "recover"):
        return seat.silent == (key == "recover")
    if key in ("cordon", "uncordon"):
        return seat.cordoned == (key == "uncordon")
    return True


def _mark(node: str, *, closed: bool) -> Patch:
    return Patch(NODE, "", node, {"spec": {"unschedulable": closed or None}})
