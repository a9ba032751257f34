"""The agent: the process on a node that watches throttling, says what would help, and where told to, does it.

    observe   reads, and writes nothing at all: metrics and alerts (the default)
    advise    observes, and logs the cause of each throttling and what it would do
    enforce   lets its enforcers write, each through a journal; nothing that the kubelet owns, unless told

A part that writes is an `Enforcer`: started with the agent and stopped with it, and it undoes on stop what it wrote.
What a process that was killed had left behind, in this mode or another, is undone when the agent starts.
"""

from __future__ import annotations

import asyncio
import enum
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import msgspec

from bayplan.agent.kubelet import find_kubelet
from bayplan.agent.observe import Observer, Thresholds
from bayplan.agent.probe import watch_closely
from bayplan.agent.reading import UNREADABLE, cpu_part
from bayplan.model.clock import MILLISECOND, SECOND, Clock, Instant
from bayplan.model.errors import PermanentError, TemporaryError
from bayplan.node.cgroup.journal import BusyJournalError
from bayplan.node.cgroup.journalled import JournalledTree
from bayplan.node.cgroup.port import Tree
from bayplan.node.throttling.alerts import State
from bayplan.node.throttling.causes import Cause, explain
from bayplan.service.logging import get_logger
from bayplan.service.state import state_folder

if TYPE_CHECKING:
    from bayplan.node.cgroup.trees import FileTree
    from bayplan.service.lifecycle import Service
    from bayplan.service.settings import Settings

log = get_logger(__name__)

_ADVISE_EVERY = 10 * SECOND
_CLOSE_LOOK = 2 * SECOND
_SHORTEST = 100 * MILLISECOND
"""Between two looks, whatever the setting says: an agent must not be the load that it looks for."""
_OVERDUE = 5
"""Looks that may be missing before the agent is not ready."""


class Mode(enum.StrEnum):
    """How much the agent does."""

    OBSERVE = "observe"
    ADVISE = "advise"
    ENFORCE = "enforce"


class LooksOverdueError(TemporaryError):
    """The agent has not looked at its groups for some time."""

    code = "BP-N063"


class Enforcer(Protocol):
    """A part that acts on groups."""

    name: str

    async def run(self, *, write: bool) -> None:
        """Act until cancelled, then undo what was written; with `write` False only say what would be done."""
        ...


def thresholds_of(settings: Settings) -> Thresholds:
    """The alerts' thresholds as set."""
    given = settings.throttling
    return Thresholds(
        given.alert_percent / 100, given.waiting_percent / 100, float(given.bursts_per_hour), given.hold.micros
    )


def new_observer(tree: Tree, clock: Clock, settings: Settings, root: str = "/") -> Observer:
    """An observer as the settings want it."""
    return Observer(
        cpu_part(tree),
        clock,
        root=root,
        thresholds=thresholds_of(settings),
        most_groups=settings.agent.most_groups,
        most_threads=settings.agent.most_threads,
    )


def journal_folder() -> Path:
    """Where every part keeps its journal: in memory where this process may write there, for a raise waits for it.

    One place for all: two processes that would write the same limits meet at the journal, and the second is refused.
    """
    in_memory = os.access("/run", os.W_OK) and "XDG_STATE_HOME" not in os.environ
    return Path("/run/bayplan") if in_memory else state_folder()


def undo_leftovers(tree: FileTree, folder: Path) -> None:
    """Undo what processes that were killed had written; a journal that another process holds is its own business.

    So is one that this process may not open: who observes needs no rights.
    """
    for path in sorted(folder.glob("*.journal")):
        try:
            journalled = JournalledTree.open(tree, path)
        except BusyJournalError:
            continue
        except PermissionError as fault:
            log.warning("cannot look for what an earlier process left", journal=str(path), reason=str(fault))
            continue
        undone = journalled.recovered
        journalled.close()
        if undone.restored:
            log.warning("undid what an earlier process left", journal=str(path), files=undone.restored)
        for place, word in undone.stuck:
            log.error("cannot undo", journal=str(path), file=place, reason=word)


