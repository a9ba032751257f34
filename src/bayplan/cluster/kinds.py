"""The kinds of objects that bayplan knows by name: a table, as `kubectl api-resources` prints it."""

from __future__ import annotations

import msgspec

from bayplan.model.errors import NotFound


class Kind(msgspec.Struct, frozen=True):
    """One resource type: what it is called, where it lives, what hangs below it."""

    group: str
    version: str
    name: str
    plural: str
    namespaced: bool
    short: tuple[str, ...] = ()
    subresources: tuple[str, ...] = ()

    @property
    def api_version(self) -> str:
        """`v1` for the core group, `apps/v1` for others."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def qualified(self) -> str:
        """`Pod`, `Deployment.apps`: as error messages name a kind."""
        return f"{self.name}.{self.group}" if self.group else self.name

    @property
    def resource(self) -> str:
        """`pods`, `deployments.apps`: as error messages name a resource."""
        return f"{self.plural}.{self.group}" if self.group else self.plural


def _kind(api: str, name: str, plural: str, short: str = "", subresources: str = "", *, cluster: bool = False) -> Kind:
    group, _, version = api.rpartition("/")
    return Kind(group, version, name, plural, not cluster, tuple(short.split()), tuple(subresources.split()))


POD = _kind("v1", "Pod", "pods", "po", "status binding eviction log resize")
NODE = _kind("v1", "Node", "nodes", "no", "status", cluster=True)
NAMESPACE = _kind("v1", "Namespace", "namespaces", "ns", "status finalize", cluster=True)
SERVICE = _kind("v1", "Service", "services", "svc", "status")
CONFIG_MAP = _kind("v1", "ConfigMap", "configmaps", "cm")
SECRET = _kind("v1", "Secret", "secrets")
SERVICE_ACCOUNT = _kind("v1", "ServiceAccount", "serviceaccounts", "sa")
PERSISTENT_VOLUME = _kind("v1", "PersistentVolume", "persistentvolumes", "pv", "status", cluster=True)
PERSISTENT_VOLUME_CLAIM = _kind("v1", "PersistentVolumeClaim", "persistentvolumeclaims", "pvc", "status")
RESOURCE_QUOTA = _kind("v1", "ResourceQuota", "resourcequotas", "quota", "status")
LIMIT_RANGE = _kind("v1", "LimitRange", "limitranges", "limits")
EVENT = _kind("v1", "Event", "events", "ev")
REPLICATION_CONTROLLER = _kind("v1", "ReplicationController", "replicationcontrollers", "rc", "status scale")
DEPLOYMENT = _kind("apps/v1", "Deployment", "deployments", "deploy", "status scale")
REPLICA_SET = _kind("apps/v1", "ReplicaSet", "replicasets", "rs", "status scale")
STATEFUL_SET = _kind("apps/v1", "StatefulSet", "statefulsets", "sts", "status scale")
DAEMON_SET = _kind("apps/v1", "DaemonSet", "daemonsets", "ds", "status")
CONTROLLER_REVISION = _kind("apps/v1", "ControllerRevision", "controllerrevisions")
JOB = _kind("batch/v1", "Job", "jobs", "", "status")
CRON_JOB = _kind("batch/v1", "CronJob", "cronjobs", "cj", "status")
POD_DISRUPTION_BUDGET = _kind("policy/v1", "PodDisruptionBudget", "poddisruptionbudgets", "pdb", "status")
HORIZONTAL_POD_AUTOSCALER = _kind(
    "autoscaling/v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers", "hpa", "status"
)
PRIORITY_CLASS = _kind("scheduling.k8s.io/v1", "PriorityClass", "priorityclasses", "pc", cluster=True)
LEASE = _kind("coordination.k8s.io/v1", "Lease", "leases")
ENDPOINT_SLICE = _kind("discovery.k8s.io/v1", "EndpointSlice", "endpointslices")
STORAGE_CLASS = _kind("storage.k8s.io/v1", "StorageClass", "storageclasses", "sc", cluster=True)
RUNTIME_CLASS = _kind("node.k8s.io/v1", "RuntimeClass", "runtimeclasses", cluster=True)
RESOURCE_CLAIM = _kind("resource.k8s.io/v1", "ResourceClaim", "resourceclaims", "", "status")
RESOURCE_CLAIM_TEMPLATE = _kind("resource.k8s.io/v1", "ResourceClaimTemplate", "resourceclaimtemplates")
RESOURCE_SLICE = _kind("resource.k8s.io/v1", "ResourceSlice", "resourceslices", cluster=True)
DEVICE_CLASS = _kind("resource.k8s.io/v1", "DeviceClass", "deviceclasses", cluster=True)

KINDS: dict[str, Kind] = {kind.name: kind for kind in list(globals().values()) if isinstance(kind, Kind)}
"""Every known kind by its name, `Pod`. Names are unique among the kinds modelled here."""

_BY_WORD: dict[str, Kind] = {
    word: kind
    for kind in KINDS.values()
    for word in (kind.name.lower(), kind.plural, kind.resource, kind.qualified.lower(), *kind.short)
}


def kind_named(word: str) -> Kind:
    """The kind a person means by `po`, `pods`, `Pod` or `deployments.apps`. Raises NotFound."""
    try:
        return _BY_WORD[word.lower()]
    except KeyError:
        raise NotFound(f'the server doesn\'t have a resource type "{word}"') from None
