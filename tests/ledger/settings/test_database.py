"""The settings of the database, on real servers: pool, time-outs, TLS."""

from __future__ import annotations

import asyncio
import itertools
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
import sqlalchemy as sa

from bayplan.ledger.settings import store_settings
from bayplan.ledger.store.port import StoreRefusedError, StoreUnavailableError
from bayplan.ledger.store.reading import fetch
from bayplan.ledger.store.settings import StoreSettings
from bayplan.ledger.store.sql import SqlStore, open_store
from tests.ledger.databases import MariaDb, Postgres, Server, prepared, server
from tests.ledger.settings.effects import given, sees, silence
from tests.ledger.store.made import batch, pod

BOTH = pytest.mark.parametrize(
    "kind",
    [
        pytest.param(Postgres, id="PostgreSQL", marks=pytest.mark.slow),
        pytest.param(MariaDb, id="MariaDB", marks=pytest.mark.slow),
    ],
)
_NUMBERS = itertools.count()
_LESS_THAN_THE_DEFAULT = 8.0
"""Seconds: the shortest default here is ten."""


def how(**values: str) -> StoreSettings:
    return store_settings(given(**values).ledger)


async def opened(kind: type[Server], settings: StoreSettings) -> SqlStore:
    url = await prepared(server(kind).create(f"settings_{os.getpid()}_{next(_NUMBERS)}"))
    return await open_store(url, settings)


_CONNECTIONS = {
    Postgres: "(SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()), pg_sleep(0.3)",
    MariaDb: "(SELECT count(*) FROM information_schema.processlist WHERE db = database()), sleep(0.3)",
}


@sees("ledger.pool_size")
@BOTH
@pytest.mark.parametrize("size", [2, 5])
async def test_so_many_connections_are_made_under_load(kind: type[Server], size: int) -> None:
    store = await opened(kind, how(pool_size=str(size)))

    async def ask() -> int:
        ((count, _),) = await fetch(store, sa.select(sa.literal_column(_CONNECTIONS[kind])))
        return int(count)

    assert max(await asyncio.gather(*(ask() for _ in range(10)))) == size
    await store.close()


@sees("ledger.connect_timeout")
@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["postgresql", "mysql"])
async def test_a_server_that_says_nothing_is_given_up(scheme: str) -> None:
    with silence() as port:
        opening = open_store(f"{scheme}://me@127.0.0.1:{port}/x", how(connect_timeout="1s"))
        with pytest.raises(StoreUnavailableError):
            await asyncio.wait_for(opening, _LESS_THAN_THE_DEFAULT)


_LOCK = {
    Postgres: ("LOCK TABLE gpu_pods", "ROLLBACK"),
    MariaDb: ("LOCK TABLES gpu_pods WRITE", "UNLOCK TABLES"),
}


@sees("ledger.statement_timeout")
@BOTH
async def test_a_table_that_another_holds_is_waited_for_so_long(kind: type[Server]) -> None:
    store = await opened(kind, how(statement_timeout="1s"))
    take, leave = _LOCK[kind]
    async with store.engine.connect() as other:
        await other.exec_driver_sql(take)
        with pytest.raises(StoreUnavailableError):
            await asyncio.wait_for(store.commit(batch(pod("c"))), _LESS_THAN_THE_DEFAULT)
        await other.exec_driver_sql(leave)
    await store.commit(batch(pod("c")))
    assert len((await store.remembered("c")).pods) == 1
    await store.close()


@sees("ledger.statement_timeout")
async def test_an_sqlite_file_that_another_writes_to_is_waited_for_so_long(tmp_path: Path) -> None:
    url = await prepared(f"sqlite:///{tmp_path}/ledger.db")
    store = await open_store(url, how(statement_timeout="100ms"))
    other = sqlite3.connect(tmp_path / "ledger.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreUnavailableError):
        await asyncio.wait_for(store.commit(batch(pod("c"))), _LESS_THAN_THE_DEFAULT)
    other.close()
    await store.commit(batch(pod("c")))
    await store.close()


_CIPHER = {
    Postgres: "(SELECT cipher FROM pg_stat_ssl WHERE pid = pg_backend_pid())",
    MariaDb: "(SELECT variable_value FROM information_schema.session_status WHERE variable_name = 'Ssl_cipher')",
}


async def cipher(kind: type[Server], settings: StoreSettings) -> str:
    store = await opened(kind, settings)
    ((found,),) = await fetch(store, sa.select(sa.literal_column(_CIPHER[kind])))
    await store.close()
    return found or ""


Given = Callable[[Server], StoreSettings]


@sees("ledger.tls", "ledger.tls_authority")
@BOTH
@pytest.mark.parametrize(
    ("settings", "encrypted"),
    [
        pytest.param(lambda _: StoreSettings(), False, id="by default nothing is encrypted"),
        pytest.param(lambda _: how(tls="required"), True, id="required encrypts, whoever signed"),
        pytest.param(
            lambda own: how(tls="verified", tls_authority=f"{own.folder}/authority.crt"),
            True,
            id="verified takes a server that the authority signed",
        ),
    ],
)
async def test_what_is_encrypted(kind: type[Server], settings: Given, encrypted: bool) -> None:
    assert bool(await cipher(kind, settings(server(kind)))) is encrypted


@sees("ledger.tls")
@BOTH
async def test_a_server_that_the_machines_authorities_did_not_sign_is_refused(kind: type[Server]) -> None:
    with pytest.raises(StoreRefusedError, match="certificate verify failed"):
        await cipher(kind, how(tls="verified"))