async def run_agent(
    service: Service, tree: Tree, mode: Mode, *, root: str = "/", enforcers: Sequence[Enforcer] = ()
) -> None:
    """Run until the service is asked to stop."""
    from bayplan.agent.metrics import ThrottlingCollector

    observer = new_observer(tree, service.clock, service.settings, root)
    _tell_of_kubelet()
    await asyncio.to_thread(observer.look)
    service.health.registry.register(ThrottlingCollector(observer))
    interval = max(service.settings.agent.interval.micros, _SHORTEST)
    service.health.check("looks", lambda: _check(observer, interval), live=True)
    service.start("observer", _keep_looking(observer, interval))
    if mode is not Mode.OBSERVE:
        service.start("adviser", Adviser(observer).run())
        for enforcer in enforcers:
            service.start(enforcer.name, enforcer.run(write=mode is Mode.ENFORCE))
    log.info("watches groups", mode=str(mode), groups=len(observer.watched), version=tree.version, root=root)
    await service.stopped()


def _tell_of_kubelet() -> None:
    try:
        kubelet = find_kubelet()
    except (
        PermanentError
    ) as fault:  # a newer kubelet may have fields that we do not know; its groups are its own anyway
        log.warning("cannot read how the kubelet is configured", reason=fault.message)
        return
    if kubelet is None:
        log.info("no kubelet on this machine")
        return
    policies = kubelet.policies
    log.info(
        "found the kubelet",
        pid=kubelet.process,
        config=kubelet.config,
        cpu_manager=policies.cpu,
        memory_manager=policies.memory,
        topology_manager=policies.topology.policy,
        topology_scope=policies.topology.scope,
        cgroup_driver=kubelet.configuration.cgroup_driver,
    )
    if kubelet.cpu_state and kubelet.cpu_state != policies.cpu:
        log.warning("the kubelet's CPU state is of another policy", state=kubelet.cpu_state, policy=policies.cpu)


async def _keep_looking(observer: Observer, interval: int) -> None:
    firing: set[tuple[str, str]] = set()
    while True:
        await observer.clock.sleep_until(Instant(observer.clock.now() + interval))
        seen = await asyncio.to_thread(observer.look, thorough=False)
        now = {(each.path, name) for each in seen for name, state in each.active().items() if state is State.FIRING}
        for path, name in sorted(now - firing):
            log.warning("alert", alert=name, group=path)
        for path, name in sorted(firing - now):
            log.info("alert ended", alert=name, group=path)
        firing = now


def _check(observer: Observer, interval: int) -> None:
    late = observer.clock.now() - observer.last_look
    if late > _OVERDUE * interval:
        raise LooksOverdueError(f"the last look at the groups was {late / SECOND:.0f} s ago")


class Adviser:
    """Looks closely at the group that is throttled most, and logs why it is and what would help, once a cause."""

    def __init__(self, observer: Observer) -> None:
        self._observer = observer
        self._told: dict[str, Cause] = {}

    async def run(self) -> None:
        """Advise until cancelled."""
        clock = self._observer.clock
        while True:
            await clock.sleep_until(Instant(clock.now() + _ADVISE_EVERY))
            await self.advise()

    async def advise(self) -> None:
        """One round."""
        rates = await asyncio.to_thread(self._rates)
        self._told = {path: cause for path, cause in self._told.items() if path in rates}
        throttled = [path for path, rate in rates.items() if rate > self._observer.thresholds.throttled]
        if not throttled:
            return
        path = min(throttled, key=lambda each: (each in self._told, -rates[each]))
        try:
            group = self._observer.tree.group(path)
            evidence = await watch_closely(group, self._observer.clock, _CLOSE_LOOK, proc=self._observer.proc)
        except UNREADABLE:
            return  # it ended meanwhile
        found = explain(evidence)
        if found.cause is Cause.NONE:  # it rests while it is looked at: others are looked at first, then it again
            self._told.setdefault(path, found.cause)
        elif self._told.get(path) != found.cause:
            self._told[path] = found.cause
            best = found.remedies[0] if found.remedies else None
            would = {} if best is None else {"would_set": msgspec.structs.asdict(best.bandwidth), "why": best.why}
            log.info("throttled", group=path, cause=str(found.cause), summary=found.summary, **would)

    def _rates(self) -> dict[str, float]:
        with self._observer.looking:
            watched = self._observer.watched.items()
            return {path: each.history.rates("10s").throttle_rate for path, each in watched}
