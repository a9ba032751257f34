"""Each state of each kind, from status documents as the controllers write them (L25)."""

from __future__ import annotations

from typing import Any

import pytest

from bayplan.ledger.status.document import Document
from bayplan.ledger.status.judge import judge, of_object
from bayplan.ledger.status.kinds import RULES, GroupKind
from bayplan.ledger.status.verdict import PodCounts, State
from bayplan.model.clock import parse_rfc3339

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


CASES = [
    case("new, no status yet", JOB, {}, {}, State.PENDING, "no active pods"),
    case("its pods wait", JOB, {}, {"active": 4, "ready": 0}, State.PENDING, "0 of 4 active pods ready"),
    case("one of its pods waits", JOB, {}, {"active": 4, "ready": 3}, State.DEGRADED, "3 of 4 active pods ready"),
    case("all run", JOB, {}, {"active": 4, "ready": 4}, State.RUNNING),
    case("between two tries", JOB, {}, {"active": 0, "failed": 2}, State.PENDING, "no active pods, 2 failed"),
    case(
        "suspended",
        JOB,
        {"suspend": True},
        {"conditions": conditions("Suspended", reason="JobSuspended", message="Job suspended")},
        State.SUSPENDED,
        "JobSuspended: Job suspended",
    ),
    case("resumed", JOB, {}, {"active": 1, "ready": 1, "conditions": conditions("!Suspended")}, State.RUNNING),
    case(
        "will fail, its pods still go",
        JOB,
        {},
        {"conditions": conditions("FailureTarget", reason="BackoffLimitExceeded"), "active": 1, "ready": 1},
        State.DEGRADED,
        "BackoffLimitExceeded",
    ),
    case(
        "will succeed, its pods still go",
        JOB,
        {},
        {"conditions": conditions("SuccessCriteriaMet"), "active": 1},
        State.RUNNING,
    ),
    case(
        "complete",
        JOB,
        {},
        {"conditions": conditions("SuccessCriteriaMet", "Complete"), "completionTime": T2, "succeeded": 4},
        State.SUCCEEDED,
    ),
    case(
        "failed",
        JOB,
        {},
        {"conditions": conditions("FailureTarget", "Failed", reason="DeadlineExceeded", at=T2), "failed": 3},
        State.FAILED,
        "DeadlineExceeded",
    ),
    case("waits for its time", CRON_JOB, {"schedule": "0 * * * *"}, {}, State.PENDING),
    case("a job of it runs", CRON_JOB, {}, {"active": [{"kind": "Job", "name": "night-1"}]}, State.RUNNING),
    case("switched off", CRON_JOB, {"suspend": True}, {}, State.SUSPENDED),
    case("new", DEPLOYMENT, TWO, {}, State.PENDING, "0 of 2 replicas ready"),
    case("half ready", DEPLOYMENT, TWO, {"readyReplicas": 1}, State.DEGRADED, "1 of 2 replicas ready"),
    case("all ready", DEPLOYMENT, TWO, {"readyReplicas": 2}, State.RUNNING, "2 of 2 replicas ready"),
    case("more than asked during a rollout", DEPLOYMENT, TWO, {"readyReplicas": 3}, State.RUNNING),
    case("scaled to nothing", DEPLOYMENT, {"replicas": 0}, {}, State.SUSPENDED, "0 replicas wanted"),
    case(
        "a rollout is stuck",
        DEPLOYMENT,
        TWO,
        {"readyReplicas": 2, "conditions": conditions("!Progressing", reason="ProgressDeadlineExceeded")},
        State.DEGRADED,
        "ProgressDeadlineExceeded",
    ),
    case(
        "quota forbids its pods",
        DEPLOYMENT,
        TWO,
        {"conditions": conditions("ReplicaFailure", reason="FailedCreate", message="exceeded quota: gpus")},
        State.PENDING,
        "FailedCreate: exceeded quota: gpus",
    ),
    case("none asked for means one", STATEFUL_SET, {}, {"readyReplicas": 1}, State.RUNNING),
    case("its first pod waits", STATEFUL_SET, TWO, {"replicas": 1}, State.PENDING),
    case("its second pod waits", STATEFUL_SET, TWO, {"readyReplicas": 1}, State.DEGRADED),
    case("scaled to nothing", STATEFUL_SET, {"replicas": 0}, {"readyReplicas": 1}, State.SUSPENDED),
    case("not observed yet", DAEMON_SET, {}, {}, State.PENDING),
    case("no node fits", DAEMON_SET, {}, {"desiredNumberScheduled": 0}, State.SUSPENDED),
    case("none is ready", DAEMON_SET, {}, {"desiredNumberScheduled": 3, "numberReady": 0}, State.PENDING),
    case("some are ready", DAEMON_SET, {}, {"desiredNumberScheduled": 3, "numberReady": 1}, State.DEGRADED),
    case("on every node", DAEMON_SET, {}, {"desiredNumberScheduled": 3, "numberReady": 3}, State.RUNNING),
    case("new", REPLICA_SET, TWO, {"replicas": 0}, State.PENDING),
    case("some are ready", REPLICA_SET, TWO, {"readyReplicas": 1}, State.DEGRADED),
    case("all are ready", REPLICA_SET, TWO, {"readyReplicas": 2}, State.RUNNING),
    case("of an old revision", REPLICA_SET, {"replicas": 0}, {"replicas": 0}, State.SUSPENDED),
    case(
        "quota forbids one",
        REPLICA_SET,
        TWO,
        {"readyReplicas": 1, "conditions": conditions("ReplicaFailure")},
        State.DEGRADED,
    ),
    case("all are ready", CONTROLLER, TWO, {"readyReplicas": 2}, State.RUNNING),
    case("none is ready", CONTROLLER, TWO, {}, State.PENDING),
    case("new", JOB_SET, JOBS, {}, State.PENDING, "0 of 4 jobs ready"),
    case(
        "its jobs wait",
        JOB_SET,
        JOBS,
        {"replicatedJobsStatus": jobs((0, 1, 0), (0, 3, 0)), "restarts": 0},
        State.PENDING,
    ),
    case(
        "some of its jobs are ready",
        JOB_SET,
        JOBS,
        {"replicatedJobsStatus": jobs((1, 1, 0), (2, 3, 0))},
        State.DEGRADED,
        "3 of 4 jobs ready",
    ),
    case("all are ready", JOB_SET, JOBS, {"replicatedJobsStatus": jobs((1, 1, 0), (3, 3, 0))}, State.RUNNING),
    case("one is done", JOB_SET, JOBS, {"replicatedJobsStatus": jobs((1, 1, 0), (2, 2, 1))}, State.RUNNING),
    case(
        "they start in order",
        JOB_SET,
        JOBS,
        {
            "conditions": conditions("StartupPolicyInProgress", reason="InOrderStartupPolicyInProgress"),
            "replicatedJobsStatus": jobs((1, 1, 0)),
        },
        State.PENDING,
        "InOrderStartupPolicyInProgress",
    ),
    case(
        "suspended",
        JOB_SET,
        {**JOBS, "suspend": True},
        {"conditions": conditions("Suspended", reason="SuspendedJobs", message="jobset is suspended")},
        State.SUSPENDED,
    ),
    case(
        "completed",
        JOB_SET,
        JOBS,
        {
            "conditions": conditions("Completed", reason="AllJobsCompleted", at=T2),
            "terminalState": "Completed",
            "restarts": 1,
        },
        State.SUCCEEDED,
        "AllJobsCompleted",
    ),
    case(
        "failed",
        JOB_SET,
        JOBS,
        {"conditions": conditions("Failed", reason="ReachedMaxRestarts", at=T2), "terminalState": "Failed"},
        State.FAILED,
        "ReachedMaxRestarts",
    ),
    case("failed, by its state alone", JOB_SET, JOBS, {"terminalState": "Failed"}, State.FAILED),
    case(
        "no group is ready",
        LWS,
        TWO,
        {"replicas": 2, "conditions": conditions("!Available", "Progressing", reason="GroupsProgressing")},
        State.PENDING,
        "0 of 2 groups ready",
    ),
    case("a group is ready", LWS, TWO, {"replicas": 2, "readyReplicas": 1}, State.DEGRADED),
    case(
        "all groups are ready",
        LWS,
        TWO,
        {"replicas": 2, "readyReplicas": 2, "conditions": conditions("Available", reason="AllGroupsReady")},
        State.RUNNING,
    ),
    case("scaled to nothing", LWS, {"replicas": 0}, {}, State.SUSPENDED),
    case("new", RAY_JOB, {}, {}, State.PENDING),
    case("its cluster starts", RAY_JOB, {}, {"jobDeploymentStatus": "Initializing"}, State.PENDING, "Initializing"),
    case("waits for a person", RAY_JOB, {}, {"jobDeploymentStatus": "Waiting"}, State.PENDING),
    case("submitted", RAY_JOB, {}, {"jobDeploymentStatus": "Running", "jobStatus": "PENDING"}, State.PENDING),
    case("runs", RAY_JOB, {}, {"jobDeploymentStatus": "Running", "jobStatus": "RUNNING"}, State.RUNNING, "RUNNING"),
    case("tried again", RAY_JOB, {}, {"jobDeploymentStatus": "Retrying", "failed": 1}, State.PENDING, "Retrying"),
    case("being suspended", RAY_JOB, {"suspend": True}, {"jobDeploymentStatus": "Suspending"}, State.SUSPENDED),
    case("suspended", RAY_JOB, {"suspend": True}, {"jobDeploymentStatus": "Suspended"}, State.SUSPENDED),
    case("born suspended", RAY_JOB, {"suspend": True}, {}, State.SUSPENDED),
    case(
        "succeeded",
        RAY_JOB,
        {},
        {"jobDeploymentStatus": "Complete", "jobStatus": "SUCCEEDED", "endTime": T2},
        State.SUCCEEDED,
        "SUCCEEDED",
    ),
    case(
        "its program failed",
        RAY_JOB,
        {},
        {"jobDeploymentStatus": "Complete", "jobStatus": "FAILED", "message": "exit code 1", "endTime": T2},
        State.FAILED,
        "FAILED: exit code 1",
    ),
    case(
        "stopped by a person",
        RAY_JOB,
        {},
        {"jobDeploymentStatus": "Complete", "jobStatus": "STOPPED", "endTime": T2},
        State.FAILED,
        "STOPPED",
    ),
    case(
        "took too long",
        RAY_JOB,
        {},
        {"jobDeploymentStatus": "Failed", "reason": "DeadlineExceeded", "message": "too long", "endTime": T2},
        State.FAILED,
        "Failed: too long",
    ),
    case("makes no sense", RAY_JOB, {}, {"jobDeploymentStatus": "ValidationFailed"}, State.FAILED),
    case("new", RAY_CLUSTER, {}, {}, State.PENDING),
    case(
        "its head waits",
        RAY_CLUSTER,
        {},
        {"conditions": conditions("!HeadPodReady", reason="ContainersNotReady")},
        State.PENDING,
        "ContainersNotReady",
    ),
    case("ready", RAY_CLUSTER, {}, {"state": "ready", "readyWorkerReplicas": 2}, State.RUNNING, "ready"),
    case("provisioned", RAY_CLUSTER, {}, {"conditions": conditions("RayClusterProvisioned")}, State.RUNNING),
    case("failed, but it may recover", RAY_CLUSTER, {}, {"state": "failed", "reason": "no pods"}, State.DEGRADED),
    case(
        "pods could not be made",
        RAY_CLUSTER,
        {},
        {"state": "ready", "conditions": conditions("ReplicaFailure", reason="FailedCreateWorkerPod")},
        State.DEGRADED,
        "FailedCreateWorkerPod",
    ),
    case(
        "its head was lost",
        RAY_CLUSTER,
        {},
        {
            "state": "ready",
            "conditions": conditions("!HeadPodReady", "RayClusterProvisioned", reason="HeadPodNotFound"),
        },
        State.DEGRADED,
        "HeadPodNotFound",
    ),
    case(
        "a worker was lost",
        RAY_CLUSTER,
        {},
        {
            "state": "ready",
            "desiredWorkerReplicas": 2,
            "readyWorkerReplicas": 1,
            "conditions": conditions("HeadPodReady", "RayClusterProvisioned"),
        },
        State.DEGRADED,
        "1 of 2 workers ready",
    ),
    case("suspended", RAY_CLUSTER, {"suspend": True}, {"state": "suspended"}, State.SUSPENDED),
    case("being suspended", RAY_CLUSTER, {}, {"conditions": conditions("RayClusterSuspending")}, State.SUSPENDED),
    *(
        row
        for kind in ("PyTorchJob", "TFJob", "MPIJob", "XGBoostJob", "PaddleJob", "JAXJob")
        for row in (
            case(
                "created",
                GroupKind("kubeflow.org", kind),
                {},
                {"conditions": conditions("Created", reason=f"{kind}Created")},
                State.PENDING,
            ),
            case(
                "runs",
                GroupKind("kubeflow.org", kind),
                {},
                {"conditions": conditions("Created", "Running"), "replicaStatuses": {"Worker": {"active": 2}}},
                State.RUNNING,
            ),
            case(
                "restarts",
                GroupKind("kubeflow.org", kind),
                {},
                {"conditions": conditions("Created", "!Running", "Restarting")},
                State.DEGRADED,
            ),
            case(
                "suspended",
                GroupKind("kubeflow.org", kind),
                {"runPolicy": {"suspend": True}},
                {"conditions": conditions("Created", "!Running", "Suspended")},
                State.SUSPENDED,
            ),
            case(
                "succeeded",
                GroupKind("kubeflow.org", kind),
                {},
                {"conditions": conditions("Created", "!Running", "Succeeded"), "completionTime": T2},
                State.SUCCEEDED,
            ),
            case(
                "failed",
                GroupKind("kubeflow.org", kind),
                {},
                {"conditions": conditions("Created", "!Running", "Failed", at=T2)},
                State.FAILED,
            ),
        )
    ),
    case("its jobs wait", TRAIN_JOB, {}, {"jobsStatus": jobs((0, 1, 0))}, State.PENDING),
    case("no job yet", TRAIN_JOB, {}, {"jobsStatus": jobs((0, 0, 1), (0, 0, 0))}, State.PENDING, "no active jobs"),
    case("one of two is ready", TRAIN_JOB, {}, {"jobsStatus": jobs((1, 1, 0), (0, 1, 0))}, State.DEGRADED),
    case("runs", TRAIN_JOB, {}, {"jobsStatus": jobs((1, 1, 0)), "conditions": []}, State.RUNNING),
    case("suspended", TRAIN_JOB, {"suspend": True}, {"conditions": conditions("Suspended")}, State.SUSPENDED),
    case(
        "complete",
        TRAIN_JOB,
        {},
        {"conditions": conditions("!Suspended", "Complete", reason="JobsCompleted", at=T2)},
        State.SUCCEEDED,
        "JobsCompleted",
    ),
    case(
        "failed",
        TRAIN_JOB,
        {},
        {"conditions": conditions("Failed", reason="TrainingRuntimeNotSupported", at=T2)},
        State.FAILED,
    ),
    case("new", WORKFLOW, {}, {}, State.PENDING),
    case("waits", WORKFLOW, {}, {"phase": "Pending"}, State.PENDING),
    case("runs", WORKFLOW, {}, {"phase": "Running", "progress": "1/3"}, State.RUNNING),
    case("suspended", WORKFLOW, {"suspend": True}, {"phase": "Running"}, State.SUSPENDED),
    case("succeeded", WORKFLOW, {}, {"phase": "Succeeded", "finishedAt": T2}, State.SUCCEEDED),
    case("failed", WORKFLOW, {}, {"phase": "Failed", "finishedAt": T2, "message": "child"}, State.FAILED),
    case("in error", WORKFLOW, {}, {"phase": "Error", "finishedAt": T2}, State.FAILED),
    case("ready", UNKNOWN, {}, {"conditions": conditions("Ready")}, State.RUNNING),
    case("available", UNKNOWN, {}, {"conditions": conditions("Available", "Progressing")}, State.RUNNING),
    case(
        "not ready",
        UNKNOWN,
        {},
        {"conditions": conditions("!Ready", reason="Provisioning")},
        State.PENDING,
        "Provisioning",
    ),
    case("degraded before ready", UNKNOWN, {}, {"conditions": conditions("Ready", "Degraded")}, State.DEGRADED),
    case("suspended", UNKNOWN, {"suspend": True}, {}, State.SUSPENDED),
    case("succeeded", UNKNOWN, {}, {"conditions": conditions("Succeeded", "Ready", at=T2)}, State.SUCCEEDED),
    case("completed", UNKNOWN, {}, {"conditions": conditions("Completed", at=T2)}, State.SUCCEEDED),
    case("failed before complete", UNKNOWN, {}, {"conditions": conditions("Complete", "Failed")}, State.FAILED),
    case("a phase, in any case", UNKNOWN, {}, {"phase": "RUNNING"}, State.RUNNING),
    case("a state that is a phase", UNKNOWN, {}, {"state": {"phase": "Completed"}}, State.SUCCEEDED),
    case("a phase of failure", UNKNOWN, {}, {"state": "Error"}, State.FAILED),
    case(
        "an end by phase goes before ready",
        UNKNOWN,
        {},
        {"phase": "Done", "conditions": conditions("Ready")},
        State.SUCCEEDED,
    ),
]


