"""What fault campaigns on a real control plane found, each made small: ends that nobody saw are told as such."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import asyncpg  # type: ignore[import-untyped]  # it ships no types
import msgspec
import pytest

from bayplan.cluster.embedded.engine import EmbeddedCluster
from bayplan.cluster.kinds import JOB, LEASE, NODE, POD, Kind
from bayplan.cluster.leases import Election, LeaseTimes, Place
from bayplan.cluster.live.reflector import Events
from bayplan.cluster.live.reflector_core import Change
from bayplan.cluster.objects import Object
from bayplan.cluster.port import Page
from bayplan.ledger.finalizers import FINALIZER, Finalizers
from bayplan.ledger.recorder import Recorder
from bayplan.ledger.recording import Recording, When
from bayplan.ledger.rows import GpuPeriod, GpuPod, Rows
from bayplan.ledger.store.faults import translated
from bayplan.ledger.store.port import StoreUnavailableError
from bayplan.ledger.store.settings import parse_url
from bayplan.model.clock import SECOND, Clock, Instant
from bayplan.model.errors import ServerError
from bayplan.model.meta import OwnerReference
from tests.ledger.shell.memory import MemoryStore
from tests.ledger.shell.scenes import CLUSTER, caught_up, gpu_cluster, gpu_pod, recorded, until


class Wire:
    """What lies between a recorder and its cluster, and may break."""

    def __init__(self, cluster: EmbeddedCluster) -> None:
        self._cluster = cluster
        self.broken = False

    async def list(self, kind: Kind, namespace: str | None = None, **how: Any) -> Page:
        if self.broken:
            raise ServerError("no route")
        return await self._cluster.list(kind, namespace, **how)

    async def watch_batches(self, kind: Kind, namespace: str | None = None, **how: Any) -> Events:
        if self.broken:
            raise ServerError("no route")
        stream = self._cluster.watch_batches(kind, namespace, **how)
        try:
            async for news in stream:
                if self.broken:
                    raise ServerError("the connection broke")
                yield news
        finally:
            await stream.aclose()


@asynccontextmanager
async def _recorded(cluster: EmbeddedCluster, wire: Wire, store: MemoryStore) -> AsyncIterator[Recorder]:
    async with recorded(cluster, store, source=wire) as recorder:
        await until(lambda: {NODE.resource, POD.resource} <= recorder.told.keys())
        yield recorder


async def _until_gone(cluster: EmbeddedCluster, store: MemoryStore, name: str, step: float = 1) -> GpuPod:
    """The pod's row, once it is closed; time goes on meanwhile, as pauses must come to their end."""
    for _ in range(1000):
        for each in store.rows(GpuPod):
            if each.name == name and each.gone_at is not None:
                return each
        await cluster.advance(step)
        await asyncio.sleep(0.01)
    raise AssertionError(f"{name} is never closed")


def _check(store: MemoryStore, row: GpuPod, heard: Instant, went: Instant) -> None:
    assert (row.end_inferred, row.end_at is not None) == (True, True)
    assert row.end_after is not None
    assert row.end_at is not None
    assert heard <= row.end_after <= went <= row.end_at
    (period,) = [each for each in store.rows(GpuPeriod) if each.pod_uid == row.uid]
    assert (period.end_inferred, period.end_after, period.end_at) == (True, row.end_after, row.end_at)


async def _breaks(cluster: EmbeddedCluster, wire: Wire, _store: MemoryStore) -> None:
    wire.broken = True
    await cluster.advance(5)


async def _fills_up(cluster: EmbeddedCluster, _wire: Wire, store: MemoryStore) -> None:
    store.down = True
    for number in range(30):  # more than waits between reading and writing
        await cluster.create(POD, gpu_pod(f"other-{number}"), "default")
        await cluster.advance(1)
        await asyncio.sleep(0.01)


@pytest.mark.parametrize(
    "fails",
    [
        pytest.param(_breaks, id="while the connection was broken"),
        pytest.param(_fills_up, id="while nothing could be written or read"),
    ],
)
async def test_a_pod_that_went_unseen_has_an_inferred_end(
    fails: Callable[[EmbeddedCluster, Wire, MemoryStore], Awaitable[None]],
) -> None:
    cluster, store = await gpu_cluster(), MemoryStore()
    wire = Wire(cluster)
    async with _recorded(cluster, wire, store) as recorder:
        await cluster.create(POD, gpu_pod("one"), "default")
        await cluster.advance(10)
        await caught_up(cluster, recorder, POD)
        heard = cluster.clock.now()
        await fails(cluster, wire, store)
        went = cluster.clock.now()
        await cluster.delete(POD, "one", "default", grace=0)
        await cluster.advance(60)
        await asyncio.sleep(0.05)  # virtual time does not wait for the one who reads
        wire.broken = store.down = False
        row = await _until_gone(cluster, store, "one")
    _check(store, row, heard, went)


class SlowStore(MemoryStore):
    """Each transaction takes as long as the test says."""

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self._clock = clock
        self.takes = 0

    async def commit(self, rows: Rows) -> None:
        await self._clock.sleep_until(Instant(self._clock.now() + self.takes))
        await super().commit(rows)


async def test_a_pod_that_went_while_a_slow_database_was_waited_for_has_an_inferred_end() -> None:
    cluster = await gpu_cluster()
    store = SlowStore(cluster.clock)
    async with recorded(cluster, store, most_changes=1) as recorder:
        await cluster.create(POD, gpu_pod("one"), "default")
        await cluster.advance(10)
        await caught_up(cluster, recorder, POD)
        heard, store.takes = cluster.clock.now(), 4 * SECOND // 10
        for number in range(
            60
        ):  # no wait is as long as a second, and each change comes before the one before is stored
            await cluster.create(POD, gpu_pod(f"other-{number}"), "default")
            await cluster.advance(0.1)
            await asyncio.sleep(0.002)
        went = cluster.clock.now()
        await cluster.delete(POD, "one", "default", grace=0)
        row = await _until_gone(cluster, store, "one", step=0.1)
        store.takes = 0
        await cluster.advance(1)
    _check(store, row, heard, went)


