"""Two pods on a node cannot hold the same host port.

A port is taken for an address and a protocol; the address 0.0.0.0 stands for all addresses.
Source of truth: kube-scheduler 1.36 NodePorts and HostPortInfo.CheckConflict.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bayplan.scheduling.framework import NodeFilter, Plugin, Refusal

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from bayplan.scheduling.pods import HostPort, PodInfo
    from bayplan.scheduling.state import ClusterState, NodeState

_EVERY = "0.0.0.0"  # noqa: S104 an address to compare, not to listen on


class NodePorts(Plugin):
    """Keeps host ports apart."""

    name = "NodePorts"

    def filter(self, pod: PodInfo, state: ClusterState) -> NodeFilter | None:
        """None for a pod without host ports."""
        ports = pod.wants.host_ports
        return _FreePorts(ports) if ports else None


class _FreePorts(NodeFilter):
    refusal = Refusal(NodePorts.name, ("node(s) didn't have free ports for the requested pod ports",))

    def __init__(self, ports: Sequence[HostPort]) -> None:
        self._ports = ports

    def check(self, node: NodeState) -> Refusal | None:
        return self.refusal if ports_clash(self._ports, node.ports) else None


def ports_clash(wanted: Iterable[HostPort], taken: Iterable[HostPort]) -> bool:
    """Whether one of these ports is among those, on an address that both claim."""
    held = [*taken]
    return any(_clash(one, other) for one in wanted for other in held)


def _clash(one: HostPort, other: HostPort) -> bool:
    same = one.port == other.port and one.protocol == other.protocol
    return same and (one.ip == other.ip or _EVERY in (one.ip, other.ip))
