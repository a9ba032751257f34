"""Which part of a database is asked about, and what time it is there.

A ledger may be behind the clock: nobody writes it any more, or the cluster runs in a time of its own (`bayplan up
--virtual`). What has not ended by its last word is not known to have gone on, so the present of a ledger that is
silent for long is its last word, not ours.
"""

from __future__ import annotations

from typing import Any

import msgspec
import sqlalchemy as sa

from bayplan.ledger.rows import GpuNode, GpuPod, Row, StreamPosition
from bayplan.ledger.store.port import StoreRefusedError
from bayplan.ledger.store.reading import TABLES, Readable, fetch, select_rows
from bayplan.ledger.store.settings import Dialect, StoreSettings, parse_url
from bayplan.ledger.store.sql import SqlStore, open_store
from bayplan.model.clock import SECOND, Instant
from bayplan.model.errors import PermanentError

SILENCE = 600 * SECOND
"""After so long without a word (a quiet server sends a bookmark a minute) nobody writes a ledger any more."""

Clause = sa.ColumnElement[bool]


class Scope(msgspec.Struct, frozen=True):
    """Whose rows: of one cluster or of all, of one namespace or of all."""

    cluster: str | None = None
    namespace: str | None = None

    def of(self, kind: type[Row]) -> list[Clause]:
        """What narrows a table to it; a table without namespaces by cluster alone."""
        columns = TABLES[kind].c
        wanted = {"cluster": self.cluster, "namespace": self.namespace}
        return [columns[name] == value for name, value in wanted.items() if value is not None and name in columns]


EVERYTHING = Scope()


class Present(msgspec.Struct, frozen=True):
    """What time it is in a ledger."""

    now: Instant
    last_word: Instant | None
    """Of the listener that was heard last; None: nobody ever wrote here."""

    @property
    def silent(self) -> bool:
        """Whether the ledger's own last word had to serve as the present."""
        return self.last_word == self.now


async def read(store: Readable, kind: type[Row], scope: Scope = EVERYTHING, *where: Clause) -> list[Any]:
    """Rows of a table, in the order of their key."""
    table = TABLES[kind]
    key = [table.c[name] for name in kind.key]
    return await fetch(store, select_rows(kind).where(*scope.of(kind), *where).order_by(*key))


def holding(kind: type[Row], since: Instant, until: Instant) -> list[Clause]:
    """The periods that held at some time from `since` to before `until`; or at an instant, where both are equal."""
    columns = TABLES[kind].c
    begun = columns.start_at <= until if since == until else columns.start_at < until
    return [begun, sa.or_(columns.end_at.is_(None), columns.end_at > since)]


async def clusters(store: Readable, scope: Scope = EVERYTHING) -> list[str]:
    """The clusters that a database has anything of."""
    if scope.cluster is not None:
        return [scope.cluster]
    found: set[str] = set()
    for kind in (StreamPosition, GpuNode, GpuPod):
        found.update(name for (name,) in await fetch(store, sa.select(TABLES[kind].c.cluster).distinct()))
    return sorted(found)


async def present(store: Readable, clock: Instant, scope: Scope = EVERYTHING) -> Present:
    """What time it is, given what our clock says."""
    columns = TABLES[StreamPosition].c
    ((last,),) = await fetch(store, sa.select(sa.func.max(columns.at)).where(*scope.of(StreamPosition)))
    if last is None:
        return Present(clock, None)
    word = Instant(last)
    return Present(clock if abs(clock - word) <= SILENCE else word, word)


class UnknownClusterError(PermanentError):
    """A database has nothing of the cluster that is asked about."""

    code = "BP-D044"


class NoLedgerError(StoreRefusedError):
    """There is no file where the ledger should be."""

    code = "BP-D045"


async def open_ledger(url: str, settings: StoreSettings | None = None) -> SqlStore:
    """A store to ask, without making a file. Raises NoLedgerError, and as `open_store`."""
    address = parse_url(url)
    if address.dialect is Dialect.SQLITE and not address.path.is_file():
        raise NoLedgerError(
            f"{address.shown}: there is no such file",
            hint="record one with `bayplan ledger run`, or name another: --database",
        )
    return await open_store(url, settings)


async def require_cluster(store: Readable, name: str) -> None:
    """Raises UnknownClusterError when a database has nothing of a cluster; StoreUnavailableError, StoreRefusedError."""
    known = await clusters(store)
    if name not in known:
        hint = f"it has {', '.join(known) or 'none'}"
        raise UnknownClusterError(f"{name}: the ledger has no such cluster", hint=hint)
