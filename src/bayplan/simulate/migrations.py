"""VMs on their way: a pod that may go anywhere but back, and the old one that goes once the new one can take over.

    budgets would let it go -> target created -> placed -> memory copied, and target runs -> source evicted

It is done when the source's eviction was granted. Whatever fails before that lets the target go and leaves the VM where
it is: no place, a VM that changes its memory faster than the network takes it, a target that does not start, a budget.
Where one of the two pods is lost on the way it ends at once, for a copy that is of no use takes bandwidth from others.
Copies that run together share the links of their nodes, by simulate/vms' closed form. While a disruption budget forbids
the move it waits, or is given up, as the scenario says.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator

import msgspec

from bayplan.cluster.kinds import POD
from bayplan.model.clock import SECOND
from bayplan.model.errors import ApiError, TooManyRequests
from bayplan.simulate import eventlog
from bayplan.simulate.actions import Action, Create, Delete, Evict, MayLeave
from bayplan.simulate.chance import Offset
from bayplan.simulate.load import Load
from bayplan.simulate.observer import Observer
from bayplan.simulate.scenario import Scenario
from bayplan.simulate.seats import PodKey
from bayplan.simulate.sources import Placed, VmSource
from bayplan.simulate.timeline import Migrate
from bayplan.simulate.vms.precopy import TIMEOUT, Links, Transfer, precopy
from bayplan.simulate.vms.reasons import forbidden_by
from bayplan.simulate.vms.vm import GIBI

AGAIN = 5 * SECOND
"""After which an eviction that a budget forbade is asked for again, as kubectl drain does."""
START = 900 * SECOND
"""After which a target that does not run is given up: KubeVirt's catch-all timeout of pending targets, 15 minutes."""
_NEVER_ARRIVES = "its memory changes as fast as it can be sent"
_LATE = f"the copy was not complete after {TIMEOUT:.0f}s"
_NO_START = f"the target did not run for {START // SECOND}s"
_GONE = "the VM is gone"
_TARGET_GONE = "the target is gone"


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


