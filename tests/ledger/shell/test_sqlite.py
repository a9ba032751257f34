"""The recorder on a real database, started anew in between: the same tables as in memory, without interruption."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from bayplan.cluster.kinds import JOB, NODE, POD
from bayplan.ledger.following import Following
from bayplan.ledger.rows import ROWS, GpuPod, Row, StreamPosition, WorkloadSnapshot
from bayplan.ledger.store.reading import TABLES
from bayplan.ledger.store.sql import SqlStore, open_store
from tests.ledger.databases import prepared
from tests.ledger.shell.memory import MemoryStore
from tests.ledger.shell.scenes import caught_up, gpu_cluster, gpu_job, gpu_pod, recorded, table, until


async def new_store(folder: Path) -> SqlStore:
    return await open_store(await prepared(f"sqlite:///{folder / 'ledger.db'}"))


async def sql_table(store: SqlStore, kind: type[Row]) -> list[tuple[Any, ...]]:
    async with store.engine.connect() as connection:
        found = await connection.execute(sa.select(*(TABLES[kind].c[name] for name in kind.__struct_fields__)))
        return sorted(map(tuple, found), key=repr)


async def test_a_recorder_started_anew_again_and_again_fills_a_database_as_one_that_was_not(tmp_path: Path) -> None:
    cluster, store, whole = await gpu_cluster(), await new_store(tmp_path), MemoryStore()
    async with recorded(cluster, whole) as steady:
        await until(lambda: {NODE.resource, POD.resource} <= steady.told.keys())
        for step in range(6):
            async with recorded(cluster, store) as recorder:
                await until(lambda: {NODE.resource, POD.resource} <= recorder.told.keys())
                await asyncio.sleep(0.05)  # it knows from before how far it is; now it listens as well
                await cluster.create(JOB, gpu_job(f"job{step}", 3), "default")
                await cluster.create(POD, gpu_pod("again"), "default")
                await cluster.advance(5)
                await cluster.delete(POD, "again", "default", grace=0)
                await cluster.advance(5)
                await caught_up(cluster, recorder)
                await caught_up(cluster, steady)
    for kind in ROWS:
        if kind not in (StreamPosition, WorkloadSnapshot, GpuPod):
            found = [tuple(1 if it is True else 0 if it is False else it for it in row) for row in table(whole, kind)]
            assert await sql_table(store, kind) == found, kind.table
    assert len(await sql_table(store, GpuPod)) == len(whole.rows(GpuPod)) == 6 * 4
    await store.close()


async def test_a_cluster_followed_from_inside_can_be_asked_while_it_runs(tmp_path: Path) -> None:
    cluster, store = await gpu_cluster(), await new_store(tmp_path)
    following = await Following.begin(cluster, store)
    await cluster.create(POD, gpu_pod("p"), "default")
    await cluster.advance(30)
    await following.flush()
    (pod,) = (await store.remembered(following.recording.cluster)).pods
    assert (pod.phase, pod.node_name != "", pod.gpu_allocated) == ("Running", True, 1000)
    await store.close()
