"""What the kubelet refuses to start with, in its own words.

Source of truth: kubelet 1.36 pkg/kubelet/apis/config/validation. Feature gates are at their defaults.
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from bayplan.model.durations import DurationError, parse_duration
from bayplan.model.faults import Faults
from bayplan.model.resources import HUGEPAGES_PREFIX, MEMORY
from bayplan.node.configuration.amounts import quantity
from bayplan.node.configuration.document import Document, MemoryReservation
from bayplan.node.cpu import options as cpu
from bayplan.node.errors import PolicyError
from bayplan.node.sets import BadListError, CpuSet, parse_list
from bayplan.node.topology import options as topology

_SYSTEM, _KUBE, _COMPRESSIBLE = "system-reserved", "kube-reserved", "-compressible"
_ENFORCEMENTS = ("pods", _SYSTEM, _SYSTEM + _COMPRESSIBLE, _KUBE, _KUBE + _COMPRESSIBLE, "none")
_LEAST_PERIOD, _MOST_PERIOD = 1_000, 1_000_000


class _Choice(NamedTuple):
    field: str
    attribute: str
    allowed: tuple[str, ...]
    words: str


_CHOICES = (
    _Choice("cpuManagerPolicy", "cpu_manager_policy", ("none", "static"), 'unknown policy: "{}"'),
    _Choice("memoryManagerPolicy", "memory_manager_policy", ("None", "Static"), 'unknown policy: "{}"'),
    _Choice(
        "topologyManagerPolicy",
        "topology_manager_policy",
        ("none", "best-effort", "restricted", "single-numa-node"),
        'unknown policy: "{}"',
    ),
    _Choice("topologyManagerScope", "topology_manager_scope", ("container", "pod"), 'unknown scope: "{}"'),
    _Choice("cgroupDriver", "cgroup_driver", ("cgroupfs", "systemd"), 'unknown driver: "{}"'),
)


def check(document: Document, faults: Faults) -> None:
    """Note what is wrong with a document that has the right shape."""
    for choice in _CHOICES:
        given = getattr(document, choice.attribute)
        if given not in choice.allowed:
            faults.add(choice.field, f"{choice.words.format(given)}; must be one of: {', '.join(choice.allowed)}")
    _check_options(document, faults)
    _check_enforcements(document, faults)
    _check_cgroups(document, faults)


def _check_options(document: Document, faults: Faults) -> None:
    try:
        topology.read_options(document.topology_manager_policy_options)
    except PolicyError as wrong:
        faults.add("topologyManagerPolicyOptions", wrong.message)
    given, path = document.cpu_manager_policy_options, "cpuManagerPolicyOptions"
    if document.cpu_manager_policy == "none" and given:
        faults.add(path, f"None policy: received unsupported options: {', '.join(given)}")
    try:
        cpu.read_options(given)
    except PolicyError as wrong:
        faults.add(path, wrong.message)


def _check_enforcements(document: Document, faults: Faults) -> None:
    given, path = document.enforce_node_allocatable, "enforceNodeAllocatable"
    for each in (_SYSTEM, _KUBE):
        if each in given and each + _COMPRESSIBLE in given:
            faults.add(path, f'both "{each}" and "{each}{_COMPRESSIBLE}" cannot be specified together')
    for name, times in Counter(given).items():
        if times > 1:
            faults.add(path, f'duplicated enforcements "{name}"')
        if name not in _ENFORCEMENTS:
            faults.add(path, f'option "{name}" specified; valid options are {", ".join(_ENFORCEMENTS)}')
        elif name == "none" and len(given) > 1:
            faults.add(path, 'may not contain additional enforcements when "none" is specified')
        elif name != "none" and not document.cgroups_per_qos:
            faults.add(path, f'cgroupsPerQOS must be set to true when "{name}" is contained')
    cgroups = ((_SYSTEM, document.system_reserved_cgroup), (_KUBE, document.kube_reserved_cgroup))
    for which, cgroup in cgroups:
        if not cgroup and {which, which + _COMPRESSIBLE} & {*given}:
            field = "systemReservedCgroup" if which == _SYSTEM else "kubeReservedCgroup"
            faults.add(field, f'must be specified when "{which}" or "{which}{_COMPRESSIBLE}" is in {path}')


def _check_cgroups(document: Document, faults: Faults) -> None:
    system, kube = document.system_reserved_cgroup, document.kube_reserved_cgroup
    if document.reserved_system_cpus and (system or kube):
        faults.add(
            "reservedSystemCPUs",
            "can't use reservedSystemCPUs (--reserved-cpus) with systemReservedCgroup (--system-reserved-cgroup) "
            "or kubeReservedCgroup (--kube-reserved-cgroup)",
        )
    if system and system == kube:
        faults.add("kubeReservedCgroup", f"{kube} is the systemReservedCgroup too: one limit would replace the other")


def cpus(document: Document, faults: Faults) -> CpuSet:
    """The CPUs that are reserved by name."""
    try:
        return parse_list(document.reserved_system_cpus)
    except BadListError as wrong:
        faults.add("reservedSystemCPUs", f"unable to parse: {wrong.message}")
        return 0


def period(document: Document, faults: Faults) -> int:
    """The period of the CPU quota in microseconds."""
    text, path = document.cpu_cfs_quota_period, "cpuCFSQuotaPeriod"
    try:
        micros = parse_duration(text)
    except DurationError as wrong:
        faults.add(path, wrong.message)
        return 0
    if not _LEAST_PERIOD <= micros <= _MOST_PERIOD:
        faults.add(path, f"{text} must be between 1ms and 1sec, inclusive")
    return micros


def memory(given: tuple[MemoryReservation, ...], faults: Faults) -> dict[int, dict[str, int]]:
    """Reserved bytes by NUMA node and resource."""
    found: dict[int, dict[str, int]] = {}
    for i, each in enumerate(given):
        of_node = found.setdefault(each.numa_node, {})
        for name, text in each.limits.items():
            path, where = f"reservedMemory[{i}].limits.{name}", f"NUMA node {each.numa_node}"
            amount = quantity(text, path, faults)
            if name != MEMORY and not name.startswith(HUGEPAGES_PREFIX):
                only = f"only [{MEMORY} {HUGEPAGES_PREFIX}<HugePageSize>] is accepted"
                faults.add(path, f'the limit type "{name}" for {where} is not supported, {only}')
            elif amount.nanos <= 0:
                faults.add(path, f'reserved memory may not be zero for {where} and resource "{name}"')
            elif name in of_node:
                faults.add(path, f'the reserved memory has a duplicate value for {where} and resource "{name}"')
            of_node.setdefault(name, amount.value())
    return found
