"""The kinds that keep pods: Deployment, ReplicaSet and its elder, StatefulSet, DaemonSet, Job, CronJob, revisions."""

from __future__ import annotations

from typing import ClassVar

import msgspec

from bayplan.model.meta import Condition, KubernetesObject, LabelSelector, ObjectMeta, ObjectReference, Wire
from bayplan.model.pods import PodTemplate


class RollingUpdate(Wire, frozen=True):
    """How far a rollout may deviate. Each kind reads its own part and has its own defaults."""

    max_unavailable: int | str | None = None
    max_surge: int | str | None = None
    partition: int = 0


class UpdateStrategy(Wire, frozen=True):
    """How pods are replaced."""

    type: str = "RollingUpdate"
    rolling_update: RollingUpdate = RollingUpdate()


class DeploymentSpec(Wire, frozen=True):
    """A Deployment as asked for."""

    replicas: int = 1
    selector: LabelSelector = LabelSelector()
    template: PodTemplate = PodTemplate()
    strategy: UpdateStrategy = UpdateStrategy()
    min_ready_seconds: int = 0
    revision_history_limit: int = 10
    paused: bool = False
    progress_deadline_seconds: int = 600


class DeploymentStatus(Wire, frozen=True):
    """What became of a Deployment."""

    observed_generation: int = 0
    replicas: int = 0
    updated_replicas: int = 0
    ready_replicas: int = 0
    available_replicas: int = 0
    unavailable_replicas: int = 0
    terminating_replicas: int | None = None
    conditions: tuple[Condition, ...] = ()
    collision_count: int | None = None


class Deployment(KubernetesObject, frozen=True):
    """Pods of which none differs, replaced bit by bit."""

    KIND: ClassVar[str] = "Deployment"
    API_VERSION: ClassVar[str] = "apps/v1"

    spec: DeploymentSpec = DeploymentSpec()
    status: DeploymentStatus = DeploymentStatus()


class ReplicaSetSpec(Wire, frozen=True):
    """A ReplicaSet as asked for."""

    replicas: int = 1
    min_ready_seconds: int = 0
    selector: LabelSelector = LabelSelector()
    template: PodTemplate = PodTemplate()


class ReplicaSetStatus(Wire, frozen=True):
    """What became of a ReplicaSet."""

    replicas: int = 0
    fully_labeled_replicas: int = 0
    ready_replicas: int = 0
    available_replicas: int = 0
    terminating_replicas: int | None = None
    observed_generation: int = 0
    conditions: tuple[Condition, ...] = ()


class ReplicaSet(KubernetesObject, frozen=True):
    """A number of like pods."""

    KIND: ClassVar[str] = "ReplicaSet"
    API_VERSION: ClassVar[str] = "apps/v1"

    spec: ReplicaSetSpec = ReplicaSetSpec()
    status: ReplicaSetStatus = ReplicaSetStatus()


class ReplicationControllerSpec(Wire, frozen=True):
    """A ReplicationController as asked for; its selector is a plain map."""

    replicas: int = 1
    min_ready_seconds: int = 0
    selector: dict[str, str] = msgspec.field(default_factory=dict)
    template: PodTemplate = PodTemplate()


class ReplicationController(KubernetesObject, frozen=True):
    """A number of like pods: what ReplicaSets grew from."""

    KIND: ClassVar[str] = "ReplicationController"

    spec: ReplicationControllerSpec = ReplicationControllerSpec()
    status: ReplicaSetStatus = ReplicaSetStatus()


class Ordinals(Wire, frozen=True):
    """Where the numbering of a StatefulSet's pods begins."""

    start: int = 0


class ClaimRetentionPolicy(Wire, frozen=True):
    """What happens to a StatefulSet's claims: Retain or Delete."""

    when_deleted: str = "Retain"
    when_scaled: str = "Retain"


class ClaimTemplate(Wire, frozen=True):
    """What a StatefulSet stamps its claims from; the spec stays bytes."""

    metadata: ObjectMeta = ObjectMeta()
    spec: msgspec.Raw = msgspec.Raw(b"{}")


class StatefulSetSpec(Wire, frozen=True):
    """A StatefulSet as asked for."""

    replicas: int = 1
    selector: LabelSelector = LabelSelector()
    template: PodTemplate = PodTemplate()
    volume_claim_templates: tuple[ClaimTemplate, ...] = ()
    service_name: str = ""
    pod_management_policy: str = "OrderedReady"
    update_strategy: UpdateStrategy = UpdateStrategy()
    revision_history_limit: int = 10
    min_ready_seconds: int = 0
    persistent_volume_claim_retention_policy: ClaimRetentionPolicy = ClaimRetentionPolicy()
    ordinals: Ordinals = Ordinals()


class StatefulSetStatus(Wire, frozen=True):
    """What became of a StatefulSet."""

    observed_generation: int = 0
    replicas: int = 0
    ready_replicas: int = 0
    current_replicas: int = 0
    updated_replicas: int = 0
    current_revision: str = ""
    update_revision: str = ""
    collision_count: int | None = None
    conditions: tuple[Condition, ...] = ()
    available_replicas: int = 0


class StatefulSet(KubernetesObject, frozen=True):
    """Numbered pods that keep their name and storage."""

    KIND: ClassVar[str] = "StatefulSet"
    API_VERSION: ClassVar[str] = "apps/v1"

    spec: StatefulSetSpec = StatefulSetSpec()
    status: StatefulSetStatus = StatefulSetStatus()


