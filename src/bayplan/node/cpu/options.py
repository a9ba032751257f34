"""The options of the static policy, with the kubelet's names and words.

Alpha options are accepted without a feature gate: whoever names one means it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from bayplan.model.faults import shown
from bayplan.node.errors import PolicyError
from bayplan.node.flags import boolean

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bayplan.node.machine import Topology

FULL_CORES = "full-pcpus-only"
ACROSS_NODES = "distribute-cpus-across-numa"
ACROSS_CORES = "distribute-cpus-across-cores"
BY_SOCKET = "align-by-socket"
STRICT = "strict-cpu-reservation"
BY_CACHE = "prefer-align-cpus-by-uncorecache"

_SINGLE = "single-numa-node"


class StaticOptions(msgspec.Struct, frozen=True):
    """Which options are on."""

    full_cores: bool = False
    """Whole cores or nothing."""
    across_nodes: bool = False
    """A request that needs several NUMA nodes is spread evenly over them."""
    across_cores: bool = False
    """Siblings come late."""
    by_socket: bool = False
    """Sockets, not NUMA nodes, are what a request is kept within."""
    strict: bool = False
    """Reserved CPUs are not in the shared pool either."""
    by_cache: bool = False
    """Within as few L3 groups as possible."""


_FIELDS = {
    FULL_CORES: "full_cores",
    ACROSS_NODES: "across_nodes",
    ACROSS_CORES: "across_cores",
    BY_SOCKET: "by_socket",
    STRICT: "strict",
    BY_CACHE: "by_cache",
}

_NOT_TOGETHER = (
    (FULL_CORES, ACROSS_CORES),
    (ACROSS_NODES, ACROSS_CORES),
    (BY_CACHE, ACROSS_CORES),
    (BY_CACHE, ACROSS_NODES),
)


def read_options(options: Mapping[str, str]) -> StaticOptions:
    """The options by name. Raises PolicyError for an unknown one, a value that is no boolean, two that do not mix."""
    on = {}
    for name, value in options.items():
        if name not in _FIELDS:
            known = ", ".join(_FIELDS)
            raise PolicyError(f"unknown CPU Manager Policy option: {shown(name)}", hint=f"known: {known}")
        on[name] = boolean(name, value)
    for one, other in _NOT_TOGETHER:
        if on.get(one) and on.get(other):
            raise PolicyError(
                f"static policy options {one} and {other} can not be used at the same time", hint="drop one of the two"
            )
    return StaticOptions(**{_FIELDS[name]: value for name, value in on.items()})


def check_machine(options: StaticOptions, topology: Topology, topology_policy: str) -> None:
    """Raise PolicyError where the machine, or the topology manager's policy, does not go with the options."""
    if not options.by_socket:
        return
    if topology_policy == _SINGLE:
        raise PolicyError(
            f"Topolgy manager {_SINGLE} policy is incompatible with CPUManager {BY_SOCKET} policy option",
            hint="a socket may be more than one NUMA node: use restricted, or drop the option",
        )
    if len(topology.sockets) > len(topology.nodes):
        raise PolicyError(
            "Align by socket is not compatible with hardware where number of sockets are more than number of NUMA",
            hint=f"{len(topology.sockets)} sockets in {len(topology.nodes)} NUMA nodes: drop {BY_SOCKET}",
        )
