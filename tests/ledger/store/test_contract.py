"""What every database promises: the same suite on all three."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayplan.ledger.rows import (
    ROWS,
    GpuNode,
    GpuPeriod,
    GpuPod,
    GpuPodsEvent,
    GpuWorkload,
    PendingPeriod,
    Row,
    Rows,
    Sort,
    StreamPosition,
    WorkloadPodReference,
)
from bayplan.ledger.store.port import StoreRefusedError
from bayplan.ledger.store.reading import TABLES, fetch, select_rows
from bayplan.ledger.store.sql import SqlStore, open_store
from bayplan.model.clock import Instant
from tests.ledger.databases import KINDS
from tests.ledger.store.conftest import migrated
from tests.ledger.store.made import batch, event, period, pod, snapshot


async def kept(store: SqlStore, cluster: str, kind: type[Row]) -> list[Any]:
    """A cluster's rows of a table, by key."""
    table = TABLES[kind]
    order = [table.c[name] for name in kind.key]
    return await fetch(store, select_rows(kind).where(table.c.cluster == cluster).order_by(*order))


MEETINGS: dict[str, tuple[Row, Row, int]] = {
    "a newer state wins": (pod("c", version=1, phase="Pending"), pod("c", version=2, phase="Running"), 1),
    "an older state is ignored": (pod("c", version=2, phase="Running"), pod("c", version=1, phase="Pending"), 0),
    "of two states of one version the later said wins": (pod("c", version=2), pod("c", version=2, phase="Failed"), 1),
    "versions beyond 32 bits are numbers": (pod("c", version=1 << 40), pod("c", version=(1 << 40) + 1, restarts=3), 1),
    "10 is newer than 9": (pod("c", version=9), pod("c", version=10, restarts=1), 1),
    "a fact that is there already stays as it is": (event("c", value="Running"), event("c", value="Failed"), 0),
    "a period is closed by a newer version": (period("c", version=1), period("c", version=2, end=5), 1),
    "a period is closed by its own version": (period("c", version=1), period("c", version=1, end=5), 1),
    "its own version does not open it again": (period("c", version=2, end=5), period("c", version=2), 0),
    "an older version does not open it again": (period("c", version=2, end=5), period("c", version=1), 0),
    "a newer version opens it again": (period("c", version=2, end=5), period("c", version=3), 1),
    "its own version sets its end right": (period("c", version=2, end=5), period("c", version=2, end=6), 1),
    "an older version does not move its end": (period("c", version=2, end=5), period("c", version=1, end=4), 0),
}


@pytest.mark.parametrize("meeting", [pytest.param(meeting, id=name) for name, meeting in MEETINGS.items()])
@pytest.mark.parametrize("together", [pytest.param(True, id="in one batch"), pytest.param(False, id="in two")])
async def test_rows_of_one_key_meet(
    store: SqlStore, cluster: str, meeting: tuple[Row, Row, int], together: bool
) -> None:
    first, second, stays = meeting
    rows = [msgspec.structs.replace(row, cluster=cluster) for row in (first, second)]
    for part in [rows] if together else [[row] for row in rows]:
        await store.commit(batch(*part))
    assert await kept(store, cluster, type(rows[0])) == [rows[stays]]


def a_row(kind: type[Row], cluster: str) -> Row:
    """A row of a table with every column filled."""
    values: dict[str, Any] = {}
    for i, column in enumerate(TABLES[kind].columns):
        made = {str: f"value {i}", int: i + (1 << 40), bool: True, float: 0.25, bytes: bytes(range(16))}
        values[column.name] = made[column.type.python_type]
    return kind(**values | {"cluster": cluster})


@pytest.mark.parametrize("kind", [pytest.param(kind, id=kind.table) for kind in ROWS])
async def test_a_row_comes_back_as_it_was(store: SqlStore, cluster: str, kind: type[Row]) -> None:
    row = a_row(kind, cluster)
    await store.commit(batch(row))
    await store.commit(batch(row))
    assert await kept(store, cluster, kind) == [row]


async def test_missing_values_come_back_as_none(store: SqlStore, cluster: str) -> None:
    rows = [pod(cluster, "a"), pod(cluster, "b", end_at=Instant(5), gone_at=Instant(6))]
    await store.commit(batch(*rows))
    assert await kept(store, cluster, GpuPod) == rows


TEXTS = [
    pytest.param("x" * 253, "x" * 253, id="a name of 253 characters fits"),
    pytest.param("\U0001f680" * 253, "\U0001f680" * 253, id="253 characters outside the basic plane fit"),
    pytest.param("x" * 300, "x" * 253, id="a longer one is cut"),
    pytest.param("a\0b", "a\ufffdb", id="NUL, which PostgreSQL cannot hold, is replaced"),
    pytest.param("a\ud800b", "a\ufffd\ufffd\ufffdb", id="a lone surrogate, which no encoding has, is replaced"),
    pytest.param('o\'brien\\ "x" %s ; --', 'o\'brien\\ "x" %s ; --', id="quotes and backslashes mean nothing"),
    pytest.param("2001:0db8:85a3:0000:0000:8a2e:0370:7334", "2001:0db8:85a3:0000:0000:8a2e:0370:7334", id="IPv6 fits"),
]


