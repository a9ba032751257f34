"""The kinds of objects that bayplan knows by name: a table, as `kubectl api-resources` prints it.

`KINDS` are those that every cluster has. What a cluster's own definitions (CRDs) add stands in its `KindRegistry`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from bayplan.model.errors import NotFound


class Kind(msgspec.Struct, frozen=True, cache_hash=True):
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
CUSTOM_RESOURCE_DEFINITION = _kind(
    "apiextensions.k8s.io/v1",
    "CustomResourceDefinition",
    "customresourcedefinitions",
    "crd crds",
    "status",
    cluster=True,
)
DEVICE_CLASS = _kind("resource.k8s.io/v1", "DeviceClass", "deviceclasses", cluster=True)

KINDS: dict[str, Kind] = {kind.name: kind for kind in list(globals().values()) if isinstance(kind, Kind)}
"""Every known kind by its name, `Pod`. Names are unique among the kinds modelled here."""


def _words(kind: Kind) -> tuple[str, ...]:
    return (kind.name.lower(), kind.plural, kind.resource, kind.qualified.lower(), *kind.short)


_BY_QUALIFIED = {kind.qualified: kind for kind in KINDS.values()}
_BY_WORD: dict[str, Kind] = {word: kind for kind in KINDS.values() for word in _words(kind)}


def kind_named(word: str) -> Kind:
    """The kind a person means by `po`, `pods`, `Pod` or `deployments.apps`. Raises NotFound."""
    try:
        return _BY_WORD[word.lower()]
    except KeyError:
        raise NotFound(f'the server doesn\'t have a resource type "{word}"') from None


def is_built_in(kind: Kind) -> bool:
    """Whether every cluster has it. Another group may have a kind of the same name."""
    return KINDS.get(kind.name) == kind


class ScalePaths(NamedTuple):
    """Where objects of a custom kind keep their size: paths such as `spec.replicas`; '' where there is no selector."""

    spec: str
    status: str
    selector: str = ""


class KindRegistry:
    """The kinds of one cluster: those that every cluster has, and those that it defines itself.

    A custom kind may be served in several versions, each a Kind of its own. The first that was ever defined is the
    *stem*, under which all of them are stored.
    """

    def __init__(self) -> None:
        self.changes = 0
        """How often the kinds have changed: what is made of them is made anew after each."""
        self._served: dict[str, Sequence[Kind]] = {}  # by qualified name
        self._stems: dict[str, Kind] = {}
        self._scales: dict[str, ScalePaths] = {}

    def define(self, versions: Sequence[Kind], scale: ScalePaths | None = None) -> None:
        """Add a kind, in all its versions, or replace it."""
        name = versions[0].qualified
        self._served[name] = versions
        self._stems.setdefault(name, versions[0])
        self._scales.pop(name, None)
        if scale is not None:
            self._scales[name] = scale
        self.changes += 1

    def undefine(self, kind: Kind) -> None:
        """Take a kind out, with all its versions."""
        self._served.pop(kind.qualified, None)
        self._stems.pop(kind.qualified, None)
        self.changes += 1

    def kinds(self) -> list[Kind]:
        """Every kind that is served, custom ones in each of their versions."""
        return [*KINDS.values(), *(kind for versions in self._served.values() for kind in versions)]

    def custom(self) -> list[Kind]:
        """The stems of the custom kinds."""
        return [self._stems[name] for name in self._served]

    def stem(self, kind: Kind) -> Kind:
        """The kind under which objects of this one are stored."""
        return kind if is_built_in(kind) else self._stems.get(kind.qualified, kind)

    def find(self, api_version: str, name: str) -> Kind | None:
        """The kind of that group, version and name."""
        built_in = KINDS.get(name)
        if built_in is not None and built_in.api_version == api_version:
            return built_in
        served = self._served.get(f"{name}.{api_version.rpartition('/')[0]}", ())
        return next((kind for kind in served if kind.api_version == api_version), None)

    def qualified(self, name: str) -> Kind | None:
        """The kind of a qualified name, `Pod` or `Deployment.apps`; of a custom kind its stem."""
        return _BY_QUALIFIED.get(name) or self._stems.get(name)

    def named(self, word: str) -> Kind:
        """The kind a person means. Raises NotFound. What every cluster has goes before what this one adds."""
        if word.lower() in _BY_WORD:
            return _BY_WORD[word.lower()]
        for versions in self._served.values():
            if word.lower() in _words(versions[0]):
                return versions[0]
        return kind_named(word)

    def scale_paths(self, kind: Kind) -> ScalePaths | None:
        """Where a custom kind keeps its size; None for what every cluster has, and what has no size."""
        return self._scales.get(kind.qualified)
