"""Workloads as they were: from the version that had been seen by then, else as far as their pods tell."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from bayplan.cluster.kinds import JOB
from bayplan.cluster.objects import Object
from bayplan.ledger.questions.asking import open_ledger
from bayplan.ledger.questions.present import nodes_at, workloads_at
from bayplan.ledger.rows import GpuWorkload, Row, Rows, WorkloadPodReference, WorkloadSnapshot
from bayplan.ledger.snapshots import pack
from bayplan.ledger.store.sql import SqlStore
from bayplan.model.clock import Instant, rfc3339
from tests.ledger.books import CLUSTER, held, hour, node, offered, pod, ran, roomy, workload
from tests.ledger.databases import empty_database, prepared

__all__ = ["empty_database"]


def version(row: GpuWorkload, at: Instant, number: int, status: dict[str, Any], **labels: str) -> list[Row]:
    """A Job's snapshot, with its specification."""
    metadata = {
        "name": row.name,
        "namespace": row.namespace,
        "uid": row.uid,
        "resourceVersion": str(number),
        "creationTimestamp": rfc3339(row.created_at),
        "labels": labels,
    }
    text = json.dumps({"metadata": metadata, "spec": {"parallelism": number}, "status": status})
    packed = pack(Object.from_raw(JOB, text.encode()))
    stored = WorkloadSnapshot(
        cluster=row.cluster,
        workload_uid=row.uid,
        resource_version=number,
        observed_at=at,
        spec_hash=packed.spec_hash,
        state=packed.state,
        dictionary=packed.dictionary,
    )
    return [packed.blob(row.cluster, at), stored]


def linked(owner: GpuWorkload, uid: str, at: Instant) -> WorkloadPodReference:
    return WorkloadPodReference(cluster=CLUSTER, workload_uid=owner.uid, pod_uid=uid, depth=1, created_at=at)


def _said(kind: str, **more: str) -> dict[str, Any]:
    return {"conditions": [{"type": kind, "status": "True", **more}]}


def a_job() -> list[Row]:
    """Suspended at first, let go at 2, running from 3 on, complete at 9: nobody asked about it meanwhile."""
    row = workload(
        "train",
        resource_version=5,
        status="Succeeded",
        status_reason="CompletionsReached",
        gpu_request=16_000,
        labels='{"stage":"done"}',
        updated_at=hour(9),
        end_at=hour(9),
    )
    done = _said("Complete", reason="CompletionsReached", lastTransitionTime=rfc3339(hour(9)))
    return [
        row,
        pod("train-0", created_at=hour(1.9), end_at=hour(9)),
        linked(row, "train-0", hour(2)),
        held("train-0", hour(3), hour(9)),
        ran("train-0", hour(3), hour(9)),
        *version(row, hour(1), 2, _said("Suspended", reason="JobSuspended"), stage="held"),
        *version(row, hour(2), 3, {"active": 1, "ready": 0}, stage="begun"),
        *version(row, hour(3), 4, {"active": 1, "ready": 1}, stage="begun"),
        *version(row, hour(9), 5, done, stage="done"),
    ]


def others() -> list[Row]:
    """One that had no pods before 5; a set without versions whose pods had come and gone; one that nobody ever saw."""
    late = workload("late", created_at=hour(1), updated_at=hour(5))
    bare = workload("bare", kind="ReplicaSet", group_version="apps/v1", updated_at=hour(8))
    ghost = workload("ghost", resource_version=0, created_at=hour(1), updated_at=hour(2), status="Suspended")
    return [
        late,
        *version(late, hour(5), 7, {"active": 1, "ready": 1}),
        pod("late-0", created_at=hour(5)),
        linked(late, "late-0", hour(5)),
        bare,
        pod("bare-0", end_at=hour(2), gone_at=hour(2)),
        linked(bare, "bare-0", hour(0)),
        ran("bare-0", hour(0), hour(2)),
        ghost,
        pod("ghost-0", created_at=hour(1), phase="Failed", end_at=hour(1.5), gone_at=hour(2)),
        linked(ghost, "ghost-0", hour(1)),
    ]


@pytest.fixture
async def store(empty_database: str) -> AsyncIterator[SqlStore]:
    opened = await open_ledger(await prepared(empty_database))
    batch = Rows()
    batch.add(*a_job(), *others())
    await opened.commit(batch)
    yield opened
    await opened.close()


@pytest.mark.parametrize(
    ("name", "at", "status", "reason"),
    [
        pytest.param("train", 0.5, "Pending", "no pods yet", id="before its first version"),
        pytest.param("train", 1, "Suspended", "JobSuspended", id="at the instant of a version, that version"),
        pytest.param("train", 2.5, "Pending", "0 of 1 active pods ready", id="let go, and not ready"),
        pytest.param("train", 5, "Running", "1 of 1 active pods ready", id="hours after its last version"),
        pytest.param("late", 4, "Pending", "no pods yet", id="it waits for its first pod: nothing suspends it"),
        pytest.param("late", 6, "Running", "", id="its latest state is older than that"),
        pytest.param("bare", 1, "Running", "1 of 1 pods running", id="without versions its pods speak"),
        pytest.param("bare", 3, "Suspended", "no pods", id="without versions, and without pods any more"),
        pytest.param("ghost", 1.7, "Failed", "0 of 1 pods succeeded", id="one that nobody saw has its pods' state"),
    ],
)
async def test_a_status_of_the_past(store: SqlStore, name: str, at: float, status: str, reason: str) -> None:
    (found,) = [each for each in await workloads_at(store, hour(at)) if each.row.name == name]
    assert (found.status, found.row.status, found.row.status_reason) == (status, status, reason)


async def test_one_that_nobody_ever_saw_is_there_while_its_pods_are(store: SqlStore) -> None:
    there = [{each.row.name for each in await workloads_at(store, hour(at))} for at in (1.7, 2, 24)]
    assert ["ghost" in names for names in there] == [True, False, False]


@pytest.mark.parametrize(
    ("at", "number", "stage", "gpus", "updated"),
    [
        pytest.param(1.5, 2, "held", 0, 1, id="suspended, without pods"),
        pytest.param(2.5, 3, "begun", 8000, 2, id="its pod waits"),
        pytest.param(5, 4, "begun", 8000, 3, id="its pod runs"),
    ],
)
async def test_a_row_of_the_past_holds_nothing_of_later(
    store: SqlStore, at: float, number: int, stage: str, gpus: int, updated: int
) -> None:
    (found,) = [each.row for each in await workloads_at(store, hour(at)) if each.row.name == "train"]
    assert (found.resource_version, json.loads(found.labels), found.gpu_request) == (number, {"stage": stage}, gpus)
    assert (found.updated_at, found.end_at) == (hour(updated), None)


async def test_a_node_of_the_past_is_ready_as_it_was(empty_database: str) -> None:
    store = await open_ledger(await prepared(empty_database))
    batch = Rows()
    gone = node("a", "A100", schedulable=False, updated_at=hour(9), end_at=hour(9), end_inferred=True)
    batch.add(gone, offered("a", hour(0), hour(5), 4000), offered("a", hour(5), hour(9)))
    batch.add(roomy("a", hour(0), hour(2), "not ready"), roomy("a", hour(2), hour(9), ""))
    await store.commit(batch)
    rows = [each.row for at in (1, 3, 6) for each in await nodes_at(store, hour(at))]
    assert [(row.ready, row.schedulable, row.gpu_capacity) for row in rows] == [
        (False, True, 4000),
        (True, True, 4000),
        (True, True, 8000),
    ]
    assert {(row.end_at, row.end_inferred) for row in rows} == {(None, False)}
    await store.close()
