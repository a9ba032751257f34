"""The rules of the kinds that are known, one table. A kind is its group and name: versions tell the same story.

Sources: the API types of Kubernetes 1.36, JobSet v1alpha2, LeaderWorkerSet v1, KubeRay v1, Kubeflow's training operator
(kubeflow.org v1, MPI v2beta1) and trainer (v1alpha1), Argo Workflows v1alpha1.
"""

from __future__ import annotations

from typing import NamedTuple

from bayplan.ledger.status.document import Document
from bayplan.ledger.status.rules import Rule, ending, part, said, serving, switched, total, troubled, word
from bayplan.ledger.status.verdict import State, Verdict


class GroupKind(NamedTuple):
    """A kind in whatever version: `apps`, `Deployment`."""

    group: str
    kind: str

    def __str__(self) -> str:
        return f"{self.kind}.{self.group}" if self.group else self.kind


def _job(doc: Document) -> Verdict | None:
    """A Job that has not ended: by its active pods. Servers that do not count ready ones leave it to the pods."""
    active, ready = doc.number("status.active") or 0, doc.number("status.ready")
    if active <= 0:
        failed = doc.number("status.failed") or 0
        return Verdict(State.PENDING, f"no active pods, {failed} failed" if failed else "no active pods")
    return None if ready is None else part(ready, active, "active pods")


def _job_set(doc: Document) -> Verdict:
    """A JobSet that has not ended: jobs that are ready or done, of those wanted."""
    wanted = total(doc.items("spec.replicatedJobs"), "replicas", default=1)
    jobs = doc.items("status.replicatedJobsStatus")
    ready = total(jobs, "ready")
    if not ready:
        return Verdict(State.PENDING, f"0 of {wanted} jobs ready")
    return part(ready + total(jobs, "succeeded"), wanted, "jobs")


def _train_job(doc: Document) -> Verdict | None:
    """A TrainJob that has not ended, where it counts its jobs; the elder ones leave it to the pods."""
    jobs = doc.items("status.jobsStatus")
    if not jobs:
        return None
    active, ready = total(jobs, "active"), total(jobs, "ready")
    return part(ready, active, "active jobs") if active or ready else Verdict(State.PENDING, "no active jobs")


_RAY_ENDS = {"SUCCEEDED": State.SUCCEEDED, "FAILED": State.FAILED, "STOPPED": State.FAILED}


def _ray_job_complete(doc: Document) -> Verdict | None:
    """`Complete` says that the job has ended; how, its own status says."""
    if doc.text("status.jobDeploymentStatus") != "Complete":
        return None
    how = doc.text("status.jobStatus")
    reason = ": ".join(part for part in (how or "Complete", doc.text("status.message")) if part)
    return ending(doc, _RAY_ENDS.get(how, State.SUCCEEDED), reason, "status.endTime", None)


def _ray_job_running(doc: Document) -> Verdict | None:
    """Its cluster runs; it does so itself once its submission was taken."""
    if doc.text("status.jobDeploymentStatus") != "Running":
        return None
    how = doc.text("status.jobStatus")
    return Verdict(State.PENDING if how in ("", "PENDING") else State.RUNNING, how or "not submitted")


def _ray_cluster_lame(doc: Document) -> Verdict | None:
    """A cluster that was once complete says so for ever; whether it still is, its head and its workers say."""
    if doc.says("RayClusterProvisioned") != "True" and doc.text("status.state") != "ready":
        return None
    if doc.says("HeadPodReady") == "False":
        return Verdict(State.DEGRADED, doc.why("HeadPodReady"))
    wanted, ready = doc.number("status.desiredWorkerReplicas") or 0, doc.number("status.readyWorkerReplicas") or 0
    return Verdict(State.DEGRADED, f"{ready} of {wanted} workers ready") if ready < wanted else None


_KUBEFLOW: tuple[Rule, ...] = (
    said("Succeeded", State.SUCCEEDED, ended="status.completionTime"),
    said("Failed", State.FAILED, ended="status.completionTime"),
    said("Suspended", State.SUSPENDED),
    said("Restarting", State.DEGRADED),
    said("Running", State.RUNNING),
    said("Created", State.PENDING),
)

_REPLICAS = serving("spec.replicas", "status.readyReplicas")
_REPLICA_FAILURE = troubled("ReplicaFailure", "status.readyReplicas")

