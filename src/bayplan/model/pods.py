"""Pods and containers: what was asked for, and what became of it."""

from __future__ import annotations

from typing import ClassVar

import msgspec

from bayplan.model.affinity import Affinity, TopologySpreadConstraint
from bayplan.model.meta import Condition, KubernetesObject, ObjectMeta, ResourceList, Wire
from bayplan.model.taints import Toleration


class ResourceClaim(Wire, frozen=True):
    """A claim of the pod that a container uses."""

    name: str = ""
    request: str = ""


class ResourceRequirements(Wire, frozen=True):
    """Requests and limits, as quantity texts."""

    limits: ResourceList = msgspec.field(default_factory=dict)
    requests: ResourceList = msgspec.field(default_factory=dict)
    claims: tuple[ResourceClaim, ...] = ()


class ContainerPort(Wire, frozen=True):
    """A port that a container listens on; with `host_port` also on the node."""

    name: str = ""
    container_port: int = 0
    host_port: int = 0
    protocol: str = ""
    host_ip: str = msgspec.field(name="hostIP", default="")


class ExecAction(Wire, frozen=True):
    """A command run in the container."""

    command: tuple[str, ...] = ()


class HTTPGetAction(Wire, frozen=True):
    """A request to the container."""

    path: str = ""
    port: int | str = 0
    host: str = ""
    scheme: str = ""


class TCPSocketAction(Wire, frozen=True):
    """A connection to the container."""

    port: int | str = 0
    host: str = ""


class GRPCAction(Wire, frozen=True):
    """A health call to the container."""

    port: int = 0
    service: str = ""


class SleepAction(Wire, frozen=True):
    """A pause."""

    seconds: int = 0


class Probe(Wire, frozen=True):
    """How a container's state is found out, and how often one asks."""

    exec: ExecAction | None = None
    http_get: HTTPGetAction | None = None
    tcp_socket: TCPSocketAction | None = None
    grpc: GRPCAction | None = None
    initial_delay_seconds: int = 0
    timeout_seconds: int = 1
    period_seconds: int = 10
    success_threshold: int = 1
    failure_threshold: int = 3
    termination_grace_period_seconds: int | None = None


class LifecycleHandler(Wire, frozen=True):
    """What runs after a start or before a stop."""

    exec: ExecAction | None = None
    http_get: HTTPGetAction | None = None
    tcp_socket: TCPSocketAction | None = None
    sleep: SleepAction | None = None


class Lifecycle(Wire, frozen=True):
    """A container's hooks."""

    post_start: LifecycleHandler | None = None
    pre_stop: LifecycleHandler | None = None
    stop_signal: str | None = None


class RestartRuleOnExitCodes(Wire, frozen=True):
    """Exit codes that a restart rule looks at: operator In or NotIn."""

    operator: str = ""
    values: tuple[int, ...] = ()


class ContainerRestartRule(Wire, frozen=True):
    """An exception from a container's restart policy."""

    action: str = ""
    exit_codes: RestartRuleOnExitCodes | None = None


class Container(Wire, frozen=True):
    """A container as asked for. `restart_policy` Always on an init container makes it a sidecar."""

    name: str = ""
    image: str = ""
    command: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    ports: tuple[ContainerPort, ...] = ()
    resources: ResourceRequirements = ResourceRequirements()
    restart_policy: str | None = None
    restart_policy_rules: tuple[ContainerRestartRule, ...] = ()
    liveness_probe: Probe | None = None
    readiness_probe: Probe | None = None
    startup_probe: Probe | None = None
    lifecycle: Lifecycle | None = None
    image_pull_policy: str = ""

    @property
    def is_sidecar(self) -> bool:
        """For an init container: whether it keeps running beside the main containers."""
        return self.restart_policy == "Always"


class Named(Wire, frozen=True):
    """A thing that is its name: a scheduling gate, an operating system."""

    name: str = ""


class ReadinessGate(Wire, frozen=True):
    """A condition that someone else sets and without which the pod is not ready."""

    condition_type: str = ""


class ClaimVolume(Wire, frozen=True):
    """A volume that is a PersistentVolumeClaim."""

    claim_name: str = ""
    read_only: bool = False


class ImageVolume(Wire, frozen=True):
    """A volume that is an image."""

    reference: str = ""


class EphemeralVolume(Wire, frozen=True):
    """A volume that gets a PersistentVolumeClaim of its own, named `<pod>-<volume>`."""


class GCEDisk(Wire, frozen=True):
    """A disk of Google's."""

    pd_name: str = ""
    read_only: bool = False


class AWSDisk(Wire, frozen=True):
    """A disk of Amazon's."""

    volume_id: str = msgspec.field(name="volumeID", default="")


