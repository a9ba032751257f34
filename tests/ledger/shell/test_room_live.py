"""On a real control plane: pods without GPUs take the CPU beside idle ones; the ledger says so, over a restart too."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from bayplan.cluster.kinds import NAMESPACE, NODE, POD
from bayplan.cluster.lab.lab import Lab
from bayplan.cluster.live.cluster import LiveCluster
from bayplan.ledger.questions.idle import Devices, idle_at
from bayplan.ledger.store.migrating import migrate
from bayplan.ledger.store.sql import SqlStore, open_store
from bayplan.model.clock import SystemClock
from tests.cluster.lab_fixture import lab
from tests.ledger.chaos.objects import node
from tests.ledger.shell.scenes import GPU
from tests.ledger.shell.test_served import recording_of

__all__ = ["lab"]

HERE = "ledger-room"


def _guest(name: str, cpu: str) -> dict[str, Any]:
    amounts = {"cpu": cpu, "memory": "1Gi"}
    return {
        "metadata": {"name": name},
        "spec": {
            "nodeSelector": {"kubernetes.io/hostname": HERE},
            "containers": [{"name": "main", "image": "web:1", "resources": {"requests": amounts}}],
        },
    }


@asynccontextmanager
async def _ledger(path: Path) -> AsyncIterator[SqlStore]:
    url = f"sqlite:///{path}"
    await migrate(url)
    store = await open_store(url)
    yield store
    await store.close()


async def _until(store: SqlStore, stranded: int, why: str) -> Devices:
    """The node's GPUs, once so many are stranded."""
    for _ in range(300):
        here = [each for each in await idle_at(store, SystemClock().now()) if each.place.node == HERE]
        if here and (here[0].stranded, here[0].why) == (stranded, why):
            return here[0]
        await asyncio.sleep(0.1)
    raise AssertionError(f"{here}, not {stranded} {why}")


@pytest.mark.slow
async def test_idle_gpus_are_stranded_while_others_have_the_cpu_beside_them(lab: Lab, tmp_path: Path) -> None:
    host = node(HERE, GPU)
    host["metadata"]["labels"] = {**host["metadata"]["labels"], "kubernetes.io/hostname": HERE}
    for amounts in (host["status"]["capacity"], host["status"]["allocatable"]):
        amounts |= {"cpu": "10", GPU: "8"}
    kubeconfig = Path(lab.kubeconfig)
    async with LiveCluster.find(kubeconfig) as cluster, _ledger(tmp_path / "ledger.db") as store:
        await cluster.create(NAMESPACE, {"metadata": {"name": HERE}})
        await cluster.create(NODE, host)
        async with recording_of(kubeconfig, store, SystemClock()):
            await _until(store, 0, "")
            await cluster.create(POD, _guest("one", "4"), HERE)
            await _until(store, 2000, "no CPU")
            await cluster.create(POD, _guest("two", "6"), HERE)
            await _until(store, 8000, "no CPU")
        await cluster.delete(POD, "two", HERE, grace=0)
        async with recording_of(kubeconfig, store, SystemClock()):
            found = await _until(store, 2000, "no CPU")
            await cluster.patch(NODE, {"spec": {"unschedulable": True}}, HERE)
            await _until(store, 8000, "cordoned")
        await cluster.delete(POD, "one", HERE, grace=0)
        await cluster.delete(NODE, HERE)
    assert (found.capacity, found.allocated) == (8000, 0)
