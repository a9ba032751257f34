"""Deployment, ReplicaSet, StatefulSet, DaemonSet, Job. Pods are labelled and selected by `app: NAME`."""

from __future__ import annotations

from typing import Self

from bayplan.cluster.kinds import DAEMON_SET, DEPLOYMENT, JOB, REPLICA_SET, STATEFUL_SET
from bayplan.model.workloads import DaemonSet, Deployment, Job, ReplicaSet, StatefulSet
from bayplan.testing.builder import Doc, V
from bayplan.testing.pods import PodShaped, pod_template


class Workload(PodShaped[V]):
    """What keeps pods."""

    template = "spec.template"


class Replicated(Workload[V]):
    """What keeps a number of pods."""

    def replicas(self, count: int) -> Self:
        """How many."""
        return self.having("spec.replicas", count)


class DeploymentManifest(Replicated[Deployment]):
    """A Deployment."""

    def rolling(self, *, surge: int | str = "25%", unavailable: int | str = "25%") -> Self:
        """How far a rollout may deviate."""
        how = {"maxSurge": surge, "maxUnavailable": unavailable}
        return self.having("spec.strategy", {"type": "RollingUpdate", "rollingUpdate": how})


class StatefulSetManifest(Replicated[StatefulSet]):
    """A StatefulSet."""

    def in_parallel(self) -> Self:
        """Start and stop all pods at once."""
        return self.having("spec.podManagementPolicy", "Parallel")

    def partitioned(self, ordinal: int) -> Self:
        """Update only pods from this number on."""
        how = {"type": "RollingUpdate", "rollingUpdate": {"partition": ordinal}}
        return self.having("spec.updateStrategy", how)


class JobManifest(Workload[Job]):
    """A Job. Its pods are not restarted until `restarting` says otherwise."""

    def runs(self, completions: int, *, at_once: int = 1, indexed: bool = False) -> Self:
        """How many pods have to succeed, how many run at a time, and whether they are numbered."""
        mode = {"completionMode": "Indexed"} if indexed else {}
        return self._adding({"completions": completions, "parallelism": at_once, **mode}, "spec")

    def backoff_limit(self, failures: int) -> Self:
        """How many failed pods it puts up with."""
        return self.having("spec.backoffLimit", failures)

    def kept_for(self, seconds: int) -> Self:
        """Deleted so long after it finished."""
        return self.having("spec.ttlSecondsAfterFinished", seconds)


def _selecting(name: str) -> Doc:
    labels = {"app": name}
    template = {"metadata": {"labels": dict(labels)}, "spec": pod_template(name)}
    return {"selector": {"matchLabels": labels}, "template": template}


def deployment(name: str = "deployment", namespace: str = "default") -> DeploymentManifest:
    """A Deployment of one pod."""
    return DeploymentManifest.named(DEPLOYMENT, name, namespace, spec=_selecting(name))


def replica_set(name: str = "replica-set", namespace: str = "default") -> Replicated[ReplicaSet]:
    """A ReplicaSet of one pod."""
    return Replicated[ReplicaSet].named(REPLICA_SET, name, namespace, spec=_selecting(name))


def stateful_set(name: str = "stateful-set", namespace: str = "default") -> StatefulSetManifest:
    """A StatefulSet of one pod, with a service of its own name."""
    return StatefulSetManifest.named(STATEFUL_SET, name, namespace, spec={**_selecting(name), "serviceName": name})


def daemon_set(name: str = "daemon-set", namespace: str = "default") -> Workload[DaemonSet]:
    """A DaemonSet."""
    return Workload[DaemonSet].named(DAEMON_SET, name, namespace, spec=_selecting(name))


def job(name: str = "job", namespace: str = "default") -> JobManifest:
    """A Job of one pod."""
    return JobManifest.named(JOB, name, namespace, spec={"template": {"spec": pod_template(name)}}).restarting("Never")