RULES: dict[GroupKind, tuple[Rule, ...]] = {
    GroupKind("batch", "Job"): (
        said("Complete", State.SUCCEEDED, ended="status.completionTime"),
        said("Failed", State.FAILED),
        said("Suspended", State.SUSPENDED),
        said("FailureTarget", State.DEGRADED),  # decided, but its pods still go
        said("SuccessCriteriaMet", State.RUNNING),
        _job,
    ),
    GroupKind("batch", "CronJob"): (
        switched("spec.suspend"),
        lambda doc: Verdict(State.RUNNING, f"{len(jobs)} active") if (jobs := doc.items("status.active")) else None,
        lambda _: Verdict(State.PENDING, "waits for its time"),
    ),
    GroupKind("apps", "Deployment"): (
        lambda doc: _REPLICAS(doc) if doc.number("spec.replicas") == 0 else None,
        troubled("Progressing", "status.readyReplicas", status="False"),
        _REPLICA_FAILURE,
        _REPLICAS,
    ),
    GroupKind("apps", "StatefulSet"): (_REPLICAS,),
    GroupKind("apps", "ReplicaSet"): (_REPLICA_FAILURE, _REPLICAS),
    GroupKind("", "ReplicationController"): (_REPLICA_FAILURE, _REPLICAS),
    GroupKind("apps", "DaemonSet"): (
        serving("status.desiredNumberScheduled", "status.numberReady", default=None, unit="nodes"),
    ),
    GroupKind("leaderworkerset.x-k8s.io", "LeaderWorkerSet"): (
        serving("spec.replicas", "status.readyReplicas", unit="groups"),
    ),
    GroupKind("jobset.x-k8s.io", "JobSet"): (
        said("Completed", State.SUCCEEDED),
        said("Failed", State.FAILED),
        word("status.terminalState", {"Completed": State.SUCCEEDED, "Failed": State.FAILED}),
        said("Suspended", State.SUSPENDED),
        said("StartupPolicyInProgress", State.PENDING),
        _job_set,
    ),
    GroupKind("ray.io", "RayJob"): (
        _ray_job_complete,
        word(
            "status.jobDeploymentStatus",
            {
                "Failed": State.FAILED,
                "ValidationFailed": State.FAILED,
                "Suspending": State.SUSPENDED,
                "Suspended": State.SUSPENDED,
                "Retrying": State.PENDING,
                "Initializing": State.PENDING,
                "Waiting": State.PENDING,
                "Scheduling": State.PENDING,
                "Scheduled": State.PENDING,
            },
            ended="status.endTime",
        ),
        _ray_job_running,
        switched("spec.suspend"),
        lambda _: Verdict(State.PENDING, "not observed yet"),
    ),
    GroupKind("ray.io", "RayCluster"): (
        said("RayClusterSuspended", State.SUSPENDED),
        said("RayClusterSuspending", State.SUSPENDED),
        said("ReplicaFailure", State.DEGRADED),
        _ray_cluster_lame,
        word(
            "status.state",
            {"ready": State.RUNNING, "suspended": State.SUSPENDED, "failed": State.DEGRADED},  # it may recover
            why="status.reason",
        ),
        said("RayClusterProvisioned", State.RUNNING),
        switched("spec.suspend"),
        lambda doc: Verdict(State.PENDING, doc.why("HeadPodReady") if doc.says("HeadPodReady") else "not ready yet"),
    ),
    **{
        GroupKind("kubeflow.org", kind): _KUBEFLOW
        for kind in ("PyTorchJob", "TFJob", "MPIJob", "XGBoostJob", "PaddleJob", "JAXJob")
    },
    GroupKind("trainer.kubeflow.org", "TrainJob"): (
        said("Complete", State.SUCCEEDED),
        said("Failed", State.FAILED),
        said("Suspended", State.SUSPENDED),
        _train_job,
    ),
    GroupKind("argoproj.io", "Workflow"): (
        word(
            "status.phase",
            {"Succeeded": State.SUCCEEDED, "Failed": State.FAILED, "Error": State.FAILED},
            ended="status.finishedAt",
        ),
        switched("spec.suspend"),
        word("status.phase", {"Running": State.RUNNING, "Pending": State.PENDING}),
        lambda _: Verdict(State.PENDING, "not observed yet"),
    ),
}
"""Read from the top; the first that speaks decides."""

LIGHT = frozenset({GroupKind("apps", "ReplicaSet"), GroupKind("", "Pod")})
"""Kinds that are nearly always somebody's: their metadata suffice while none of them stands at the top."""
