"""The columns of volumes, claims on them and their classes."""

from __future__ import annotations

from bayplan.cluster.tables.columns import AGE, NAME, UNSET, CellOf, Column, Columns, Doc, at, deleted, field
from bayplan.model.clock import Instant

_MODES = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}
_CLASS = "volume.beta.kubernetes.io/storage-class"
_DEFAULT = ("storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class")


def _phase(document: Doc, _now: Instant) -> str:
    return "Terminating" if deleted(document) else at(document, "status.phase") or ""


def _modes(document: Doc, path: str) -> str:
    modes = at(document, path) or ()
    return ",".join(short for mode, short in _MODES.items() if mode in modes)


def _storage_class(document: Doc, _now: Instant) -> str:
    """The old annotation goes before the field, even when it is empty."""
    annotations = at(document, "metadata.annotations") or {}
    name: str = annotations.get(_CLASS, at(document, "spec.storageClassName"))
    return name or ""


def _unless_unset(path: str) -> CellOf:
    return lambda document, _now: UNSET if (value := at(document, path)) is None else value


def _claim(volume: Doc, _now: Instant) -> str:
    claim = at(volume, "spec.claimRef")
    return "" if claim is None else f"{claim.get('namespace', '')}/{claim.get('name', '')}"


def _claim_capacity(claim: Doc, _now: Instant) -> str:
    return (at(claim, "status.capacity.storage") or "0") if at(claim, "spec.volumeName") else ""


def _claim_modes(claim: Doc, _now: Instant) -> str:
    return _modes(claim, "status.accessModes") if at(claim, "spec.volumeName") else ""


def _class_name(storage_class: Doc, _now: Instant) -> str:
    annotations = at(storage_class, "metadata.annotations") or {}
    name = str(at(storage_class, "metadata.name"))
    return f"{name} (default)" if any(annotations.get(each) == "true" for each in _DEFAULT) else name


_CLASS_COLUMNS: Columns = (
    Column("StorageClass", _storage_class),
    Column("VolumeAttributesClass", _unless_unset("spec.volumeAttributesClassName")),
)
_VOLUME_MODE = Column("VolumeMode", _unless_unset("spec.volumeMode"), priority=1)

PERSISTENT_VOLUME: Columns = (
    NAME,
    Column("Capacity", field("spec.capacity.storage", "0")),
    Column("Access Modes", lambda volume, _now: _modes(volume, "spec.accessModes")),
    Column("Reclaim Policy", field("spec.persistentVolumeReclaimPolicy")),
    Column("Status", _phase),
    Column("Claim", _claim),
    *_CLASS_COLUMNS,
    Column("Reason", field("status.reason")),
    AGE,
    _VOLUME_MODE,
)

PERSISTENT_VOLUME_CLAIM: Columns = (
    NAME,
    Column("Status", _phase),
    Column("Volume", field("spec.volumeName")),
    Column("Capacity", _claim_capacity),
    Column("Access Modes", _claim_modes),
    *_CLASS_COLUMNS,
    AGE,
    _VOLUME_MODE,
)

STORAGE_CLASS: Columns = (
    Column("Name", _class_name, format="name"),
    Column("Provisioner", field("provisioner")),
    Column("ReclaimPolicy", field("reclaimPolicy", "Delete")),
    Column("VolumeBindingMode", field("volumeBindingMode", "Immediate")),
    Column("AllowVolumeExpansion", field("allowVolumeExpansion", False)),  # a boolean declared a string, as upstream's
    AGE,
)