class ISCSIDisk(Wire, frozen=True):
    """A disk over iSCSI."""

    iqn: str = ""
    read_only: bool = False


class RBDImage(Wire, frozen=True):
    """An image in Ceph."""

    monitors: tuple[str, ...] = ()
    pool: str = "rbd"
    image: str = ""
    read_only: bool = False


class Volume(Wire, frozen=True):
    """A volume; of its sources claims and images are read, and the disks that must not be attached twice."""

    name: str = ""
    image: ImageVolume | None = None
    persistent_volume_claim: ClaimVolume | None = None
    ephemeral: EphemeralVolume | None = None
    gce_persistent_disk: GCEDisk | None = None
    aws_elastic_block_store: AWSDisk | None = None
    iscsi: ISCSIDisk | None = None
    rbd: RBDImage | None = None


class PodResourceClaim(Wire, frozen=True):
    """A ResourceClaim that the pod uses, or the template to make one from."""

    name: str = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class PodSpec(Wire, frozen=True):
    """A pod as asked for."""

    node_name: str = ""
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    volumes: tuple[Volume, ...] = ()
    restart_policy: str = "Always"
    termination_grace_period_seconds: int = 30
    active_deadline_seconds: int | None = None
    node_selector: dict[str, str] = msgspec.field(default_factory=dict)
    affinity: Affinity | None = None
    tolerations: tuple[Toleration, ...] = ()
    topology_spread_constraints: tuple[TopologySpreadConstraint, ...] = ()
    scheduler_name: str = "default-scheduler"
    scheduling_gates: tuple[Named, ...] = ()
    readiness_gates: tuple[ReadinessGate, ...] = ()
    priority: int = 0
    priority_class_name: str = ""
    preemption_policy: str = "PreemptLowerPriority"
    overhead: ResourceList = msgspec.field(default_factory=dict)
    resources: ResourceRequirements | None = None
    resource_claims: tuple[PodResourceClaim, ...] = ()
    runtime_class_name: str | None = None
    service_account_name: str = ""
    host_network: bool = False
    host_users: bool | None = None
    hostname: str = ""
    subdomain: str = ""
    os: Named | None = None


class ContainerStateWaiting(Wire, frozen=True):
    """Not running yet, or not again yet."""

    reason: str = ""
    message: str = ""


class ContainerStateRunning(Wire, frozen=True):
    """Running."""

    started_at: str | None = None


class ContainerStateTerminated(Wire, frozen=True):
    """Over."""

    exit_code: int = 0
    signal: int = 0
    reason: str = ""
    message: str = ""
    started_at: str | None = None
    finished_at: str | None = None
    container_id: str = msgspec.field(name="containerID", default="")


class ContainerState(Wire, frozen=True):
    """One of the three; none of them means waiting."""

    waiting: ContainerStateWaiting | None = None
    running: ContainerStateRunning | None = None
    terminated: ContainerStateTerminated | None = None


class ContainerStatus(Wire, frozen=True):
    """What became of a container."""

    name: str = ""
    state: ContainerState = ContainerState()
    last_state: ContainerState = ContainerState()
    ready: bool = False
    restart_count: int = 0
    image: str = ""
    image_id: str = msgspec.field(name="imageID", default="")
    container_id: str = msgspec.field(name="containerID", default="")
    started: bool | None = None
    allocated_resources: ResourceList = msgspec.field(default_factory=dict)
    resources: ResourceRequirements | None = None


class PodStatus(Wire, frozen=True):
    """What became of a pod."""

    phase: str = ""
    conditions: tuple[Condition, ...] = ()
    observed_generation: int = 0
    message: str = ""
    reason: str = ""
    nominated_node_name: str = ""
    host_ip: str = msgspec.field(name="hostIP", default="")
    pod_ip: str = msgspec.field(name="podIP", default="")
    start_time: str | None = None
    init_container_statuses: tuple[ContainerStatus, ...] = ()
    container_statuses: tuple[ContainerStatus, ...] = ()
    qos_class: str = ""
    allocated_resources: ResourceList = msgspec.field(default_factory=dict)
    resources: ResourceRequirements | None = None


class Pod(KubernetesObject, frozen=True):
    """A pod."""

    KIND: ClassVar[str] = "Pod"

    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    @property
    def is_terminal(self) -> bool:
        """Whether it has run its course: nothing of it holds resources any more."""
        return self.status.phase in ("Succeeded", "Failed")


class PodTemplate(Wire, frozen=True):
    """What a workload stamps its pods from. The spec stays bytes, so a pod is made without reading it."""

    metadata: ObjectMeta = ObjectMeta()
    spec: msgspec.Raw = msgspec.Raw(b"{}")