class DaemonSetSpec(Wire, frozen=True):
    """A DaemonSet as asked for."""

    selector: LabelSelector = LabelSelector()
    template: PodTemplate = PodTemplate()
    update_strategy: UpdateStrategy = UpdateStrategy()
    min_ready_seconds: int = 0
    revision_history_limit: int = 10


class DaemonSetStatus(Wire, frozen=True):
    """What became of a DaemonSet."""

    current_number_scheduled: int = 0
    number_misscheduled: int = 0
    desired_number_scheduled: int = 0
    number_ready: int = 0
    observed_generation: int = 0
    updated_number_scheduled: int = 0
    number_available: int = 0
    number_unavailable: int = 0
    collision_count: int | None = None
    conditions: tuple[Condition, ...] = ()


class DaemonSet(KubernetesObject, frozen=True):
    """A pod on every node that suits it."""

    KIND: ClassVar[str] = "DaemonSet"
    API_VERSION: ClassVar[str] = "apps/v1"

    spec: DaemonSetSpec = DaemonSetSpec()
    status: DaemonSetStatus = DaemonSetStatus()


class ControllerRevision(KubernetesObject, frozen=True):
    """A template that a StatefulSet or DaemonSet once had."""

    KIND: ClassVar[str] = "ControllerRevision"
    API_VERSION: ClassVar[str] = "apps/v1"

    revision: int = 0
    data: msgspec.Raw = msgspec.Raw()


class OnExitCodes(Wire, frozen=True):
    """Exit codes that a failure rule looks at."""

    container_name: str | None = None
    operator: str = ""
    values: tuple[int, ...] = ()


class OnPodCondition(Wire, frozen=True):
    """A pod condition that a failure rule looks at."""

    type: str = ""
    status: str = "True"


class PodFailurePolicyRule(Wire, frozen=True):
    """What a failed pod means for its Job: action FailJob, FailIndex, Ignore or Count."""

    action: str = ""
    on_exit_codes: OnExitCodes | None = None
    on_pod_conditions: tuple[OnPodCondition, ...] = ()


class PodFailurePolicy(Wire, frozen=True):
    """Rules in order; the first that fits counts."""

    rules: tuple[PodFailurePolicyRule, ...] = ()


class SuccessPolicyRule(Wire, frozen=True):
    """Which indexes, or how many of them, make the whole Job a success."""

    succeeded_indexes: str | None = None
    succeeded_count: int | None = None


class SuccessPolicy(Wire, frozen=True):
    """Rules in order; the first that fits counts."""

    rules: tuple[SuccessPolicyRule, ...] = ()


class JobSpec(Wire, frozen=True):
    """A Job as asked for."""

    parallelism: int = 1
    completions: int | None = None
    active_deadline_seconds: int | None = None
    pod_failure_policy: PodFailurePolicy | None = None
    success_policy: SuccessPolicy | None = None
    backoff_limit: int = 6
    backoff_limit_per_index: int | None = None
    max_failed_indexes: int | None = None
    selector: LabelSelector | None = None
    manual_selector: bool = False
    template: PodTemplate = PodTemplate()
    ttl_seconds_after_finished: int | None = None
    completion_mode: str = "NonIndexed"
    suspend: bool = False
    pod_replacement_policy: str = "TerminatingOrFailed"
    managed_by: str | None = None


class UncountedTerminatedPods(Wire, frozen=True):
    """Finished pods (uids) that are in neither count yet."""

    succeeded: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()


class JobStatus(Wire, frozen=True):
    """What became of a Job."""

    conditions: tuple[Condition, ...] = ()
    start_time: str | None = None
    completion_time: str | None = None
    active: int = 0
    succeeded: int = 0
    failed: int = 0
    terminating: int | None = None
    completed_indexes: str = ""
    failed_indexes: str | None = None
    uncounted_terminated_pods: UncountedTerminatedPods | None = None
    ready: int | None = None


class Job(KubernetesObject, frozen=True):
    """Pods that run to their end."""

    KIND: ClassVar[str] = "Job"
    API_VERSION: ClassVar[str] = "batch/v1"

    spec: JobSpec = JobSpec()
    status: JobStatus = JobStatus()


class JobTemplate(Wire, frozen=True):
    """What a CronJob stamps its Jobs from; the spec stays bytes."""

    metadata: ObjectMeta = ObjectMeta()
    spec: msgspec.Raw = msgspec.Raw(b"{}")


class CronJobSpec(Wire, frozen=True):
    """A CronJob as asked for."""

    schedule: str = ""
    time_zone: str | None = None
    starting_deadline_seconds: int | None = None
    concurrency_policy: str = "Allow"
    suspend: bool = False
    job_template: JobTemplate = JobTemplate()
    successful_jobs_history_limit: int = 3
    failed_jobs_history_limit: int = 1


class CronJobStatus(Wire, frozen=True):
    """What became of a CronJob."""

    active: tuple[ObjectReference, ...] = ()
    last_schedule_time: str | None = None
    last_successful_time: str | None = None


class CronJob(KubernetesObject, frozen=True):
    """Jobs by the clock."""

    KIND: ClassVar[str] = "CronJob"
    API_VERSION: ClassVar[str] = "batch/v1"

    spec: CronJobSpec = CronJobSpec()
    status: CronJobStatus = CronJobStatus()