class _Copied(msgspec.Struct):
    """A move whose memory has arrived, and which ends once its target runs and its source may go."""

    move: _Move
    again: Offset
    """When it is looked at again, whatever happens before."""
    until: Offset
    """When it is given up, unless its target runs by then."""
    forbidden: bool = False
    """Whether a budget forbade the eviction: then nothing is asked before that."""


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
        self._copied: dict[PodKey, _Copied] = {}
        """By the pod that is left."""
        self._links = Links(self._network)
        self.done = 0
        self.refusals: Counter[str] = Counter()
        """Those that did not come about, by reason."""

    @property
    def under_way(self) -> bool:
        """Whether a decision, the end of a copy, or a target's start is waited for."""
        return bool(self._waiting or self._copying or self._copied)

    @property
    def next_at(self) -> Offset | None:
        """When something is to be looked at: the first instant after the next copy is complete, if no other begins."""
        times = [each.again for each in self._copied.values()]
        if self._copying:
            times.append(math.floor(self._links.next_end * SECOND) + 1)
        return min(times, default=None)

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
        copied = (each.move for each in self._copied.values())
        under_way = (*self._asking.values(), *self._waiting, *self._copying.values(), *copied)
        moving = {id(move.there) for move in under_way}
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
        self._observer.expected.add(move.target)
        return move.source.next_pod(move.there, move.origin, move.wished)

    def allowed(self, asked: MayLeave) -> Action:
        """Budgets would let it go: what is done next."""
        return self._create(self._asking.pop((asked.namespace, asked.name)))

    def forbidden(self, asked: MayLeave, error: ApiError, offset: Offset) -> bool:
        """It may not go; whether it is to be asked for again."""
        key = asked.namespace, asked.name
        if self._waits(self._asking[key], error):
            return True
        self._stays(self._asking.pop(key), _because(error), offset)
        return False

    def not_made(self, pod: PodKey, error: ApiError, offset: Offset) -> None:
        """The API server has refused a pod; whoever was to migrate to it stays."""
        for move in [each for each in self._waiting if each.target == pod]:
            self._waiting.remove(move)
            self._observer.expected.discard(pod)
            self._stays(move, f"the target was refused: {error.reason}", offset)

    def leaves(self, pod: PodKey) -> bool:
        """Whether the eviction of a pod is the last step of a migration."""
        return pod in self._copied

    def left(self, pod: PodKey) -> None:
        """The eviction was granted: the VM has moved."""
        move = self._copied.pop(pod).move
        move.source.moved(move.there)
        self.done += 1

    def kept(self, pod: PodKey, error: ApiError, offset: Offset) -> Delete | None:
        """The eviction was refused; what is done about it, unless it is asked for again."""
        copied = self._copied[pod]
        if self._waits(copied.move, error):
            copied.forbidden = True
            return None
        move = self._copied.pop(pod).move
        self._stays(move, _because(error), offset)
        return Delete(POD, *move.target)

    def _waits(self, move: _Move, error: ApiError) -> bool:
        return move.patient and isinstance(error, TooManyRequests)

    def decided(self, offset: Offset) -> Iterator[Action]:
        """What follows from the scheduler's decisions so far, and from the time that has passed."""
        ended = self._links.pass_to(offset / SECOND)
        yield from self._without_lost(offset)
        for name, done in ended.items():
            move = self._copying.pop(name, None)
            if move is None:
                continue  # lost just then
            if done.converged:
                self._copied[move.leaving] = _Copied(move, offset, offset + START)
            else:
                yield from self._turned_back(move, _LATE, offset)
        for copied in [*self._copied.values()]:
            yield from self._take_over(copied, offset)
        for move in [*self._waiting]:
            place, refusal = self._observer.place_of(move.target), self._observer.refusal(move.target)
            if place and self._converges(move):
                self._waiting.remove(move)
                self._copy(move, place, offset)
            elif place or refusal:
                self._waiting.remove(move)
                yield from self._turned_back(move, _NEVER_ARRIVES if place else f"no place: {refusal}", offset)

    def _without_lost(self, offset: Offset) -> Iterator[Action]:
        """Moves of which one of the two pods is lost come to nothing, however far they are."""
        seen, copied = self._observer, (each.move for each in self._copied.values())
        for move in [*self._waiting, *self._copying.values(), *copied]:
            lost = _GONE if seen.is_lost(move.leaving) else _TARGET_GONE if seen.is_lost(move.target) else ""
            if lost:
                self._drop(move)
                yield from self._turned_back(move, lost, offset)

    def _drop(self, move: _Move) -> None:
        self._waiting = [each for each in self._waiting if each is not move]
        if self._copying.pop(move.there.vm.id, None) is not None:
            self._links.end(move.there.vm.id)
        self._copied.pop(move.leaving, None)

    def _converges(self, move: _Move) -> bool:
        vm = move.there.vm
        most = min(self._network.link_mbps, self._network.total_mbps)
        return precopy(vm.memory_consumption * GIBI, most, vm.dirty_rate_mbps).converges

    def _copy(self, move: _Move, target: str, offset: Offset) -> None:
        vm = move.there.vm
        self._copying[vm.id] = move
        memory = vm.memory_consumption * GIBI
        self._links.begin(Transfer(vm.id, move.origin, target, memory, vm.dirty_rate_mbps, offset / SECOND))

    def _take_over(self, copied: _Copied, offset: Offset) -> Iterator[Action]:
        """The copy is complete: what is left is that the target runs, and that the source may go."""
        move = copied.move
        if copied.forbidden and offset < copied.again:
            return
        if self._observer.runs(move.target):
            copied.until = offset + START
            yield Evict(POD, *move.leaving)
        elif offset >= copied.until:
            del self._copied[move.leaving]
            yield from self._turned_back(move, _NO_START, offset)
        if offset >= copied.again:
            copied.again = min(offset + AGAIN, copied.until)

    def _turned_back(self, move: _Move, reason: str, offset: Offset) -> Iterator[Delete]:
        """The VM stays, and its target goes, unless it is gone already."""
        self._stays(move, reason, offset)
        if self._observer.is_there(move.target):
            yield Delete(POD, *move.target)

    def _stays(self, move: _Move, reason: str, offset: Offset) -> None:
        self.refusals[reason] += 1
        vm = f"{move.source.group.namespace}/{move.there.vm.id}"
        self._observer.log.write(eventlog.Stayed(t=offset / SECOND, vm=vm, node=move.origin, reason=reason))


def _because(error: ApiError) -> str:
    """Why a pod may not go: the budget by its name, else what the API server calls it."""
    budget = forbidden_by(error)[1] if isinstance(error, TooManyRequests) else ""
    return f"disruption budget {budget}" if budget else error.reason or error.message


def _is_meant(move: _Move, wish: Migrate) -> bool:
    named = wish.vms in (move.source.name, move.there.vm.id)
    return named and wish.from_ in ("", move.origin)
