"""`bayplan ledger run`: waits for the lease, replays what an earlier run left in its spool, and records.

Of several replicas the leader alone writes; it asks for its lease before each transaction. A leader that loses it goes
back to waiting, and whoever leads next begins with what the database holds.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Literal, TypeVar

import msgspec

from bayplan.cluster.kinds import NAMESPACE, NODE, POD
from bayplan.cluster.leases import Election, Place
from bayplan.cluster.live.cluster import LiveCluster
from bayplan.ledger.discovering import LiveKinds
from bayplan.ledger.finalizers import Finalizers
from bayplan.ledger.kubelet_service import keep_kubelet_service
from bayplan.ledger.metrics import LedgerCollector
from bayplan.ledger.outlet import Outlet
from bayplan.ledger.overtaken import closed_again, follows
from bayplan.ledger.recorder import Recorder
from bayplan.ledger.recording import Recording
from bayplan.ledger.settings import (
    database_url,
    gpu_vendors,
    lease_times,
    listener_timing,
    spool_path,
    store_settings,
    user_rule,
    watch_policy,
)
from bayplan.ledger.spool import Spool
from bayplan.ledger.stamping import Stamps
from bayplan.ledger.store.migrating import migrate
from bayplan.ledger.store.port import Remembered
from bayplan.ledger.store.retention import prune
from bayplan.ledger.store.settings import Dialect, parse_url
from bayplan.ledger.store.sql import SqlStore, open_store
from bayplan.ledger.streams import check_goes_on
from bayplan.ledger.use.settings import Monitor, monitor_of
from bayplan.model.clock import SECOND, Instant
from bayplan.model.errors import PermanentError, TemporaryError
from bayplan.service.lifecycle import Service
from bayplan.service.logging import get_logger
from bayplan.service.state import state_folder

log = get_logger(__name__)

_MIB = 1 << 20
_RETRY = SECOND
_PRUNE_EVERY = 3600 * SECOND
T = TypeVar("T")


class DatabaseAwayError(TemporaryError):
    """The database does not take transactions at the moment; batches go to the spool."""

    code = "BP-D034"


class Ledger(msgspec.Struct):
    """The parts of a running ledger, as far as they are there: what metrics and checks look at."""

    cluster: str
    store: SqlStore
    leads: Callable[[], bool]
    outlet: Outlet | None = None
    recorder: Recorder | None = None
    monitor: Monitor | None = None
    anew: bool = False
    """A reign begins with the whole present, until one has it in the database."""


async def cluster_id(cluster: LiveCluster, setting: str) -> str:
    """What a cluster is called in the ledger."""
    return setting if setting != "auto" else (await cluster.get(NAMESPACE, "kube-system")).uid


async def prepared_store(service: Service) -> SqlStore:
    """The database that the settings name. An SQLite file is brought up to date; others must have been.

    Raises as `open_store` does.
    """
    settings = service.settings.ledger
    url, how = database_url(settings), store_settings(settings)
    if parse_url(url).dialect is Dialect.SQLITE:
        if settings.database == "auto":
            state_folder().mkdir(parents=True, exist_ok=True, mode=0o700)
        await migrate(url, how)
    return await open_store(url, how)


async def run_ledger(service: Service, cluster: LiveCluster, *, anew: bool = False) -> None:
    """Record until the service is asked to stop. `anew`: begin with the whole present, not where the ledger ended."""
    settings = service.settings.ledger
    monitor, election = monitor_of(settings), _election(service, cluster)
    store = await _unless_stopped(service, _patiently(service, lambda: prepared_store(service)))
    if store is None:
        return
    service.on_close("database", store.close)
    kinds = LiveKinds(cluster.access, service.clock, answer_within=settings.request_timeout.seconds)
    service.on_close("discovery", kinds.close)
    waiting = _patiently(service, lambda: cluster_id(cluster, settings.cluster), "cluster")
    name = await _unless_stopped(service, waiting)
    if name is None:
        return
    ledger = Ledger(name, store, lambda: True, monitor=monitor, anew=anew)
    service.health.registry.register(LedgerCollector(ledger, service.clock))
    service.health.check("database", lambda: _check(ledger))
    if monitor is not None:
        service.health.registry.register(monitor.meter)
        service.on_close("monitor", monitor.close)

    async def reign() -> None:
        await _record(service, cluster, ledger, kinds)

    if election is not None:
        ledger.leads = election.holds
        service.start("recorder", election.run(reign))
    else:
        service.start("recorder", reign())
    await service.stopped()


async def _patiently(
    service: Service, ask: Callable[[], Awaitable[T]], whom: Literal["cluster", "database", "spool"] = "database"
) -> T:
    """What they say, as soon as they do; until then the service is alive and not ready. Nothing is recorded meanwhile,
    on disk neither: what is new is only seen beside what the database remembers.
    """
    clock, away = service.clock, False
    try:
        while True:
            try:
                found = await ask()
            except TemporaryError as error:
                if not away:
                    held_up = (
                        "waiting for the spool"
                        if whom == "spool"
                        else ("waiting for the cluster" if whom == "cluster" else "waiting for the database")
                    )
                    log.warning(held_up, why=error.message)
                    service.health.set_not_ready(f"{held_up}: {error.message}")
                away = True
                await clock.sleep_until(Instant(clock.now() + _RETRY))
            else:
                if away:
                    there = (
                        "spool free" if whom == "spool" else ("cluster back" if whom == "cluster" else "database back")
                    )
                    log.info(there)
                return found
    finally:  # also where the lease is lost meanwhile: whoever waits for it is ready
        if away and not service.stopping:
            service.health.set_ready()


async def _unless_stopped(service: Service, work: Coroutine[None, None, T]) -> T | None:
    """The result; None: the service was asked to stop before."""
    task, stopped = asyncio.create_task(work), asyncio.create_task(service.stopped())
    try:
        await asyncio.wait((task, stopped), return_when=asyncio.FIRST_COMPLETED)
        return task.result() if task.done() else None
    finally:
        for each in (task, stopped):
            each.cancel()
        await asyncio.wait((task, stopped))


def _election(service: Service, cluster: LiveCluster) -> Election | None:
    settings = service.settings.ledger
    if settings.election == "off":
        return None
    place = Place(settings.lease_namespace, settings.lease_name)
    identity = f"{socket.gethostname()}_{os.getpid()}_{service.clock.now()}"
    return Election(cluster, place, identity, clock=service.clock, times=lease_times(settings))


async def _record(service: Service, cluster: LiveCluster, ledger: Ledger, kinds: LiveKinds) -> None:
    """One reign, until cancelled."""
    settings, clock, store = service.settings.ledger, service.clock, ledger.store
    path = spool_path(settings, ledger.cluster, store.address)
    spool = await _patiently(service, lambda: _opened(path, settings.spool_mib * _MIB), "spool")
    outlet = ledger.outlet = Outlet(store, spool, clock, may_write=ledger.leads)
    try:
        recording, kept = await _taken_up(service, cluster, ledger, outlet)
        stored = {row.uid: row.resource_version for row in kept.pods}
        finalizers = Finalizers(cluster, clock, stored) if settings.finalizers == "on" else None
        stamps = Stamps(lambda: server_time(cluster), clock)
        await stamps.begin()
        recorder = ledger.recorder = Recorder(
            cluster,
            recording,
            outlet,
            kept,
            clock=clock,
            find_kind=kinds.find,
            most_changes=settings.batch,
            policy=watch_policy(settings),
            timing=listener_timing(settings),
            durable=None if finalizers is None else finalizers.durable,
            stamp=stamps,
        )
        work: dict[str, Coroutine[None, None, None]] = {"recorder": recorder.run(), "server's time": stamps.run()}
        if finalizers is not None:
            work["finalizers"] = finalizers.run(lambda: recorder.waiting_since, lambda: recorder.kinds)
        if settings.kubelet_service == "on":
            work["kubelet service"] = keep_kubelet_service(cluster, clock, settings.kubelet_ports.numbers)
        if ledger.monitor is not None:
            work["measurements"] = ledger.monitor.run(ledger.cluster, store, outlet, clock)
        if settings.retention.micros:
            work["retention"] = _keep_pruned(service, ledger, stamps)
        log.info("recording started", cluster=ledger.cluster, database=store.address.shown, pods=len(kept.pods))
        await _together(work)
    finally:
        if ledger.recorder is not None:
            log.info("recording ended", cluster=ledger.cluster)
            ledger.anew = ledger.anew and not {NODE.resource, POD.resource} <= ledger.recorder.told.keys()
        ledger.recorder = ledger.outlet = None
        spool.close()


async def _opened(path: Path, most_bytes: int) -> Spool:
    return Spool(path, most_bytes=most_bytes)


async def _taken_up(
    service: Service, cluster: LiveCluster, ledger: Ledger, outlet: Outlet
) -> tuple[Recording, Remembered]:
    """What the database remembers, once it has what was left in the spool. Raises RecordedAlreadyError."""
    before = await _replayed(service, ledger, outlet) if outlet.spool else None
    kept = await _remembered(service, ledger)
    if POD.resource in kept.streams:
        page = await _patiently(service, lambda: cluster.list(POD, limit=1, metadata_only=True), "cluster")
        check_goes_on(kept.streams[POD.resource], page.revision)
    vendors, people = gpu_vendors(service.settings.ledger), user_rule(service.settings.ledger)
    recording, spooled = Recording(ledger.cluster, kept, vendors=vendors, people=people), outlet.told
    outlet.told = kept.positions(ledger.cluster)
    if before is not None:
        await outlet.put(closed_again(recording, before, kept, spooled))
    return recording, msgspec.structs.replace(kept, streams={}) if ledger.anew else kept


async def _replayed(service: Service, ledger: Ledger, outlet: Outlet) -> Remembered:
    """Store what waits in the spool; what the database remembered before that."""
    assert outlet.spool is not None
    before = await _remembered(service, ledger)
    on_it = follows(before, outlet.spool.base)
    if not on_it:
        log.warning("spool of another past", path=str(outlet.spool.path))
    while not await outlet.replay(positions=on_it):
        await service.clock.sleep_until(Instant(service.clock.now() + _RETRY))
    return before


async def _remembered(service: Service, ledger: Ledger) -> Remembered:
    return await _patiently(service, lambda: ledger.store.remembered(ledger.cluster))


async def _together(work: Mapping[str, Coroutine[None, None, None]]) -> None:
    """Do all of this until cancelled. None of it ends by itself: the first that does ends all, and says why."""
    tasks = [asyncio.create_task(each, name=name) for name, each in work.items()]
    cause: BaseException | None = None
    try:
        ended, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in ended:
            task.result()
    except BaseException as error:
        cause = error
        raise
    finally:
        for task in tasks:
            task.cancel()
        for task, end in zip(tasks, await asyncio.gather(*tasks, return_exceptions=True), strict=True):
            if isinstance(end, Exception) and end is not cause:
                log.error("part failed at its end", part=task.get_name(), why=f"{type(end).__name__}: {end}")


async def server_time(cluster: LiveCluster) -> Instant | None:
    """The server's clock now; None: it does not say."""
    with suppress(PermanentError):  # any answer carries it, a refusal too
        await cluster.get(NAMESPACE, "kube-system")
    return cluster.server_time()


async def _keep_pruned(service: Service, ledger: Ledger, stamp: Callable[[], Instant]) -> None:
    while True:
        before = Instant(stamp() - service.settings.ledger.retention.micros)
        try:
            log.info(
                "pruned",
                **msgspec.structs.asdict(await prune(ledger.store, ledger.cluster, before, may_write=ledger.leads)),
            )
        except TemporaryError as error:
            log.warning("cannot prune", why=error.message)
        await service.clock.sleep_until(Instant(service.clock.now() + _PRUNE_EVERY))


def _check(ledger: Ledger) -> None:
    if ledger.outlet is not None and ledger.outlet.away:
        raise DatabaseAwayError(f"{ledger.store.address.shown} does not take transactions")
