"""A node's settings from a KubeletConfiguration and the kubelet's flags. A flag wins over the file.

Named CPUs (reservedSystemCPUs) win over amounts: as in the kubelet, the system's reservation becomes their number, and
Kubernetes' own reservation of CPU is dropped.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from bayplan.model.faults import Fault, Faults, shown, unknown
from bayplan.model.fitting import fit
from bayplan.model.quantity import Quantity
from bayplan.model.resources import CPU
from bayplan.node.configuration import amounts, checks
from bayplan.node.configuration.amounts import Threshold
from bayplan.node.configuration.document import API_VERSION, KIND, Document, thresholds, without_empty
from bayplan.node.configuration.errors import NodeConfigurationError
from bayplan.node.configuration.flags import read_flags, written
from bayplan.node.configuration.names import OTHER_FIELDS
from bayplan.node.policies import NodePolicies, TopologyPolicies
from bayplan.node.sets import CpuSet

_MILLIS = 1000


class NodeConfiguration(msgspec.Struct, frozen=True):
    """What a node's managers and cgroups are to be; not yet held against a machine (node/reservations.py does)."""

    policies: NodePolicies = NodePolicies()
    system_reserved: dict[str, Quantity] = msgspec.field(default_factory=dict)
    kube_reserved: dict[str, Quantity] = msgspec.field(default_factory=dict)
    system_cgroup: str = ""
    kube_cgroup: str = ""
    enforced: tuple[str, ...] = ("pods",)
    """Which reservations become limits of cgroups; `none` for none."""
    eviction: Threshold = Threshold()
    """The available memory below which pods are evicted; it is kept from them, too."""
    cgroup_driver: str = "cgroupfs"
    cgroup_root: str = ""
    cfs_quota: bool = True
    cfs_period: int = 100_000
    """Microseconds."""


def read_configuration(document: Any = None, arguments: Sequence[str] = (), source: str = "") -> NodeConfiguration:
    """The settings, from a document as YAML gives it and a command line; `source` is what errors call the document.

    Raises NodeConfigurationError with every fault.
    """
    if not isinstance(document, Mapping | None):
        raise NodeConfigurationError([Fault("", f"expected a {KIND}, not {shown(document)}")], source)
    faults = Faults()
    given = read_flags(arguments, faults)
    known = {name: value for name, value in (document or {}).items() if name not in OTHER_FIELDS}
    read, _ = fit(without_empty({**known, **given.fields}), Document, "", faults)
    _check_kind(read, faults)
    checks.check(read, faults)
    found = _configuration(read, faults)
    if faults.found:
        raise NodeConfigurationError(_as_given(faults.found.values(), given.origins), source)
    return found


def file_named(arguments: Sequence[str]) -> str:
    """The file that a kubelet's command line names with --config; empty where it names none."""
    return dict(written(arguments)).get("config", "")


def _check_kind(read: Document, faults: Faults) -> None:
    if read.kind not in (None, KIND):
        faults.add("kind", f"expected {KIND}, not {shown(read.kind)}")
    if read.api_version not in (None, API_VERSION):
        faults.add("apiVersion", unknown("version", str(read.api_version), [API_VERSION]))


def _configuration(read: Document, faults: Faults) -> NodeConfiguration:
    system = amounts.reserved(read.system_reserved, "systemReserved", faults)
    kube = amounts.reserved(read.kube_reserved, "kubeReserved", faults)
    named = checks.cpus(read, faults)
    if named:
        kube.pop(CPU, None)
        system[CPU] = Quantity.whole(named.bit_count())
    return NodeConfiguration(
        policies=_policies(read, _count(system, kube), named, faults),
        system_reserved=system,
        kube_reserved=kube,
        system_cgroup=read.system_reserved_cgroup,
        kube_cgroup=read.kube_reserved_cgroup,
        enforced=read.enforce_node_allocatable,
        eviction=amounts.memory_threshold(thresholds(read), "evictionHard", faults),
        cgroup_driver=read.cgroup_driver,
        cgroup_root=read.cgroup_root,
        cfs_quota=read.cpu_cfs_quota,
        cfs_period=checks.period(read, faults),
    )


def _policies(read: Document, reserved: int, named: CpuSet, faults: Faults) -> NodePolicies:
    return NodePolicies(
        cpu=read.cpu_manager_policy,
        cpu_options=read.cpu_manager_policy_options,
        reserved=reserved,
        reserved_cpus=named,
        topology=TopologyPolicies(
            read.topology_manager_policy, read.topology_manager_scope, read.topology_manager_policy_options
        ),
        memory=read.memory_manager_policy,
        reserved_memory=checks.memory(read.reserved_memory, faults),
    )


def _count(*reservations: Mapping[str, Quantity]) -> int:
    """Whole CPUs: a part of one cannot be kept apart."""
    millis = sum(each[CPU].milli() for each in reservations if CPU in each)
    return -(-millis // _MILLIS)


def _as_given(found: Iterable[Fault], origins: Mapping[str, str]) -> list[Fault]:
    """Faults of a field that a flag set are the flag's."""
    told = []
    for fault in found:
        field = fault.path.partition(".")[0].partition("[")[0]
        told.append(Fault(origins[field], fault.message) if field in origins else fault)
    return told
