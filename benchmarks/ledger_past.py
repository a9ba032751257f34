"""The ledger when it is full: pods as they were at a time, and retention, at a hundredth, a tenth and all of a million
snapshots.

A database is filled by multiplying each pod's one snapshot inside it: that it was told over HTTP changes nothing here.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

import msgspec
import sqlalchemy as sa

from bayplan.cluster.kinds import POD
from bayplan.cluster.objects import Object
from bayplan.ledger.rows import PodSnapshot, Rows
from bayplan.ledger.snapshots import pack
from bayplan.ledger.store.migrating import migrate
from bayplan.ledger.store.past import state_at
from bayplan.ledger.store.retention import prune
from bayplan.ledger.store.settings import StoreSettings
from bayplan.ledger.store.sql import SqlStore, open_store
from bayplan.model.clock import SECOND, Instant
from benchmarks import manifests
from benchmarks.ledger_load import CLUSTER, START, seeds, snapshot_row

_ASKED = 20
_WHOLE = 5
_STEPS = 20
"""Versions of all pods that one statement adds."""
_BATCH = 500
_COMMITS = 20
_LET_GO = 0.03


class Asked(msgspec.Struct, frozen=True):
    """Milliseconds, the worst of some: one pod, all pods."""

    one: float
    all: float


class Past(msgspec.Struct):
    """What one database showed."""

    asked: list[Asked]
    """By size."""
    pruned: float = 0.0
    """Rows a second."""
    alone: float = 0.0
    """Snapshots a second that commits take."""
    beside: float = 0.0
    """The same while old ones are let go."""


def past(url: str, pods: int, versions: tuple[int, ...]) -> Past:
    """Fill a database step by step, ask at each; then let some go."""
    return asyncio.run(_past(url, pods, versions))


async def _past(url: str, pods: int, versions: tuple[int, ...]) -> Past:
    await migrate(url)
    store = await open_store(url, StoreSettings(statement_timeout=600))
    try:
        await store.commit(seeds(pods))
        found, there = Past([]), 1
        for wanted in versions:
            while there < wanted:
                there = await _multiplied(store, pods, there, min(wanted, there + _STEPS))
            found.asked.append(await _asked(store, pods, wanted))
        await _prune(store, pods, versions[-1], found)
        return found
    finally:
        await store.close()


async def _multiplied(store: SqlStore, pods: int, there: int, wanted: int) -> int:
    """Versions from `there` up to `wanted` of each pod, one a second."""
    changed = {"resource_version": f"resource_version + n * {pods}", "observed_at": f"observed_at + n * {SECOND}"}
    names = PodSnapshot.__struct_fields__
    statement = (
        f"INSERT INTO pod_snapshots ({', '.join(names)})"
        f" WITH RECURSIVE steps(n) AS (SELECT {there} UNION ALL SELECT n + 1 FROM steps WHERE n < {wanted - 1})"
        f" SELECT {', '.join(changed.get(name, name) for name in names)} FROM pod_snapshots CROSS JOIN steps"
        f" WHERE resource_version <= {pods}"
    )
    async with store.engine.begin() as connection:
        await connection.execute(sa.text(statement))
    return wanted


async def _asked(store: SqlStore, pods: int, versions: int) -> Asked:
    times = [Instant(START + number * 7919 % versions * SECOND) for number in range(_ASKED)]
    uids = [f"00000000-0000-4000-8000-{number * 104729 % pods:012d}" for number in range(_ASKED)]
    one = [await _timed(state_at(store, CLUSTER, at, uid)) for at, uid in zip(times, uids, strict=True)]
    all_ = [await _timed(state_at(store, CLUSTER, at)) for at in times[:_WHOLE]]
    return Asked(max(one), max(all_))


async def _timed(work: Awaitable[object]) -> float:
    """Milliseconds."""
    start = time.perf_counter()
    assert await work
    return (time.perf_counter() - start) * 1000


async def _prune(store: SqlStore, pods: int, versions: int, found: Past) -> None:
    batches = _Batches(pods, versions)
    found.alone = await batches.commit(store, lambda: batches.made >= _COMMITS)
    before = Instant(START + max(2, round(versions * _LET_GO)) * SECOND)
    start = time.perf_counter()
    pruning = asyncio.create_task(prune(store, CLUSTER, before))
    found.beside = await batches.commit(store, pruning.done)
    found.pruned = (await pruning).pod_versions / (time.perf_counter() - start)


class _Batches:
    """New versions of some pods, batch after batch."""

    def __init__(self, pods: int, versions: int) -> None:
        self._packed = [
            (obj, pack(obj))
            for obj in (Object.from_raw(POD, manifests.stored_pod(number)) for number in range(min(pods, _BATCH)))
        ]
        self._version, self._at = pods * (versions + 1), Instant(START + versions * SECOND)
        self.made = 0

    async def commit(self, store: SqlStore, done: Callable[[], bool]) -> float:
        """Rows a second until told so, once at least."""
        start, count = time.perf_counter(), 0
        while not count or not done():
            self.made += 1
            rows = Rows()
            for obj, packed in self._packed:
                self._version += 1
                rows.add(snapshot_row(obj, self._version, self._at, packed))
            await store.commit(rows)
            count += len(rows)
        return count / (time.perf_counter() - start)
