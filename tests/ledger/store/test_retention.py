"""Whose versions retention takes for those of workloads that are gone, and that it stops with the lease: on all three
databases.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import sqlalchemy as sa

from bayplan.ledger.rows import GpuUse, Row, SpecBlob, WorkloadPodReference, WorkloadSnapshot
from bayplan.ledger.store.reading import TABLES, fetch
from bayplan.ledger.store.retention import Pruned, prune, prune_use
from bayplan.ledger.store.sql import SqlStore
from bayplan.model.clock import Instant
from tests.ledger.store.made import batch, pod
from tests.ledger.store.test_contract import workload

LIMIT = Instant(50)


def versions(cluster: str, *times: int, gone: bool = False) -> list[Row]:
    """A workload's, each with a specification of its own; the last one may be that of its end."""
    rows: list[Row] = []
    for at in times:
        hash_ = bytes([at]) * 16
        rows += [
            SpecBlob(cluster=cluster, hash=hash_, data=b"x", first_seen=Instant(at)),
            WorkloadSnapshot(
                cluster=cluster,
                workload_uid="w",
                resource_version=at,
                observed_at=Instant(at),
                spec_hash=hash_,
                state=b"x",
                gone=gone and at == times[-1],
            ),
        ]
    return rows


def below(cluster: str, **more: Any) -> list[Row]:
    """Two pods of it: one has gone early, the other as is said."""
    links = [
        WorkloadPodReference(cluster=cluster, workload_uid="w", pod_uid=uid, depth=1, created_at=Instant(0))
        for uid in ("early", "late")
    ]
    return [pod(cluster, "early", gone_at=Instant(5)), pod(cluster, "late", **more), *links]


@pytest.mark.parametrize(
    ("ended", "pod_gone", "heard", "left"),
    [
        pytest.param(30, 40, False, [], id="nobody heard it go, but it had ended and its pods were gone"),
        pytest.param(30, None, False, [10, 30], id="it had ended, but one of its pods is there"),
        pytest.param(30, 50, False, [10, 30], id="it had ended, but one of its pods was there at the limit"),
        pytest.param(50, 40, False, [10, 30], id="it ended at the limit"),
        pytest.param(None, 40, False, [10, 30], id="it goes on without pods"),
        pytest.param(None, None, True, [], id="it was heard to go"),
    ],
)
async def test_versions_of_a_workload(
    store: SqlStore, cluster: str, ended: int | None, pod_gone: int | None, heard: bool, left: list[int]
) -> None:
    end, gone_at = (None if each is None else Instant(each) for each in (ended, pod_gone))
    rows = [workload(cluster, "w", end_at=end), *below(cluster, gone_at=gone_at)]
    await store.commit(batch(*rows, *versions(cluster, 10, 20, 30, gone=heard)))
    pruned = await prune(store, cluster, LIMIT)
    assert (pruned.workload_versions, pruned.specs) == (3 - len(left), 3 - len(left))
    table = TABLES[WorkloadSnapshot].c
    found = await fetch(store, sa.select(table.observed_at).where(table.cluster == cluster))
    assert sorted(at for (at,) in found) == left


async def test_an_end_in_another_cluster_is_none(store: SqlStore, cluster: str) -> None:
    other = f"{cluster}x"
    await store.commit(batch(workload(other, "w", end_at=Instant(1)), *versions(other, 10), *versions(cluster, 10)))
    assert await prune(store, cluster, LIMIT) == Pruned()


def leads_for(chunks: int) -> Callable[[], bool]:
    """A process that loses the lease after so many chunks."""
    left = iter(range(chunks))
    return lambda: next(left, None) is not None


@pytest.mark.parametrize(
    ("chunks", "expected"),
    [
        pytest.param(0, Pruned(), id="who does not lead lets nothing go"),
        pytest.param(2, Pruned(workload_versions=2), id="who loses the lease stops at once"),
        pytest.param(4, Pruned(workload_versions=3, use=1), id="between tables"),
        pytest.param(6, Pruned(workload_versions=3, use=2, specs=1), id="and between specifications"),
        pytest.param(9, Pruned(workload_versions=3, use=2, specs=3), id="who leads goes on to the end"),
    ],
)
async def test_retention_ends_with_the_lease(store: SqlStore, cluster: str, chunks: int, expected: Pruned) -> None:
    rows = [workload(cluster, "w", end_at=Instant(1)), *versions(cluster, 10, 20, 30), *measured(cluster, 1, 2)]
    await store.commit(batch(*rows))
    assert await prune(store, cluster, LIMIT, chunk=1, may_write=leads_for(chunks)) == expected


def measured(cluster: str, *times: int) -> list[GpuUse]:
    return [GpuUse(cluster=cluster, pod_uid="p", device="0", at=Instant(at), utilisation=0.5) for at in times]


async def test_retention_of_measurements_ends_with_the_lease(store: SqlStore, cluster: str) -> None:
    await store.commit(batch(*measured(cluster, 1, 2, 3)))
    assert await prune_use(store, cluster, LIMIT, chunk=1, may_write=leads_for(1)) == 1
    assert await prune_use(store, cluster, LIMIT) == 2