@pytest.mark.parametrize(("given_text", "stored"), TEXTS)
async def test_texts(store: SqlStore, cluster: str, given_text: str, stored: str) -> None:
    await store.commit(batch(pod(cluster, user=given_text, reason=given_text[:20])))
    (row,) = await kept(store, cluster, GpuPod)
    assert (row.user, row.reason) == (stored, row.reason)


async def test_keys_differ_by_case_and_by_trailing_spaces(store: SqlStore, cluster: str) -> None:
    uids = ["A", "a", "a ", "\u00e4", "a\u0308"]
    await store.commit(batch(*(pod(cluster, uid) for uid in uids)))
    assert sorted(row.uid for row in await kept(store, cluster, GpuPod)) == sorted(uids)


async def test_a_megabyte_fits_into_a_text_and_a_blob(store: SqlStore, cluster: str) -> None:
    blob, version = snapshot(cluster)
    large = msgspec.structs.replace(version, state=b"\0\xff" * 1_000_000)
    await store.commit(batch(blob, large, *(pod(cluster, uid, labels="x" * 2_000_000) for uid in "abc")))
    assert [len(row.labels) for row in await kept(store, cluster, GpuPod)] == [2_000_000] * 3
    assert await kept(store, cluster, type(large)) == [large]


async def test_a_batch_of_thousands_meets_what_is_there_as_a_small_one_does(store: SqlStore, cluster: str) -> None:
    for version in (2, 1, 3):
        states = [pod(cluster, f"{i:04}", version + i % 2, restarts=version) for i in range(2500)]
        await store.commit(batch(*states, *states[:10], *(event(cluster, f"{i:04}", version) for i in range(2500))))
    assert [(row.resource_version, row.restarts) for row in await kept(store, cluster, GpuPod)] == [
        (3, 3),
        (4, 3),
    ] * 1250
    assert len(await kept(store, cluster, GpuPodsEvent)) == 7500


async def test_a_batch_that_fails_leaves_nothing(store: SqlStore, cluster: str) -> None:
    wrong = event(cluster, restart_count=1 << 70)
    with pytest.raises(StoreRefusedError):
        await store.commit(batch(pod(cluster), wrong))
    assert await kept(store, cluster, GpuPod) == []
    await store.commit(batch(pod(cluster)))
    assert await kept(store, cluster, GpuPod) == [pod(cluster)]


@pytest.mark.parametrize("turns", [pytest.param(turns, id=f"after {turns} turns of the loop") for turns in (1, 5, 40)])
async def test_a_cancelled_commit_leaves_all_or_nothing(store: SqlStore, cluster: str, turns: int) -> None:
    rows = batch(*(pod(cluster, f"{i}") for i in range(500)), *(event(cluster, f"{i}") for i in range(500)))
    writing = asyncio.create_task(store.commit(rows))
    for _ in range(turns):
        await asyncio.sleep(0)
    writing.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await writing
    await store.commit(batch(pod(cluster, "next")))
    pods, events = len(await kept(store, cluster, GpuPod)), len(await kept(store, cluster, GpuPodsEvent))
    assert (pods, events) in ((1, 0), (501, 500))


async def test_commits_at_once_keep_their_order(store: SqlStore, cluster: str) -> None:
    states = [pod(cluster, version=1, restarts=i) for i in range(20)]
    await asyncio.gather(*(store.commit(batch(state)) for state in states))
    assert await kept(store, cluster, GpuPod) == states[-1:]


async def test_two_stores_write_two_clusters_at_once(database: str, cluster: str) -> None:
    stores = [await open_store(database) for _ in range(2)]
    names = [f"{cluster}-{i}" for i in range(2)]
    for round_ in range(1, 6):
        rows = [batch(*(pod(name, f"{i}", round_) for i in range(50))) for name in names]
        await asyncio.gather(*(store.commit(part) for store, part in zip(stores, rows, strict=True)))
    for name in names:
        assert {row.resource_version for row in await kept(stores[0], name, GpuPod)} == {5}
    for each in stores:
        await each.close()


async def test_nothing_is_committed_for_nothing(store: SqlStore) -> None:
    await store.commit(Rows())


# --- what is remembered


def workload(cluster: str, uid: str, **more: Any) -> GpuWorkload:
    names = {"group_version": "batch/v1", "kind": "Job", "namespace": "vision", "name": uid}
    return GpuWorkload(
        cluster=cluster, uid=uid, resource_version=1, created_at=Instant(0), updated_at=Instant(0), **names | more
    )


