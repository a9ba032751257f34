"""VMs on their way: a pod that may go anywhere but back, and the old one that goes once the copy is complete.

    budgets would let it go -> target created -> placed -> memory copied -> source evicted

A migration that finds no place, or whose VM changes its memory faster than the network takes it, leaves the VM where
it is. Copies that run together share the links of their nodes, by simulate/vms' closed form. While a disruption budget
forbids the move it waits, or is given up, as the scenario says.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import msgspec

from bayplan.cluster.kinds import POD
from bayplan.model.clock import SECOND
from bayplan.simulate.actions import Action, Create, Delete, Evict, MayLeave
from bayplan.simulate.chance import Offset
from bayplan.simulate.load import Load
from bayplan.simulate.observer import Observer
from bayplan.simulate.scenario import Scenario
from bayplan.simulate.seats import PodKey
from bayplan.simulate.sources import Placed, VmSource
from bayplan.simulate.timeline import Migrate
from bayplan.simulate.vms.precopy import Links, Transfer, precopy
from bayplan.simulate.vms.vm import GIBI


class _Move(msgspec.Struct, frozen=True):
    source: VmSource
    there: Placed
    origin: str
    """The node that is left."""
    wished: str
    patient: bool
    """Whether it waits while a budget forbids it."""

    @property
    def leaving(self) -> PodKey:
        return self.source.group.namespace, self.there.pod

    @property
    def target(self) -> PodKey:
        return self.source.group.namespace, self.there.next_pod


class Migrations:
    """All migrations of a run."""

    def __init__(self, scenario: Scenario, load: Load, observer: Observer, *, budgets: bool) -> None:
        self._load = load
        self._observer = observer
        self._budgets = budgets
        self._network = scenario.network.mbps()
        self._asking: dict[PodKey, _Move] = {}
        self._waiting: list[_Move] = []
        self._copying: dict[str, _Move] = {}
        self._links = Links(self._network)
        self.done = self.refused = 0

    @property
    def under_way(self) -> bool:
        """Whether a decision, or the end of a copy, is waited for."""
        return bool(self._waiting or self._copying)

    @property
    def next_at(self) -> Offset | None:
        """When the next copy is complete, if no other begins before: the first instant after it."""
        return math.floor(self._links.next_end * SECOND) + 1 if self._copying else None

    def begin(self, wish: Migrate) -> Iterator[Action]:
        """VMs set out: the first ones of those that run and are meant."""
        meant = (move for move in self._movable(wish.to, patient=wish.budget == "wait") if _is_meant(move, wish))
        for move, _ in zip(meant, range(wish.count), strict=False):
            yield self._set_out(move)

    def leave(self, node: str) -> Iterator[Action]:
        """All VMs of a node set out."""
        for move in [*self._movable("", patient=True)]:
            if move.origin == node:
                yield self._set_out(move)

    def _movable(self, wished: str, *, patient: bool) -> Iterator[_Move]:
        moving = {id(move.there) for move in (*self._asking.values(), *self._waiting, *self._copying.values())}
        for source in self._load.vms:
            for there in source.there.values():
                node = self._observer.place_of((source.group.namespace, there.pod))
                if node and id(there) not in moving:
                    yield _Move(source, there, node, wished, patient)

    def _set_out(self, move: _Move) -> Action:
        if self._budgets:
            self._asking[move.leaving] = move
            return MayLeave(POD, *move.leaving)
        return self._create(move)

    def _create(self, move: _Move) -> Create:
        self._waiting.append(move)
        return Create(move.source.next_pod(move.there, move.origin, move.wished))

    def allowed(self, asked: MayLeave) -> Action:
        """Budgets would let it go: what is done next."""
        return self._create(self._asking.pop((asked.namespace, asked.name)))

    def forbidden(self, asked: MayLeave, *, for_now: bool) -> bool:
        """It may not go; whether it is to be asked for again."""
        key = asked.namespace, asked.name
        if for_now and self._asking[key].patient:
            return True
        del self._asking[key]
        self.refused += 1
        return False

    def not_made(self, pod: PodKey) -> None:
        """The API server has refused a pod; whoever was to migrate to it stays."""
        for move in [each for each in self._waiting if each.target == pod]:
            self._waiting.remove(move)
            self.refused += 1

    def decided(self, offset: Offset) -> Iterator[Action]:
        """What follows from the scheduler's decisions so far, and from the time that has passed."""
        for name, done in self._links.pass_to(offset / SECOND).items():
            yield self._arrive(self._copying.pop(name), converged=done.converged)
        for move in [*self._waiting]:
            place = self._observer.place_of(move.target)
            if place and self._converges(move):
                self._waiting.remove(move)
                self._copy(move, place, offset)
            elif place or self._observer.is_refused(move.target):
                self._waiting.remove(move)
                yield self._turned_back(move)

    def _converges(self, move: _Move) -> bool:
        vm = move.there.vm
        most = min(self._network.link_mbps, self._network.total_mbps)
        return precopy(vm.memory_consumption * GIBI, most, vm.dirty_rate_mbps).converges

    def _copy(self, move: _Move, target: str, offset: Offset) -> None:
        vm = move.there.vm
        self._copying[vm.id] = move
        memory = vm.memory_consumption * GIBI
        self._links.begin(Transfer(vm.id, move.origin, target, memory, vm.dirty_rate_mbps, offset / SECOND))

    def _arrive(self, move: _Move, *, converged: bool) -> Action:
        """The copy is complete; where one of the two pods is gone meanwhile, it is of no use."""
        there = self._observer.place_of
        if not converged or not there(move.leaving) or not there(move.target):
            return self._turned_back(move)
        self.done += 1
        return Evict(POD, *move.source.moved(move.there))

    def _turned_back(self, move: _Move) -> Delete:
        self.refused += 1
        return Delete(POD, *move.target)


def _is_meant(move: _Move, wish: Migrate) -> bool:
    named = wish.vms in (move.source.name, move.there.vm.id)
    return named and wish.from_ in ("", move.origin)
