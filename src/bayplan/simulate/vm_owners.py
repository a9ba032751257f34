"""What owns the VMs of a scenario, where a disruption budget asks how many there should be.

A budget that says how many may be missing, or wants a share, asks the controllers of its pods for their scale. So each
VM of its gets an object of the kind VirtualMachine, as PodManager makes it (vms/launcher), which both of its pods name
while it migrates. Nobody else asks: without such a budget there are none, and the cluster does not know the kind.
"""

from __future__ import annotations

from contextlib import suppress

from bayplan.cluster.embedded.engine import EmbeddedCluster
from bayplan.cluster.kinds import CUSTOM_RESOURCE_DEFINITION
from bayplan.model.errors import AlreadyExists
from bayplan.simulate.manifests import Made
from bayplan.simulate.scenario import Budget, Scenario, VmGroup
from bayplan.simulate.vms.launcher import VIRTUAL_MACHINE, definition, virtual_machine
from bayplan.simulate.vms.vm import VM


def has_owners(group: VmGroup, scenario: Scenario) -> bool:
    """Whether the VMs of a group have owners. Of a selector nobody knows whom it means, so it may mean them."""
    near = [budget for budget in scenario.budgets if budget.namespace == group.namespace]
    return any(_asks_for_scale(budget) and budget.workload in ("", group.name) for budget in near)


def _asks_for_scale(budget: Budget) -> bool:
    return budget.max_unavailable is not None or isinstance(budget.min_available, str)


def with_owners(scenario: Scenario) -> list[VmGroup]:
    """The groups whose VMs have owners."""
    return [group for group in scenario.vms if has_owners(group, scenario)]


def owner(vm: VM, group: VmGroup) -> Made:
    """What owns the pods of a VM."""
    return Made(VIRTUAL_MACHINE, group.namespace, virtual_machine(vm))


def furnish(cluster: EmbeddedCluster, scenario: Scenario) -> None:
    """Let a cluster know the kind, if the scenario needs it."""
    if with_owners(scenario):
        with suppress(AlreadyExists):
            cluster.world.server.create(CUSTOM_RESOURCE_DEFINITION, "", definition())
        cluster.world.settle()
