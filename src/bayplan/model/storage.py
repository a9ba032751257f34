"""The kinds of storage.k8s.io: how volumes come to be, what nodes can attach, how much space is left."""

from __future__ import annotations

from typing import ClassVar

from bayplan.model.meta import KubernetesObject, LabelSelector, Wire


class TopologySelectorLabelRequirement(Wire, frozen=True):
    """A node label and the values that it may have."""

    key: str = ""
    values: tuple[str, ...] = ()


class TopologySelectorTerm(Wire, frozen=True):
    """Requirements that must all hold. A term without any matches no node."""

    match_label_expressions: tuple[TopologySelectorLabelRequirement, ...] = ()


class StorageClass(KubernetesObject, frozen=True):
    """A way to get a volume. `volume_binding_mode`: Immediate or WaitForFirstConsumer."""

    KIND: ClassVar[str] = "StorageClass"
    API_VERSION: ClassVar[str] = "storage.k8s.io/v1"

    provisioner: str = ""
    volume_binding_mode: str = "Immediate"
    allowed_topologies: tuple[TopologySelectorTerm, ...] = ()


class VolumeNodeResources(Wire, frozen=True):
    """How many volumes of a driver a node can hold; None: no limit is known."""

    count: int | None = None


class CSINodeDriver(Wire, frozen=True):
    """A driver that runs on a node."""

    name: str = ""
    allocatable: VolumeNodeResources = VolumeNodeResources()


class CSINodeSpec(Wire, frozen=True):
    """The drivers of a node."""

    drivers: tuple[CSINodeDriver, ...] = ()


class CSINode(KubernetesObject, frozen=True):
    """What CSI drivers say about a node; it bears the node's name."""

    KIND: ClassVar[str] = "CSINode"
    API_VERSION: ClassVar[str] = "storage.k8s.io/v1"

    spec: CSINodeSpec = CSINodeSpec()


class CSIDriverSpec(Wire, frozen=True):
    """`storage_capacity`: the driver tells how much space is left, so that decisions can heed it."""

    storage_capacity: bool = False


class CSIDriver(KubernetesObject, frozen=True):
    """A CSI driver."""

    KIND: ClassVar[str] = "CSIDriver"
    API_VERSION: ClassVar[str] = "storage.k8s.io/v1"

    spec: CSIDriverSpec = CSIDriverSpec()


class CSIStorageCapacity(KubernetesObject, frozen=True):
    """How much space is left for a class on some nodes."""

    KIND: ClassVar[str] = "CSIStorageCapacity"
    API_VERSION: ClassVar[str] = "storage.k8s.io/v1"

    storage_class_name: str = ""
    node_topology: LabelSelector | None = None
    capacity: str | None = None
    maximum_volume_size: str | None = None


class VolumeAttachmentSource(Wire, frozen=True):
    """What is attached."""

    persistent_volume_name: str | None = None


class VolumeAttachmentSpec(Wire, frozen=True):
    """Who attaches what, and where."""

    attacher: str = ""
    node_name: str = ""
    source: VolumeAttachmentSource = VolumeAttachmentSource()


class VolumeAttachment(KubernetesObject, frozen=True):
    """A volume that is, or is to be, attached to a node."""

    KIND: ClassVar[str] = "VolumeAttachment"
    API_VERSION: ClassVar[str] = "storage.k8s.io/v1"

    spec: VolumeAttachmentSpec = VolumeAttachmentSpec()
