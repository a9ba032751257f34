"""A cluster, the load on it, and the account that is kept of both: what `bayplan up` and benchmarks run."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from bayplan.cluster.embedded.assembly import embedded_cluster
from bayplan.cluster.embedded.kubelet.behaviour import USUAL, Defaults
from bayplan.cluster.embedded.store import Change, ChangeType
from bayplan.cluster.kinds import EVENT, NODE, POD, Kind
from bayplan.cluster.objects import Object
from bayplan.model.clock import Clock, Instant, VirtualClock
from bayplan.model.errors import ApiError
from bayplan.scheduling.configuration import SchedulerConfiguration
from bayplan.simulate.actions import Action
from bayplan.simulate.driver import Reach, drive, passing, told
from bayplan.simulate.load import Load
from bayplan.simulate.scenario import Scenario
from bayplan.simulate.scenario_file import ScenarioError
from bayplan.simulate.tally import Tally

_RECENT = 500
Doc = dict[str, Any]


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
        if scenario.events:
            raise ScenarioError("events: expected none where nobody keeps account of them", hint="bayplan simulate run")
        self.cluster = embedded_cluster(clock=VirtualClock(start), seed=seed, behaviour=behaviour, scheduler=scheduler)
        self.load = Load(scenario, seed, start)
        self.tally = Tally(start)
        self.recent: deque[Object] = deque(maxlen=_RECENT)
        """The newest Events, oldest first; a repeated one stands where it was last."""
        self.refusals: Counter[str] = Counter()
        """What users asked for and did not get, by reason."""
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
        else:
            self.tally.note(change.new, self.cluster.world.now, gone=change.type is ChangeType.DELETED)

    def begin_account(self) -> None:
        """Start counting anew: what happened so far was preparation."""
        tally = Tally(self.now)
        for kind in (NODE, POD):
            for item in self.cluster.world.store.objects(kind):
                tally.meet(item, self.now)
        self.tally = tally

    def _refused(self, action: Action, error: ApiError) -> None:
        self.refusals[f"{told(action).split('/')[0]}: {error.reason}"] += 1

    async def rehearse(
        self,
        until: Instant,
        *,
        stopping: Callable[[], bool] = lambda: False,
        reached: Callable[[Instant], None] = lambda _: None,
    ) -> None:
        """Virtual time, as fast as the machine: do everything up to an instant, unless stopped before."""

        async def reach(at: Instant) -> None:
            await passing(self.cluster, at)
            reached(at)

        await self._drive(reach, until, stopping)

    async def go_live(self, clock: Clock, until: Instant) -> None:
        """Real time by the clock, which must stand where virtual time ended, up to an instant or until cancelled."""
        self.cluster.clock = clock
        world = asyncio.create_task(self.cluster.run(), name="cluster")
        users = asyncio.create_task(self._drive(clock.sleep_until, until, lambda: False), name="users")
        try:
            await asyncio.wait([world, users], return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (world, users):
                task.cancel()
            failures = await asyncio.gather(world, users, return_exceptions=True)
        for failure in failures:
            if isinstance(failure, Exception):
                raise failure

    async def _drive(self, reach: Reach, until: Instant, stopping: Callable[[], bool]) -> None:
        await drive(self.cluster, self.load, reach, until, refused=self._refused, stopping=stopping)

    def objects(self) -> Iterable[Object]:
        """Everything in the cluster: by group, kind, namespace and name."""
        store = self.cluster.world.store
        kinds: list[Kind] = sorted(store.kinds(), key=lambda kind: (kind.group, kind.name))
        return (item for kind in kinds for item in store.objects(kind))
