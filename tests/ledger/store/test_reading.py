"""Whole pods as they were, and what retention leaves of them: on all three databases."""

from __future__ import annotations

import asyncio
from typing import Literal

import msgspec
import pytest
import sqlalchemy as sa

from bayplan.ledger.rows import GpuPod, GpuPodsEvent, GpuUse, PodSnapshot, SpecBlob, WorkloadSnapshot
from bayplan.ledger.store.migrating import migrate
from bayplan.ledger.store.past import state_at
from bayplan.ledger.store.port import StoreRefusedError
from bayplan.ledger.store.reading import TABLES, fetch
from bayplan.ledger.store.retention import Pruned, prune
from bayplan.ledger.store.settings import Dialect
from bayplan.ledger.store.sql import SqlStore, open_store
from bayplan.ledger.store.writers import Batch, Writer
from bayplan.model.clock import Instant
from tests.ledger.store.made import batch, event, pod, snapshot


async def told(store: SqlStore, cluster: str, at: int, uid: str | None = None) -> dict[str, str]:
    """Each pod at a time, by the label that says which version it is."""
    found = await state_at(store, cluster, Instant(at), uid)
    return {pod.uid: msgspec.json.decode(pod.raw())["metadata"]["labels"]["version"] for pod in found}


@pytest.fixture
async def story(store: SqlStore, cluster: str) -> SqlStore:
    """Pod a: seen at 10, 20 and 30, gone at 40. Pod b: seen at 25, there still. Another cluster has a pod, too."""
    versions = [snapshot(cluster, "a", v, at) for v, at in ((1, 10), (2, 20), (3, 30))]
    versions += [
        snapshot(cluster, "a", 4, 40, gone=True),
        snapshot(cluster, "b", 5, 25),
        snapshot(f"{cluster}x", "c", 1, 1),
    ]
    a = pod(cluster, "a", 4, created_at=Instant(9), gone_at=Instant(40))
    b = pod(cluster, "b", 5, created_at=Instant(25))
    await store.commit(batch(a, b, pod(f"{cluster}x", "c"), *(row for pair in versions for row in pair)))
    return store


@pytest.mark.parametrize(
    ("at", "expected"),
    [
        pytest.param(9, {}, id="before anything was seen there is nothing"),
        pytest.param(10, {"a": "1"}, id="a version holds from the moment that it was seen"),
        pytest.param(19, {"a": "1"}, id="until the next one"),
        pytest.param(20, {"a": "2"}, id="which holds from its own moment"),
        pytest.param(39, {"a": "3", "b": "5"}, id="pods stand side by side"),
        pytest.param(40, {"b": "5"}, id="a pod is gone from the moment that it disappeared"),
        pytest.param(1 << 50, {"b": "5"}, id="what has not gone is there for ever"),
    ],
)
async def test_state_at(story: SqlStore, cluster: str, at: int, expected: dict[str, str]) -> None:
    assert await told(story, cluster, at) == expected
    for uid in "ab":
        assert await told(story, cluster, at, uid) == {uid: expected[uid] for uid in expected.keys() & {uid}}


async def test_of_versions_that_were_seen_at_once_the_last_one_holds(store: SqlStore, cluster: str) -> None:
    at_once = [snapshot(cluster, "a", version, 10) for version in (3, 1, 2)]
    gone_with_it = [snapshot(cluster, "b", 4, 10), snapshot(cluster, "b", 5, 10, gone=True)]
    rows = [row for pair in (*at_once, *gone_with_it) for row in pair]
    await store.commit(batch(pod(cluster, "a"), pod(cluster, "b"), *rows))
    assert await told(store, cluster, 10) == {"a": "3"}


async def test_many_pods_are_asked_for_by_several_connections_at_once(store: SqlStore, cluster: str) -> None:
    names = [f"pod-{number * 7919 % 2100:04d}" for number in range(2100)]
    states = [pod(cluster, name, created_at=Instant(number)) for number, name in enumerate(names)]
    blob, one = snapshot(cluster)
    versions = [
        msgspec.structs.replace(one, pod_uid=name, name=name, resource_version=version, observed_at=Instant(version))
        for name in names
        for version in (3000, 3001, 3002)
    ]
    await store.commit(batch(blob, *states, *versions))
    found = await state_at(store, cluster, Instant(3001))
    assert [(each.name, each.resource_version) for each in found] == [(name, 3001) for name in sorted(names)]
    assert {each.raw() for each in found} == {found[0].raw()}
    assert b'"nvidia.com/gpu":"1"' in found[0].raw()
    assert await state_at(store, cluster, Instant(2999)) == []


async def test_what_all_connections_fail_at_is_told_once(empty_database: str) -> None:
    await migrate(empty_database)
    store = await open_store(empty_database)
    await store.commit(batch(*(pod("c", f"pod-{number}") for number in range(2000))))
    async with store.engine.begin() as connection:
        await connection.exec_driver_sql("ALTER TABLE pod_snapshots RENAME TO elsewhere")
    with pytest.raises(StoreRefusedError, match="pod_snapshots"):
        await state_at(store, "c", Instant(1))
    await store.close()


async def test_a_select_of_some_columns_gives_tuples(story: SqlStore, cluster: str) -> None:
    table = TABLES[GpuPod].c
    found = await fetch(story, sa.select(table.uid, table.gone_at).where(table.cluster == cluster).order_by(table.uid))
    assert found == [("a", 40), ("b", None)]


