"""VMs on their way: a pod that may go anywhere but back, and the old one that goes once the copy is complete.

A migration that finds no place, or whose VM changes its memory faster than the network takes it, leaves the VM where
it is. How long a copy takes is simulate/vms' closed form, each with the link to itself.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from bayplan.cluster.kinds import POD
from bayplan.model.clock import SECOND
from bayplan.simulate.actions import Action, Create, Delete
from bayplan.simulate.chance import Offset
from bayplan.simulate.load import Load
from bayplan.simulate.observer import Observer
from bayplan.simulate.sources import Placed, VmSource
from bayplan.simulate.timeline import Migrate
from bayplan.simulate.vms.precopy import NETWORK, precopy
from bayplan.simulate.vms.vm import GIBI


class _Move(msgspec.Struct, frozen=True):
    source: VmSource
    there: Placed
    pod: str


class Migrations:
    """All migrations of a run."""

    def __init__(self, load: Load, observer: Observer) -> None:
        self._load = load
        self._observer = observer
        self._waiting: list[_Move] = []
        self.done = self.refused = 0

    @property
    def under_way(self) -> bool:
        """Whether a decision is waited for."""
        return bool(self._waiting)

    def begin(self, wish: Migrate) -> Iterator[Action]:
        """VMs set out: the first ones of those that run and are meant."""
        left = wish.count
        for source in self._load.vms:
            if not (wish.vms == source.name or wish.vms in source.there):
                continue
            for there in source.there.values():
                node = self._observer.place_of((source.group.namespace, there.pod))
                if not left or not node or (wish.from_ and node != wish.from_) or self._is_moving(there):
                    continue
                if wish.vms in (source.name, there.vm.id):
                    left -= 1
                    made = source.next_pod(there, node, wish.to)
                    self._waiting.append(_Move(source, there, made.name))
                    yield Create(made)

    def _is_moving(self, there: Placed) -> bool:
        return any(move.there is there for move in self._waiting)

    def decided(self, offset: Offset) -> Iterator[Action]:
        """What follows from the scheduler's decisions so far."""
        for move in [*self._waiting]:
            key = (move.source.group.namespace, move.pod)
            copy = precopy(move.there.vm.memory_consumption * GIBI, NETWORK.link_mbps, move.there.vm.dirty_rate_mbps)
            if self._observer.place_of(key) and copy.converges:
                self._waiting.remove(move)
                self.done += 1
                self._load.later(offset + round(copy.seconds * SECOND), move.source.moved(move.there))
            elif self._observer.place_of(key) or self._observer.is_refused(key):
                self._waiting.remove(move)
                self.refused += 1
                yield Delete(POD, *key)
