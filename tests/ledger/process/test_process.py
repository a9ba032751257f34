"""`bayplan ledger run` from start to end: health, metrics, signals, kill -9, a second replica, wrong databases."""

from __future__ import annotations

import asyncio
import re
import signal
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import sqlalchemy as sa

from bayplan.ledger.rows import Gap, GpuPod, PodSnapshot
from bayplan.ledger.store.engines import engine_for
from bayplan.ledger.store.migrating import migrate
from bayplan.ledger.store.schema import VERSION_TABLE
from bayplan.ledger.store.settings import StoreSettings, parse_url
from bayplan.model.clock import parse_rfc3339
from tests.ledger.chaos.proxy import Proxy
from tests.ledger.databases import EMPTY, PASSWORD, Postgres, empty_database, server
from tests.ledger.process.running import Process, Version, World, happens, ledger, listens, served, soon, stored

__all__ = ["empty_database"]

_NOBODY = 1
"""A port on which nobody listens."""
pytestmark = pytest.mark.slow  # every start of a process takes a second


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with served(tmp_path) as one:
        yield one


async def versions(database: str) -> list[Version]:
    return sorted((each.pod_uid, each.resource_version) for each in await stored(database, PodSnapshot))


async def test_it_records_says_how_it_is_and_ends_with_everything_committed(
    world: World, empty_database: str, tmp_path: Path
) -> None:
    if not empty_database.startswith("sqlite"):
        async with Process(tmp_path, "ledger", "migrate", "--database", empty_database, name="migrate") as migrating:
            assert await migrating.ended() == 0
            assert PASSWORD not in migrating.output()
    async with ledger(tmp_path, world, empty_database) as process:
        await begins(process, empty_database)
        assert PASSWORD not in process.output()
        await world.job("first")
        assert [await process.get(path) for path in ("/livez", "/readyz")] == [(200, "ok")] * 2
        await soon(lambda: len(process.told("listener started")) > 0, "the listener of Jobs", process.output)
        await world.job("second")

        async def has_read_all() -> bool:
            return (await process.metrics())['bayplan_ledger_changes_total{resource="pods"}'] == len(world.happened)

        await happens(has_read_all)
        metrics = await process.metrics()
        assert await process.end(signal.SIGTERM) == 0  # while the last versions may still be under way
        assert {line["level"] for line in process.lines()} == {"info"}
    assert metrics["bayplan_ledger_leader"] == 1
    assert metrics["bayplan_ledger_database_away"] == 0
    assert (metrics["bayplan_ledger_spool_bytes"], metrics["bayplan_ledger_spool_batches"]) == (0, 0)
    assert metrics["bayplan_ledger_lag_seconds"] >= 0
    assert metrics["bayplan_ledger_transactions_total"] > 0
    assert metrics["bayplan_ledger_rows_total"] > metrics["bayplan_ledger_transactions_total"]
    assert not [name for name in metrics if name.startswith("bayplan_ledger_errors_total")]
    assert await versions(empty_database) == sorted(world.happened)
    pods = await stored(empty_database, GpuPod)
    assert [(pod.phase, pod.gpu_allocated) for pod in pods] == [("Succeeded", 1000)] * 4
    assert await stored(empty_database, Gap) == []


async def begins(process: Process, database: str) -> None:
    await process.tells("recording started")
    await listens(database)


async def soon_stored(process: Process, database: str, world: World) -> None:
    """Until every version of every pod is in the ledger, each once."""
    for _ in range(300):
        if await versions(database) == sorted(world.happened):
            return
        await asyncio.sleep(0.1)
    assert await versions(database) == sorted(world.happened), process.output()


async def test_killed_again_and_again_it_goes_on_where_it_was(world: World, tmp_path: Path) -> None:
    database = EMPTY["SQLite"]()
    for number in range(3):
        name = f"run{number}"
        async with ledger(tmp_path, world, database, name=name, election="off", spool=str(tmp_path / "s")) as process:
            await begins(process, database)
            await world.job(f"job{number}", runs="50ms")
            await process.end(signal.SIGKILL)
    async with ledger(tmp_path, world, database, name="last", election="off", spool=str(tmp_path / "s")) as process:
        await process.tells("recording started")
        await soon_stored(process, database, world)
        assert await process.end() == 0
    assert len(await stored(database, GpuPod)) == 6


