"""Who would get which CPUs, memory and devices of a machine if these pods came in this order, and why."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import msgspec

from bayplan.node.admission import Holding, NodeManagers, Remembered
from bayplan.node.configuration import NodeConfiguration
from bayplan.node.machine import Machine
from bayplan.node.needs import Role
from bayplan.node.plan.site import Candidate, Outcome, Site, site_of
from bayplan.node.reasons import hinted, how_selected, why_shared
from bayplan.node.sets import CpuSet, NodeSet


class Share(msgspec.Struct, frozen=True):
    """What one container would run on."""

    container: str
    role: Role
    held: Holding
    why: str
    hints: Mapping[str, str] = {}
    """Where each resource would be best, by the managers' hints."""
    decided: str = ""
    """What the topology manager made of the hints; empty where it has no part in it."""


class Plan(msgspec.Struct, frozen=True):
    """The machine before and after, and what became of each pod, in order."""

    machine: Machine
    configuration: NodeConfiguration
    start: Remembered
    site: Site
    outcomes: tuple[Outcome, ...]

    @property
    def refused(self) -> tuple[Outcome, ...]:
        """Those that were not let in."""
        return tuple(each for each in self.outcomes if not each.admitted)

    @property
    def admitted(self) -> tuple[Candidate, ...]:
        """Those that were."""
        return tuple(each.candidate for each in self.outcomes if each.admitted)

    @property
    def alike(self) -> list[list[Outcome]]:
        """The refused ones; those that ask for the same and find the same are one group."""
        groups: dict[object, list[Outcome]] = {}
        admitted = 0
        for each in self.outcomes:
            admitted += each.admitted
            if not each.admitted:
                need = msgspec.structs.replace(each.candidate.need, uid="")
                groups.setdefault((admitted, repr((need, each.candidate.requests))), []).append(each)
        return [*groups.values()]

    @property
    def others(self) -> tuple[str, ...]:
        """The uids of pods that were there before and that nothing else is known of."""
        known = {each.need.uid for each in self.admitted}
        return tuple(uid for uid in self.site.managers.pods if uid not in known)


def make_plan(
    machine: Machine,
    configuration: NodeConfiguration,
    pods: Iterable[Candidate],
    remembered: Remembered | None = None,
) -> Plan:
    """Let the pods come one by one. Raises ReservationError, PolicyError, StateError."""
    start = remembered or Remembered()
    site = site_of(machine, configuration, start)
    outcomes = tuple(site.admit(each) for each in pods)
    return Plan(machine, configuration, start, site, outcomes)


def shares(plan: Plan, outcome: Outcome) -> Iterator[Share]:
    """What the containers of an admitted pod would run on."""
    managers, pod, need = plan.site.managers, outcome.candidate.pod, outcome.candidate.need
    held = managers.holdings(need.uid)
    for container in (*pod.spec.init_containers, *pod.spec.containers):
        how = managers.cpu.how(need.uid, container.name)
        choice = next((each for each in outcome.choices if each.container in ("", container.name)), None)
        why = why_shared(container, pod, need, managers.policies)
        if not why:
            why = "held before" if how is None else how_selected(how, plan.machine.topology)
        yield Share(
            container=container.name,
            role=need.container(container.name).role,
            held=held.get(container.name, Holding()),
            why=why,
            hints={} if choice is None else hinted(choice.hints),
            decided="" if choice is None else str(choice.why),
        )


class Pool(msgspec.Struct, frozen=True):
    """How the CPUs of one NUMA node are divided, and what else is free there."""

    node: int
    cpus: CpuSet
    reserved: CpuSet
    exclusive: CpuSet
    shared: CpuSet
    free: CpuSet
    """Shared ones that could become someone's own."""
    memory: Mapping[str, int] | None = None
    """Free bytes by kind of memory; None where nobody counts them."""
    devices: Mapping[str, tuple[str, ...]] = {}
    """Free ones by resource."""


def pools(managers: NodeManagers) -> list[Pool]:
    """Every NUMA node's."""
    topology, cpu = managers.machine.topology, managers.cpu
    found = []
    for node in managers.machine.nodes:
        cpus = topology.nodes.get(node.id, 0)
        found.append(
            Pool(
                node=node.id,
                cpus=cpus,
                reserved=cpu.reserved & cpus,
                exclusive=cpu.exclusive & cpus,
                shared=cpu.shared & cpus,
                free=cpu.assignable & cpus,
                memory=_free_memory(managers, node.id),
                devices=_free_devices(managers, 1 << node.id),
            )
        )
    return found


def _free_memory(managers: NodeManagers, node: int) -> Mapping[str, int] | None:
    known = managers.memory.state.nodes.get(node)
    return None if known is None else {name: table.free for name, table in sorted(known.tables.items())}


def _free_devices(managers: NodeManagers, nodes: NodeSet) -> Mapping[str, tuple[str, ...]]:
    devices = managers.devices
    return {
        resource: inventory.names(inventory.near(nodes) & inventory.healthy & ~devices.state.taken(resource))
        for resource, inventory in sorted(devices.inventories.items())
        if inventory.near(nodes)
    }
