"""A ledger whose past is not the cluster's: one that is wrong, one that was lost, and a cluster that was set back."""

from __future__ import annotations

import signal
import sqlite3
from pathlib import Path

import msgspec
import pytest

from bayplan.cluster.kinds import POD
from bayplan.ledger.rows import Gap, GpuPod, Rows
from bayplan.ledger.settings import spool_path
from bayplan.ledger.store.settings import parse_url
from bayplan.ledger.store.sql import open_store
from bayplan.service.settings import LedgerSettings
from tests.ledger.databases import EMPTY
from tests.ledger.process.running import happens, ledger, listens, served, stored
from tests.ledger.shell.scenes import gpu_pod

pytestmark = pytest.mark.slow  # every start of a process takes a second


async def haunted(database: str) -> None:
    """Add a pod to the ledger that the cluster does not have."""
    (there,) = await stored(database, GpuPod)
    rows = Rows()
    rows.add(msgspec.structs.replace(there, uid="ghost", name="ghost"))
    store = await open_store(database)
    await store.commit(rows)
    await store.close()


async def test_a_pod_that_the_cluster_has_not_is_closed_by_reading_anew_alone(tmp_path: Path) -> None:
    database = EMPTY["SQLite"]()

    async def open_pods(name: str, *flags: str) -> set[str]:
        """Of a ledger that ran until it had heard of a new pod of that name."""
        async with ledger(tmp_path, world, database, *flags, name=name, election="off") as process:
            await process.tells("recording started")
            await listens(database)
            await world.cluster.create(POD, gpu_pod(name), "default")

            async def heard() -> bool:
                return name in {row.name for row in await stored(database, GpuPod)}

            await happens(heard)
            assert await process.end() == 0
        return {row.name for row in await stored(database, GpuPod) if row.gone_at is None}

    async with served(tmp_path) as world:
        assert await open_pods("first") == {"first"}
        await haunted(database)
        assert await open_pods("second") == {"first", "second", "ghost"}
        assert await open_pods("third", "--anew") == {"first", "second", "third"}
    assert sorted(row.kind for row in await stored(database, Gap)) == ["nodes", "pods"]


def lose(file: Path) -> None:
    """As if there had never been one."""
    for each in file.parent.glob(f"{file.name}*"):
        each.unlink()


async def test_batches_that_wait_for_a_database_that_was_lost_do_not_stand_for_its_past(tmp_path: Path) -> None:
    file = tmp_path / "ledger.db"
    database = f"sqlite:///{file}"

    async def names() -> set[str]:
        return {row.name for row in await stored(database, GpuPod)}

    async with served(tmp_path) as world:
        await world.cluster.create(POD, gpu_pod("first"), "default")
        async with ledger(tmp_path, world, database, election="off", statement_timeout="100ms") as process:
            await process.tells("recording started")
            await listens(database)
            holder = sqlite3.connect(file, isolation_level=None)
            holder.execute("BEGIN IMMEDIATE")
            await world.cluster.create(POD, gpu_pod("second"), "default")

            async def waits() -> bool:
                return (await process.metrics())["bayplan_ledger_spool_batches"] > 1

            await happens(waits)
            await process.end(signal.SIGKILL)
        holder.close()
        lose(file)
        async with ledger(tmp_path, world, database, election="off") as process:
            await process.tells("spool of another past")

            async def both() -> bool:
                return await names() == {"first", "second"}

            await happens(both)


async def test_a_cluster_that_was_set_back_is_refused_and_the_ledger_stays_as_it_is(tmp_path: Path) -> None:
    database = EMPTY["SQLite"]()
    async with served(tmp_path) as world, ledger(tmp_path, world, database, election="off") as process:
        await process.tells("recording started")
        await listens(database)
        await world.job("first")
        assert await process.end() == 0
    before = await stored(database, GpuPod)
    async with served(tmp_path) as world, ledger(tmp_path, world, database, name="again", election="off") as process:
        assert await process.ended() == 1
        assert "it was restored or made anew" in process.output()
    assert await stored(database, GpuPod) == before != []


@pytest.mark.parametrize(
    ("other", "same"),
    [
        pytest.param("postgresql://someone:else@db/ledger", True, id="whoever asks"),
        pytest.param("postgresql://me@db/another", False, id="another database"),
        pytest.param("postgresql://me@elsewhere/ledger", False, id="another server"),
        pytest.param("mysql://me@db/ledger", False, id="another sort"),
    ],
)
def test_batches_wait_for_one_database(other: str, same: bool) -> None:
    paths = {spool_path(LedgerSettings(), "c", parse_url(url)) for url in ("postgresql://me@db/ledger", other)}
    assert (len(paths) == 1) == same
