"""A run on the lab: the real kube-scheduler and controllers, on nodes that KWOK keeps.

The lab knows real time only, and nothing runs there. So a run goes from rest to rest: once every pod has its place or
its refusal and nothing has changed for a moment, the clock jumps to what is due next. What needs kubelets that
obey a scenario (run times, behaviour, failures) is refused.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from bayplan.cluster.embedded.scheduler_file import load_configuration
from bayplan.cluster.kinds import (
    CUSTOM_RESOURCE_DEFINITION,
    NODE,
    POD,
    POD_DISRUPTION_BUDGET,
    SERVICE_ACCOUNT,
    Kind,
)
from bayplan.cluster.lab.lab import Lab, LabOptions
from bayplan.cluster.live.cluster import LiveCluster
from bayplan.cluster.live.reflector import Reflector
from bayplan.cluster.live.reflector_core import Change
from bayplan.cluster.objects import Object
from bayplan.model.clock import SECOND, Clock, Instant, SystemClock
from bayplan.model.errors import AlreadyExists, NotFound, PermanentError
from bayplan.model.meta import condition
from bayplan.model.nodes import Node
from bayplan.model.pods import Pod
from bayplan.model.policies import PodDisruptionBudget
from bayplan.scheduling.decision import Decision
from bayplan.scheduling.framework import Profile
from bayplan.scheduling.policies import STRATEGIES
from bayplan.service.yaml_lines import read_yaml
from bayplan.simulate import eventlog
from bayplan.simulate.actions import Create
from bayplan.simulate.policy import configuration
from bayplan.simulate.run import Order, Run
from bayplan.simulate.scenario import Scenario
from bayplan.simulate.summary import Summary
from bayplan.simulate.vm_owners import with_owners
from bayplan.simulate.vms.launcher import REMINDED, VIRTUAL_MACHINE, definition
from bayplan.simulate.vms.placing import is_established
from bayplan.simulate.wishes import Wishes, judged

_QUIET = 1.0
"""Seconds without a change after which everybody is taken to be done."""
_NOT_READY = "node.kubernetes.io/not-ready"
_PATIENCE = 120.0
"""Seconds that a decision is waited for, from the last one on."""


class LabRunError(PermanentError):
    """A scenario, or a policy, is not for the lab."""

    code = "BP-X015"


def check(order: Order, scheduler_config: Path | None) -> None:
    """Whether the lab can run it. Raises LabRunError with all that it cannot."""
    wrong = [*_unfit(order.scenario)]
    if scheduler_config is None and order.policy not in STRATEGIES:
        wrong.append(f"policy {order.policy}: kube-scheduler has {', '.join(STRATEGIES)}")
    if wrong:
        raise LabRunError(
            "not for the lab, where nothing really runs:\n" + "\n".join(wrong), hint="--engine embedded runs all of it"
        )


def _unfit(scenario: Scenario) -> Iterator[str]:
    for index, workload in enumerate(scenario.workloads):
        for key, given in (
            ("runTime", workload.run_time),
            ("behaviour", workload.behaviour),
            ("mishaps", workload.mishaps),
            ("usage", workload.usage),
        ):
            if given:
                yield f"workloads[{index}].{key}"
        if workload.kind == "Job":
            yield f"workloads[{index}].kind: a Job"
    yield from (f"vms[{index}].usage" for index, group in enumerate(scenario.vms) if group.usage)
    yield from (f"outages[{index}]" for index in range(len(scenario.outages)))
    for index, event in enumerate(scenario.events):
        for key, _ in event.do.each():
            if key in ("fail", "recover"):
                yield f"events[{index}].do.{key}"
    if scenario.start_up is not None:
        yield "startUp"


class _Jumping(Clock):
    """A clock that goes on by itself and can be set forward."""

    def __init__(self) -> None:
        self._real = SystemClock()
        self._ahead = 0

    def now(self) -> Instant:
        return Instant(self._real.now() + self._ahead)

    async def sleep_until(self, instant: Instant) -> None:
        await self._real.sleep_until(Instant(instant - self._ahead))

    def jump(self, to: Instant) -> None:
        """Let it be that time, unless it is already."""
        self._ahead += max(0, to - self.now())


async def on_lab(
    order: Order, log: eventlog.Writer, scheduler_config: Path | None, *, stopping: Callable[[], bool]
) -> Summary:
    """A whole run. Raises LabUnavailableError where there is no lab to be had."""
    options = LabOptions(scheduler_config=_configured(order.policy, scheduler_config))
    lab = await asyncio.to_thread(lambda: Lab(options, name="simulate").__enter__())
    try:
        async with LiveCluster.find(lab.kubeconfig) as cluster:
            return await _LabRun(order, cluster, log, _profiles(order, scheduler_config)).go(stopping)
    finally:
        await asyncio.to_thread(lab.close)


def _profiles(order: Order, file: Path | None) -> Mapping[str, Profile]:
    """By what the scheduler there decides, for ours to tell its reasons."""
    found = configuration(order.scenario, order.policy, order.seed) if file is None else load_configuration(file)
    return found.by_name()


def _configured(policy: str, file: Path | None) -> dict[str, Any] | None:
    if file is not None:
        found: dict[str, Any] = read_yaml(str(file), file.read_bytes()).value
        return found
    strategy = STRATEGIES[policy]
    if strategy == STRATEGIES["default"]:
        return None
    scoring: dict[str, Any] = {
        "type": strategy.type,
        "resources": [{"name": "cpu", "weight": 1}, {"name": "memory", "weight": 1}],
    }
    if strategy.requested_to_capacity_ratio is not None:
        shape = [
            {"utilization": point.utilization, "score": point.score}
            for point in strategy.requested_to_capacity_ratio.shape
        ]
        scoring["requestedToCapacityRatio"] = {"shape": shape}
    return {"profiles": [{"pluginConfig": [{"name": "NodeResourcesFit", "args": {"scoringStrategy": scoring}}]}]}


class _LabRun:
    def __init__(
        self, order: Order, cluster: LiveCluster, log: eventlog.Writer, profiles: Mapping[str, Profile]
    ) -> None:
        self._clock = _Jumping()
        self._cluster = cluster
        start = Instant(self._clock.now() // SECOND * SECOND)
        self._run = Run(order, cluster, start, log, Wishes(self._judge))
        self._profiles = profiles
        self._owned = [group.name for group in with_owners(order.scenario)]
        self._known: dict[tuple[Kind, tuple[str, str]], Object] = {}
        self._settled = False
        """Whether every node takes pods."""

    async def go(self, stopping: Callable[[], bool]) -> Summary:
        """From rest to rest, until nothing is due any more."""
        run = self._run
        async with self._watching():
            if self._owned:
                await self._define()
            while not stopping():
                at = min((each for each in (run.load.next_at, run.next_event) if each is not None), default=None)
                if at is None or at > run.end:
                    self._clock.jump(run.end)
                    run.sample(self._clock.now())
                    return run.finish(self._clock.now(), complete=True)
                self._clock.jump(at)
                for timed in run.load.until(at):
                    await self._ready_for(timed.action)
                    await run.act(timed.action, self._clock.now())
                await self._rest(stopping)
                if self._owned:
                    await self._counted(stopping)
                while await run.happen(self._clock.now()):
                    await self._rest(stopping)
                run.sample(self._clock.now())
            run.sample(self._clock.now())
        return run.finish(self._clock.now(), complete=False)

    async def _define(self) -> None:
        """Let the cluster know VirtualMachines. Raises LabRunError when that takes too long."""
        with contextlib.suppress(AlreadyExists):
            await self._cluster.create(CUSTOM_RESOURCE_DEFINITION, definition())
        name = VIRTUAL_MACHINE.resource
        try:
            async with asyncio.timeout(_PATIENCE):
                established = False
                while not established:
                    await asyncio.sleep(0.05)
                    established = is_established(await self._cluster.get(CUSTOM_RESOURCE_DEFINITION, name))
        except TimeoutError as error:
            raise LabRunError(f"VirtualMachine is not established after {_PATIENCE:.0f} seconds") from error

    async def _counted(self, stopping: Callable[[], bool]) -> None:
        """Until all budgets know how many pods they may spare. Raises LabRunError when that takes too long.

        kube-controller-manager hears of a new kind after half a minute only, and then has to be reminded of a budget
        that it has given up (vms/migrating).
        """
        waited = 0.0
        while not stopping() and (open_ := await self._uncounted()):
            if waited > _PATIENCE:
                raise LabRunError(f"budgets not counted after {waited:.0f} seconds: {', '.join(open_)}")
            for source in self._run.load.vms:
                pods = [each.pod for each in source.there.values() if source.name in self._owned]
                there = [pod for pod in pods if self._run.observer.place_of((source.group.namespace, pod))]
                for pod in there[:1]:
                    patch = {"metadata": {"annotations": {REMINDED: f"{waited:.0f}"}}}
                    await self._cluster.patch(POD, patch, pod, source.group.namespace)
            await asyncio.sleep(_QUIET)
            waited += _QUIET

    async def _uncounted(self) -> list[str]:
        found = []
        for item in (await self._cluster.list(POD_DISRUPTION_BUDGET)).items:
            status = item.view(PodDisruptionBudget).status
            told = condition(status.conditions, "DisruptionAllowed")
            failed = told is None or told.reason == "SyncFailed"
            if failed or status.observed_generation != item.meta.generation:
                found.append(item.name)
        return found

    def _judge(self, pod: Pod) -> Decision:
        return judged([*self._known.values()], pod, self._profiles.get(pod.spec.scheduler_name))

    async def _ready_for(self, action: object) -> None:
        """A namespace takes pods once it has its service account, and the first pods shall find all nodes.

        Raises LabRunError when that takes too long.
        """
        made = action.made if isinstance(action, Create) else None
        if made is None or not made.namespace:
            self._settled = self._settled and not (made is not None and made.kind is NODE)
            return
        try:
            async with asyncio.timeout(_PATIENCE):
                await self._nodes_ready()
                await self._takes_pods(made.namespace)
        except TimeoutError as error:
            what = f"no service account in {made.namespace}" if self._settled else "nodes are not ready"
            raise LabRunError(f"{what} after {_PATIENCE:.0f} seconds") from error

    async def _nodes_ready(self) -> None:
        while not self._settled:
            nodes = [node.view(Node) for node in (await self._cluster.list(NODE)).items]
            self._settled = not any(taint.key == _NOT_READY for node in nodes for taint in node.spec.taints)
            await asyncio.sleep(0.05)

    async def _takes_pods(self, namespace: str) -> None:
        while True:
            try:
                await self._cluster.get(SERVICE_ACCOUNT, "default", namespace)
            except NotFound:
                await asyncio.sleep(0.05)
            else:
                return

    async def _rest(self, stopping: Callable[[], bool]) -> None:
        """Until nobody has anything to do, however long it takes. Raises LabRunError when nothing comes of it."""
        seen = self._run.observer
        waited, before = 0.0, -1
        while not stopping() and (before != seen.changes or seen.undecided() or seen.ready < len(seen.seats)):
            before, done = seen.changes, (seen.pod_changes, seen.ready)
            await asyncio.sleep(_QUIET)
            waited = waited + _QUIET if done == (seen.pod_changes, seen.ready) else 0.0
            if waited > _PATIENCE:
                raise LabRunError(f"{seen.undecided()} pods without a decision after {waited:.0f} seconds")

    @contextlib.asynccontextmanager
    async def _watching(self) -> AsyncIterator[None]:
        tasks = [asyncio.create_task(self._follow(kind)) for kind in (NODE, POD)]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            for failure in await asyncio.gather(*tasks, return_exceptions=True):
                if isinstance(failure, Exception):
                    raise failure  # the cause, where the run itself failed for want of news

    async def _follow(self, kind: Kind) -> None:
        async with Reflector(self._cluster, kind) as batches:
            async for batch in batches:
                for change in batch.changes:
                    self._note(change)

    def _note(self, change: Change) -> None:
        new, gone = change.object, change.type == "DELETED"
        old = self._known.pop((new.kind, new.key), None)
        if not gone:
            self._known[new.kind, new.key] = new
        elif change.synthetic and old is not None:
            new = old  # nobody saw it go: the last that is known of it
        self._run.observer.note(new, old, self._clock.now(), gone=gone)
