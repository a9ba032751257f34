"""Who does what in a scenario: the load, the events beside it, VMs on the move; on any engine, in any time.

`act` does one thing through the port, `happen` lets events happen that are due. Whoever drives it tells the time, and
is told what was refused and what happened. `pass_to` drives it through virtual time, from timer to timer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence

from bayplan.cluster.embedded.engine import EmbeddedCluster
from bayplan.cluster.kinds import Kind
from bayplan.cluster.port import Cluster
from bayplan.model.clock import Instant, VirtualClock
from bayplan.model.errors import ApiError, TooManyRequests
from bayplan.simulate.actions import Action, Create, Evict, MayLeave
from bayplan.simulate.deeds import Doer
from bayplan.simulate.director import Director
from bayplan.simulate.driver import do, told
from bayplan.simulate.load import Load
from bayplan.simulate.migrations import AGAIN, Migrations
from bayplan.simulate.observer import Observer
from bayplan.simulate.scenario import Scenario
from bayplan.simulate.timeline import Deeds

_STEP = 500
"""Reconciles between two looks at whether to stop."""


class Acting:
    """All that a scenario does to a cluster."""

    def __init__(
        self,
        scenario: Scenario,
        seed: int,
        start: Instant,
        cluster: Cluster,
        observer: Observer,
        there: Mapping[str, Kind] | None = None,
    ) -> None:
        """`there`: the workloads of a twin, by namespace and name; it may have budgets, too."""
        self.start = start
        self.cluster = cluster
        self.observer = observer
        self.load = Load(scenario, seed, start)
        self.director = Director(scenario.events, start)
        budgets = bool(scenario.budgets) or there is not None
        self.migrations = Migrations(scenario, self.load, observer, budgets=budgets)
        self._doer = Doer(scenario, seed, self.load, observer, self.migrations, there or {})
        self._forbidden: set[str] = set()
        """What a budget forbade and is tried again: that is told once."""

    def denied(self, action: Action, error: ApiError, now: Instant) -> None:
        """Called when the API server has refused something."""

    def happened(self, name: str, deeds: Deeds, actions: Sequence[Action], now: Instant) -> None:
        """Called when an event happens, before its actions."""

    async def act(self, action: Action, now: Instant) -> None:
        """Do one thing; what the API server refuses is told and is no reason to stop."""
        try:
            await do(action, self.cluster)
        except ApiError as error:
            if told(action) not in self._forbidden:
                self.denied(action, error, now)
            await self._refused(action, error, now)
        else:
            if isinstance(action, MayLeave):
                await self.act(self.migrations.allowed(action), now)
            elif isinstance(action, Evict) and self.migrations.leaves((action.namespace, action.name)):
                self.migrations.left((action.namespace, action.name))

    async def _refused(self, action: Action, error: ApiError, now: Instant) -> None:
        """What a refusal leads to: where a budget forbids something for now, it may be asked for again."""
        migrations, offset = self.migrations, now - self.start
        match action:
            case Create(made):
                migrations.not_made((made.namespace, made.name), error, offset)
            case MayLeave() if migrations.forbidden(action, error, offset):
                self._ask_again(action, offset)
            case Evict(_, namespace, name) if migrations.leaves((namespace, name)):
                back = migrations.kept((namespace, name), error, offset)
                if back is None:
                    self._forbidden.add(told(action))
                else:
                    await self.act(back, now)
            case Evict() if isinstance(error, TooManyRequests):
                self._ask_again(action, offset)
            case _:
                pass

    def _ask_again(self, action: Action, offset: int) -> None:
        self._forbidden.add(told(action))
        self.load.later(offset + AGAIN, action)

    async def happen(self, now: Instant) -> bool:
        """Let the events happen that are due; whether there were any."""
        acted = False
        for action in self.migrations.decided(now - self.start) if self.migrations.under_way else ():
            await self.act(action, now)
            acted = True
        for index, event in self.director.due(now, self.observer.look) if self.director.active else ():
            actions = [*self._doer.actions(event.do, now)]
            self.happened(event.name or f"events[{index}]", event.do, actions, now)
            for action in actions:
                await self.act(action, now)
            acted = True
        return acted

    @property
    def next_event(self) -> Instant | None:
        """When something is due beside the load, as far as is known now."""
        copied = self.migrations.next_at
        times = (self.director.next_at(), None if copied is None else Instant(self.start + copied))
        return min((at for at in times if at is not None), default=None)


async def settle(cluster: EmbeddedCluster, acting: Acting, stopping: Callable[[], bool]) -> None:
    """Do what is to be done at this instant."""
    world = cluster.world
    while True:
        while world.settle(_STEP) == _STEP:
            await asyncio.sleep(0)
            if stopping():
                return
        if not await acting.happen(world.now):
            return


async def pass_to(cluster: EmbeddedCluster, acting: Acting, to: Instant, stopping: Callable[[], bool]) -> None:
    """Virtual time: let it become `to`, unless stopped before, with all that happens on the way."""
    world, clock = cluster.world, cluster.clock
    assert isinstance(clock, VirtualClock)
    while not stopping():
        await settle(cluster, acting, stopping)
        due = min((at for at in (world.next_timer, acting.next_event) if at is not None), default=None)
        if due is None or due > to:
            break
        world.catch_up(due)
    if not stopping():
        world.catch_up(to)
    clock.advance_to(world.now)
