"""A cluster, what a scenario does to it, and the account that is kept of both: what `bayplan up` and benchmarks run."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import Any

from bayplan.cluster.embedded.assembly import embedded_cluster
from bayplan.cluster.embedded.kubelet.behaviour import USUAL, Defaults
from bayplan.cluster.embedded.store import Change, ChangeType
from bayplan.cluster.kinds import EVENT, NODE, POD, Kind
from bayplan.cluster.objects import Object
from bayplan.model.clock import Clock, Instant, VirtualClock
from bayplan.model.errors import ApiError
from bayplan.scheduling.configuration import SchedulerConfiguration
from bayplan.simulate.acting import Acting, pass_to
from bayplan.simulate.actions import Action, Target
from bayplan.simulate.driver import denial
from bayplan.simulate.eventlog import Writer
from bayplan.simulate.load import next_outages
from bayplan.simulate.observer import Observer
from bayplan.simulate.scenario import Scenario
from bayplan.simulate.tally import Tally
from bayplan.simulate.timeline import Deeds
from bayplan.simulate.timeline_words import condition_words, deeds_words, event_words
from bayplan.simulate.vm_owners import furnish

_RECENT = 500
Doc = dict[str, Any]


class _Acting(Acting):
    """What is told goes to the stage."""

    def __init__(self, stage: Stage, seed: int, start: Instant) -> None:
        super().__init__(stage.scenario, seed, start, stage.cluster, Observer(Writer(), start))
        self._stage = stage

    def denied(self, action: Action, error: ApiError, _now: Instant) -> None:
        """See Acting."""
        self._stage.refusals[denial(action, error)] += 1

    def happened(self, name: str, deeds: Deeds, actions: Sequence[Action], now: Instant) -> None:
        """See Acting."""
        nodes = {each.name: None for each in actions if isinstance(each, Target) and each.kind is NODE}
        did = deeds_words(deeds)
        chosen = ", ".join(node for node in nodes if node not in did)
        self._stage.events[name] += 1
        self._stage.happened.append((now, name, f"{did} ({chosen})" if chosen else did))


async def _first(*awaited: Coroutine[Any, Any, Any]) -> None:
    """Return once one of them has."""
    tasks = [asyncio.create_task(each) for each in awaited]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class Stage:
    """Begins in virtual time at `start`; `go_live` lets a clock take over."""

    def __init__(
        self,
        scenario: Scenario,
        *,
        seed: int,
        start: Instant,
        behaviour: Defaults = USUAL,
        scheduler: SchedulerConfiguration | None = None,
        nodes: Sequence[Doc] = (),
    ) -> None:
        self.scenario = scenario
        self.scheduler = scheduler
        self.cluster = embedded_cluster(clock=VirtualClock(start), seed=seed, behaviour=behaviour, scheduler=scheduler)
        furnish(self.cluster, scenario)
        self._acting = _Acting(self, seed, start)
        self._changed = asyncio.Event()
        self.tally = Tally(start)
        self.recent: deque[Object] = deque(maxlen=_RECENT)
        """The newest Events, oldest first; a repeated one stands where it was last."""
        self.refusals: Counter[str] = Counter()
        """What users asked for and did not get, by reason."""
        self.happened: deque[tuple[Instant, str, str]] = deque(maxlen=_RECENT)
        """The newest of the scenario's events, and what was done."""
        self.events: Counter[str] = Counter()
        """How often each of them has happened."""
        self.cluster.world.store.listeners.append(self._note)
        for node in nodes:
            self.cluster.world.server.create(NODE, "", node)

    @property
    def now(self) -> Instant:
        """The cluster's time."""
        return self.cluster.clock.now()

    def _note(self, change: Change) -> None:
        if change.kind is EVENT:
            if change.type is not ChangeType.DELETED:
                self.recent.append(change.new)
            return
        now, gone = self.cluster.world.now, change.type is ChangeType.DELETED
        self.tally.note(change.new, now, gone=gone)
        if self._acting.director.active:
            self._acting.observer.note(change.new, change.old, now, gone=gone)
            self._changed.set()

    def begin_account(self) -> None:
        """Start counting anew: what happened so far was preparation."""
        tally = Tally(self.now)
        for kind in (NODE, POD):
            for item in self.cluster.world.store.objects(kind):
                tally.meet(item, self.now)
        self.tally = tally

    def coming(self) -> list[tuple[Instant | None, str]]:
        """What the scenario has in store beside its load: in order, and then what has no time but a condition."""
        events = ((at, event_words(event)) for at, event in self._acting.director.timed())
        outages = next_outages(self.scenario, self._acting.start, self.now)
        timed = sorted([*events, *((at, f"outage of {each.node} for {each.lasts}") for at, each in outages)])
        waiting = ((event_words(event), event.when) for event in self._acting.director.open())
        return [*timed, *((None, f"{words} when {condition_words(when)}") for words, when in waiting if when)]

    async def rehearse(
        self,
        until: Instant,
        *,
        stopping: Callable[[], bool] = lambda: False,
        reached: Callable[[Instant], None] = lambda _: None,
    ) -> None:
        """Virtual time, as fast as the machine: do everything up to an instant, unless stopped before."""

        acting = self._acting
        while not stopping():
            at = min(acting.load.next_at or until, until)
            await pass_to(self.cluster, acting, at, stopping)
            await asyncio.sleep(0)  # whoever watches sees it
            if stopping():
                return
            for timed in acting.load.until(at):
                await acting.act(timed.action, timed.at)
            reached(at)
            if at >= until:
                return

    async def go_live(self, clock: Clock, until: Instant) -> None:
        """Real time by the clock, which must stand where virtual time ended, up to an instant or until cancelled."""
        self.cluster.clock = clock
        world = asyncio.create_task(self.cluster.run(), name="cluster")
        users = asyncio.create_task(self._act(clock, until), name="users")
        try:
            await asyncio.wait([world, users], return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (world, users):
                task.cancel()
            failures = await asyncio.gather(world, users, return_exceptions=True)
        for failure in failures:
            if isinstance(failure, Exception):
                raise failure

    async def _act(self, clock: Clock, until: Instant) -> None:
        """Do what is due when it is due, and what follows from what has changed. What is late is done in its order."""
        acting = self._acting
        while True:
            self._changed.clear()
            now = min(clock.now(), until)
            at = min(now, self._due(until))
            for timed in acting.load.until(at):
                await acting.act(timed.action, at)
            if await acting.happen(at) or at < now:
                continue
            if now >= until:
                return
            await _first(clock.sleep_until(self._due(until)), self._changed.wait())

    def _due(self, until: Instant) -> Instant:
        """When something is to be done next."""
        return min(at for at in (self._acting.load.next_at, self._acting.next_event, until) if at is not None)

    def objects(self) -> Iterable[Object]:
        """Everything in the cluster: by group, kind, namespace and name."""
        store = self.cluster.world.store
        kinds: list[Kind] = sorted(store.kinds(), key=lambda kind: (kind.group, kind.name))
        return (item for kind in kinds for item in store.objects(kind))
