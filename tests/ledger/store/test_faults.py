"""Databases that are down, slow, full or wrong: temporary or not, in one line, and without the password."""

from __future__ import annotations

import asyncio
import functools
import sqlite3
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from bayplan.ledger.store.migrating import migrate
from bayplan.ledger.store.port import StoreRefusedError, StoreUnavailableError
from bayplan.ledger.store.reading import fetch
from bayplan.ledger.store.settings import DatabaseUrlError, StoreSettings, Tls, parse_url
from bayplan.ledger.store.sql import open_store
from bayplan.model.errors import BayplanError
from tests.ledger.databases import PASSWORD, MariaDb, Postgres, Server, prepared, server
from tests.ledger.store.made import batch, pod

SERVERS = [
    pytest.param(Postgres, id="PostgreSQL", marks=pytest.mark.slow),
    pytest.param(MariaDb, id="MariaDB", marks=pytest.mark.slow),
]
_SLOW = {
    Postgres: "SELECT pg_sleep(30)",
    # A SLEEP that is cut short is no error there; work is.
    MariaDb: f"SELECT COUNT(*) FROM {', '.join(f'information_schema.columns {alias}' for alias in 'abcd')}",
}


def one_line(error: BayplanError) -> str:
    """The message, which is one line and keeps the password to itself."""
    assert "\n" not in error.message
    assert PASSWORD not in str(error)
    return error.message


@pytest.mark.parametrize(
    ("url", "says"),
    [
        pytest.param("", "cannot be read", id="an empty URL"),
        pytest.param("ledger.db", "cannot be read", id="a path"),
        pytest.param("oracle://x:s3cret@y/z", "oracle: is no database that bayplan speaks", id="another database"),
        pytest.param("postgresql://x:s3cret@y:port/z", "cannot be read", id="a port that is no number"),
        pytest.param("postgresql://x:s3cret@y", "names no database", id="no database"),
        pytest.param("postgresql://x:s3cret@y/z?sslmode=require", "unknown option 'sslmode'", id="an unknown option"),
        pytest.param("sqlite://", "names no database", id="no file"),
        pytest.param("sqlite:///:memory:", "a ledger is a file", id="no file but memory"),
        pytest.param("sqlite://ledger.db/x", "a ledger is a file", id="two slashes"),
    ],
)
async def test_urls_that_cannot_be_used(url: str, says: str) -> None:
    with pytest.raises(DatabaseUrlError) as caught:
        await open_store(url)
    assert says in one_line(caught.value)


def test_a_url_is_shown_without_its_password() -> None:
    assert parse_url("mariadb://me:s3cret@host:1/x").shown == "mysql://me:***@host:1/x"


@pytest.mark.parametrize("kind", SERVERS)
async def test_a_wrong_password_is_refused(kind: type[Server]) -> None:
    url = server(kind).create(f"wrong_password_{kind.scheme}")
    with pytest.raises(StoreRefusedError) as caught:
        await open_store(url.replace(PASSWORD, "guess"))
    assert "guess" not in one_line(caught.value)


@pytest.mark.parametrize("kind", SERVERS)
async def test_a_missing_database_is_refused(kind: type[Server]) -> None:
    url = server(kind).create(f"present_{kind.scheme}")
    with pytest.raises(StoreRefusedError, match=r"absent|denied"):
        await open_store(url.replace(f"present_{kind.scheme}", "absent"))


@pytest.mark.parametrize("scheme", ["postgresql", "mysql"])
async def test_a_server_that_is_not_there_is_worth_another_try(scheme: str) -> None:
    with pytest.raises(StoreUnavailableError) as caught:
        await open_store(f"{scheme}://me:{PASSWORD}@127.0.0.1:1/x")
    assert one_line(caught.value)


@pytest.mark.parametrize("kind", SERVERS)
async def test_a_server_that_falls_and_comes_back(kind: type[Server]) -> None:
    own = server(kind)
    url = own.create(f"falls_{kind.scheme}")
    await migrate(url)
    store = await open_store(url)
    await store.commit(batch(pod("c", version=1)))
    own.stop()
    try:
        for _ in range(3):
            with pytest.raises(StoreUnavailableError) as caught:
                await store.commit(batch(pod("c", version=2)))
            assert one_line(caught.value)
        with pytest.raises(StoreUnavailableError):
            await store.remembered("c")
    finally:
        own.start()
    await store.commit(batch(pod("c", version=2)))
    assert [row.resource_version for row in (await store.remembered("c")).pods] == [2]
    await store.close()


