"""A run of a scenario: its load and events on a cluster, watched from beginning to end.

`Run` is what both engines share: who does what, who watches, what is written. `rehearse` takes it through virtual time
on the embedded engine, from timer to timer, as fast as the machine; lab_run takes it through real time on the lab.

A run's cluster has what its scenario needs and nothing else (lean).
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import msgspec

from bayplan.cluster.embedded.engine import EmbeddedCluster
from bayplan.cluster.embedded.kubelet.behaviour import PREFIX, USUAL, Defaults
from bayplan.cluster.embedded.kubelet.usage import usage
from bayplan.cluster.embedded.store import Change, ChangeType
from bayplan.cluster.kinds import NODE, POD
from bayplan.cluster.port import Cluster
from bayplan.model.clock import SECOND, Instant, VirtualClock, rfc3339
from bayplan.model.errors import ApiError, TooManyRequests
from bayplan.model.nodes import Node
from bayplan.model.pods import Pod
from bayplan.scheduling.configuration import SchedulerConfiguration
from bayplan.scheduling.decision import Decision
from bayplan.scheduling.state import ClusterState
from bayplan.simulate import eventlog
from bayplan.simulate.actions import Action, Evict
from bayplan.simulate.deeds import Doer
from bayplan.simulate.director import Director
from bayplan.simulate.driver import do, told
from bayplan.simulate.expected import expected, fragmentation
from bayplan.simulate.lean import cluster_for
from bayplan.simulate.load import Load
from bayplan.simulate.migrations import Migrations
from bayplan.simulate.observer import Observer
from bayplan.simulate.scenario import Scenario
from bayplan.simulate.summary import Summary, Waits, mean_of, most_common
from bayplan.simulate.vms.reasons import judge
from bayplan.simulate.wishes import Wishes

SAMPLES = 96
"""How often a run is sampled."""
_STEP = 500
"""Reconciles between two looks at whether to stop."""
_AGAIN = 5 * SECOND
"""After which an eviction that a budget forbade is asked for again, as kubectl drain does."""
EXACT = msgspec.structs.replace(USUAL, jitter=0.0)
"""Pods of a run take the usual time to start, and all the same."""
_USAGE = tuple(PREFIX + key for key in ("cpu", "memory", "gpu"))


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be run."""

    scenario: Scenario
    name: str
    seed: int
    policy: str = "default"
    engine: str = "embedded"
    duration: int
    """Microseconds."""