@pytest.mark.parametrize(("kind", "spec", "status", "state", "reason"), CASES)
def test_state_of_a_kind(kind: GroupKind, spec: Status, status: Status, state: State, reason: str) -> None:
    verdict = of_object(kind, Document(spec, status))
    assert verdict is not None
    assert verdict.state is state
    assert reason in verdict.reason
    assert verdict.reason
    assert verdict.final == (state in (State.SUCCEEDED, State.FAILED))
    if verdict.ended_at is not None:
        assert verdict.ended_at in (parse_rfc3339(T1), parse_rfc3339(T2))
    if T2 in str(status):
        assert verdict.ended_at == parse_rfc3339(T2)


def test_every_kind_with_rules_is_in_the_table() -> None:
    tested = {row.values[0] for row in CASES}
    assert set(RULES) <= tested


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        pytest.param(JOB, {"active": 2}, id="a server that does not count ready pods of a Job"),
        pytest.param(PYTORCH, {}, id="a PyTorchJob that its operator has not seen"),
        pytest.param(TRAIN_JOB, {"conditions": []}, id="a TrainJob of a version that does not count jobs"),
        pytest.param(UNKNOWN, {"progress": "12%"}, id="an unknown kind that says nothing of use"),
        pytest.param(UNKNOWN, {"phase": "Frobnicating"}, id="an unknown word"),
    ],
)
def test_where_the_object_says_nothing_the_pods_decide(kind: GroupKind, status: Status) -> None:
    assert of_object(kind, Document({}, status)) is None
    assert judge(kind, None, PodCounts(running=2)).state is State.RUNNING


