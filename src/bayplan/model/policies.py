"""The kinds around the pods: namespaces, budgets, quotas, priorities, leases, events, services, storage."""

from __future__ import annotations

from typing import ClassVar

import msgspec

from bayplan.model.affinity import NodeSelector
from bayplan.model.meta import Condition, KubernetesObject, LabelSelector, ObjectReference, ResourceList, Wire


class NamespaceSpec(Wire, frozen=True):
    """What must be done before a namespace is gone."""

    finalizers: tuple[str, ...] = ()


class NamespaceStatus(Wire, frozen=True):
    """Active or Terminating."""

    phase: str = ""
    conditions: tuple[Condition, ...] = ()


class Namespace(KubernetesObject, frozen=True):
    """A namespace."""

    KIND: ClassVar[str] = "Namespace"

    spec: NamespaceSpec = NamespaceSpec()
    status: NamespaceStatus = NamespaceStatus()


class PodDisruptionBudgetSpec(Wire, frozen=True):
    """How many pods must stay, or may go. A missing selector selects nothing, an empty one everything."""

    min_available: int | str | None = None
    max_unavailable: int | str | None = None
    selector: LabelSelector | None = None
    unhealthy_pod_eviction_policy: str | None = None


class PodDisruptionBudgetStatus(Wire, frozen=True):
    """How many may go now. `disrupted_pods`: names of pods whose eviction is granted, and when it was."""

    observed_generation: int = 0
    disrupted_pods: dict[str, str] = msgspec.field(default_factory=dict)
    disruptions_allowed: int = 0
    current_healthy: int = 0
    desired_healthy: int = 0
    expected_pods: int = 0
    conditions: tuple[Condition, ...] = ()


class PodDisruptionBudget(KubernetesObject, frozen=True):
    """A limit on voluntary disruption."""

    KIND: ClassVar[str] = "PodDisruptionBudget"
    API_VERSION: ClassVar[str] = "policy/v1"

    spec: PodDisruptionBudgetSpec = PodDisruptionBudgetSpec()
    status: PodDisruptionBudgetStatus = PodDisruptionBudgetStatus()


class ScopedResourceSelectorRequirement(Wire, frozen=True):
    """A scope, narrowed down by values."""

    scope_name: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()


class ScopeSelector(Wire, frozen=True):
    """Scopes that must all fit."""

    match_expressions: tuple[ScopedResourceSelectorRequirement, ...] = ()


class ResourceQuotaSpec(Wire, frozen=True):
    """How much a namespace may use, and of which objects."""

    hard: ResourceList = msgspec.field(default_factory=dict)
    scopes: tuple[str, ...] = ()
    scope_selector: ScopeSelector | None = None


class ResourceQuotaStatus(Wire, frozen=True):
    """How much it uses."""

    hard: ResourceList = msgspec.field(default_factory=dict)
    used: ResourceList = msgspec.field(default_factory=dict)


class ResourceQuota(KubernetesObject, frozen=True):
    """A namespace's allowance."""

    KIND: ClassVar[str] = "ResourceQuota"

    spec: ResourceQuotaSpec = ResourceQuotaSpec()
    status: ResourceQuotaStatus = ResourceQuotaStatus()


class PriorityClass(KubernetesObject, frozen=True):
    """A named priority."""

    KIND: ClassVar[str] = "PriorityClass"
    API_VERSION: ClassVar[str] = "scheduling.k8s.io/v1"

    value: int = 0
    global_default: bool = False
    description: str = ""
    preemption_policy: str = "PreemptLowerPriority"


class EventSource(Wire, frozen=True):
    """Who reports, in the older form."""

    component: str = ""
    host: str = ""


class EventSeries(Wire, frozen=True):
    """How often it happened, and when last."""

    count: int = 0
    last_observed_time: str | None = None