class Run:
    """One run, from its beginning on a cluster without nodes."""

    def __init__(self, order: Order, cluster: Cluster, start: Instant, log: eventlog.Writer, wishes: Wishes) -> None:
        self.order = order
        self.cluster = cluster
        self.start = start
        self.end = Instant(start + order.duration)
        self.log = log
        self.observer = Observer(log, start, wishes)
        self.load = Load(order.scenario, order.seed, start)
        self.director = Director(order.scenario.events, start)
        self.migrations = Migrations(self.load, self.observer)
        self._doer = Doer(order.scenario, order.seed, self.load, self.observer, self.migrations)
        self._sorts = expected(order.scenario)
        self._measured = _is_measured(order.scenario)
        self._samples: list[eventlog.Sample] = []
        self._sampled = 0
        self._denied: Counter[str] = Counter()
        self._events: Counter[str] = Counter()
        log.write(
            eventlog.Began(
                t=0.0,
                scenario=order.name,
                digest=digest(order.scenario),
                seed=order.seed,
                policy=order.policy,
                engine=order.engine,
                duration=order.duration / SECOND,
                start=rfc3339(start),
            )
        )

    def t(self, now: Instant) -> float:
        """Seconds since the start."""
        return (now - self.start) / SECOND

    async def act(self, action: Action, now: Instant) -> None:
        """Do one thing; what the API server refuses is written down and is no reason to stop."""
        try:
            await do(action, self.cluster)
        except TooManyRequests as error:
            self._deny(action, error, now)
            if isinstance(action, Evict):
                self.load.later(now + _AGAIN - self.start, action)
        except ApiError as error:
            self._deny(action, error, now)

    def _deny(self, action: Action, error: ApiError, now: Instant) -> None:
        what = told(action)
        self._denied[f"{what.split('/')[0]}: {error.reason}"] += 1
        self.log.write(eventlog.Denied(t=self.t(now), action=what, reason=error.message))

    async def happen(self, now: Instant) -> bool:
        """Let the events happen that are due; whether there were any."""
        acted = False
        for action in self.migrations.decided(now - self.start) if self.migrations.under_way else ():
            await self.act(action, now)
            acted = True
        for index, event in self.director.due(now, self.observer.look) if self.director.active else ():
            name = event.name or f"events[{index}]"
            actions = [*self._doer.actions(event.do, now)]
            self._events[name] += 1
            self.log.write(eventlog.Happened(t=self.t(now), event=name, did=tuple(told(each) for each in actions)))
            for action in actions:
                await self.act(action, now)
            acted = True
        return acted

    @property
    def next_sample(self) -> Instant:
        """When the cluster is looked at next."""
        return Instant(self.start + self._sampled * self.order.duration // SAMPLES)

    def sample(self, now: Instant, used: Callable[[], tuple[float, float, float]] = lambda: (0.0, 0.0, 0.0)) -> None:
        """Write down how the cluster stands."""
        self._sampled += 1
        seen = self.observer
        cpu, memory, gpu = used() if self._measured else (0.0, 0.0, 0.0)
        line = eventlog.Sample(
            t=self.t(now),
            pending=seen.pending,
            running=seen.running,
            nodes=seen.ready,
            cpu=_rounded(seen.share(0)),
            memory=_rounded(seen.share(1)),
            gpu=_rounded(seen.share(2)),
            fragmentation=_rounded(fragmentation(self._sorts, seen.seats.values())),
            used_cpu=_rounded(cpu),
            used_memory=_rounded(memory),
            used_gpu=_rounded(gpu),
        )
        self._samples.append(line)
        self.log.write(line)

    def finish(self, now: Instant, *, complete: bool) -> Summary:
        """The account, after which nothing more is written."""
        self.log.write(eventlog.Ended(t=self.t(now), complete=complete))
        seen, order = self.observer, self.order
        account = seen.tally.usage(now)
        waits = [_rounded(each) for each in seen.tally.waited(0.5, 0.9, 0.99, 1.0)]
        agreement = seen.wishes.agreement()
        return Summary(
            scenario=order.name,
            policy=order.policy,
            engine=order.engine,
            seed=order.seed,
            duration=order.duration / SECOND,
            reached=self.t(now),
            complete=complete,
            nodes=len(seen.seats),
            created=account.created,
            placed=account.waits,
            pending=seen.pending,
            running=seen.running,
            succeeded=account.succeeded,
            failed=account.failed,
            waits=Waits(*waits) if waits else None,
            cpu=mean_of(self._samples, "cpu"),
            memory=mean_of(self._samples, "memory"),
            gpu=mean_of(self._samples, "gpu"),
            fragmentation=mean_of(self._samples, "fragmentation"),
            gpu_hours={name: _rounded(hours) for name, hours in account.gpu_hours.items()},
            idle_gpu_hours=_rounded(account.idle_gpu_hours),
            events=dict(sorted(self._events.items())),
            migrations=self.migrations.done,
            migrations_refused=self.migrations.refused,
            agreement=agreement if agreement.moves else None,
            denied=dict(sorted(self._denied.items())),
            why_pending=most_common(seen.why_pending()),
            samples=tuple(self._samples),
        )


def _rounded(share: float) -> float:
    return round(share, 6) + 0.0  # no -0.0


def digest(scenario: Scenario) -> str:
    """What tells scenarios apart."""
    plain = msgspec.to_builtins(scenario, enc_hook=str)
    return hashlib.sha256(msgspec.json.encode(plain, order="deterministic")).hexdigest()[:16]


def _is_measured(scenario: Scenario) -> bool:
    """Whether anything is said of what pods use; else it is not looked at."""
    said = [{PREFIX + key for key in each.behaviour} for each in scenario.workloads]
    return bool(scenario.usage_models) or any(each.intersection(_USAGE) for each in said)


# --- in virtual time


class Rehearsal:
    """A run on the embedded engine."""

    def __init__(self, order: Order, log: eventlog.Writer, scheduler: SchedulerConfiguration | None = None) -> None:
        start = VirtualClock().now()
        behaviour = EXACT
        if order.scenario.start_up is not None:
            behaviour = msgspec.structs.replace(EXACT, pull=0, start=order.scenario.start_up.micros)
        self._behaviour: Defaults = behaviour
        self._clock = VirtualClock(start)
        self.cluster: EmbeddedCluster = cluster_for(
            order.scenario, clock=self._clock, seed=order.seed, scheduler=scheduler, behaviour=behaviour
        )
        self.run = Run(order, self.cluster, start, log, Wishes(self._judge))
        self.cluster.world.store.listeners.append(self._note)

    def _note(self, change: Change) -> None:
        gone = change.type is ChangeType.DELETED
        self.run.observer.note(change.new, change.old, self.cluster.world.now, gone=gone)

    @property
    def now(self) -> Instant:
        """The cluster's time."""
        return self.cluster.world.now

    async def rehearse(
        self,
        *,
        stopping: Callable[[], bool] = lambda: False,
        reached: Callable[[Instant], None] = lambda _: None,
    ) -> Summary:
        """All of it, unless stopped before."""
        run = self.run
        while not stopping():
            at = min(run.next_sample, run.load.next_at or run.end, run.end)
            await self._pass(at, stopping)
            if stopping():
                break
            for timed in run.load.until(min(at, run.end)):
                await run.act(timed.action, timed.at)
            if at == run.next_sample:
                await self._settle(stopping)
                run.sample(at, self._used)
                reached(at)
            if at >= run.end:
                return run.finish(at, complete=True)
        return run.finish(self.now, complete=False)

    async def _settle(self, stopping: Callable[[], bool]) -> None:
        """Do what is to be done at this instant."""
        world = self.cluster.world
        while True:
            while world.settle(_STEP) == _STEP:
                await asyncio.sleep(0)
                if stopping():
                    return
            if not await self.run.happen(world.now):
                return

    async def _pass(self, to: Instant, stopping: Callable[[], bool]) -> None:
        """Let it become `to`, from timer to timer."""
        world, director = self.cluster.world, self.run.director
        while not stopping():
            await self._settle(stopping)
            due = min((at for at in (world.next_timer, director.next_at()) if at is not None), default=None)
            if due is None or due > to:
                break
            world.catch_up(due)
        if not stopping():
            world.catch_up(to)
            self._clock.advance_to(world.now)

    def _used(self) -> tuple[float, float, float]:
        """What pods use of all that nodes have: CPU, memory, GPUs."""
        cpu = memory = 0
        gpu = 0.0
        store = self.cluster.world.store
        for item in store.objects(POD):
            found = usage(item, self.now, self._behaviour)
            cpu, memory = cpu + found.cpu, memory + found.memory
            gpu += found.gpu * self.run.observer.gpus_of(item.key) if found.gpu else 0.0
        all_cpu, all_memory, all_gpus = self.run.observer.totals
        return cpu / (all_cpu or 1), memory / (all_memory or 1), gpu / (all_gpus or 1)

    def _judge(self, pod: Pod) -> Decision:
        store = self.cluster.world.store
        state = ClusterState(())
        for item in store.objects(NODE):
            state.put(item.view(Node))
        for item in store.objects(POD):
            other = item.view(Pod)
            if other.spec.node_name and not other.is_terminal and other.metadata.uid != pod.metadata.uid:
                state.put(other)
        return judge(state, pod)


async def rehearse(order: Order, log: Path | None = None, scheduler: SchedulerConfiguration | None = None) -> Summary:
    """A whole run in virtual time, for other parts of the house."""
    with eventlog.Writer(log) as writer:
        return await Rehearsal(order, writer, scheduler).rehearse()
