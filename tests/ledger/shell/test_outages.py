"""The database away, answers lost, leases lost: what reaches the database in the end, and in which order."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from bayplan.cluster.embedded.engine import EmbeddedCluster
from bayplan.cluster.kinds import JOB, NODE, POD
from bayplan.ledger.outlet import NotLeaderError, Outlet
from bayplan.ledger.rows import ROWS, Gap, StreamPosition
from bayplan.ledger.spool import Spool
from bayplan.model.clock import VirtualClock
from tests.ledger.shell.memory import MemoryStore
from tests.ledger.shell.scenes import caught_up, gpu_cluster, gpu_job, recorded, table, until
from tests.ledger.shell.test_spool import version

LARGE = 1 << 30


async def _story(cluster: EmbeddedCluster, store: MemoryStore, spool: Spool | None, away: range) -> None:
    async with recorded(cluster, store, spool) as recorder:
        await until(lambda: {NODE.resource, POD.resource} <= recorder.told.keys())
        for step in range(12):
            store.down = step in away
            await cluster.create(JOB, gpu_job(f"job{step}", 3), "default")
            await cluster.advance(7)
            await caught_up(cluster, recorder)
        store.down = False
        await cluster.advance(120)
        await caught_up(cluster, recorder)
        await cluster.advance(30)
        if spool is not None:
            await until(lambda: len(spool) == 0)


async def test_after_an_outage_the_tables_are_as_if_there_had_been_none(tmp_path: Path) -> None:
    whole, spooled = MemoryStore(), MemoryStore()
    await _story(await gpu_cluster(), whole, None, range(0))
    await _story(await gpu_cluster(), spooled, Spool(tmp_path / "s", most_bytes=LARGE), range(3, 9))
    for kind in ROWS:
        assert table(spooled, kind) == table(whole, kind), kind.table


async def test_a_process_killed_during_an_outage_leaves_all_it_saw(tmp_path: Path) -> None:
    cluster, store = await gpu_cluster(), MemoryStore()
    spool = Spool(tmp_path / "s", most_bytes=LARGE)
    async with recorded(cluster, store, spool) as recorder:
        await until(lambda: {NODE.resource, POD.resource} <= recorder.told.keys())
        store.down = True
        await cluster.create(JOB, gpu_job("train", 3), "default")
        await cluster.advance(7)
        await caught_up(cluster, recorder)
    spool.close()
    store.down = False
    left = Spool(tmp_path / "s", most_bytes=LARGE)  # as the next process finds it
    assert len(left) > 0
    assert await Outlet(store, left, cluster.clock).replay()
    async with recorded(cluster, store, left) as recorder:
        await cluster.advance(60)
        await caught_up(cluster, recorder)
    whole = MemoryStore()
    cluster = await gpu_cluster()
    async with recorded(cluster, whole) as recorder:
        await until(lambda: {NODE.resource, POD.resource} <= recorder.told.keys())
        await cluster.create(JOB, gpu_job("train", 3), "default")
        await cluster.advance(7)
        await caught_up(cluster, recorder)
        await cluster.advance(60)
        await caught_up(cluster, recorder)
    for kind in ROWS:
        if kind not in (StreamPosition, Gap):
            assert table(store, kind, "updated_at") == table(whole, kind, "updated_at"), kind.table


async def test_an_answer_that_was_lost_is_asked_for_again_and_changes_nothing(tmp_path: Path) -> None:
    store, spool = MemoryStore(), Spool(tmp_path / "s", most_bytes=LARGE)
    outlet = Outlet(store, spool, VirtualClock())
    store.answers_lost = 1
    await outlet.put(version(1))
    assert (len(spool), outlet.away, outlet.errors) == (1, True, {"BP-D001": 1})
    before = {kind: table(store, kind) for kind in ROWS}
    assert await outlet.replay()
    assert {kind: table(store, kind) for kind in ROWS} == before
    assert (len(spool), outlet.away) == (0, False)


async def test_later_batches_queue_behind_those_that_wait(tmp_path: Path) -> None:
    store, spool = MemoryStore(), Spool(tmp_path / "s", most_bytes=LARGE)
    outlet = Outlet(store, spool, VirtualClock())
    store.down = True
    await outlet.put(version(1))
    store.down = False
    await outlet.put(version(2))
    assert (len(spool), store.commits) == (2, 0)
    assert await outlet.replay()
    assert store.commits == 2


async def test_a_full_spool_holds_the_reader_back_until_the_database_is_there(tmp_path: Path) -> None:
    store, spool, clock = MemoryStore(), Spool(tmp_path / "s", most_bytes=3000), VirtualClock()
    outlet = Outlet(store, spool, clock)
    store.down = True
    await outlet.put(version(1, "a", weight=1000))
    held = asyncio.create_task(outlet.put(version(2, "b", weight=2000)))
    await until(lambda: outlet.errors["BP-D030"] > 0)
    assert not held.done()
    store.down = False
    assert await outlet.replay()
    clock.advance_to(type(clock.now())(clock.now() + 1_000_000))
    await held
    assert store.commits == 2


async def test_who_does_not_lead_writes_nothing(tmp_path: Path) -> None:
    store, spool = MemoryStore(), Spool(tmp_path / "s", most_bytes=LARGE)
    outlet = Outlet(store, spool, VirtualClock(), may_write=lambda: False)
    with pytest.raises(NotLeaderError):
        await outlet.put(version(1))
    assert (store.commits, len(spool)) == (0, 0)
