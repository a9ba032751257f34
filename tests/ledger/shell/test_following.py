"""An embedded cluster recorded from inside, in virtual time: exact, complete, and the same as from outside."""

from __future__ import annotations

import pytest

from bayplan.cluster.kinds import JOB, NODE, POD
from bayplan.ledger.following import Following
from bayplan.ledger.rows import GpuPeriod, GpuPod, GpuPodsEvent, GpuWorkload, NodePeriod, PodSnapshot
from bayplan.ledger.streams import RecordedAlreadyError
from bayplan.model.clock import SECOND
from tests.ledger.shell.memory import MemoryStore
from tests.ledger.shell.scenes import gpu_cluster, gpu_job, gpu_pod, recorded, table, until


async def test_a_pod_ends_at_the_instant_at_which_it_went() -> None:
    cluster, store = await gpu_cluster(), MemoryStore()
    following = await Following.begin(cluster, store)
    start = cluster.clock.now()
    await cluster.create(POD, gpu_pod("p"), "default")
    await cluster.advance(100)
    await cluster.delete(POD, "p", "default", grace=0)
    await cluster.advance(1000)
    await following.flush()
    (pod,) = store.rows(GpuPod)
    assert (pod.end_at, pod.end_inferred) == (start + 100 * SECOND, False)
    (period,) = store.rows(GpuPeriod)
    assert (period.end_at, period.gpus, period.gpu_model) == (start + 100 * SECOND, 1000, "H100")
    assert len(store.rows(NodePeriod)) == 2


async def test_inside_and_outside_tell_the_same() -> None:
    inside, outside = MemoryStore(), MemoryStore()
    cluster = await gpu_cluster()
    following = await Following.begin(cluster, inside)
    async with recorded(cluster, outside) as recorder:
        await until(lambda: {NODE.resource, POD.resource} <= recorder.told.keys())
        for step in range(10):
            await cluster.create(JOB, gpu_job(f"job{step}", 3), "default")
            for _ in range(8):
                await cluster.advance(1)
                last = cluster.world.store.log(POD)
                (newest,) = last.read(last.end - 1, 1)
                version = newest.new.version
                await until(lambda: recorder.told[POD.resource] >= version)  # noqa: B023 - awaited here
            await following.flush()
        await cluster.advance(200)
        version = cluster.world.store.log(JOB).read(cluster.world.store.log(JOB).end - 1, 1)[0].new.version
        await until(lambda: recorder.told[JOB.resource] >= version)
        await following.flush()
    seen = ("cluster", "at", "observed_at", "updated_at", "root_uid")
    for kind in (PodSnapshot, GpuPodsEvent, GpuPod):
        assert table(inside, kind, *seen) == table(outside, kind, *seen), kind.table
    assert {each.status for each in inside.rows(GpuWorkload)} == {"Succeeded"}
    roots = {each.root_uid for each in inside.rows(GpuPod)}
    assert roots == {each.uid for each in inside.rows(GpuWorkload)}


async def test_a_second_run_of_the_same_seed_is_not_mixed_into_the_first() -> None:
    store = MemoryStore()
    first = await Following.begin(await gpu_cluster(), store)
    await first.flush()
    again = await gpu_cluster()
    with pytest.raises(RecordedAlreadyError):
        await Following.begin(again, store)
    await Following.begin(await gpu_cluster(seed=1), store)
