"""Workloads that a quota keeps from making any pod: they are known all the same, somebody will ask why they wait."""

from __future__ import annotations

from bayplan.cluster.kinds import JOB, RESOURCE_QUOTA
from bayplan.ledger.questions.pending import told
from bayplan.ledger.questions.refusals import joined
from bayplan.ledger.rows import GpuPod, GpuWorkload, PendingPeriod
from bayplan.ledger.status.kinds import GroupKind
from tests.ledger.owners.builders import DEPLOYMENT, LATER, REPLICA_SET, at, new, owner, pod, workloads
from tests.ledger.shell.memory import MemoryStore
from tests.ledger.shell.scenes import caught_up, gpu_cluster, gpu_job, recorded, until

REFUSED = owner("web-1", "ReplicaSet")


def test_who_is_refused_is_told_of_with_those_above_it_in_whatever_order_they_come() -> None:
    for order in ((REPLICA_SET, DEPLOYMENT), (DEPLOYMENT, REPLICA_SET)):
        owners = new()
        owners.refused(REFUSED, "ml", at(0))
        assert workloads(owners.flush(at(0))).keys() == {"web-1"}
        assert GroupKind("apps", "ReplicaSet") in owners.kinds()
        for obj in order:
            owners.seen(obj, at(1))
        rows = workloads(owners.flush(at(1)))
        assert (rows["web-1"].parent_uid, rows["web"].parent_uid) == ("web-uid", "")
        owners.pod(pod("web-1-a", REFUSED), at(2))
        assert workloads(owners.flush(at(2)))["web"].gpu_request == 1000


def test_one_that_nobody_ever_saw_ends_after_a_while() -> None:
    owners = new()
    owners.refused(REFUSED, "ml", at(0))
    owners.flush(at(0))
    owners.collect(LATER)
    row = workloads(owners.flush(LATER))["web-1"]
    assert (row.end_at, row.end_inferred) == (LATER, True)
    owners.collect(LATER)
    assert len(owners) == 0


async def test_a_job_whose_pods_a_quota_forbids_says_so_by_its_name() -> None:
    cluster, store = await gpu_cluster(), MemoryStore()
    async with recorded(cluster, store) as recorder:
        await until(lambda: {"nodes", "pods", "events"} <= recorder.told.keys())
        quota = {"metadata": {"name": "gpus"}, "spec": {"hard": {"requests.nvidia.com/gpu": "0"}}}
        await cluster.create(RESOURCE_QUOTA, quota, "default")
        await cluster.advance(5)
        await cluster.create(JOB, gpu_job("train", 1), "default")
        await cluster.advance(30)
        await caught_up(cluster, recorder)
        await until(lambda: any(row.resource_version for row in store.rows(GpuWorkload)))
    assert store.rows(GpuPod) == []
    (job,) = store.rows(GpuWorkload)
    assert (job.namespace, job.kind, job.name) == ("default", "Job", "train")
    waits = [row for row in store.rows(PendingPeriod) if row.pod_uid == job.uid]
    assert "exceeded quota: gpus" in told(job, joined(waits), cluster.clock.now()).sentence
