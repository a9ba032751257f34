"""Kinds, and parts of the status documents that their controllers write."""

from __future__ import annotations

from typing import Any

import pytest

from bayplan.ledger.status.kinds import GroupKind
from bayplan.ledger.status.verdict import State

T1 = "2026-03-01T10:00:00Z"
T2 = "2026-03-01T11:30:00Z"

JOB = GroupKind("batch", "Job")
CRON_JOB = GroupKind("batch", "CronJob")
DEPLOYMENT = GroupKind("apps", "Deployment")
STATEFUL_SET = GroupKind("apps", "StatefulSet")
DAEMON_SET = GroupKind("apps", "DaemonSet")
REPLICA_SET = GroupKind("apps", "ReplicaSet")
CONTROLLER = GroupKind("", "ReplicationController")
JOB_SET = GroupKind("jobset.x-k8s.io", "JobSet")
LWS = GroupKind("leaderworkerset.x-k8s.io", "LeaderWorkerSet")
RAY_JOB = GroupKind("ray.io", "RayJob")
RAY_CLUSTER = GroupKind("ray.io", "RayCluster")
PYTORCH = GroupKind("kubeflow.org", "PyTorchJob")
TRAIN_JOB = GroupKind("trainer.kubeflow.org", "TrainJob")
WORKFLOW = GroupKind("argoproj.io", "Workflow")
UNKNOWN = GroupKind("example.com", "Experiment")

Status = dict[str, Any]


def conditions(*said: str, reason: str = "", message: str = "", at: str = T1) -> list[Status]:
    """`Ready`: it is true; `!Ready`: it is false."""
    return [
        {
            "type": one.lstrip("!"),
            "status": "False" if one.startswith("!") else "True",
            "reason": reason,
            "message": message,
            "lastTransitionTime": at,
        }
        for one in said
    ]


def case(sentence: str, kind: GroupKind, spec: Status, status: Status, state: State, reason: str = "") -> Any:
    return pytest.param(kind, spec, status, state, reason, id=f"{kind.kind}: {sentence}")


TWO = {"replicas": 2}
JOBS = {"replicatedJobs": [{"name": "leader"}, {"name": "workers", "replicas": 3}]}


def jobs(*counts: tuple[int, int, int]) -> list[Status]:
    """Ready, active and succeeded of each replicated job."""
    return [
        {"name": f"job{i}", "ready": ready, "active": active, "succeeded": done, "failed": 0, "suspended": 0}
        for i, (ready, active, done) in enumerate(counts)
    ]