async def test_what_has_not_ended_is_remembered(store: SqlStore, cluster: str) -> None:
    alive, done = pod(cluster, "alive", end_at=None), pod(cluster, "done", end_at=Instant(5))
    gone = pod(cluster, "gone", end_at=Instant(5), gone_at=Instant(6))
    of_pod = WorkloadPodReference(
        cluster=cluster, workload_uid="finished", pod_uid="done", depth=1, created_at=Instant(0)
    )
    over = Instant(9)
    jobs = [
        workload(cluster, "busy"),
        workload(cluster, "finished", end_at=over),
        workload(cluster, "old", end_at=over),
    ]
    nodes = [
        GpuNode(cluster=cluster, uid=uid, resource_version=1, name=uid, created_at=over, updated_at=over, end_at=end)
        for uid, end in (("node", None), ("lost", over))
    ]
    waiting = PendingPeriod(
        cluster=cluster, start_at=Instant(1), resource_version=1, pod_uid="alive", reason="Unschedulable"
    )
    periods = [period(cluster, "alive"), period(cluster, "done", end=5), waiting]
    place = StreamPosition(cluster=cluster, kind="pods", resource_version=7, revision="7", at=Instant(0))
    versions = [row for version in (1, 2, 3) for row in snapshot(cluster, "alive", version, at=version)]
    other = [pod(f"{cluster}-other"), *snapshot(f"{cluster}-other")]
    await store.commit(batch(alive, done, gone, of_pod, *jobs, *nodes, *periods, place, *versions, *other))

    found = await store.remembered(cluster)
    assert {row.uid for row in found.pods} == {"alive", "done"}
    assert {row.uid for row in found.workloads} == {"busy", "finished"}
    assert [row.uid for row in found.nodes] == ["node"]
    assert sorted(found.periods, key=repr) == sorted([periods[0], waiting], key=repr)
    assert found.streams == {"pods": "7"}
    assert [msgspec.json.decode(raw)["metadata"]["labels"]["version"] for raw in found.last.values()] == ["3"]


async def test_an_unknown_cluster_has_nothing_to_remember(store: SqlStore) -> None:
    found = await store.remembered("nobody's")
    assert (found.pods, found.last, found.streams) == ((), {}, {})


# --- any rows in any batches: all three databases end the same, and as the rules say

_UIDS = st.sampled_from(("a", "A", "b "))
_VERSIONS = st.integers(1, 4)
_SOME_ROW = st.one_of(
    st.builds(pod, st.just("c"), _UIDS, _VERSIONS, restarts=st.integers(0, 3)),
    st.builds(event, st.just("c"), _UIDS, _VERSIONS, value=st.text(max_size=3)),
    st.builds(period, st.just("c"), _UIDS, _VERSIONS, end=st.none() | st.integers(1, 3), gpus=st.integers(0, 3)),
)


def written_one_by_one(rows: list[Row]) -> dict[tuple[Any, ...], Row]:
    """The rules of ledger/rows in their plainest form. Texts are given that fit."""
    held: dict[tuple[Any, ...], Any] = {}
    for row in rows:
        new: Any = row
        key = (row.table, *(getattr(row, name) for name in row.key))
        old: Any = held.get(key)
        is_newer = old is not None and row.sort is not Sort.FACT and new.resource_version >= old.resource_version
        if is_newer and row.sort is Sort.PERIOD and old.end_at is not None and new.end_at is None:
            is_newer = new.resource_version > old.resource_version
        if old is None or is_newer:
            held[key] = new
    return held


def storable(row: Row) -> bool:
    return not isinstance(row, GpuPodsEvent) or not any(c == "\0" or "\ud800" <= c <= "\udfff" for c in row.value)


async def play(kind: str, batches: list[list[Row]], cluster: str) -> dict[tuple[Any, ...], Row]:
    store = await open_store(migrated(kind))
    for rows in batches:
        await store.commit(batch(*(msgspec.structs.replace(row, cluster=cluster) for row in rows)))
    found = [row for table in (GpuPod, GpuPodsEvent, GpuPeriod) for row in await kept(store, cluster, table)]
    await store.close()
    back = [msgspec.structs.replace(row, cluster="c") for row in found]
    return {(row.table, *(getattr(row, name) for name in row.key)): row for row in back}


_numbers = iter(range(1_000_000))


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=25)
@given(batches=st.lists(st.lists(_SOME_ROW.filter(storable), max_size=8), max_size=5))
def test_any_rows_in_any_batches_end_as_if_written_one_by_one(kind: str, batches: list[list[Row]]) -> None:
    expected = written_one_by_one([row for rows in batches for row in rows])
    assert asyncio.run(play(kind, batches, f"played-{next(_numbers)}")) == expected