class Event(KubernetesObject, frozen=True):
    """Something that happened to an object."""

    KIND: ClassVar[str] = "Event"

    involved_object: ObjectReference = ObjectReference()
    reason: str = ""
    message: str = ""
    source: EventSource = EventSource()
    first_timestamp: str | None = None
    last_timestamp: str | None = None
    count: int = 0
    type: str = ""
    event_time: str | None = None
    series: EventSeries | None = None
    action: str = ""
    related: ObjectReference | None = None
    reporting_component: str = ""
    reporting_instance: str = ""


class LeaseSpec(Wire, frozen=True):
    """Who holds it, and until when."""

    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: int | None = None


class Lease(KubernetesObject, frozen=True):
    """A lock, or a node's heartbeat."""

    KIND: ClassVar[str] = "Lease"
    API_VERSION: ClassVar[str] = "coordination.k8s.io/v1"

    spec: LeaseSpec = LeaseSpec()


class ServicePort(Wire, frozen=True):
    """A port of a Service."""

    name: str = ""
    protocol: str = ""
    port: int = 0
    target_port: int | str = 0
    node_port: int = 0


class ServiceSpec(Wire, frozen=True):
    """Which pods are behind a name."""

    type: str = ""
    selector: dict[str, str] = msgspec.field(default_factory=dict)
    cluster_ip: str = msgspec.field(name="clusterIP", default="")
    ports: tuple[ServicePort, ...] = ()


class Service(KubernetesObject, frozen=True):
    """A name for a set of pods."""

    KIND: ClassVar[str] = "Service"

    spec: ServiceSpec = ServiceSpec()


class ConfigMap(KubernetesObject, frozen=True):
    """Settings of others; only that it exists matters here."""

    KIND: ClassVar[str] = "ConfigMap"


class VolumeResources(Wire, frozen=True):
    """How much storage a claim asks for."""

    requests: ResourceList = msgspec.field(default_factory=dict)


class PersistentVolumeClaimSpec(Wire, frozen=True):
    """Storage as asked for."""

    access_modes: tuple[str, ...] = ()
    selector: LabelSelector | None = None
    resources: VolumeResources = VolumeResources()
    volume_name: str = ""
    storage_class_name: str | None = None
    volume_mode: str = "Filesystem"
    volume_attributes_class_name: str | None = None


class PersistentVolumeClaimStatus(Wire, frozen=True):
    """What was given."""

    phase: str = ""
    capacity: ResourceList = msgspec.field(default_factory=dict)


class PersistentVolumeClaim(KubernetesObject, frozen=True):
    """A claim on storage."""

    KIND: ClassVar[str] = "PersistentVolumeClaim"

    spec: PersistentVolumeClaimSpec = PersistentVolumeClaimSpec()
    status: PersistentVolumeClaimStatus = PersistentVolumeClaimStatus()


class VolumeNodeAffinity(Wire, frozen=True):
    """Which nodes can reach a volume."""

    required: NodeSelector | None = None


class CSIVolumeSource(Wire, frozen=True):
    """A volume of a CSI driver, and the name that the driver knows it by."""

    driver: str = ""
    volume_handle: str = ""


class PersistentVolumeSpec(Wire, frozen=True):
    """Storage as it is."""

    capacity: ResourceList = msgspec.field(default_factory=dict)
    access_modes: tuple[str, ...] = ()
    claim_ref: ObjectReference | None = None
    storage_class_name: str = ""
    volume_mode: str = "Filesystem"
    volume_attributes_class_name: str | None = None
    csi: CSIVolumeSource | None = None
    node_affinity: VolumeNodeAffinity | None = None


class PersistentVolumeStatus(Wire, frozen=True):
    """Available, Bound, Released or Failed."""

    phase: str = ""


class PersistentVolume(KubernetesObject, frozen=True):
    """A piece of storage."""

    KIND: ClassVar[str] = "PersistentVolume"

    spec: PersistentVolumeSpec = PersistentVolumeSpec()
    status: PersistentVolumeStatus = PersistentVolumeStatus()
