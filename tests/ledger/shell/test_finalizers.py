"""Finalizers: put on pods that stay, taken off once their last state is stored, and never in anybody's way for long."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest

from bayplan.cluster.embedded.engine import EmbeddedCluster
from bayplan.cluster.kinds import NODE, POD
from bayplan.cluster.objects import Object
from bayplan.ledger.finalizers import FINALIZER, Finalizers, decided, sweep
from bayplan.ledger.outlet import Outlet
from bayplan.ledger.recorder import Recorder
from bayplan.ledger.recording import Recording
from bayplan.ledger.rows import GpuPod, PodSnapshot
from tests.ledger.shell.memory import MemoryStore
from tests.ledger.shell.scenes import CLUSTER, gpu_cluster, gpu_pod, kinds_of, until


def version(*finalizers: str, going: bool = False) -> Object:
    meta: dict[str, Any] = {"name": "p", "namespace": "n", "uid": "u", "resourceVersion": "7"}
    meta |= {"finalizers": list(finalizers)} | ({"deletionTimestamp": "2026-01-01T00:00:00Z"} if going else {})
    return Object.from_raw(POD, msgspec.json.encode({"metadata": meta}))


@pytest.mark.parametrize(
    ("obj", "expected"),
    [
        pytest.param(version("other"), ("other", FINALIZER), id="a pod that stays gets it beside the others"),
        pytest.param(version(FINALIZER), None, id="a pod that has it keeps it"),
        pytest.param(version("a", FINALIZER, "b", going=True), ("a", "b"), id="a pod that goes loses it alone"),
        pytest.param(version(going=True), None, id="a pod that goes never gets it"),
    ],
)
def test_what_is_decided(obj: Object, expected: tuple[str, ...] | None) -> None:
    mark = decided(obj)
    assert (mark and mark.finalizers) == expected
    if mark is not None:
        assert (mark.body()["metadata"]["uid"], mark.body()["metadata"]["resourceVersion"]) == ("u", "7")


@asynccontextmanager
async def guarded(cluster: EmbeddedCluster, store: MemoryStore) -> AsyncIterator[Finalizers]:
    """A recorder with finalizers, without a spool."""
    kept, clock = await store.remembered(CLUSTER), cluster.clock
    finalizers = Finalizers(cluster, clock)
    recorder = Recorder(
        cluster,
        Recording(CLUSTER, kept),
        Outlet(store, None, clock),
        kept,
        clock=clock,
        find_kind=kinds_of(cluster),
        durable=finalizers.durable,
    )
    tasks = [
        asyncio.create_task(recorder.run()),
        asyncio.create_task(finalizers.run(lambda: recorder.waiting_since)),
    ]
    await until(lambda: {NODE.resource, POD.resource} <= recorder.told.keys())
    yield finalizers
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def names(cluster: EmbeddedCluster) -> list[str]:
    return [each.name for each in cluster.world.store.objects(POD)]


async def test_a_pod_goes_once_its_last_state_is_stored() -> None:
    cluster, store = await gpu_cluster(), MemoryStore()
    async with guarded(cluster, store) as finalizers:
        await cluster.create(POD, gpu_pod("p"), "default")
        await until(lambda: finalizers.added == 1)
        await cluster.advance(20)
        store.down = True
        going = await cluster.delete(POD, "p", "default", grace=0)
        await cluster.advance(30)
        assert names(cluster) == ["p"]
        store.down = False
        await cluster.advance(10)
        await until(lambda: names(cluster) == [])
        assert finalizers.removed == 1
        await until(lambda: all(pod.gone_at for pod in store.rows(GpuPod)))
    assert any(each.resource_version >= going.version for each in store.rows(PodSnapshot))


async def test_after_a_minute_without_a_database_pods_are_let_go() -> None:
    cluster, store = await gpu_cluster(), MemoryStore()
    async with guarded(cluster, store) as finalizers:
        await cluster.create(POD, gpu_pod("p"), "default")
        await until(lambda: finalizers.added == 1)
        await cluster.advance(20)
        store.down = True
        await cluster.delete(POD, "p", "default", grace=0)
        for _ in range(7):
            await cluster.advance(10)
            for _ in range(50):
                await asyncio.sleep(0)
        assert names(cluster) == []


async def test_a_sweep_takes_every_one_off() -> None:
    cluster = await gpu_cluster()
    for number in range(3):
        pod = gpu_pod(f"p{number}")
        pod["metadata"]["finalizers"] = ["example.com/other", FINALIZER]
        await cluster.create(POD, pod, "default")
    assert await sweep(cluster, POD) == 3
    assert {each.meta.finalizers for each in cluster.world.store.objects(POD)} == {("example.com/other",)}
    assert await sweep(cluster, POD) == 0
