"""What a ledger's database tells of a cluster, read for the verdict."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import msgspec
import sqlalchemy as sa

from bayplan.ledger.rows import (
    Gap,
    GpuPeriod,
    GpuPod,
    GpuPodsEvent,
    PendingPeriod,
    PodRoomPeriod,
    PodSnapshot,
    Row,
    RunningPeriod,
    SpecBlob,
    StreamPosition,
)
from bayplan.ledger.snapshots import unpack
from bayplan.ledger.store.reading import TABLES, Readable, fetch, select_rows
from bayplan.ledger.store.sql import open_store
from tests.ledger.chaos.verdict import Recorded, Snapshot


async def read_ledger(url: str) -> Recorded:
    """Everything of the only cluster that a database has."""
    store = await open_store(url)
    try:
        blobs = {each.hash: each.data for each in await _all(store, SpecBlob)}
        found = Recorded(pods={each.uid: each for each in await _all(store, GpuPod)}, gaps=await _all(store, Gap))
        found.events = _by_pod(await _all(store, GpuPodsEvent))
        for uid, versions in _by_pod(await _all(store, PodSnapshot)).items():
            found.snapshots[uid] = [_snapshot(each, blobs.get(each.spec_hash)) for each in versions]
        still_open = []
        for kind in (GpuPeriod, RunningPeriod, PendingPeriod):
            still_open += await _open(store, kind)
        found.open_periods = _by_pod(still_open)
        found.open_rooms = _by_pod(await _open(store, PodRoomPeriod))
        return found
    finally:
        await store.close()


async def highest(url: str) -> int:
    """The newest version of any pod that is stored: how far the ledger has come."""
    store = await open_store(url)
    try:
        rows = await fetch(store, sa.select(sa.func.max(TABLES[PodSnapshot].c.resource_version)))
        return int(rows[0][0] or 0)
    finally:
        await store.close()


async def follows_pods(url: str) -> bool:
    """Whether a ledger has once read all pods."""
    store = await open_store(url)
    try:
        table = TABLES[StreamPosition]
        return bool(await fetch(store, sa.select(table.c.revision).where(table.c.kind == "pods")))
    finally:
        await store.close()


async def _all(store: Readable, kind: type[Row]) -> list[Any]:
    return await fetch(store, select_rows(kind))


async def _open(store: Readable, kind: type[Row]) -> list[Any]:
    return await fetch(store, select_rows(kind).where(TABLES[kind].c.end_at.is_(None)))


def _by_pod(rows: list[Any]) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = defaultdict(list)
    for row in rows:
        found[row.pod_uid].append(row)
    return dict(found)


def _snapshot(row: PodSnapshot, spec: bytes | None) -> Snapshot:
    return Snapshot(row.resource_version, row.gone, msgspec.json.decode(unpack(row.state, spec)))
