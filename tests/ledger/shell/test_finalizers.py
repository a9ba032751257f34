"""Finalizers: put on pods that stay, taken off once their last state is stored, and never in anybody's way for long."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from bayplan.cluster.embedded.engine import EmbeddedCluster
from bayplan.cluster.kinds import CUSTOM_RESOURCE_DEFINITION, JOB, NAMESPACE, NODE, POD, Kind
from bayplan.cluster.lab.lab import Lab
from bayplan.cluster.live.cluster import LiveCluster
from bayplan.cluster.objects import Object
from bayplan.cluster.port import Page
from bayplan.ledger.finalizers import FINALIZER, Finalizers, decided, sweep
from bayplan.ledger.outlet import Outlet
from bayplan.ledger.recorder import Recorder
from bayplan.ledger.recording import Recording
from bayplan.ledger.rows import GpuPod, GpuWorkload, PodSnapshot, WorkloadSnapshot
from bayplan.model.errors import Forbidden
from tests.cluster.lab_fixture import lab
from tests.ledger.chaos.objects import definition
from tests.ledger.process.running import Process, happens, stored
from tests.ledger.shell.memory import MemoryStore
from tests.ledger.shell.scenes import CLUSTER, gpu_cluster, gpu_job, gpu_pod, kinds_of, until

__all__ = ["lab"]


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
        asyncio.create_task(finalizers.run(lambda: recorder.waiting_since, lambda: recorder.kinds)),
    ]
    await until(lambda: {NODE.resource, POD.resource} <= recorder.told.keys())
    yield finalizers
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def names(cluster: EmbeddedCluster, kind: Kind = POD) -> list[str]:
    return [each.name for each in cluster.world.store.objects(kind)]


def marked(cluster: EmbeddedCluster, kind: Kind) -> set[bool]:
    return {FINALIZER in each.meta.finalizers for each in cluster.world.store.objects(kind)}


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


async def test_a_workload_at_the_top_goes_once_its_last_state_is_stored() -> None:
    cluster, store = await gpu_cluster(), MemoryStore()
    async with guarded(cluster, store):
        job = await cluster.create(JOB, gpu_job("train", 2, runs="1h"), "default")
        await cluster.advance(20)
        await until(lambda: marked(cluster, JOB) == marked(cluster, POD) == {True})
        store.down = True
        await cluster.delete(JOB, "train", "default", propagation="Background")
        await cluster.advance(20)
        assert names(cluster, JOB) == ["train"]
        store.down = False
        await cluster.advance(10)
        await until(lambda: names(cluster, JOB) == [])
        await until(lambda: [row.status for row in store.rows(GpuWorkload)] == ["Deleted"])
    versions = [(row.resource_version, row.gone) for row in store.rows(WorkloadSnapshot) if row.workload_uid == job.uid]
    assert [gone for _, gone in sorted(versions)] == [False] * (len(versions) - 1) + [True]


async def test_after_a_minute_without_a_database_workloads_are_let_go_too() -> None:
    cluster, store = await gpu_cluster(), MemoryStore()
    async with guarded(cluster, store):
        await cluster.create(JOB, gpu_job("train", 1, runs="1h"), "default")
        await cluster.advance(20)
        await until(lambda: marked(cluster, JOB) == marked(cluster, POD) == {True})
        store.down = True
        await cluster.delete(JOB, "train", "default", propagation="Background")
        for _ in range(14):  # the Job first; its pods are deleted once it is gone, and wait a minute in turn
            await cluster.advance(10)
            for _ in range(50):
                await asyncio.sleep(0)
        assert (names(cluster, JOB), names(cluster)) == ([], [])


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


class WithoutJobs:
    """A cluster that does not let Jobs be read."""

    def __init__(self, cluster: EmbeddedCluster) -> None:
        self._cluster = cluster
        self.patch = cluster.patch

    async def list(self, kind: Kind, namespace: str | None = None, **how: Any) -> Page:
        if kind is JOB:
            raise Forbidden("jobs.batch is forbidden")
        return await self._cluster.list(kind, namespace, **how)


async def test_a_kind_that_may_not_be_read_does_not_keep_the_others() -> None:
    cluster = await gpu_cluster()
    pod = gpu_pod("p")
    pod["metadata"]["finalizers"] = [FINALIZER]
    await cluster.create(POD, pod, "default")
    await cluster.delete(POD, "p", "default", grace=0)
    finalizers = Finalizers(WithoutJobs(cluster), cluster.clock)  # type: ignore[arg-type]  # enough of a cluster
    stuck = cluster.clock.now()
    running = asyncio.create_task(finalizers.run(lambda: stuck, lambda: [JOB, POD]))
    for _ in range(7):
        await cluster.advance(10)
        for _ in range(50):
            await asyncio.sleep(0)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert (names(cluster), finalizers.removed) == ([], 1)


async def test_a_sweep_takes_every_one_off() -> None:
    cluster = await gpu_cluster()
    for number in range(3):
        pod = gpu_pod(f"p{number}")
        pod["metadata"]["finalizers"] = ["example.com/other", FINALIZER]
        await cluster.create(POD, pod, "default")
    assert await sweep(cluster, POD) == 3
    assert {each.meta.finalizers for each in cluster.world.store.objects(POD)} == {("example.com/other",)}
    assert await sweep(cluster, POD) == 0


RUN = Kind("ledger.example.com", "v1", "GuardedRun", "guardedruns", namespaced=True)


@pytest.mark.slow
async def test_a_real_api_server_is_held_up_by_nothing_and_left_with_nothing(lab: Lab, tmp_path: Path) -> None:
    database, namespace = f"sqlite:///{tmp_path / 'ledger.db'}", "ledger-guarded"
    made = {"apiVersion": RUN.api_version, "kind": RUN.name, "metadata": {"name": "run"}}
    words = ("ledger", "run", "--database", database, "--kubeconfig", lab.kubeconfig)
    async with LiveCluster.find(lab.kubeconfig) as cluster:
        await cluster.create(NAMESPACE, {"metadata": {"name": namespace}})
        await cluster.create(CUSTOM_RESOURCE_DEFINITION, definition(RUN))
        run = await happens_to_be(lambda: cluster.create(RUN, made, namespace))
        owner = {"apiVersion": RUN.api_version, "kind": RUN.name, "name": "run", "uid": run.uid, "controller": True}
        body = gpu_pod("worker")
        body["metadata"]["ownerReferences"] = [owner]

        async def finalizers(kind: Kind, name: str) -> tuple[str, ...]:
            return (await cluster.get(kind, name, namespace)).meta.finalizers

        async def both() -> bool:
            return FINALIZER in await finalizers(POD, "worker") and FINALIZER in await finalizers(RUN, "run")

        async def nobody() -> bool:
            listed = [(await cluster.list(kind, namespace)).items for kind in (POD, RUN)]
            return not any(map(len, listed))

        settings = {"finalizers": "on", "election": "off", "spool": str(tmp_path / "spool")}
        async with Process(tmp_path, *words, **settings) as process:
            await process.tells("recording started")
            await cluster.create(POD, body, namespace)
            await happens(both)
            await cluster.delete(POD, "worker", namespace, grace=0)
            await cluster.delete(RUN, "run", namespace)
            await happens(nobody)
            run = await cluster.create(RUN, made, namespace)
            body["metadata"]["ownerReferences"] = [owner | {"uid": run.uid}]
            await cluster.create(POD, body, namespace)
            await happens(both)
        async with Process(tmp_path, "ledger", "uninstall", "--kubeconfig", lab.kubeconfig, name="uninstall") as done:
            assert await done.ended() == 0, done.output()
        assert (await finalizers(POD, "worker"), await finalizers(RUN, "run")) == ((), ())
        await cluster.delete(POD, "worker", namespace, grace=0)
        await cluster.delete(CUSTOM_RESOURCE_DEFINITION, RUN.resource)
        await cluster.delete(NAMESPACE, namespace)
    gone = [(row.name, row.gone_at is not None) for row in await stored(database, GpuPod)]
    assert sorted(gone) == [("worker", False), ("worker", True)]


async def happens_to_be(made: Callable[[], Awaitable[Object]]) -> Object:
    """What could be made once the server knew the kind."""
    found: list[Object] = []

    async def tried() -> bool:
        found.append(await made())
        return True

    await happens(tried)
    return found[0]
