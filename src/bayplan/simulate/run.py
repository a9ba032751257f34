"""A run of a scenario: its load and events on a cluster, watched from beginning to end.

`Run` is what both engines share: who does what, who watches, what is written. `rehearse` takes it through virtual time
on the embedded engine, from timer to timer, as fast as the machine; lab_run takes it through real time on the lab.

A run's cluster has what its scenario needs and nothing else (lean), or is a twin, whole, at the time it was taken.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from bayplan.cluster.embedded.assembly import embedded_cluster
from bayplan.cluster.embedded.engine import EmbeddedCluster
from bayplan.cluster.embedded.kubelet.behaviour import PREFIX, USUAL, Defaults
from bayplan.cluster.embedded.kubelet.usage import usage
from bayplan.cluster.embedded.store import Change, ChangeType
from bayplan.cluster.kinds import NODE, POD
from bayplan.cluster.port import Cluster
from bayplan.model.clock import SECOND, Instant, VirtualClock, rfc3339, rfc3339_micro
from bayplan.model.errors import ApiError, TooManyRequests
from bayplan.model.pods import Pod
from bayplan.scheduling.configuration import SchedulerConfiguration
from bayplan.scheduling.decision import Decision
from bayplan.service.collecting import seldom
from bayplan.simulate import eventlog
from bayplan.simulate.acting import Acting, pass_to, settle
from bayplan.simulate.actions import Action
from bayplan.simulate.driver import denial, told
from bayplan.simulate.expected import expected, fragmentation
from bayplan.simulate.lean import cluster_for
from bayplan.simulate.observer import Observer
from bayplan.simulate.scenario import Scenario
from bayplan.simulate.scenario_ground import ground_of
from bayplan.simulate.summary import Summary, mean_of, most_common, waits_of
from bayplan.simulate.timeline import Deeds
from bayplan.simulate.twin.filling import RUNS_ON, fill
from bayplan.simulate.twin.snapshot import Snapshot
from bayplan.simulate.vm_owners import furnish
from bayplan.simulate.vms.reasons import forbidden_by
from bayplan.simulate.wishes import Wishes, judged

SAMPLES = 96
"""How often a run is sampled."""
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
    twin: Snapshot | None = None
    """The cluster that the scenario is put to, if it is not one of its own."""

    @property
    def pods(self) -> list[Pod]:
        """The pods that are there before it begins."""
        return [] if self.twin is None else self.twin.pods()


class Run(Acting):
    """One run, from its beginning on a cluster without nodes or on a twin."""

    def __init__(self, order: Order, cluster: Cluster, start: Instant, log: eventlog.Writer, wishes: Wishes) -> None:
        there = None if order.twin is None else ground_of(order.twin).workloads
        super().__init__(order.scenario, order.seed, start, cluster, Observer(log, start, wishes), there)
        self.order = order
        self.end = Instant(start + order.duration)
        self.log = log
        self._sorts = expected(order.scenario, order.pods)
        self._measured = _is_measured(order.scenario)
        self._samples: list[eventlog.Sample] = []
        self._sampled = 0
        self._denied: Counter[str] = Counter()
        self._events: Counter[str] = Counter()
        log.write(
            eventlog.Began(
                t=0.0,
                scenario=order.name,
                digest=digest(order.scenario, order.twin),
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

    def met(self) -> None:
        """What was seen so far was there before: it is in the log from the start, and in no account of what came."""
        self.observer.tally.begin()
        self.observer.failed = 0

    def denied(self, action: Action, error: ApiError, now: Instant) -> None:
        """See Acting."""
        text = forbidden_by(error)[0] if isinstance(error, TooManyRequests) else error.message
        self._denied[denial(action, error)] += 1
        self.log.write(eventlog.Denied(t=self.t(now), action=told(action), reason=text))

    def happened(self, name: str, _deeds: Deeds, actions: Sequence[Action], now: Instant) -> None:
        """See Acting."""
        self._events[name] += 1
        self.log.write(eventlog.Happened(t=self.t(now), event=name, did=tuple(told(each) for each in actions)))

    @property
    def next_sample(self) -> Instant:
        """When the cluster is looked at next."""
        return Instant(self.start + self._sampled * self.order.duration // SAMPLES)

    def sample(self, now: Instant, used: Callable[[], tuple[float, float, float]] = lambda: (0.0, 0.0, 0.0)) -> None:
        """Write down how the cluster stands."""
        self._sampled += 1
        seen = self.observer
        seen.sample(now)
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
        if complete:
            seen.rest(now)
        else:
            seen.pass_to(now)  # where it was stopped it may be in the middle of things
        levels = seen.levels.found()
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
            placed=seen.tally.placed,
            pending=seen.pending,
            running=seen.running,
            succeeded=account.succeeded,
            failed=account.failed,
            waits=waits_of(seen.tally, now),
            cpu=levels["cpu"].mean,
            memory=levels["memory"].mean,
            gpu=levels["gpu"].mean,
            levels=levels,
            fragmentation=mean_of(self._samples, "fragmentation"),
            gpu_hours={name: _rounded(hours) for name, hours in account.gpu_hours.items()},
            idle_gpu_hours=_rounded(account.idle_gpu_hours),
            events=dict(sorted(self._events.items())),
            migrations=self.migrations.done,
            migrations_refused=self.migrations.refusals.total(),
            why_refused=most_common(self.migrations.refusals),
            agreement=agreement if agreement.moves else None,
            denied=dict(sorted(self._denied.items())),
            why_pending=most_common(seen.why_pending()),
            samples=tuple(self._samples),
        )


def _rounded(share: float) -> float:
    return round(share, 6) + 0.0  # no -0.0


def digest(scenario: Scenario, twin: Snapshot | None = None) -> str:
    """What tells scenarios apart, and the twins that they are put to."""
    plain = msgspec.to_builtins(scenario, enc_hook=str)
    found = hashlib.sha256(msgspec.json.encode(plain, order="deterministic"))
    if twin is not None:
        found.update(rfc3339_micro(twin.at).encode())
        for item in twin.objects:
            found.update(f"{item.uid} {item.meta.resource_version}".encode())
    return found.hexdigest()[:16]


def _is_measured(scenario: Scenario) -> bool:
    """Whether anything is said of what pods use; else it is not looked at."""
    said = [{PREFIX + key for key in each.behaviour} for each in scenario.workloads]
    return bool(scenario.usage_models) or any(each.intersection(_USAGE) for each in said)


# --- in virtual time


def _behaviour(order: Order) -> Defaults:
    """How pods behave that do not say it themselves. Those of a twin run on."""
    behaviour = msgspec.structs.replace(EXACT, run=USUAL.run if order.twin is None else RUNS_ON.run)
    if order.scenario.start_up is None:
        return behaviour
    return msgspec.structs.replace(behaviour, pull=0, start=order.scenario.start_up.micros)


def _cluster(
    order: Order, clock: VirtualClock, scheduler: SchedulerConfiguration | None, behaviour: Defaults
) -> EmbeddedCluster:
    """A cluster without nodes. On a twin nobody knows what will be needed."""
    if order.twin is not None:
        return embedded_cluster(clock=clock, seed=order.seed, scheduler=scheduler, behaviour=behaviour)
    return cluster_for(order.scenario, clock=clock, seed=order.seed, scheduler=scheduler, behaviour=behaviour)


class Rehearsal:
    """A run on the embedded engine."""

    def __init__(self, order: Order, log: eventlog.Writer, scheduler: SchedulerConfiguration | None = None) -> None:
        self._clock = VirtualClock() if order.twin is None else VirtualClock(order.twin.at)
        self._behaviour = _behaviour(order)
        self._profiles = {} if scheduler is None else scheduler.by_name()
        self.cluster: EmbeddedCluster = _cluster(order, self._clock, scheduler, self._behaviour)
        furnish(self.cluster, order.scenario)
        self.run = Run(order, self.cluster, self._clock.now(), log, Wishes(self._judge))
        self.cluster.world.store.listeners.append(self._note)
        if order.twin is not None:
            fill(self.cluster, order.twin)
            self.run.met()

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
        with seldom():
            return await self._rehearse(stopping, reached)

    async def _rehearse(self, stopping: Callable[[], bool], reached: Callable[[Instant], None]) -> Summary:
        run = self.run
        while not stopping():
            at = min(run.next_sample, run.load.next_at or run.end, run.end)
            await pass_to(self.cluster, run, at, stopping)
            if stopping():
                break
            for timed in run.load.until(min(at, run.end)):
                await run.act(timed.action, timed.at)
            if at == run.next_sample:
                await settle(self.cluster, run, stopping)
                if stopping():
                    break
                run.sample(at, self._used)
                reached(at)
            if at >= run.end:
                return run.finish(at, complete=True)
        run.sample(self.now, self._used)
        return run.finish(self.now, complete=False)

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
        objects = (*store.objects(NODE), *store.objects(POD))
        return judged(objects, pod, self._profiles.get(pod.spec.scheduler_name))


async def rehearse(order: Order, log: Path | None = None, scheduler: SchedulerConfiguration | None = None) -> Summary:
    """A whole run in virtual time, for other parts of the house."""
    with eventlog.Writer(log) as writer:
        return await Rehearsal(order, writer, scheduler).rehearse()
