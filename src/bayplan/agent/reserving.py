"""The agent's part that keeps reservations: what the system and Kubernetes' own daemons need becomes limits of groups.

The kubelet does this itself where it runs; this is for nodes where it is told not to, and for trying. The group of all
pods is written, too, so the agent must be told to work beside a kubelet.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import msgspec

from bayplan.agent.kubelet import may_write
from bayplan.model.resources import CPU, MEMORY, Amounts
from bayplan.node.cgroup.journalled import JournalledTree
from bayplan.node.cgroup.naming import Driver, GroupName, Qos, path_of
from bayplan.node.cgroup.reservations import Amount, Reservations, Reserved, Write, enforce, writes
from bayplan.node.cgroup.trees import FileTree
from bayplan.node.configuration import NodeConfiguration
from bayplan.node.machine import Machine
from bayplan.node.reservations import divide


def reservations_of(configuration: NodeConfiguration, machine: Machine) -> Reservations:
    """What is to be enforced on a machine. Raises ReservationError with the numbers where it cannot be."""
    shares = divide(configuration, machine)
    root = tuple(part for part in configuration.cgroup_root.split("/") if part)
    reserves = (
        _reserved("system-reserved", configuration.system_cgroup, shares.system, configuration),
        _reserved("kube-reserved", configuration.kube_cgroup, shares.kube, configuration),
    )
    return Reservations(
        _amount(shares.capacity) if "pods" in configuration.enforced else Amount(),
        path_of(GroupName(Qos.GUARANTEED, root=root), Driver(configuration.cgroup_driver)),
        reserves,
        configuration.policies.reserved_cpus,
    )


def _reserved(name: str, group: str, amounts: Amounts, configuration: NodeConfiguration) -> Reserved:
    """A reservation; one that is not to be enforced counts, and has no group."""
    compressible = f"{name}-compressible" in configuration.enforced
    return Reserved(group if name in configuration.enforced or compressible else "", _amount(amounts), compressible)


def _amount(amounts: Amounts) -> Amount:
    return Amount(amounts.get(CPU), amounts.get(MEMORY))


class Kept(msgspec.Struct, frozen=True):
    """A limit that was written, or would be."""

    write: Write
    written: bool


class Reserving:
    """An `Enforcer`."""

    name = "reservations"

    def __init__(
        self,
        tree: FileTree,
        wanted: Reservations,
        journal: Path,
        tell: Callable[[Kept], None],
        *,
        beside_kubelet: bool = False,
    ) -> None:
        self._tree, self._wanted, self._journal, self._tell = tree, wanted, journal, tell
        self._beside_kubelet = beside_kubelet

    async def run(self, *, write: bool) -> None:
        """Keep the reservations until cancelled; every limit is back when this returns.

        Raises OwnedByKubeletError, EnforcementError, WriteRefusedError and the journal's errors.
        """
        if not write:
            for each in writes(self._wanted):
                self._tell(Kept(each, False))
            return
        may_write(self._wanted.pods_group, beside_kubelet=self._beside_kubelet)
        with JournalledTree.open(self._tree, self._journal) as tree:
            for each in enforce(tree, self._wanted):
                self._tell(Kept(each, True))
            await asyncio.Event().wait()
