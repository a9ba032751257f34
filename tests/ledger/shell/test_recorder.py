"""A recorder on an embedded cluster in virtual time: what it records, and what interruptions do to it."""

from __future__ import annotations

import asyncio
import random

import pytest

from bayplan.cluster.embedded.engine import EmbeddedCluster
from bayplan.cluster.embedded.store import Change
from bayplan.cluster.kinds import JOB, NODE, POD
from bayplan.ledger.rows import (
    ROWS,
    Gap,
    GpuNode,
    GpuPeriod,
    GpuPod,
    GpuPodsEvent,
    GpuWorkload,
    NodeRoomPeriod,
    PodSnapshot,
    StreamPosition,
    WorkloadPodReference,
    WorkloadSnapshot,
)
from tests.ledger.shell.memory import MemoryStore
from tests.ledger.shell.scenes import CLUSTER, caught_up, gpu_cluster, gpu_job, gpu_pod, recorded, table, until

_SEEN_AT = ("observed_at", "updated_at", "at", "created_at", "first_seen", "gone_at")
_ENDS = ("end_at", "end_after", "end_inferred")


async def test_every_pod_has_its_first_and_last_state() -> None:
    cluster, store = await gpu_cluster(), MemoryStore()
    first: dict[str, int] = {}
    last: dict[str, int] = {}

    def note(change: Change) -> None:
        obj = change.new
        if obj.kind == POD:
            first.setdefault(obj.uid, obj.version)
            last[obj.uid] = obj.version

    cluster.world.store.listeners.append(note)
    async with recorded(cluster, store) as recorder:
        await caught_up(cluster, recorder, NODE)
        await until(lambda: POD.resource in recorder.told)
        for number in range(10):
            await cluster.create(JOB, gpu_job(f"job{number}", 4), "default")
            await cluster.advance(20)
            await caught_up(cluster, recorder)
        await cluster.advance(600)
        await caught_up(cluster, recorder)
    versions: dict[str, list[int]] = {}
    for each in store.rows(PodSnapshot):
        versions.setdefault(each.pod_uid, []).append(each.resource_version)
    assert {uid: min(known) for uid, known in versions.items()} == first
    assert {uid: max(known) for uid, known in versions.items()} == last
    assert {each.status for each in store.rows(GpuWorkload)} == {"Succeeded"}
    assert {each.gpu_model for each in store.rows(GpuPeriod)} == {"H100"}
    assert all(each.end_at is not None for each in store.rows(GpuPeriod))
    assert len(store.rows(WorkloadPodReference)) == len(first)
    assert len(store.rows(GpuNode)) == 2


async def _play(cluster: EmbeddedCluster, step: int) -> None:
    """One step of a story that is always the same."""
    await cluster.create(JOB, gpu_job(f"job{step}", 3), "default")
    if step % 3 == 0:
        await cluster.create(POD, gpu_pod(f"single{step // 6}"), "default")
    if step % 3 == 2:
        await cluster.delete(POD, f"single{step // 6}", "default", grace=0)
    await cluster.advance(7)


@pytest.mark.parametrize("seed", range(4))
async def test_interruptions_change_nothing_but_when_things_were_seen(seed: int) -> None:
    chance = random.Random(seed)
    whole, torn = MemoryStore(), MemoryStore()
    cluster = await gpu_cluster()
    async with recorded(cluster, whole) as recorder:
        await until(lambda: {NODE.resource, POD.resource} <= recorder.told.keys())
        for step in range(18):
            await _play(cluster, step)
            await caught_up(cluster, recorder)
        await cluster.advance(300)
        await caught_up(cluster, recorder)
    cluster = await gpu_cluster()
    async with recorded(cluster, torn) as recorder:  # what was before the first start, nobody can tell
        await until(lambda: {NODE.resource, POD.resource} <= recorder.told.keys())
    step = 0
    while step < 18:
        async with recorded(cluster, torn):
            for _ in range(chance.randrange(3)):
                await _play(cluster, step)
                step += 1
                if step == 18:
                    break
                for _ in range(chance.randrange(40)):
                    await asyncio.sleep(0)
    await cluster.advance(300)
    async with recorded(cluster, torn) as recorder:
        await caught_up(cluster, recorder)
    for kind in ROWS:
        if kind not in (StreamPosition, Gap, WorkloadSnapshot):  # owners are read anew: versions between are not told
            when = (
                *_SEEN_AT,
                *_ENDS,
                *(["start_at"] if kind is NodeRoomPeriod else []),
            )  # no node says when it changed
            assert table(torn, kind, *when) == table(whole, kind, *when), kind.table
    assert table(torn, Gap) == []


async def test_ten_restarts_add_nothing() -> None:
    cluster, store = await gpu_cluster(), MemoryStore()
    await cluster.create(JOB, gpu_job("train", 4), "default")
    await cluster.create(POD, gpu_pod("stays"), "default")
    await cluster.advance(15)
    async with recorded(cluster, store) as recorder:
        await caught_up(cluster, recorder)
    before = {kind: table(store, kind) for kind in ROWS if kind is not StreamPosition}
    for _ in range(10):
        async with recorded(cluster, store) as recorder:
            await until(lambda: recorder.changes[JOB.resource] > 0)  # owners are read anew
    assert {kind: table(store, kind) for kind in ROWS if kind is not StreamPosition} == before


@pytest.mark.parametrize("forgotten", [False, True], ids=["the server still tells", "the server has forgotten"])
async def test_a_pod_deleted_while_nobody_looked_is_closed_within_bounds(forgotten: bool) -> None:
    cluster, store = await gpu_cluster(), MemoryStore()
    await cluster.create(POD, gpu_pod("lost"), "default")
    await cluster.advance(30)
    async with recorded(cluster, store) as recorder:
        await caught_up(cluster, recorder, NODE, POD)
        heard = cluster.clock.now()
    await cluster.advance(100)
    await cluster.delete(POD, "lost", "default", grace=0)
    await cluster.advance(100)
    if forgotten:
        for kind in (POD, NODE):
            cluster.world.store.log(kind).compact(cluster.world.store.revision)
        await cluster.create(POD, gpu_pod("lost"), "default")  # a name again, another pod
    async with recorded(cluster, store) as recorder:
        await until(lambda: any(pod.gone_at for pod in store.rows(GpuPod)))
    lost = next(pod for pod in store.rows(GpuPod) if pod.gone_at)
    assert (lost.end_inferred, lost.end_after, lost.end_at) == (True, heard, cluster.clock.now())
    (period,) = [each for each in store.rows(GpuPeriod) if each.pod_uid == lost.uid]
    assert (period.end_inferred, period.end_after, period.end_at) == (True, heard, cluster.clock.now())
    assert [each.event_type for each in store.rows(GpuPodsEvent) if each.pod_uid == lost.uid].count("Gone") == 1
    gaps = store.rows(Gap)
    assert {each.kind for each in gaps} == ({"pods", "nodes"} if forgotten else set())
    assert {each.cluster for each in gaps} <= {CLUSTER}