@asynccontextmanager
async def replicas(folder: Path, world: World, database: str) -> AsyncIterator[tuple[Process, Process]]:
    """Two ledgers, the one that leads first.

    The defaults of their lease are proved in virtual time (tests/ledger/shell/test_leases.py): this machine is busy.
    """
    times = {"lease_duration": "5s", "lease_renew": "3s", "lease_retry": "1s"}
    first, second = (ledger(folder, world, database, name=name, **times) for name in ("one", "two"))
    async with first as one, second as two:
        await soon(lambda: bool(one.told("recording started") or two.told("recording started")), "a leader")
        leader, other = (one, two) if one.told("recording started") else (two, one)
        await begins(leader, database)
        yield leader, other


async def test_a_leader_that_was_frozen_wakes_up_as_a_follower(world: World, tmp_path: Path) -> None:
    database = EMPTY["PostgreSQL"]()
    await migrate(database)
    async with replicas(tmp_path, world, database) as (leader, other):
        await world.job("first")
        leader.send(signal.SIGSTOP)
        await other.tells("lease acquired")
        await world.job("second")
        leader.send(signal.SIGCONT)
        await leader.tells("lease lost")
        await world.job("third")
        await soon_stored(other, database, world)
        assert await leader.metrics() == {"bayplan_ledger_leader": 0}
        assert (await other.metrics())["bayplan_ledger_leader"] == 1
        assert [await each.end() for each in (leader, other)] == [0, 0]
    assert await stored(database, Gap) == []


async def test_a_second_replica_waits_and_takes_over_after_a_kill(world: World, tmp_path: Path) -> None:
    database = EMPTY["PostgreSQL"]()
    await migrate(database)
    async with replicas(tmp_path, world, database) as (leader, other):
        await world.job("first")
        await soon_stored(leader, database, world)
        assert (await other.get("/readyz"))[0] == 200
        assert (await other.metrics()) == {"bayplan_ledger_leader": 0}
        assert not other.told("lease acquired")
        last = max(each.observed_at for each in await stored(database, PodSnapshot))
        await leader.end(signal.SIGKILL)
        await world.job("second", runs="1s")
        taken = await other.tells("lease acquired")
        assert parse_rfc3339(taken["ts"]) > last
        await soon_stored(other, database, world)
        assert await other.end() == 0
    assert await stored(database, Gap) == []


async def test_a_leader_that_ends_well_is_followed_without_a_wait(world: World, tmp_path: Path) -> None:
    database = EMPTY["SQLite"]()
    async with ledger(tmp_path, world, database, name="one", lease_duration="1h") as one:
        await one.tells("recording started")
        async with ledger(tmp_path, world, database, name="two", lease_duration="1h") as two:
            await two.tells("started")
            assert not two.told("lease acquired")
            assert await one.end() == 0
            assert one.told("lease released")
            await two.tells("lease acquired")  # which an hour would be too long for


async def test_while_the_database_is_away_it_is_alive_but_not_ready_and_spools(world: World, tmp_path: Path) -> None:
    own = server(Postgres)
    database = EMPTY["PostgreSQL"]()
    await migrate(database)
    async with ledger(tmp_path, world, database, connect_timeout="1s") as process:
        await begins(process, database)
        own.stop()
        try:
            await world.job("first")
            await process.tells("batch spooled" if process.told("batch spooled") else "database away")
            assert (await process.get("/livez"))[0] == 200
            status, why = await process.get("/readyz")
            metrics = await process.metrics()
        finally:
            own.start()
        assert (status, "BP-D034" in why or "does not take transactions" in why) == (503, True)
        assert PASSWORD not in why
        assert metrics["bayplan_ledger_database_away"] == 1
        assert metrics["bayplan_ledger_spool_bytes"] > 0
        assert metrics['bayplan_ledger_errors_total{code="BP-D001"}'] > 0
        await process.tells("database back")
        await soon_stored(process, database, world)
        assert (await process.get("/readyz"))[0] == 200
        assert await process.end() == 0


async def test_started_while_the_database_is_away_it_waits_and_then_catches_up(world: World, tmp_path: Path) -> None:
    own, database = server(Postgres), EMPTY["PostgreSQL"]()
    await migrate(database)
    async with ledger(tmp_path, world, database, name="before") as process:
        await begins(process, database)
        assert await process.end() == 0
    own.stop()
    try:
        async with ledger(tmp_path, world, database, name="ended", connect_timeout="1s") as process:
            await process.tells("waiting for the database")
            assert await process.end() == 0
        async with ledger(tmp_path, world, database, connect_timeout="1s") as process:
            await process.tells("waiting for the database")
            assert (await process.get("/livez"))[0] == 200
            status, why = await process.get("/readyz")
            assert (status, "waiting for the database: " in why) == (503, True)
            await world.job("first")
            own.start()
            await process.tells("database back")
            await soon_stored(process, database, world)
            assert (await process.get("/readyz"))[0] == 200
            assert await process.end() == 0
            assert len(process.told("waiting for the database")) == 1
            assert PASSWORD not in process.output()
    finally:
        own.stop()
        own.start()


