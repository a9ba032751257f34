"""The ledger: pod updates a second from an HTTP watch into each database, cold sync, the past, bytes a snapshot.

The source is the served engine in a process of its own; the ledger is another. `one row at a time` is the same watch
and the same differ, but each row is a transaction of its own, as a program writes that saves objects one by one.
"""

from __future__ import annotations

import asyncio
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec
import sqlalchemy as sa
from tests.ledger.databases import CannotHaveError, MariaDb, Postgres, Server

from bayplan.cluster.kinds import POD, Kind
from bayplan.cluster.live.cluster import LiveCluster
from bayplan.cluster.live.reflector import Reflector
from bayplan.ledger.outlet import Outlet
from bayplan.ledger.recorder import Recorder
from bayplan.ledger.recording import Recording, When
from bayplan.ledger.rows import PodSnapshot, Rows, StreamPosition
from bayplan.ledger.store.migrating import migrate
from bayplan.ledger.store.port import Remembered
from bayplan.ledger.store.reading import TABLES, fetch, state_at
from bayplan.ledger.store.sql import SqlStore, open_store
from bayplan.model.clock import SECOND, Instant, SystemClock
from benchmarks import measure
from benchmarks.ledger_load import CLUSTER, START, Source, filled, served
from benchmarks.measure import Effort, forget_peak, peak
from benchmarks.report import OURS, Line, Sort, Table

NAME = "ledger"
_VERSIONS = 8
_ONE_BY_ONE = "one row at a time"
_SHARE = 20
"""Of so many updates the slow pattern gets one: its rate does not depend on how many there are."""
_MB = 1_000_000
_ASKED = 50
_PATIENCE = 300
_NAMES = {"SQLite": None, "PostgreSQL": Postgres, "MariaDB": MariaDb}


class Figures(msgspec.Struct):
    """What one run of a ledger showed."""

    rate: float = 0.0
    seconds: float = 0.0
    resident: float = 0.0
    snapshot: float = 0.0
    """Bytes of a compressed state, its specification not counted."""


async def _no_kind(_api: str, _name: str) -> Kind | None:
    return None


class _Until:
    """A store that says when all of a watch is in it."""

    def __init__(self, store: SqlStore, last: int) -> None:
        self._store, self._last = store, last
        self.done = asyncio.Event()

    async def commit(self, rows: Rows) -> None:
        await self._store.commit(rows)
        told = [row for row in rows.by_type.get(StreamPosition, ()) if isinstance(row, StreamPosition)]
        if any(row.kind == POD.resource and row.resource_version >= self._last for row in told):
            self.done.set()

    async def remembered(self, cluster: str) -> Remembered:
        return await self._store.remembered(cluster)

    async def close(self) -> None:
        await self._store.close()


async def _record(source: Source, store: SqlStore, kept: Remembered) -> None:
    """Run a recorder until everything is durable."""
    clock, until = SystemClock(), _Until(store, source.last)
    async with LiveCluster.find(source.kubeconfig) as cluster:
        recording = Recording(CLUSTER, kept)
        recorder = Recorder(cluster, recording, Outlet(until, None, clock), kept, clock=clock, find_kind=_no_kind)
        running = asyncio.create_task(recorder.run())
        done = asyncio.create_task(until.done.wait())
        await asyncio.wait((running, done), timeout=_PATIENCE, return_when=asyncio.FIRST_COMPLETED)
        if running.done():
            running.result()
        assert done.done(), "the ledger did not come to the end of the watch"
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def _one_by_one(source: Source, store: SqlStore, updates: int) -> None:
    """The same watch and differ; a transaction a row."""
    recording, clock = Recording(CLUSTER), SystemClock()
    async with LiveCluster.find(source.kubeconfig) as cluster, Reflector(cluster, POD, since=str(source.since)) as told:
        async for batch in told:
            for change in batch.changes[:updates]:
                rows = Rows()
                recording.take(POD, (change,), When(clock.now()), rows)
                recording.settle(clock.now(), rows)
                for row in rows:
                    alone = Rows()
                    alone.add(row)
                    await store.commit(alone)
            updates -= len(batch.changes)
            if updates <= 0:
                return


def _timed(url: str, work: Callable[[SqlStore], Awaitable[None]]) -> Figures:
    async def go() -> Figures:
        await migrate(url)
        store = await open_store(url)
        try:
            forget_peak()
            start = time.perf_counter()
            await work(store)
            figures = Figures(seconds=time.perf_counter() - start, resident=peak() / _MB)
            size = sa.func.avg(sa.func.length(TABLES[PodSnapshot].c.state))
            figures.snapshot = float((await fetch(store, sa.select(size)))[0][0])
            return figures
        finally:
            await store.close()

    return asyncio.run(go())


