"""Questions about the present read no more than the present, however long the ledger is."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from bayplan.ledger.questions.doctor.examine import Examination, examine_database
from bayplan.ledger.questions.present import workloads_at
from bayplan.ledger.rows import GpuPod, Row, WorkloadPodReference
from bayplan.ledger.store import reading
from bayplan.ledger.store.reading import rows_on
from bayplan.ledger.store.sql import SqlStore
from tests.ledger.books import CLUSTER, held, hour, pod, ran, stream, workload, written

PAST = 40
NOW = hour(24)


def link(uid: str) -> WorkloadPodReference:
    return WorkloadPodReference(cluster=CLUSTER, workload_uid="trainer-job", pod_uid=uid, depth=1, created_at=hour(0))


def a_long_story() -> list[Row]:
    """A workload with many pods that have gone, one that is there, and one that has ended and still holds."""
    rows: list[Row] = [workload("trainer"), *(stream(kind, NOW) for kind in ("pods", "nodes", "events", "jobs.batch"))]
    for number in range(PAST):
        uid = f"past-{number}"
        rows += [pod(uid, end_at=hour(2), gone_at=hour(3)), link(uid), held(uid, hour(1), hour(2))]
    rows += [pod("here"), link("here"), held("here", hour(1)), ran("here", hour(1))]
    rows += [pod("over", end_at=hour(2)), link("over"), held("over", hour(1)), ran("over", hour(1))]
    return rows


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqlStore]:
    opened = await written(str(tmp_path / "ledger.db"), a_long_story())
    yield opened
    await opened.close()


@pytest.fixture
def fetched(monkeypatch: pytest.MonkeyPatch) -> Counter[type[Row]]:
    """How many rows of each table were read."""
    count: Counter[type[Row]] = Counter()

    async def counted(connection: AsyncConnection, statement: sa.Select[Any]) -> list[Any]:
        found = await rows_on(connection, statement)
        count.update(type(row) for row in found)
        return found

    monkeypatch.setattr(reading, "rows_on", counted)
    return count


async def test_the_doctor_reads_of_the_pods_that_ended_those_of_which_something_is_open(
    store: SqlStore, fetched: Counter[type[Row]]
) -> None:
    report = await examine_database(store, Examination(now=NOW))
    assert [(each.code, each.what.split()[0]) for each in report.findings] == [
        ("LD013", "gpu_periods"),
        ("LD013", "pod_running_periods"),
    ]
    assert fetched[GpuPod] < PAST


async def test_a_workload_of_the_present_is_judged_without_the_pods_of_the_past(
    store: SqlStore, fetched: Counter[type[Row]]
) -> None:
    (found,) = await workloads_at(store, NOW)
    assert (found.pods, found.gpus) == (2, 16_000)
    assert (fetched[WorkloadPodReference], fetched[GpuPod]) == (2, 2)


async def test_a_workload_of_the_past_is_judged_by_the_pods_of_then(store: SqlStore) -> None:
    (found,) = await workloads_at(store, hour(1.5))
    assert (found.pods, found.gpus) == (PAST + 2, (PAST + 2) * 8000)