async def test_started_while_the_cluster_is_away_it_waits_and_then_records(world: World, tmp_path: Path) -> None:
    api = world.kubeconfig.read_text()
    port = re.findall(r"https://127.0.0.1:([0-9]+)", api)[0]
    proxy = Proxy(_NOBODY)
    world.kubeconfig.write_text(api.replace(f":{port}", f":{await proxy.start()}"))
    database = f"sqlite:///{tmp_path}/ledger.db"
    async with ledger(tmp_path, world, database, name="ended") as process:
        await process.tells("waiting for the cluster")
        assert await process.end() == 0
    async with ledger(tmp_path, world, database) as process:
        await process.tells("waiting for the cluster")
        assert (await process.get("/livez"))[0] == 200
        status, why = await process.get("/readyz")
        assert (status, "waiting for the cluster: " in why) == (503, True)
        proxy.target = int(port)
        await process.tells("cluster back")
        await begins(process, database)
        await world.job("first")
        await soon_stored(process, database, world)
        assert (await process.get("/readyz"))[0] == 200
        assert await process.end() == 0
        assert len(process.told("waiting for the cluster")) == 1
    await proxy.close()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
async def test_what_it_saw_while_the_database_was_away_is_in_the_spool_of_the_next(
    world: World, tmp_path: Path, number: signal.Signals
) -> None:
    own, database = server(Postgres), EMPTY["PostgreSQL"]()
    await migrate(database)
    settings = {"connect_timeout": "1s", "election": "off"}
    async with ledger(tmp_path, world, database, **settings) as process:
        await begins(process, database)
        own.stop()
        try:
            await world.job("first")
            await process.tells("database away")

            async def waits() -> bool:
                return (await process.metrics())["bayplan_ledger_spool_batches"] > 0

            await happens(waits)
            assert await process.end(number) == (0 if number is signal.SIGTERM else -signal.SIGKILL)
        finally:
            own.start()
    async with ledger(tmp_path, world, database, **settings) as process:  # the same spool
        assert (await process.tells("spool opened"))["batches"] > 0
        await process.tells("spool replayed")
        await soon_stored(process, database, world)
        assert await process.end() == 0


@pytest.mark.parametrize(
    ("database", "says"),
    [
        pytest.param("ledger.db", "the database's URL cannot be read", id="a URL that is none"),
        pytest.param("oracle://x:s3cret@y/z", "oracle: is no database that bayplan speaks", id="an unknown database"),
        pytest.param("sqlite:////nowhere/at/all.db", "sqlite:////nowhere/at/all.db: ", id="a folder that is not there"),
    ],
)
async def test_a_wrong_database_ends_it_with_one_clear_line(
    world: World, tmp_path: Path, database: str, says: str
) -> None:
    async with ledger(tmp_path, world, database) as process:
        assert await process.ended() == 1
        (line,) = [each for each in process.output().splitlines() if each.startswith("error: ")]
        assert says in line
        assert PASSWORD not in process.output()
        assert "Traceback" not in process.output()


async def tables(database: str) -> list[str]:
    engine = engine_for(parse_url(database), StoreSettings())
    async with engine.connect() as connection:
        found = await connection.run_sync(lambda sync: sa.inspect(sync).get_table_names())
    await engine.dispose()
    return sorted(found)


async def test_a_database_that_was_not_migrated_is_left_alone(world: World, tmp_path: Path) -> None:
    database = EMPTY["PostgreSQL"]()
    async with ledger(tmp_path, world, database) as process:
        assert await process.ended() == 1
        said = process.output()
    assert "it has no ledger yet" in said
    assert "hint: bring it up to date: bayplan ledger migrate --database URL" in said
    assert await tables(database) == []


async def test_a_newer_schema_is_left_alone(world: World, tmp_path: Path) -> None:
    database = f"sqlite:///{tmp_path}/ledger.db"
    await migrate(database)
    with sqlite3.connect(tmp_path / "ledger.db") as connection:
        connection.execute(f"UPDATE {VERSION_TABLE} SET version_num = '9999'")
    connection.close()
    before = (tmp_path / "ledger.db").read_bytes()
    async with ledger(tmp_path, world, database) as process:
        assert await process.ended() == 1
        (line,) = [each for each in process.output().splitlines() if each.startswith("error: ")]
    assert "its schema is 9999, newer than this program's" in line
    assert (tmp_path / "ledger.db").read_bytes() == before
