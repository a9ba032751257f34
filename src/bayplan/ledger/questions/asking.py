"""Which part of a database is asked about, and what time it is there.

A ledger may be behind the clock: nobody writes it any more, or the cluster runs in a time of its own (`bayplan up
--virtual`). What has not ended by its last word is not known to have gone on, so the present of a ledger that is
silent for long is its last word, not ours. That is so of every cluster by itself: one that is silent does not go on
because another does, whether it is asked about alone or with the others (`Scope.last`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
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
AT_ONCE = 500
"""So many uids are asked about in one statement: databases limit how many it may have."""

Clause = sa.ColumnElement[bool]


class Scope(msgspec.Struct, frozen=True):
    """Whose rows: of one cluster or of all, of one namespace or of all."""

    cluster: str | None = None
    namespace: str | None = None
    last: Mapping[str, Instant] = {}
    """The present of each cluster, of all that there are: what is open counts up to it. Empty: up to the time asked
    about."""

    def of(self, kind: type[Row]) -> list[Clause]:
        """What narrows a table to it; a table without namespaces by cluster alone."""
        columns = TABLES[kind].c
        wanted = {"cluster": self.cluster, "namespace": self.namespace}
        return [columns[name] == value for name, value in wanted.items() if value is not None and name in columns]

    @property
    def whole(self) -> Scope:
        """The same without its namespace."""
        return msgspec.structs.replace(self, namespace=None)

    def up_to(self, cluster: str, at: Instant) -> Instant:
        """As far as a cluster is known by a time."""
        return min(at, self.last.get(cluster, at))

    def ended(self, cluster: str, end: Instant | None) -> Instant | None:
        """When what is open, or ended then, is over as far as its cluster is known."""
        last = self.last.get(cluster)
        return end if last is None else last if end is None else min(end, last)

    def parts(self, at: Instant) -> list[tuple[Scope, Instant]]:
        """What is to be asked about an instant: each cluster no later than in its own present."""
        if self.cluster is not None:
            return [(self, self.up_to(self.cluster, at))]
        if all(last >= at for last in self.last.values()):
            return [(self, at)]
        return [(msgspec.structs.replace(self, cluster=name), self.up_to(name, at)) for name in sorted(self.last)]


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


async def read_each(
    store: Readable, kind: type[Row], column: str, values: Iterable[str], scope: Scope = EVERYTHING, *where: Clause
) -> list[Any]:
    """The rows whose column has one of these values, some values at a time, each time in the order of their key.

    Values and not a query that finds them: beside another condition (`or`) PostgreSQL and MariaDB would run through the
    whole table, and look for each of its rows among those found.
    """
    wanted, found = sorted(set(values)), list[Any]()
    for first in range(0, len(wanted), AT_ONCE):
        these = TABLES[kind].c[column].in_(wanted[first : first + AT_ONCE])
        found += await read(store, kind, scope, these, *where)
    return found


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


async def presents(store: Readable, clock: Instant, scope: Scope = EVERYTHING) -> dict[str, Present]:
    """What time it is in each cluster, by name, given what our clock says."""
    words = await last_words(store, scope)
    return {name: _present(words.get(name), clock) for name in await clusters(store, scope)}


async def last_words(store: Readable, scope: Scope = EVERYTHING) -> dict[str, Instant]:
    """When each cluster was heard of last, if it ever was."""
    columns = TABLES[StreamPosition].c
    query = sa.select(columns.cluster, sa.func.max(columns.at)).where(*scope.of(StreamPosition))
    return dict(await fetch(store, query.group_by(columns.cluster)))


def _present(word: Instant | None, clock: Instant) -> Present:
    if word is None:
        return Present(clock, None)
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