@pytest.mark.parametrize("kind", SERVERS)
async def test_a_statement_may_take_so_long_and_no_longer(kind: type[Server]) -> None:
    url = server(kind).create(f"slow_{kind.scheme}")
    await migrate(url)
    store = await open_store(url, StoreSettings(statement_timeout=0.2))
    with pytest.raises(StoreUnavailableError):
        await fetch(store, sa.select(sa.literal_column(f"({_SLOW[kind]})")))
    await store.close()


@pytest.mark.parametrize("kind", SERVERS)
async def test_the_pool_has_so_many_connections_and_no_more(kind: type[Server]) -> None:
    url = server(kind).create(f"pool_{kind.scheme}")
    await migrate(url)
    store = await open_store(url, StoreSettings(pool_size=1, connect_timeout=0.3))
    async with store.engine.connect():
        with pytest.raises(StoreUnavailableError, match="QueuePool limit"):
            await store.remembered("c")
    await store.remembered("c")
    await store.close()


_CIPHER = {
    Postgres: "SELECT cipher FROM pg_stat_ssl WHERE pid = pg_backend_pid()",
    MariaDb: "SELECT variable_value FROM information_schema.session_status WHERE variable_name = 'Ssl_cipher'",
}


@pytest.mark.parametrize("kind", SERVERS)
@pytest.mark.parametrize("tls", list(Tls))
async def test_tls_encrypts_unless_it_is_off(kind: type[Server], tls: Tls) -> None:
    own = server(kind)
    url = own.create(f"tls_{kind.scheme}_{tls.value}")
    await migrate(url)
    store = await open_store(url, StoreSettings(tls=tls, tls_authority=f"{own.folder}/authority.crt"))
    ((cipher,),) = await fetch(store, sa.select(sa.literal_column(f"({_CIPHER[kind]})")))
    assert bool(cipher) is (tls is not Tls.OFF)
    await store.close()


@pytest.mark.parametrize("kind", SERVERS)
async def test_a_server_that_nobody_vouches_for_is_refused(kind: type[Server]) -> None:
    url = server(kind).create(f"unknown_{kind.scheme}")
    with pytest.raises(StoreRefusedError, match="certificate verify failed"):
        await open_store(url, StoreSettings(tls=Tls.VERIFIED))


async def test_tls_files_that_are_missing_are_named() -> None:
    with pytest.raises(DatabaseUrlError, match="TLS files"):
        await open_store(
            "postgresql://me@127.0.0.1/x", StoreSettings(tls=Tls.VERIFIED, tls_authority="/nowhere/ca.pem")
        )


async def test_an_sqlite_file_that_another_writes_to_is_waited_for_so_long(tmp_path: Path) -> None:
    url = await prepared(f"sqlite:///{tmp_path}/ledger.db")
    store = await open_store(url, StoreSettings(statement_timeout=0.1))
    other = sqlite3.connect(tmp_path / "ledger.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreUnavailableError, match="database is locked"):
        await store.commit(batch(pod("c")))
    assert (await store.remembered("c")).pods == ()  # readers do not wait for a writer
    other.execute("ROLLBACK")
    other.close()
    await store.commit(batch(pod("c")))
    await store.close()


async def test_a_full_disk_is_worth_another_try(tmp_path: Path) -> None:
    url = await prepared(f"sqlite:///{tmp_path}/ledger.db")
    store = await open_store(url)
    await store.commit(batch(pod("c")))
    writer: Any = store._writer
    limit = functools.partial(writer._connection.execute, "PRAGMA max_page_count = 1")  # as close as root gets to it
    await asyncio.get_running_loop().run_in_executor(writer._thread, limit)
    with pytest.raises(StoreUnavailableError, match="full"):
        await store.commit(batch(*(pod("c", f"{i}", labels="x" * 5000) for i in range(500))))
    assert len((await store.remembered("c")).pods) == 1
    await store.commit(batch(pod("c", "b")))
    assert len((await store.remembered("c")).pods) == 2
    await store.close()
