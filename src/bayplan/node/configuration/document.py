"""The fields of a KubeletConfiguration (kubelet.config.k8s.io/v1beta1) that placement depends on, with its defaults."""

from __future__ import annotations

from typing import Any

import msgspec

API_VERSION = "kubelet.config.k8s.io/v1beta1"
KIND = "KubeletConfiguration"

DEFAULT_EVICTION_HARD = {
    "memory.available": "100Mi",
    "nodefs.available": "10%",
    "nodefs.inodesFree": "5%",
    "imagefs.available": "15%",
    "imagefs.inodesFree": "5%",
}


class MemoryReservation(msgspec.Struct, frozen=True, rename="camel"):
    """What is kept of a NUMA node's memory."""

    numa_node: int
    limits: dict[str, Any] = msgspec.field(default_factory=dict)
    """Quantities by `memory` or `hugepages-*`: texts or numbers."""


class Document(msgspec.Struct, frozen=True, rename="camel"):
    """The file."""

    api_version: str | None = None
    kind: str | None = None
    cpu_manager_policy: str = "none"
    cpu_manager_policy_options: dict[str, str] = msgspec.field(default_factory=dict)
    topology_manager_policy: str = "none"
    topology_manager_scope: str = "container"
    topology_manager_policy_options: dict[str, str] = msgspec.field(default_factory=dict)
    memory_manager_policy: str = "None"
    reserved_memory: tuple[MemoryReservation, ...] = ()
    system_reserved: dict[str, str] = msgspec.field(default_factory=dict)
    kube_reserved: dict[str, str] = msgspec.field(default_factory=dict)
    system_reserved_cgroup: str = ""
    kube_reserved_cgroup: str = ""
    reserved_system_cpus: str = msgspec.field(default="", name="reservedSystemCPUs")
    enforce_node_allocatable: tuple[str, ...] = ("pods",)
    eviction_hard: dict[str, str] | None = None
    merge_default_eviction_settings: bool = False
    cgroup_driver: str = "cgroupfs"
    cgroup_root: str = ""
    cgroups_per_qos: bool = msgspec.field(default=True, name="cgroupsPerQOS")
    cpu_cfs_quota: bool = msgspec.field(default=True, name="cpuCFSQuota")
    cpu_cfs_quota_period: str = msgspec.field(default="100ms", name="cpuCFSQuotaPeriod")


def without_empty(document: dict[str, Any]) -> dict[str, Any]:
    """A document less its empty texts: to the kubelet they are fields that were not given."""
    return {name: value for name, value in document.items() if value != ""}


def thresholds(document: Document) -> dict[str, str]:
    """The hard eviction thresholds in force."""
    if document.eviction_hard is None:
        return DEFAULT_EVICTION_HARD
    return {**(DEFAULT_EVICTION_HARD if document.merge_default_eviction_settings else {}), **document.eviction_hard}
