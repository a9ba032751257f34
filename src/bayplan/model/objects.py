"""From bytes to structs: one door to all kinds, and the only place that knows what to do about `null`.

An API server writes null where a Go slice, map or time is unset, and a person's manifest may hold one anywhere; Go
reads each as "not given". The structs allow it where servers write it often, so that decoding stays one pass. For all
other nulls the document is read once more without them.
"""

from __future__ import annotations

import functools
from typing import Any, TypeVar

import msgspec

from bayplan.model.meta import KubernetesObject, Wire
from bayplan.model.nodes import Node
from bayplan.model.pods import Pod
from bayplan.model.policies import (
    ConfigMap,
    Event,
    Lease,
    Namespace,
    PersistentVolume,
    PersistentVolumeClaim,
    PodDisruptionBudget,
    PriorityClass,
    ResourceQuota,
    Service,
)
from bayplan.model.storage import CSIDriver, CSINode, CSIStorageCapacity, StorageClass, VolumeAttachment
from bayplan.model.workloads import (
    ControllerRevision,
    CronJob,
    DaemonSet,
    Deployment,
    Job,
    ReplicaSet,
    ReplicationController,
    StatefulSet,
)

KINDS: dict[str, type[KubernetesObject]] = {
    kind.KIND: kind
    for kind in (
        CSIDriver,
        CSINode,
        CSIStorageCapacity,
        ConfigMap,
        ControllerRevision,
        CronJob,
        DaemonSet,
        Deployment,
        Event,
        Job,
        Lease,
        Namespace,
        Node,
        PersistentVolume,
        PersistentVolumeClaim,
        Pod,
        PodDisruptionBudget,
        PriorityClass,
        ReplicaSet,
        ReplicationController,
        ResourceQuota,
        Service,
        StatefulSet,
        StorageClass,
        VolumeAttachment,
    )
}
"""The structs by kind."""

W = TypeVar("W", bound=Wire)


_decoder = functools.cache(msgspec.json.Decoder)


def decode(raw: bytes | msgspec.Raw, kind: type[W]) -> W:
    """The struct in these bytes. Raises msgspec.ValidationError, with the path, where a value has a wrong type.

    Fields that stay raw point into `raw` and keep it alive.
    """
    decoder: msgspec.json.Decoder[W] = _decoder(kind)
    try:
        return decoder.decode(raw)
    except msgspec.ValidationError:
        document = msgspec.json.decode(raw)
        cleaned = _without_nulls(document)
        if cleaned == document:
            raise
        return decoder.decode(msgspec.json.encode(cleaned))


def from_builtins(document: Any, kind: type[W]) -> W:
    """The struct of a document that is dicts and lists already. Raises as `decode` does."""
    return decode(msgspec.json.encode(document), kind)


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_without_nulls(item) for item in value]
    return value
