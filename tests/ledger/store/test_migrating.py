"""Migrations take turns also where the database does not insist, and make files for nobody else to read."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from bayplan.ledger.store import migrating
from bayplan.ledger.store.engines import engine_for
from bayplan.ledger.store.migrating import migrate
from bayplan.ledger.store.port import StoreRefusedError, StoreUnavailableError
from bayplan.ledger.store.settings import StoreSettings, parse_url
from bayplan.ledger.store.sql import open_store
from tests.ledger.databases import EMPTY
from tests.ledger.store.made import batch, pod


class Answering:
    """A connection to a MySQL that says this to whoever wants the lock."""

    def __init__(self, answer: int | None) -> None:
        self._answer = answer

    def exec_driver_sql(self, statement: str) -> Any:
        return SimpleNamespace(scalar=lambda: self._answer)


MYSQL = parse_url("mysql://ledger@db/ledger")


@pytest.mark.parametrize(
    "answer", [pytest.param(0, id="somebody has it"), pytest.param(None, id="the server could not say")]
)
def test_who_does_not_get_the_lock_does_not_migrate(answer: int | None) -> None:
    with pytest.raises(StoreUnavailableError, match="another migration is under way"):
        migrating._lock(Answering(answer), MYSQL)  # type: ignore[arg-type]  # what it needs


def test_who_gets_the_lock_goes_on() -> None:
    migrating._lock(Answering(1), MYSQL)  # type: ignore[arg-type]  # what it needs


@pytest.mark.slow
async def test_a_real_server_gives_the_lock_to_one_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(migrating, "_LOCK_WITHIN", 0)
    url = EMPTY["MariaDB"]()
    engine = engine_for(parse_url(url), StoreSettings())
    async with engine.connect() as connection:
        await connection.run_sync(migrating._lock, parse_url(url))
        with pytest.raises(StoreUnavailableError, match="another migration is under way"):
            await migrate(url)
    await engine.dispose()
    assert await migrate(url) == migrating.versions()


# --- SQLite's files


@pytest.fixture
def open_umask() -> Iterator[None]:
    """As most systems have it: files are for everybody to read."""
    before = os.umask(0o022)
    yield
    os.umask(before)


def modes(folder: Path) -> dict[str, str]:
    return {each.name: oct(each.stat().st_mode & 0o777) for each in folder.iterdir()}


@pytest.mark.usefixtures("open_umask")
async def test_a_new_file_and_those_beside_it_are_for_us_alone(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/ledger.db"
    await migrate(url)
    store = await open_store(url)
    await store.commit(batch(pod("c")))
    assert modes(tmp_path) == dict.fromkeys(("ledger.db", "ledger.db-shm", "ledger.db-wal"), "0o600")
    await store.close()


@pytest.mark.usefixtures("open_umask")
async def test_a_file_that_is_there_keeps_the_mode_that_somebody_gave_it(tmp_path: Path) -> None:
    (tmp_path / "ledger.db").touch(0o640)
    await migrate(f"sqlite:///{tmp_path}/ledger.db")
    assert modes(tmp_path)["ledger.db"] == "0o640"


async def test_a_folder_that_is_missing_is_told_by_the_database(tmp_path: Path) -> None:
    with pytest.raises(StoreRefusedError, match="unable to open database file"):
        await migrate(f"sqlite:///{tmp_path}/none/ledger.db")
