"""Clusters with GPU load, recorders on them, and the tables that come of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from bayplan.cluster.embedded.assembly import embedded_cluster
from bayplan.cluster.embedded.engine import EmbeddedCluster
from bayplan.cluster.kinds import JOB, NODE, POD, Kind
from bayplan.cluster.live.reflector import Source
from bayplan.ledger.outlet import Outlet
from bayplan.ledger.recorder import Recorder
from bayplan.ledger.recording import Recording
from bayplan.ledger.rows import Row
from bayplan.ledger.spool import Spool
from bayplan.ledger.store.port import Store
from bayplan.model.clock import Clock
from tests.ledger.shell.memory import MemoryStore

CLUSTER = "c1"
GPU = "nvidia.com/gpu"


def gpu_node(name: str, gpus: int = 8) -> dict[str, Any]:
    offered = {"cpu": "64", "memory": "512Gi", "pods": "110", GPU: str(gpus)}
    return {
        "metadata": {"name": name, "labels": {"nvidia.com/gpu.product": "H100"}},
        "status": {"capacity": offered, "allocatable": offered},
    }


def container(gpus: int) -> dict[str, Any]:
    amounts = {"cpu": "1", "memory": "1Gi", GPU: str(gpus)}
    return {"name": "main", "image": "train:1", "resources": {"requests": amounts, "limits": amounts}}


def gpu_pod(name: str, gpus: int = 1) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"restartPolicy": "Never", "containers": [container(gpus)]}}


def gpu_job(name: str, pods: int, gpus: int = 1, runs: str = "30s") -> dict[str, Any]:
    return {
        "metadata": {"name": name},
        "spec": {
            "completions": pods,
            "parallelism": pods,
            "template": {
                "metadata": {"annotations": {"behaviour.bayplan.dev/run-for": runs}},
                "spec": {"restartPolicy": "Never", "containers": [container(gpus)]},
            },
        },
    }


async def gpu_cluster(nodes: int = 2, *, clock: Clock | None = None, seed: int = 0) -> EmbeddedCluster:
    cluster = embedded_cluster(clock=clock, seed=seed)
    for number in range(nodes):
        await cluster.create(NODE, gpu_node(f"n{number}"))
    return cluster


def kinds_of(cluster: EmbeddedCluster) -> Callable[[str, str], Awaitable[Kind | None]]:
    async def find(api_version: str, name: str) -> Kind | None:
        return cluster.world.store.registry.find(api_version, name)

    return find


async def new_recorder(
    cluster: EmbeddedCluster, store: Store, spool: Spool | None = None, *, source: Source | None = None, **how: Any
) -> Recorder:
    """On a cluster, or on what lies between (`source`); `how` as the recorder takes it."""
    kept = await store.remembered(CLUSTER)
    return Recorder(
        source or cluster,
        Recording(CLUSTER, kept),
        Outlet(store, spool, cluster.clock),
        kept,
        clock=cluster.clock,
        find_kind=kinds_of(cluster),
        **how,
    )


@asynccontextmanager
async def recorded(
    cluster: EmbeddedCluster, store: Store, spool: Spool | None = None, *, source: Source | None = None, **how: Any
) -> AsyncIterator[Recorder]:
    """A recorder that runs until the block is left."""
    recorder = await new_recorder(cluster, store, spool, source=source, **how)
    task = asyncio.create_task(recorder.run())
    try:
        yield recorder
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        if not task.cancelled() and (error := task.exception()) is not None:
            raise error


async def until(true: Callable[[], bool]) -> None:
    """Until it is so; a recorder works beside the test, in its own tasks."""
    for _ in range(3000):
        if true():
            return
        await asyncio.sleep(0.001)
    raise AssertionError("it did not come to be")


async def caught_up(cluster: EmbeddedCluster, recorder: Recorder, *kinds: Kind) -> None:
    """Until the recorder has made durable all that happened to these kinds."""
    for kind in kinds or (NODE, POD, JOB):
        changes = cluster.world.store.log(kind)
        if changes.end:
            (last,) = changes.read(changes.end - 1, 1)
            await until(lambda: recorder.told.get(kind.resource, 0) >= last.new.version)  # noqa: B023 - awaited here


def table(store: MemoryStore, kind: type[Row], *without: str) -> list[tuple[Any, ...]]:
    """All rows of a table, in order, without some columns; an inferred end is like any other."""
    kept = [name for name in kind.__struct_fields__ if name not in without]
    return sorted(
        [tuple("" if (it := getattr(row, name)) == "inferred" else it for name in kept) for row in store.rows(kind)],
        key=repr,
    )
