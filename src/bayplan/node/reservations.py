"""What a machine has, what is kept of it, and what is left for pods.

    capacity - system reserved - kube reserved                        = what the cgroup of all pods may use
    capacity - system reserved - kube reserved - eviction threshold   = allocatable, what pods may ask for

Amounts are thousandths of a core for cpu, else bytes. Source of truth: kubelet 1.36 pkg/kubelet/cm.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from bayplan.model.errors import PermanentError
from bayplan.model.quantity import Format, Quantity
from bayplan.model.resources import CPU, HUGEPAGES_PREFIX, MEMORY, Amounts
from bayplan.node.configuration import NodeConfiguration
from bayplan.node.machine import Machine
from bayplan.node.memory.state import hugepages
from bayplan.node.sets import format_list

_MILLIS = 1000
_KIB = 1024


class ReservationError(PermanentError):
    """Reservations that this machine cannot have; a line for each fault, with the numbers."""

    code = "BP-N024"


class Shares(msgspec.Struct, frozen=True):
    """How a machine's resources are divided."""

    capacity: Amounts
    system: Amounts
    kube: Amounts
    eviction: Amounts

    @property
    def reserved(self) -> Amounts:
        """All that pods may not ask for."""
        parts = (self.system, self.kube, self.eviction)
        sums = {name: sum(part.get(name, 0) for part in parts) for name in self.capacity}
        return {name: amount for name, amount in sums.items() if amount}

    @property
    def allocatable(self) -> Amounts:
        """What pods may ask for."""
        kept = self.reserved
        return {name: amount - kept.get(name, 0) for name, amount in self.capacity.items()}


def divide(configuration: NodeConfiguration, machine: Machine) -> Shares:
    """A machine's resources under these reservations. Raises ReservationError with every fault."""
    capacity = capacity_of(machine)
    shares = Shares(
        capacity=capacity,
        system=_amounts(configuration.system_reserved),
        kube=_amounts(configuration.kube_reserved),
        eviction={MEMORY: configuration.eviction.of(capacity[MEMORY])},
    )
    faults = [
        *_cpu_faults(configuration, machine),
        *_capacity_faults(shares),
        *_memory_faults(configuration.policies.reserved_memory, machine),
    ]
    if configuration.policies.memory == "Static" and not faults:
        faults += _sum_faults(configuration.policies.reserved_memory, shares.reserved)
    if faults:
        raise ReservationError(
            f"machine {machine.name}: " + "\n".join(faults), hint="docs/node-configuration.md shows how to add them up"
        )
    return shares


def capacity_of(machine: Machine) -> Amounts:
    """All that a machine has: online CPUs, memory, huge pages by size."""
    capacity = {CPU: len(machine.topology.cpus) * _MILLIS, MEMORY: sum(node.memory for node in machine.nodes)}
    for node in machine.nodes:
        for kib, pages in node.hugepages.items():
            name = hugepages(kib)
            capacity[name] = capacity.get(name, 0) + kib * _KIB * pages
    return capacity


def _amounts(given: Mapping[str, Quantity]) -> Amounts:
    return {name: amount.milli() if name == CPU else amount.value() for name, amount in given.items()}


def _written(name: str, amount: int) -> str:
    return str(Quantity.of_milli(amount) if name == CPU else Quantity.whole(amount, Format.BINARY_SI))


def _cpu_faults(configuration: NodeConfiguration, machine: Machine) -> Iterator[str]:
    policies, online = configuration.policies, machine.topology.all
    named = policies.reserved_cpus
    if named & ~online:
        missing = named & ~online & ~machine.offline
        reasons = [
            f"{format_list(which)} {words}"
            for which, words in ((named & machine.offline, "offline"), (missing, "not there"))
            if which
        ]
        yield (
            f"reserved-cpus: {format_list(named)} is not a subset of online-cpus: {format_list(online)} "
            f"({', '.join(reasons)})"
        )
    if policies.cpu == "static" and policies.reserved == 0:
        yield "[cpumanager] the static policy requires systemreserved.cpu + kubereserved.cpu to be greater than zero"


def _capacity_faults(shares: Shares) -> Iterator[str]:
    for name, amount in shares.reserved.items():
        if amount > shares.capacity[name]:
            parts = ((each, getattr(shares, each).get(name, 0)) for each in ("system", "kube", "eviction"))
            yield (
                f'Resource "{name}" has a reservation of {_written(name, amount)} '
                f"({', '.join(f'{each} {_written(name, part)}' for each, part in parts if part)}) "
                f"but capacity of {_written(name, shares.capacity[name])}. Expected capacity >= reservation."
            )


def _memory_faults(reserved: Mapping[int, Amounts], machine: Machine) -> Iterator[str]:
    nodes = {node.id: node for node in machine.nodes}
    for id_, amounts in sorted(reserved.items()):
        node = nodes.get(id_)
        if node is None:
            yield (
                f"the reserved memory configuration references a NUMA node {id_} that does not exist on this machine "
                f"(nodes {', '.join(map(str, nodes))})"
            )
            continue
        has = {MEMORY: node.memory, **{hugepages(kib): kib * _KIB * pages for kib, pages in node.hugepages.items()}}
        for name, amount in amounts.items():
            if amount > has.get(name, 0):
                yield (
                    f"NUMA node {id_}: {_written(name, amount)} of {name} reserved, "
                    f"and it has {_written(name, has.get(name, 0))}"
                )


def _sum_faults(reserved: Mapping[int, Amounts], kept: Amounts) -> Iterator[str]:
    """The kubelet wants both ways of counting to agree."""
    totals: Amounts = {}
    for amounts in reserved.values():
        for name, amount in amounts.items():
            totals[name] = totals.get(name, 0) + amount
    wanted = {name: amount for name, amount in kept.items() if name == MEMORY or name.startswith(HUGEPAGES_PREFIX)}
    for name in sorted({*totals, *wanted}):
        total, expected = totals.get(name, 0), wanted.get(name, 0)
        if total != expected:
            yield (
                f'the total amount "{_written(name, total)}" of type "{name}" is not equal to the value '
                f'"{_written(name, expected)}" determined by Node Allocatable feature'
            )
