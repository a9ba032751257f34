"""A recorder over HTTP: on the served embedded cluster, and on a real API server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from bayplan.cluster.kinds import CUSTOM_RESOURCE_DEFINITION, JOB, NAMESPACE, NODE, POD, Kind
from bayplan.cluster.lab.lab import Lab
from bayplan.cluster.live.cluster import LiveCluster
from bayplan.cluster.served.serve import serve
from bayplan.ledger.discovering import LiveKinds
from bayplan.ledger.outlet import Outlet
from bayplan.ledger.recorder import Recorder
from bayplan.ledger.recording import Recording
from bayplan.ledger.rows import Gap, GpuPod, GpuWorkload, PodSnapshot, WorkloadPodReference
from bayplan.ledger.store.port import Store
from bayplan.model.clock import Clock, ScaledClock, SystemClock, VirtualClock
from bayplan.model.errors import NotFound, TooManyRequests
from tests.cluster.lab_fixture import lab
from tests.ledger.chaos.objects import definition
from tests.ledger.shell.memory import MemoryStore
from tests.ledger.shell.scenes import CLUSTER, gpu_cluster, gpu_job, gpu_node, gpu_pod, until

__all__ = ["lab"]


@asynccontextmanager
async def recording_of(kubeconfig: Path, store: Store, clock: Clock) -> AsyncIterator[Recorder]:
    """A recorder that reaches its cluster as `bayplan ledger run` does."""
    async with LiveCluster.find(kubeconfig) as cluster:
        kinds = LiveKinds(cluster.access, clock)
        kept = await store.remembered(CLUSTER)
        outlet = Outlet(store, None, clock)
        recorder = Recorder(
            cluster, Recording(CLUSTER, kept), outlet, kept, clock=clock, find_kind=kinds.find, most_changes=100
        )
        task = asyncio.create_task(recorder.run())
        try:
            yield recorder
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            await kinds.close()
        if not task.cancelled() and (error := task.exception()) is not None:
            raise error


async def test_a_served_cluster_is_recorded_over_http(tmp_path: Path) -> None:
    clock = ScaledClock(VirtualClock().now(), 60)
    cluster, store = await gpu_cluster(clock=clock), MemoryStore()
    running = asyncio.create_task(cluster.run())
    async with serve(cluster, kubeconfig_out=tmp_path / "kubeconfig") as served:
        async with recording_of(served.kubeconfig, store, clock) as recorder:
            await until(lambda: {NODE.resource, POD.resource} <= recorder.told.keys())
            await cluster.create(JOB, gpu_job("train", 5), "default")
            await until(lambda: [each.status for each in store.rows(GpuWorkload)] == ["Succeeded"])
        await cluster.delete(JOB, "train", "default", propagation="Background")
        await until(lambda: not list(cluster.world.store.objects(POD)))
        async with recording_of(served.kubeconfig, store, clock):
            await until(lambda: all(pod.gone_at for pod in store.rows(GpuPod)))
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    pods = store.rows(GpuPod)
    assert [(pod.phase, pod.gpu_allocated, pod.end_inferred) for pod in pods] == [("Succeeded", 1000, False)] * 5
    assert len(store.rows(WorkloadPodReference)) == 5
    assert store.rows(Gap) == []


RUN = Kind("lab.example.com", "v1", "TrainingRun", "trainingruns", namespaced=True)


@pytest.mark.slow
async def test_a_real_api_server_is_recorded_with_owners_of_an_unknown_kind(lab: Lab) -> None:
    store, clock = MemoryStore(), SystemClock()
    namespace = "ledger-shell"
    async with LiveCluster.find(lab.kubeconfig) as cluster:
        await cluster.create(NAMESPACE, {"metadata": {"name": namespace}})
        await cluster.create(NODE, gpu_node("ledger-shell"))
        await cluster.create(CUSTOM_RESOURCE_DEFINITION, definition(RUN))
        await _until_served(cluster, namespace)
        run = await cluster.create(
            RUN, {"apiVersion": RUN.api_version, "kind": RUN.name, "metadata": {"name": "run"}}, namespace
        )
        owner = {"apiVersion": RUN.api_version, "kind": RUN.name, "name": "run", "uid": run.uid, "controller": True}
        pod = gpu_pod("worker")
        pod["metadata"]["ownerReferences"] = [owner]
        async with recording_of(Path(lab.kubeconfig), store, clock) as recorder:
            await until(lambda: {NODE.resource, POD.resource} <= recorder.told.keys())
            made = await cluster.create(POD, pod, namespace)
            await until(lambda: any(each.uid == run.uid for each in store.rows(GpuWorkload)))
            await until(lambda: recorder.told.get(RUN.resource, 0) > 0)
        await cluster.delete(POD, "worker", namespace, grace=0)
        async with recording_of(Path(lab.kubeconfig), store, clock):
            await until(lambda: any(each.gone_at for each in store.rows(GpuPod)))
        await cluster.delete(NODE, "ledger-shell")
        await cluster.delete(CUSTOM_RESOURCE_DEFINITION, f"{RUN.plural}.{RUN.group}")
    (found,) = [each for each in store.rows(GpuPod) if each.uid == made.uid]
    assert (found.root_uid, found.end_inferred, found.gpu_allocated) == (run.uid, True, 1000)
    versions = [each.resource_version for each in store.rows(PodSnapshot) if each.pod_uid == made.uid]
    assert min(versions) == made.version


async def _until_served(cluster: LiveCluster, namespace: str) -> None:
    for _ in range(100):
        try:
            await cluster.list(RUN, namespace)
        except (NotFound, TooManyRequests):
            await asyncio.sleep(0.1)
        else:
            return
    raise AssertionError("the kind is not served")