async def test_retention_keeps_first_and_last_and_the_state_at_every_later_time(store: SqlStore, cluster: str) -> None:
    times = list(range(10, 100, 10))
    pairs = [snapshot(cluster, uid, at, at) for uid in ("open", "gone") for at in times]
    states = [pod(cluster, "open", 90), pod(cluster, "gone", 90, gone_at=Instant(95))]
    await store.commit(batch(*states, *(row for pair in pairs for row in pair)))
    before = {at: await told(store, cluster, at) for at in range(55, 100)}

    assert await prune(store, cluster, Instant(55), chunk=2) == Pruned(pod_versions=2 * 3)
    assert {at: await told(store, cluster, at) for at in range(55, 100)} == before
    table = TABLES[PodSnapshot].c
    left = await fetch(store, sa.select(table.pod_uid, table.observed_at).where(table.cluster == cluster))
    assert sorted(left) == [(uid, at) for uid in ("gone", "open") for at in (10, 50, 60, 70, 80, 90)]
    assert await prune(store, cluster, Instant(55)) == Pruned()


async def test_on_a_server_retention_and_commits_do_not_wait_for_each_other(store: SqlStore, cluster: str) -> None:
    if store.address.dialect is Dialect.SQLITE:
        pytest.skip("SQLite has one writer at a time")
    pairs = [snapshot(cluster, "a", at, at) for at in (10, 20, 30)]
    await store.commit(batch(pod(cluster, "a"), *(row for pair in pairs for row in pair)))
    store.writing = AskedFor()
    async with store.writing:  # a commit that takes its time
        pruning = asyncio.create_task(prune(store, cluster, Instant(40), chunk=1))
        await store.writing.asked.wait()  # for the specifications: of them it must be certain
        table = TABLES[PodSnapshot].c
        left = await fetch(store, sa.select(table.observed_at).where(table.cluster == cluster))
        assert sorted(at for (at,) in left) == [10, 30]
    assert await pruning == Pruned(pod_versions=1)


async def test_of_what_was_gone_before_the_limit_no_version_is_left_nor_its_specification(
    store: SqlStore, cluster: str
) -> None:
    gone, open_ = snapshot(cluster, "gone", 1, 10), snapshot(cluster, "open", 1, 10, gpus=2)
    await store.commit(batch(pod(cluster, "gone", gone_at=Instant(20)), pod(cluster, "open"), *gone, *open_))
    assert await prune(store, cluster, Instant(30)) == Pruned(pod_versions=1, specs=1)
    blobs = await fetch(store, sa.select(TABLES[SpecBlob].c.hash).where(TABLES[SpecBlob].c.cluster == cluster))
    assert [hash_ for (hash_,) in blobs] == [row.hash for row in open_ if isinstance(row, SpecBlob)]
    assert await told(store, cluster, 30) == {"open": "1"}


class AskedFor(asyncio.Lock):
    """Tells when somebody has to wait for it."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = asyncio.Event()

    async def acquire(self) -> Literal[True]:
        if self.locked():
            self.asked.set()
        return await super().acquire()


class Held:
    """A writer whose transactions begin only when they are let."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self.reached, self.let = asyncio.Event(), asyncio.Event()

    async def write(self, batch: Batch) -> None:
        self.reached.set()
        await self.let.wait()
        await self._writer.write(batch)

    async def close(self) -> None:
        await self._writer.close()


async def test_a_specification_that_a_commit_under_way_needs_stays(store: SqlStore, cluster: str) -> None:
    left, _ = snapshot(cluster, "again", 1, 10)  # of a pod long gone
    blob, version = snapshot(cluster, "again", 2, 20)
    assert blob.hash == left.hash
    await store.commit(batch(left))
    store._writer = held = Held(store._writer)
    store.writing = AskedFor()
    again = asyncio.create_task(store.commit(batch(pod(cluster, "again"), blob, version)))
    await held.reached.wait()
    pruning = asyncio.create_task(prune(store, cluster, Instant(30)))
    await store.writing.asked.wait()
    held.let.set()
    await again
    assert await pruning == Pruned()
    (found,) = await state_at(store, cluster, Instant(30))
    assert b'"nvidia.com/gpu":"1"' in found.raw()


async def test_specifications_in_use_are_noted_only_while_retention_looks(store: SqlStore, cluster: str) -> None:
    blob, version = snapshot(cluster, "a", 1, 10)
    await store.commit(batch(blob, version))
    assert store.used is None
    await prune(store, cluster, Instant(5))
    await store.commit(batch(blob, version))
    assert store.used is None


async def test_retention_of_events_workloads_and_use(store: SqlStore, cluster: str) -> None:
    states = [
        pod(cluster, "open"),
        pod(cluster, "gone", gone_at=Instant(5)),
        pod(cluster, "later", gone_at=Instant(50)),
    ]
    events = [event(cluster, uid, 1, at=Instant(1)) for uid in ("open", "gone", "later")]
    use = [
        GpuUse(cluster=cluster, pod_uid="open", device="0", at=Instant(at), utilisation=0.5) for at in (1, 9, 10, 11)
    ]
    steps = [
        WorkloadSnapshot(
            cluster=cluster, workload_uid="w", resource_version=at, observed_at=Instant(at), spec_hash=b"", state=b"x"
        )
        for at in (1, 2, 3, 20)
    ]
    other = event(f"{cluster}x", "gone", 1, at=Instant(1))
    await store.commit(batch(*states, *events, *use, *steps, other, pod(f"{cluster}x", "gone", gone_at=Instant(5))))
    assert await prune(store, cluster, Instant(10)) == Pruned(workload_versions=1, events=1, use=2)
    table = TABLES[GpuPodsEvent].c
    assert {row[0] for row in await fetch(store, sa.select(table.pod_uid).where(table.cluster == cluster))} == {
        "open",
        "later",
    }
