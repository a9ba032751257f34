"""The schema: what the migrations make is what ledger/rows says, and nobody else's database is touched."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext

from bayplan.ledger.rows import ROWS, GpuUse
from bayplan.ledger.store.engines import engine_for
from bayplan.ledger.store.migrating import _config, migrate, versions
from bayplan.ledger.store.port import SchemaError, StoreRefusedError
from bayplan.ledger.store.reading import fetch, select_rows
from bayplan.ledger.store.schema import METADATA, TABLES, VERSION_TABLE
from bayplan.ledger.store.settings import StoreSettings, parse_url
from bayplan.ledger.store.sql import open_store
from tests.ledger.store.schema_page import PAGE, rendered

SEED = {
    "gpu_workloads": "group_version kind namespace name uid parent_uid gpu_request status created_at end_at labels",
    "gpu_pods": "namespace name uid node_name gpu_allocated running deleted phase",
    "pod_resources": "uid gpu_model gpu_allocated created_at end_at",
    "pod_snapshots": "pod_uid resource_version spec_hash state",
    "gpu_pods_events": "pod_uid pod_phase event_type restart_count",
    "workload_pod_references": "workload_uid pod_uid",
}
"""The tables that seed 001 names, and the fields that it lists."""


async def on(url: str, work: Any) -> Any:
    """Run something on a database, by hand."""
    engine = engine_for(parse_url(url), StoreSettings(), create=True)
    async with engine.connect() as connection:
        result = await connection.run_sync(work)
        await connection.commit()
    await engine.dispose()
    return result


def differences(connection: sa.Connection) -> list[Any]:
    context = MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE, "compare_type": True})
    return list(compare_metadata(context, METADATA))


def keys(connection: sa.Connection) -> dict[str, list[str]]:
    inspector = sa.inspect(connection)
    return {kind.table: inspector.get_pk_constraint(kind.table)["constrained_columns"] for kind in ROWS}


def tables(connection: sa.Connection) -> list[str]:
    return sorted(sa.inspect(connection).get_table_names())


async def test_the_migrations_make_what_the_rows_say(empty_database: str) -> None:
    assert await migrate(empty_database) == versions()
    assert await on(empty_database, differences) == []
    assert await on(empty_database, keys) == {kind.table: list(kind.key) for kind in ROWS}
    assert await on(empty_database, tables) == sorted([*METADATA.tables, VERSION_TABLE])


def at_first(connection: sa.Connection) -> None:
    """A database as the first version left it, with two measurements."""
    command.upgrade(_config(connection), versions()[0])
    names = "cluster, pod_uid, device, at, utilisation, memory_used"
    for device, memory in (("GPU-0", 0), ("GPU-1", 5)):
        connection.exec_driver_sql(f"INSERT INTO gpu_use ({names}) VALUES ('c', 'a', '{device}', 1, 0.5, {memory})")


async def test_an_older_ledger_is_brought_up_to_date_with_what_it_holds(empty_database: str) -> None:
    await on(empty_database, at_first)
    with pytest.raises(SchemaError, match="its schema is 0001, this program's is"):
        await open_store(empty_database)
    assert await migrate(empty_database) == versions()[1:]
    assert await on(empty_database, differences) == []
    assert await on(empty_database, keys) == {kind.table: list(kind.key) for kind in ROWS}
    store = await open_store(empty_database)
    found = await fetch(store, select_rows(GpuUse))
    await store.close()
    assert {row.device: row.memory_used for row in found} == {"GPU-0": None, "GPU-1": 5}


async def test_migrating_again_does_nothing(empty_database: str) -> None:
    await migrate(empty_database)
    assert await migrate(empty_database) == ()


async def test_two_may_migrate_at_once(empty_database: str) -> None:
    await asyncio.gather(migrate(empty_database), migrate(empty_database))
    await (await open_store(empty_database)).close()


async def test_a_database_without_a_ledger_is_refused_and_left_alone(empty_database: str) -> None:
    await on(empty_database, lambda connection: connection.exec_driver_sql("CREATE TABLE mine (x INTEGER)"))
    with pytest.raises(SchemaError, match="it has no ledger yet"):
        await open_store(empty_database)
    assert await on(empty_database, tables) == ["mine"]


async def test_a_newer_schema_is_refused_and_left_alone(empty_database: str) -> None:
    await migrate(empty_database)
    newer = f"UPDATE {VERSION_TABLE} SET version_num = '9999'"
    await on(empty_database, lambda connection: connection.exec_driver_sql(newer))
    for attempt in (open_store, migrate):
        with pytest.raises(SchemaError, match="its schema is 9999, newer than this program's"):
            await attempt(empty_database)


async def test_somebody_elses_table_is_refused_and_left_alone(empty_database: str) -> None:
    await on(empty_database, lambda connection: connection.exec_driver_sql("CREATE TABLE gpu_pods (x INTEGER)"))
    for attempt in (open_store, migrate):
        with pytest.raises(SchemaError, match="its table gpu_pods is not bayplan's"):
            await attempt(empty_database)
    assert await on(empty_database, tables) == ["gpu_pods"]


async def test_a_migration_that_ended_half_way_is_told_and_left_alone(empty_database: str) -> None:
    await migrate(empty_database)
    await on(empty_database, lambda connection: connection.exec_driver_sql(f"DELETE FROM {VERSION_TABLE}"))
    for attempt in (open_store, migrate):
        with pytest.raises(SchemaError, match="a migration ended half-way"):
            await attempt(empty_database)


async def test_a_missing_sqlite_file_is_refused_and_not_made(tmp_path: Path) -> None:
    with pytest.raises(StoreRefusedError, match="unable to open database file"):
        await open_store(f"sqlite:///{tmp_path}/none.db")
    assert not os.listdir(tmp_path)


async def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.db").write_text("no database, but long enough to be looked at" * 50)
    for attempt in (open_store, migrate):
        with pytest.raises(StoreRefusedError, match="not a database"):
            await attempt(f"sqlite:///{tmp_path}/x.db")


@pytest.mark.parametrize("table", SEED)
def test_every_field_of_the_seed_has_its_column(table: str) -> None:
    (kind,) = (kind for kind in ROWS if kind.table == table)
    assert set(SEED[table].split()) <= {column.name for column in TABLES[kind].columns}
    assert kind.key[0] == "cluster"


def test_the_page_of_the_schema_is_up_to_date() -> None:
    assert PAGE.read_text() == rendered(), "python -m tests.ledger.store.schema_page writes it anew"


def test_no_key_is_longer_than_mysql_takes() -> None:
    for kind, table in TABLES.items():
        for columns in (kind.key, *kind.indexes):
            size = 0
            for name in columns:
                width = getattr(table.c[name].type, "length", None) or 2
                size += width if name == "cluster" else 4 * width
            assert size <= 3072, (kind.table, columns)