def updates(url: str, source: Source) -> Figures:
    """All versions of a watch."""
    kept = Remembered(streams={POD.resource: str(source.since)})
    figures = _timed(url, lambda store: _record(source, store, kept))
    figures.rate = (source.last - source.since) / figures.seconds
    return figures


def one_by_one(url: str, source: Source) -> Figures:
    """Some of them, a row at a time."""
    count = max(1, (source.last - source.since) // _SHARE)
    figures = _timed(url, lambda store: _one_by_one(source, store, count))
    figures.rate = count / figures.seconds
    return figures


def cold(url: str, source: Source) -> Figures:
    """The present, into an empty ledger."""
    return _timed(url, lambda store: _record(source, store, Remembered()))


def past(url: str, pods: int, versions: int) -> tuple[float, float]:
    """Milliseconds to one pod as it was at a time, in the middle and at the worst; of so many snapshots."""

    async def go() -> tuple[float, float]:
        await migrate(url)
        store = await open_store(url)
        try:
            for rows in filled(pods, versions):
                await store.commit(rows)
            taken = []
            for number in range(_ASKED):
                at = Instant(START + (number * 7919 % versions) * SECOND)
                uid = f"00000000-0000-4000-8000-{number * 104729 % pods:012d}"
                start = time.perf_counter()
                found = await state_at(store, CLUSTER, at, uid)
                taken.append((time.perf_counter() - start) * 1000)
                assert found[0].raw()
            return statistics.median(taken), max(taken)
        finally:
            await store.close()

    return asyncio.run(go())


class _Databases:
    """New databases of each kind that can be had."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._servers: dict[str, Server | None] = {}
        self._count = 0
        self.notes: list[str] = []
        for name, kind in _NAMES.items():
            try:
                self._servers[name] = kind() if kind is not None else None
            except CannotHaveError as error:
                self.notes.append(f"no {name} here: {error}")

    def names(self) -> list[str]:
        return [*self._servers]

    def new(self, name: str) -> str:
        self._count += 1
        server = self._servers[name]
        return server.create(f"bench{self._count}") if server else f"sqlite:///{self._folder}/{self._count}.db"

    def close(self) -> None:
        for server in self._servers.values():
            if server is not None:
                server.remove()


def run(effort: Effort) -> Table:
    """Measure."""
    pods = effort.sizes(5_000)[0]
    lines: list[Line] = []
    with tempfile.TemporaryDirectory() as folder:
        databases = _Databases(folder)
        try:
            _ingest(effort, databases, pods, lines)
            _past(databases, effort, lines)
            size = sum(each.stat().st_size for each in Path(folder).glob("1.db*"))
        finally:
            databases.close()
    stored = pods * _VERSIONS
    notes = (
        f"{pods:,} pods of 8 KB, {_VERSIONS} versions each; the past: 200 versions a pod, one pod asked for",
        f"SQLite's file after the updates: {size / stored:,.0f} bytes a version, rows, events and indexes included",
        *databases.notes,
    )
    return Table(NAME, "from an HTTP watch into SQL", ("figure",), tuple(lines), (), notes)


def _ingest(effort: Effort, databases: _Databases, pods: int, lines: list[Line]) -> None:
    snapshot = 0.0
    with served(pods, _VERSIONS) as source:
        for name in databases.names():
            ours = measure.alone(updates, databases.new(name), source)
            theirs = measure.alone(one_by_one, databases.new(name), source)
            goal = 5_000 if name == "PostgreSQL" and effort.scale >= 1 else None
            lines.append(Line(f"pod updates/s into {name}", OURS, Sort.RATE, (ours.rate,), goal))
            lines.append(Line(f"pod updates/s into {name}", _ONE_BY_ONE, Sort.RATE, (theirs.rate,)))
            snapshot = ours.snapshot
        for name in databases.names():
            found = measure.alone(cold, databases.new(name), source)
            whole = effort.scale >= 1
            lines.append(Line(f"cold sync into {name}, s", OURS, Sort.WHOLE, (found.seconds,), 5 if whole else None))
            lines.append(
                Line(f"cold sync into {name}, MB", OURS, Sort.WHOLE, (found.resident,), 250 if whole else None)
            )
    lines.append(Line("bytes a snapshot, compressed", OURS, Sort.EACH, (snapshot,)))


def _past(databases: _Databases, effort: Effort, lines: list[Line]) -> None:
    pods = effort.sizes(5_000)[0]
    for name in databases.names():
        middle, worst = measure.alone(past, databases.new(name), pods, 200)
        lines.append(Line(f"state at T from {name}, ms (median)", OURS, Sort.EACH, (middle,)))
        goal = 200 if effort.scale >= 1 else None
        lines.append(Line(f"state at T from {name}, ms (worst)", OURS, Sort.EACH, (worst,), goal))
