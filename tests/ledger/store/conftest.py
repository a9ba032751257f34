"""A migrated database of each kind, once a session; every test has a cluster of its own in it."""

from __future__ import annotations

import asyncio
import functools
import itertools
from collections.abc import AsyncIterator

import pytest

from bayplan.ledger.store.migrating import migrate
from bayplan.ledger.store.sql import SqlStore, open_store
from tests.ledger.databases import EMPTY, KINDS, empty_database

__all__ = ["empty_database"]

_CLUSTERS = itertools.count()


@functools.cache
def migrated(kind: str) -> str:
    """The URL of the session's database of a kind."""
    url = EMPTY[kind]()
    asyncio.run(migrate(url))
    return url


@pytest.fixture(params=KINDS)
def database(request: pytest.FixtureRequest) -> str:
    """The URL of a migrated database, of each kind in turn."""
    return migrated(request.param)


@pytest.fixture
async def store(database: str) -> AsyncIterator[SqlStore]:
    """A store, of each kind in turn."""
    opened = await open_store(database)
    yield opened
    await opened.close()


@pytest.fixture
def cluster() -> str:
    """A cluster that no other test writes to."""
    return f"cluster-{next(_CLUSTERS)}"