async def test_a_pod_that_went_while_all_was_well_has_the_end_that_was_seen() -> None:
    cluster, store = await gpu_cluster(), MemoryStore()
    wire = Wire(cluster)
    async with _recorded(cluster, wire, store) as recorder:
        wire.broken = True
        await cluster.advance(5)
        wire.broken = False
        await cluster.advance(30)
        await cluster.create(POD, gpu_pod("one"), "default")
        await cluster.advance(10)
        await caught_up(cluster, recorder, POD)
        went = cluster.clock.now()
        await cluster.delete(POD, "one", "default", grace=0)
        await caught_up(cluster, recorder, POD)
    (row,) = store.rows(GpuPod)
    assert (row.end_at, row.end_inferred) == (went, False)


async def test_a_finalizer_is_taken_off_though_the_ledger_was_killed_right_after_the_last_state_was_stored() -> None:
    cluster, store = await gpu_cluster(), MemoryStore()
    pod = gpu_pod("one")
    pod["metadata"]["finalizers"] = [FINALIZER]
    await cluster.create(POD, pod, "default")
    async with _recorded(cluster, Wire(cluster), store) as recorder:  # nobody is there to act on what is stored
        await cluster.advance(10)
        await cluster.delete(POD, "one", "default", grace=0)
        await cluster.advance(10)
        await caught_up(cluster, recorder, POD)
    kept = await store.remembered(CLUSTER)
    finalizers = Finalizers(cluster, cluster.clock, {row.uid: row.resource_version for row in kept.pods})
    running = asyncio.create_task(finalizers.run(lambda: None, lambda: [POD]))
    await until(lambda: not list(cluster.world.store.objects(POD)))
    assert finalizers.removed == 1
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_a_lease_is_taken_over_as_soon_as_it_runs_out() -> None:
    cluster = await gpu_cluster()
    place, times, start = Place("kube-system", "ledger"), LeaseTimes(), cluster.clock.now()
    reigns: list[Instant] = []

    async def reign() -> None:
        reigns.append(cluster.clock.now())
        await asyncio.Event().wait()

    one = asyncio.create_task(Election(cluster, place, "one", clock=cluster.clock).run(reign))
    await until(lambda: len(reigns) == 1)
    killed = await _killed(one, cluster, place)
    await cluster.advance(1)
    two = asyncio.create_task(Election(cluster, place, "two", clock=cluster.clock).run(reign))
    for _ in range(100):
        await asyncio.sleep(0.002)
        if len(reigns) == 2:
            break
        await cluster.advance(0.25)
    two.cancel()
    await asyncio.gather(two, return_exceptions=True)
    assert start <= killed
    assert reigns[1] - killed == times.duration + SECOND  # from when it was seen first, not from a later attempt on


async def _killed(holder: asyncio.Task[None], cluster: EmbeddedCluster, place: Place) -> Instant:
    """End a holder without its giving the lease back."""
    lease = (await cluster.get(LEASE, place.name, place.namespace)).doc()
    holder.cancel()
    await asyncio.gather(holder, return_exceptions=True)
    now = await cluster.get(LEASE, place.name, place.namespace)
    lease["metadata"]["resourceVersion"] = now.meta.resource_version
    await cluster.update(LEASE, lease, place.name, place.namespace)
    return cluster.clock.now()


def _told(kind: Kind, name: str, uid: str, owner: OwnerReference | None, version: int = 5, **rest: Any) -> Change:
    refs = [msgspec.to_builtins(owner)] if owner else []
    meta = {"namespace": "default", "name": name, "uid": uid, "resourceVersion": str(version), "ownerReferences": refs}
    document = {"apiVersion": kind.api_version, "kind": kind.name, "metadata": meta, **rest}
    return Change("ADDED", Object.from_raw(kind, msgspec.json.encode(document)))


def test_a_pod_that_went_before_its_owners_were_read_gets_its_root_all_the_same() -> None:
    recording, now = Recording(CLUSTER), Instant(1_800_000_000 * SECOND)
    job = OwnerReference(api_version="batch/v1", kind="Job", name="fit", uid="job", controller=True)
    top = OwnerReference(api_version="batch/v1", kind="CronJob", name="nightly", uid="top", controller=True)
    store = MemoryStore()

    def take(kind: Kind, *changes: Change) -> None:
        rows = Rows()
        recording.take(kind, changes, When(now), rows)
        recording.settle(now, rows)
        asyncio.run(store.commit(rows))

    spec = gpu_pod("one")["spec"]
    take(POD, _told(POD, "one", "pod", job, spec=spec))
    take(POD, Change("DELETED", _told(POD, "one", "pod", job, version=6, spec=spec).object))
    take(JOB, _told(JOB, "fit", "job", top))
    (row,) = store.rows(GpuPod)
    assert (row.root_uid, row.gone_at) == ("top", now)


def test_a_server_that_dies_in_the_middle_of_an_operation_is_away_and_no_fault_of_ours() -> None:
    address = parse_url("postgresql://ledger@127.0.0.1/ledger")
    with pytest.raises(StoreUnavailableError, match="another operation"), translated(address):
        raise asyncpg.InternalClientError("cannot switch to state 15; another operation (2) is in progress")
