"""What is followed and how far it is told: watches, their width, quiet streams, Events that come before their pod."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import pytest

from bayplan.cluster.embedded.engine import EmbeddedCluster
from bayplan.cluster.kinds import CUSTOM_RESOURCE_DEFINITION, EVENT, JOB, NODE, POD, Kind
from bayplan.cluster.lab.lab import Lab
from bayplan.cluster.live.cluster import LiveCluster
from bayplan.cluster.live.reflector_core import Change
from bayplan.cluster.port import Cluster, Page, WatchEvent
from bayplan.ledger.discovering import LiveKinds
from bayplan.ledger.following import Following
from bayplan.ledger.outlet import Outlet
from bayplan.ledger.recorder import Recorder
from bayplan.ledger.recording import Recording, When
from bayplan.ledger.rows import (
    Disruption,
    GpuPod,
    GpuWorkload,
    Rows,
    StreamPosition,
    WorkloadPodReference,
    WorkloadSnapshot,
)
from bayplan.model.clock import SECOND, Instant, SystemClock
from tests.cluster.lab_fixture import lab
from tests.ledger.chaos.objects import definition
from tests.ledger.differ.lives import at, event, pod
from tests.ledger.process.running import happens
from tests.ledger.shell.memory import MemoryStore
from tests.ledger.shell.scenes import CLUSTER, caught_up, gpu_cluster, gpu_job, gpu_pod, recorded, until

__all__ = ["lab"]

Events = AsyncGenerator[list[WatchEvent]]
LEVELS = [Kind("chain.example.com", "v1", f"Level{n}", f"level{n}s", namespaced=True) for n in range(6)]


class Counting:
    """A cluster that counts the watches that are open, by kind, and those for metadata alone."""

    def __init__(self, cluster: EmbeddedCluster) -> None:
        self._cluster = cluster
        self.open: Counter[Kind] = Counter()
        self.narrow: set[Kind] = set()

    async def list(self, kind: Kind, namespace: str | None = None, **how: Any) -> Page:
        return await self._cluster.list(kind, namespace, **how)

    async def watch_batches(self, kind: Kind, namespace: str | None = None, **how: Any) -> Events:
        self.open[kind] += 1
        (self.narrow.add if how.get("metadata_only") else self.narrow.discard)(kind)
        stream = self._cluster.watch_batches(kind, namespace, **how)
        try:
            async for news in stream:
                yield news
        finally:
            self.open[kind] -= 1
            await stream.aclose()

    def watched(self) -> set[Kind]:
        return {kind for kind, count in self.open.items() if count}


@asynccontextmanager
async def counted(cluster: EmbeddedCluster, store: MemoryStore) -> AsyncIterator[tuple[Recorder, Counting]]:
    counting = Counting(cluster)
    async with recorded(cluster, store, source=counting) as recorder:
        await until(lambda: {NODE.resource, POD.resource} <= recorder.told.keys())
        yield recorder, counting


async def chain(cluster: Cluster, number: int, *, pods: bool = True) -> list[str]:
    """Six workloads, each below the one before, and a pod below the last: their uids."""
    owner: list[dict[str, Any]] = []
    uids = []
    for kind in LEVELS:
        meta = {"name": f"w{number}", "ownerReferences": owner}
        body = {"apiVersion": kind.api_version, "kind": kind.name, "metadata": meta, "spec": {"size": 1}}
        made = await cluster.create(kind, body, "default")
        uids.append(made.uid)
        owner = [
            {"apiVersion": kind.api_version, "kind": kind.name, "name": made.name, "uid": made.uid, "controller": True}
        ]
    if pods:
        last = gpu_pod(f"p{number}")
        last["metadata"]["ownerReferences"] = owner
        await cluster.create(POD, last, "default")
    return uids


async def with_levels() -> EmbeddedCluster:
    cluster = await gpu_cluster()
    for kind in LEVELS:
        await cluster.create(CUSTOM_RESOURCE_DEFINITION, definition(kind))
    return cluster


async def test_a_chain_six_deep_is_followed_by_metadata_but_for_its_top() -> None:
    cluster, store = await with_levels(), MemoryStore()
    async with counted(cluster, store) as (recorder, counting):
        uids = await chain(cluster, 0)
        await until(lambda: [row.root_uid for row in store.rows(GpuPod)] == [uids[0]])
        await until(lambda: set(LEVELS) <= counting.watched() and LEVELS[0] not in counting.narrow)
        assert counting.narrow & set(LEVELS) == set(LEVELS[1:])
        await caught_up(cluster, recorder, *LEVELS)
        await until(lambda: len(store.rows(WorkloadSnapshot)) > 0)
    depths = {row.workload_uid: row.depth for row in store.rows(WorkloadPodReference)}
    assert depths == {uid: 6 - level for level, uid in enumerate(uids)}
    assert {row.workload_uid for row in store.rows(WorkloadSnapshot)} == {uids[0]}


@pytest.mark.parametrize("workloads", [pytest.param(840, id="5040 workloads of 6 kinds")])
async def test_watches_grow_with_kinds_and_not_with_workloads(workloads: int) -> None:
    cluster, store = await with_levels(), MemoryStore()
    for number in range(workloads):
        await chain(cluster, number, pods=number % 10 == 0)
    async with counted(cluster, store) as (recorder, counting):
        await until(lambda: set(LEVELS) <= counting.watched())
        await caught_up(cluster, recorder, POD, *LEVELS)
        assert sum(counting.open.values()) <= 12
        assert len(store.rows(GpuWorkload)) == workloads // 10 * 6


class CountingLive(LiveCluster):
    """The same over HTTP; and of which kinds whole objects came."""

    open: Counter[Kind]
    whole: set[Kind]

    async def watch_batches(self, kind: Kind, namespace: str | None = None, **how: Any) -> Events:
        self.open[kind] += 1
        stream = super().watch_batches(kind, namespace, **how)
        try:
            async for news in stream:
                self.whole |= {kind for each in news if each.object is not None and each.object.sections}
                yield news
        finally:
            self.open[kind] -= 1
            await stream.aclose()


@pytest.mark.slow
async def test_a_real_api_server_sends_metadata_alone_of_what_is_between_pod_and_root(lab: Lab) -> None:
    store, clock = MemoryStore(), SystemClock()
    async with CountingLive.find(lab.kubeconfig) as cluster:
        assert isinstance(cluster, CountingLive)
        cluster.open, cluster.whole = Counter(), set()
        for kind in LEVELS:
            await cluster.create(CUSTOM_RESOURCE_DEFINITION, definition(kind))
            await happens(partial(is_served, cluster, kind))
        kinds, kept = LiveKinds(cluster.access, clock), await store.remembered(CLUSTER)
        outlet = Outlet(store, None, clock)
        recorder = Recorder(cluster, Recording(CLUSTER), outlet, kept, clock=clock, find_kind=kinds.find)
        task = asyncio.create_task(recorder.run())
        uids = await chain(cluster, 0)
        await until(lambda: uids[0] in {row.root_uid for row in store.rows(GpuPod)})
        await until(lambda: LEVELS[0] in cluster.whole)
        assert {kind: count for kind, count in cluster.open.items() if kind in LEVELS} == dict.fromkeys(LEVELS, 1)
        assert (sum(cluster.open.values()) <= 12, cluster.whole & set(LEVELS)) == (True, {LEVELS[0]})
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await kinds.close()
        await cluster.delete(POD, "p0", "default", grace=0)
        for kind in LEVELS:
            await cluster.delete(CUSTOM_RESOURCE_DEFINITION, kind.resource)


async def is_served(cluster: LiveCluster, kind: Kind) -> bool:
    await cluster.list(kind)
    return True


async def test_a_workloads_last_version_is_kept_and_marked() -> None:
    cluster, store = await gpu_cluster(), MemoryStore()
    async with recorded(cluster, store) as recorder:
        await until(lambda: {NODE.resource, POD.resource} <= recorder.told.keys())
        job = await cluster.create(JOB, gpu_job("train", 1), "default")
        await cluster.advance(5)
        await caught_up(cluster, recorder)
        await cluster.delete(JOB, "train", "default", propagation="Background")
        await cluster.advance(60)
        await caught_up(cluster, recorder)
    versions = {row.resource_version: row.gone for row in store.rows(WorkloadSnapshot) if row.workload_uid == job.uid}
    assert [version for version, gone in versions.items() if gone] == [max(versions)]


@pytest.mark.parametrize("inside", [False, True], ids=["a recorder", "from inside"])
async def test_a_quiet_stream_says_every_minute_how_far_it_is(inside: bool) -> None:
    cluster, store = await gpu_cluster(), MemoryStore()

    def told() -> dict[str, int]:
        return {row.kind: row.at for row in store.rows(StreamPosition)}

    if inside:
        following = await Following.begin(cluster, store)
        await following.flush()
        for _ in range(10):
            await cluster.advance(61)
            await following.flush()
            assert told()["nodes"] == cluster.clock.now()
        return
    async with recorded(cluster, store) as recorder:
        await until(lambda: {NODE.resource, POD.resource, EVENT.resource} <= recorder.told.keys())
        for _ in range(10):
            await cluster.advance(61)
            now = cluster.clock.now()
            await until(lambda: min(told()[kind.resource] for kind in (POD, NODE, EVENT)) >= now - 60 * SECOND)  # noqa: B023 - awaited here


# --- Events that come before their pod


PREEMPTED = event("Preempted", "Preempted by pod x")


def take(recording: Recording, second: float, *changes: Change, unseen: Instant | None = None) -> Rows:
    rows = Rows()
    for change in changes:
        recording.take(change.object.kind, (change,), When(at(second), unseen), rows)
    recording.settle(at(second), rows)
    recording.collect(at(second))
    return rows


def disruptions(rows: Rows) -> list[str]:
    return [row.pod_uid for row in rows if isinstance(row, Disruption)]


def test_an_event_that_comes_before_its_pod_waits_and_the_stream_with_it() -> None:
    recording = Recording(CLUSTER)
    assert disruptions(take(recording, 1, Change("ADDED", PREEMPTED))) == []
    assert (recording.told(EVENT, 90), recording.told(POD, 90)) == (76, 90)
    assert disruptions(take(recording, 2, Change("ADDED", pod(1)))) == ["u1"]
    assert recording.told(EVENT, 90) == 90


def test_an_event_of_a_pod_without_gpus_waits_a_minute_and_no_longer() -> None:
    recording = Recording(CLUSTER)
    take(recording, 1, Change("ADDED", PREEMPTED))
    take(recording, 60)
    assert recording.told(EVENT, 90) == 76
    take(recording, 62)
    assert recording.told(EVENT, 90) == 90


def test_an_event_from_before_this_run_is_kept_whether_its_pod_is_known_or_not() -> None:
    rows = take(Recording(CLUSTER), 1, Change("ADDED", PREEMPTED), unseen=at(0))
    assert disruptions(rows) == ["u1"]
