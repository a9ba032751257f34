"""The kubelet of a machine for people and programs, in the words of its own file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from bayplan.model.quantity import Format, Quantity
from bayplan.node.sets import format_list

if TYPE_CHECKING:
    from bayplan.agent.kubelet import Kubelet
    from bayplan.node.configuration import NodeConfiguration, Threshold

_NONE = "<none>"


def kubelet_rows(found: Kubelet) -> list[list[str]]:
    """Names and values."""
    policies, settings = found.policies, found.configuration
    chosen = f"{policies.reserved}, which the policy chooses" if policies.reserved else _NONE
    rows = [
        ("process", found.process),
        ("config", found.config),
        ("cgroup driver", settings.cgroup_driver),
        ("cpu manager", ", ".join([policies.cpu, *_pairs(policies.cpu_options)])),
        ("memory manager", policies.memory),
        (
            "topology manager",
            ", ".join(
                [policies.topology.policy, f"scope {policies.topology.scope}", *_pairs(policies.topology.options)]
            ),
        ),
        ("reserved CPUs", format_list(policies.reserved_cpus) or chosen),
        ("system reserved", ", ".join(_pairs(settings.system_reserved))),
        ("kube reserved", ", ".join(_pairs(settings.kube_reserved))),
        ("CPU state", found.cpu_state),
        ("memory state", found.memory_state),
    ]
    return [[name, str(value or _NONE)] for name, value in rows]


def _pairs(values: Mapping[str, object]) -> list[str]:
    return [f"{name}={value}" for name, value in values.items()]


def kubelet_document(found: Kubelet) -> dict[str, Any]:
    """The same and more as one value; `configuration` has the fields of a KubeletConfiguration."""
    return {
        "process": found.process,
        "config": found.config,
        "configuration": _configuration(found.configuration),
        "reservedCPUs": found.policies.reserved,
        "cpuState": found.cpu_state,
        "memoryState": found.memory_state,
    }


def _configuration(settings: NodeConfiguration) -> dict[str, Any]:
    policies = settings.policies
    return {
        "cpuManagerPolicy": policies.cpu,
        "cpuManagerPolicyOptions": policies.cpu_options,
        "reservedSystemCPUs": format_list(policies.reserved_cpus),
        "topologyManagerPolicy": policies.topology.policy,
        "topologyManagerScope": policies.topology.scope,
        "topologyManagerPolicyOptions": policies.topology.options,
        "memoryManagerPolicy": policies.memory,
        "reservedMemory": [
            {"numaNode": node, "limits": {name: _bytes(amount) for name, amount in limits.items()}}
            for node, limits in policies.reserved_memory.items()
        ],
        "systemReserved": _texts(settings.system_reserved),
        "systemReservedCgroup": settings.system_cgroup,
        "kubeReserved": _texts(settings.kube_reserved),
        "kubeReservedCgroup": settings.kube_cgroup,
        "enforceNodeAllocatable": settings.enforced,
        "evictionHard": {"memory.available": _threshold(settings.eviction)},
        "cgroupDriver": settings.cgroup_driver,
        "cgroupRoot": settings.cgroup_root,
        "cpuCFSQuota": settings.cfs_quota,
        "cpuCFSQuotaPeriod": f"{settings.cfs_period / 1000:g}ms",
    }


def _texts(amounts: Mapping[str, Quantity]) -> dict[str, str]:
    return {name: str(amount) for name, amount in amounts.items()}


def _bytes(amount: int) -> str:
    return str(Quantity.whole(amount, Format.BINARY_SI))


def _threshold(threshold: Threshold) -> str:
    return f"{threshold.share * 100:g}%" if threshold.share else str(threshold.amount)
