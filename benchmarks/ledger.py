"""The ledger: pod updates a second from an HTTP watch into each database, cold sync, the past, bytes a snapshot.

The source is the served engine in a process of its own; the ledger is another. `one row at a time` is the same watch
and the same differ, but each row is a transaction of its own, as a program writes that saves objects one by one. Our
rate leaves the first transaction out, its rate has the opening of the watch in it: a fraction of a second of many.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Awaitable, Callable

import msgspec
import sqlalchemy as sa
from tests.ledger.databases import CannotHaveError, MariaDb, Postgres, Server

from bayplan.cluster.kinds import POD, Kind
from bayplan.cluster.lab.toolchain import LabUnavailableError
from bayplan.cluster.live.cluster import LiveCluster
from bayplan.cluster.live.reflector import Reflector
from bayplan.ledger.outlet import Outlet
from bayplan.ledger.recorder import Recorder
from bayplan.ledger.recording import Recording, When
from bayplan.ledger.rows import PodSnapshot, Rows, StreamPosition
from bayplan.ledger.store.migrating import migrate
from bayplan.ledger.store.port import Remembered
from bayplan.ledger.store.reading import TABLES, fetch
from bayplan.ledger.store.sql import SqlStore, open_store
from bayplan.model.clock import SystemClock
from benchmarks import manifests, measure
from benchmarks.ledger_load import CLUSTER, Source, real, served
from benchmarks.ledger_past import past
from benchmarks.measure import Effort, forget_peak, peak
from benchmarks.report import OURS, Line, Sort, Table

NAME = "ledger"
_VERSIONS = 20
_ONE_BY_ONE = "one row at a time"
_SHARE = 20
"""Of so many updates the slow pattern gets one: its rate does not depend on how many there are."""
_MB = 1_000_000
_DEEP = (2, 20, 200)
"""Versions of each pod: a hundredth, a tenth and all of a million snapshots."""
_RATE = 5_000
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
        self.begun = self.ended = time.perf_counter()
        self.first = self.all = 0

    @property
    def rate(self) -> float:
        """Versions a second, sustained: without the first transaction, which waits for connections and plans."""
        counted = self.all - self.first
        return counted / (self.ended - self.begun) if counted else 0.0

    async def commit(self, rows: Rows) -> None:
        await self._store.commit(rows)
        self.ended = time.perf_counter()
        self.all += len(rows.by_type.get(PodSnapshot, ()))
        if not self.first:
            self.begun, self.first = self.ended, self.all
        told = [row for row in rows.by_type.get(StreamPosition, ()) if isinstance(row, StreamPosition)]
        if any(row.kind == POD.resource and row.resource_version >= self._last for row in told):
            self.done.set()

    async def remembered(self, cluster: str) -> Remembered:
        return await self._store.remembered(cluster)

    async def close(self) -> None:
        await self._store.close()


async def _record(source: Source, store: SqlStore, kept: Remembered) -> float:
    """Run a recorder until everything is durable; versions a second."""
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
        return until.rate


async def _one_by_one(source: Source, store: SqlStore, updates: int) -> float:
    """The same watch and differ; a transaction a row."""
    start, count = time.perf_counter(), updates
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
                break
    return count / (time.perf_counter() - start)


def _timed(url: str, work: Callable[[SqlStore], Awaitable[float]]) -> Figures:
    async def go() -> Figures:
        await migrate(url)
        store = await open_store(url)
        try:
            forget_peak()
            start = time.perf_counter()
            rate = await work(store)
            figures = Figures(rate=rate, seconds=time.perf_counter() - start, resident=peak() / _MB)
            size = sa.func.avg(sa.func.length(TABLES[PodSnapshot].c.state))
            figures.snapshot = float((await fetch(store, sa.select(size)))[0][0])
            return figures
        finally:
            await store.close()

    return asyncio.run(go())


def updates(url: str, source: Source) -> Figures:
    """All versions of a watch."""
    kept = Remembered(streams={POD.resource: str(source.since)})
    return _timed(url, lambda store: _record(source, store, kept))


def one_by_one(url: str, source: Source) -> Figures:
    """Some of them, a row at a time."""
    count = max(1, (source.last - source.since) // _SHARE)
    return _timed(url, lambda store: _one_by_one(source, store, count))


def cold(url: str, source: Source) -> Figures:
    """The present, into an empty ledger."""
    return _timed(url, lambda store: _record(source, store, Remembered()))


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
    (pods,) = effort.sizes(5_000)
    lines: list[Line] = []
    with tempfile.TemporaryDirectory() as folder:
        databases = _Databases(folder)
        try:
            _ingest(effort, databases, pods, lines)
            _real(databases, effort, lines)
            _past(databases, effort, pods, lines)
        finally:
            databases.close()
    notes = (
        f"at 1: {pods:,} pods of 8 KB, {_VERSIONS} versions each into an empty ledger; {pods * _DEEP[-1]:,} snapshots",
        "state at T: the worst of some; the databases do not sync (BAYPLAN_TEST_FSYNC=on makes them), SQLite does",
        *databases.notes,
    )
    return Table(NAME, "from an HTTP watch into SQL", ("1/100", "1/10", "1"), tuple(lines), (1, 10, 100), notes)


def _line(measure: str, sort: Sort, value: float, goal: float | None = None, who: str = OURS) -> Line:
    """Of one figure, at the whole size."""
    return Line(measure, who, sort, (None, None, value), goal)


def _ingest(effort: Effort, databases: _Databases, pods: int, lines: list[Line]) -> None:
    whole = effort.scale >= 1
    sizes = [max(1, pods // 10), pods]  # a hundredth is one transaction
    found: dict[str, list[float | None]] = {name: [None] for name in databases.names()}
    for size in sizes:
        with served(size, _VERSIONS) as source:
            for name, rates in found.items():
                rates.append(measure.alone(updates, databases.new(name), source).rate)
            if size == pods:
                _at_whole(databases, source, found, lines, whole=whole)


def _at_whole(
    databases: _Databases, source: Source, found: dict[str, list[float | None]], lines: list[Line], *, whole: bool
) -> None:
    """What is measured at the largest size only."""
    for name, rates in found.items():
        theirs = measure.alone(one_by_one, databases.new(name), source)
        what = f"pod updates/s into {name}"
        goal = _RATE if whole and name == "PostgreSQL" else None
        lines.append(Line(what, OURS, Sort.RATE, tuple(rates), goal))
        lines.append(_line(what, Sort.RATE, theirs.rate, who=_ONE_BY_ONE))
    for name in found:
        present = measure.alone(cold, databases.new(name), source)
        lines.append(_line(f"cold sync into {name}, s", Sort.WHOLE, present.seconds, 5 if whole else None))
        lines.append(_line(f"cold sync into {name}, MB", Sort.WHOLE, present.resident, 250 if whole else None))
    lines.append(_line("bytes a snapshot", Sort.EACH, present.snapshot))
    lines.append(_line("bytes a snapshot", Sort.EACH, len(manifests.stored_pod(0)), who="JSON, as told"))


def _real(databases: _Databases, effort: Effort, lines: list[Line]) -> None:
    (pods,) = effort.sizes(500)
    name = "PostgreSQL" if "PostgreSQL" in databases.names() else "SQLite"
    try:
        with real(pods, 4) as source:
            found = measure.alone(updates, databases.new(name), source)
            lines.append(_line(f"the same from kube-apiserver into {name}", Sort.RATE, found.rate))
    except LabUnavailableError as error:
        databases.notes.append(f"no lab here, so no figures of the real API server: {error.message}")


def _past(databases: _Databases, effort: Effort, pods: int, lines: list[Line]) -> None:
    goal = 200 if effort.scale >= 1 else None
    for name in databases.names():
        found = measure.alone(past, databases.new(name), pods, _DEEP)
        one, every = (tuple(getattr(each, what) for each in found.asked) for what in ("one", "all"))
        lines.append(Line(f"one pod at T from {name}, ms", OURS, Sort.EACH, one, goal))
        lines.append(Line(f"all pods at T from {name}, ms", OURS, Sort.EACH, every, goal))
        lines.append(_line(f"snapshots/s let go by {name}", Sort.RATE, found.pruned))
        lines.append(_line(f"snapshots/s stored by {name}", Sort.RATE, found.alone))
        lines.append(_line(f"snapshots/s stored by {name}", Sort.RATE, found.beside, who=f"{OURS}, letting go beside"))