@pytest.mark.parametrize(
    ("pods", "state", "reason"),
    [
        pytest.param(PodCounts(), State.SUSPENDED, "no pods", id="none"),
        pytest.param(PodCounts(pending=2), State.PENDING, "0 of 2 pods running", id="all wait"),
        pytest.param(PodCounts(running=2), State.RUNNING, "2 of 2 pods running", id="all run"),
        pytest.param(PodCounts(running=1, pending=1), State.DEGRADED, "1 of 2 pods running", id="one waits"),
        pytest.param(PodCounts(running=1, failed=1), State.DEGRADED, "1 of 2 pods running", id="one failed"),
        pytest.param(PodCounts(running=1, succeeded=1), State.RUNNING, "1 of 1 pods running", id="one is done"),
        pytest.param(PodCounts(succeeded=2), State.SUCCEEDED, "2 of 2 pods succeeded", id="all are done"),
        pytest.param(PodCounts(succeeded=1, failed=1), State.FAILED, "1 of 2 pods succeeded", id="done, but for one"),
    ],
)
def test_state_from_pods_is_never_final(pods: PodCounts, state: State, reason: str) -> None:
    verdict = judge(UNKNOWN, None, pods)
    assert (verdict.state, verdict.reason, verdict.final) == (state, reason, False)


def test_a_deletion_asked_for_shows_unless_it_has_ended() -> None:
    running = of_object(JOB, Document({}, {"active": 1, "ready": 1}))
    done = of_object(JOB, Document({}, {"conditions": conditions("Complete")}))
    assert judge(JOB, running, PodCounts(), deleting=True).state is State.TERMINATING
    assert judge(JOB, done, PodCounts(), deleting=True).state is State.SUCCEEDED


def test_an_unknown_kind_that_is_not_ready_but_has_running_pods_is_degraded() -> None:
    own = of_object(UNKNOWN, Document({}, {"conditions": conditions("!Ready", reason="Scaling")}))
    assert judge(UNKNOWN, own, PodCounts(running=1)).state is State.DEGRADED
    assert judge(UNKNOWN, own, PodCounts(pending=1)).state is State.PENDING
