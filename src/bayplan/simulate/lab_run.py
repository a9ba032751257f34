"""A run on the lab: the real kube-scheduler and controllers, on nodes that KWOK keeps.

The lab knows real time only, and nothing runs there. So a run goes from rest to rest: once every pod has its place or
its refusal and nothing has changed for a moment, the clock jumps to what is due next. What needs kubelets that
obey a scenario (run times, behaviour, failures) is refused.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

from bayplan.cluster.kinds import NODE, POD, SERVICE_ACCOUNT, Kind
from bayplan.cluster.lab.lab import Lab, LabOptions
from bayplan.cluster.live.cluster import LiveCluster
from bayplan.cluster.live.reflector import Reflector
from bayplan.cluster.live.reflector_core import Change
from bayplan.cluster.objects import Object
from bayplan.model.clock import SECOND, Clock, Instant, SystemClock
from bayplan.model.errors import NotFound, PermanentError
from bayplan.model.nodes import Node
from bayplan.scheduling.policies import STRATEGIES
from bayplan.service.yaml_lines import read_yaml
from bayplan.simulate import eventlog
from bayplan.simulate.actions import Create
from bayplan.simulate.run import Order, Run
from bayplan.simulate.scenario import Scenario
from bayplan.simulate.summary import Summary
from bayplan.simulate.wishes import Wishes

_QUIET = 1.0
"""Seconds without a change after which everybody is taken to be done."""
_NOT_READY = "node.kubernetes.io/not-ready"
_PATIENCE = 120.0
"""Seconds that a decision is waited for."""


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
            return await _LabRun(order, cluster, log).go(stopping)
    finally:
        await asyncio.to_thread(lab.close)


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
    def __init__(self, order: Order, cluster: LiveCluster, log: eventlog.Writer) -> None:
        self._clock = _Jumping()
        self._cluster = cluster
        self._run = Run(order, cluster, Instant(self._clock.now() // SECOND * SECOND), log, Wishes())
        self._known: dict[tuple[Kind, tuple[str, str]], Object] = {}
        self._settled = False
        """Whether every node takes pods."""

    async def go(self, stopping: Callable[[], bool]) -> Summary:
        """From rest to rest, until nothing is due any more."""
        run = self._run
        async with self._watching():
            while not stopping():
                at = min((each for each in (run.load.next_at, run.next_event) if each is not None), default=None)
                if at is None or at > run.end:
                    run.sample(self._clock.now())
                    return run.finish(self._clock.now(), complete=True)
                self._clock.jump(at)
                for timed in run.load.until(at):
                    await self._ready_for(timed.action)
                    await run.act(timed.action, self._clock.now())
                await self._rest(stopping)
                while await run.happen(self._clock.now()):
                    await self._rest(stopping)
                run.sample(self._clock.now())
        return run.finish(self._clock.now(), complete=False)

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
        """Until nobody has anything to do. Raises LabRunError when that takes too long."""
        seen = self._run.observer
        waited, before = 0.0, -1
        while not stopping() and (before != seen.changes or seen.undecided() or seen.ready < len(seen.seats)):
            before = seen.changes
            await asyncio.sleep(_QUIET)
            waited += _QUIET
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
