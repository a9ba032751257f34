"""The settings of a node's managers, by the kubelet's names and with its defaults."""

from __future__ import annotations

import msgspec

from bayplan.node.sets import CpuSet


class TopologyPolicies(msgspec.Struct, frozen=True):
    """The topology manager: none, best-effort, restricted or single-numa-node; scope container or pod."""

    policy: str = "none"
    scope: str = "container"
    options: dict[str, str] = msgspec.field(default_factory=dict)


class NodePolicies(msgspec.Struct, frozen=True):
    """All managers of a node."""

    cpu: str = "none"
    """none or static."""
    cpu_options: dict[str, str] = msgspec.field(default_factory=dict)
    reserved: int = 0
    """How many CPUs are kept for the system."""
    reserved_cpus: CpuSet = 0
    """Which; empty: the policy chooses."""
    topology: TopologyPolicies = TopologyPolicies()
    memory: str = "None"
    """None or Static."""
    reserved_memory: dict[int, dict[str, int]] = msgspec.field(default_factory=dict)
    """Bytes by NUMA node and resource."""
    as_upstream: bool = False
    """Whether the kubelet's own defects are kept (docs/cpu-manager.md lists them), to compare answers with it."""
