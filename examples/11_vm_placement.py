"""VMs placed by a scheduler: initial placement, a migration, exhaustion. Run it: python examples/11_vm_placement.py

Here the embedded engine decides, in virtual time; with backend="lab" it is a real kube-scheduler on simulated nodes,
and the counts are the same. docs/vms.md tells the rest.
"""

from __future__ import annotations

import random

from bayplan.simulate.vms import VM, ExporterState, Node, PodManager


def kwok_nodes() -> list[Node]:
    return [Node(f"kwok-node-{number}") for number in range(1, 6)]


def initial_placement(exporter: ExporterState) -> None:
    chance = random.Random(7)
    nodes = kwok_nodes()
    nodes[0].vms = [VM(f"vm-{n}", chance.uniform(0.1, 0.3), chance.uniform(0.2, 0.4)) for n in range(10)]
    print("ten VMs, all wished onto the first node:", exporter.load_scenario(nodes))
    for name, use in exporter.use().items():
        there = ", ".join(vm.id for vm in exporter.nodes[name].vms)
        print(f"  {name}  cpu {use.cpu_usage:4.0%}  memory {use.memory_usage:4.0%}  {use.memory_pressure:.3f}  {there}")


def migration(exporter: ExporterState) -> None:
    vm = exporter.vms["vm-5"]
    for wished in (name for name in exporter.nodes if name != vm.scheduled_node):
        result = exporter.move_vm(vm.id, vm.scheduled_node, wished)
        outcome = f"went to {result.chosen}" if result else f"stays on {result.chosen}"
        print(f"vm-5 from {result.source} to {wished}: {outcome}{f', as {result.why}' if result.why.text else ''}")
    print(exporter.agreement().text())


def exhaustion(exporter: ExporterState, pods: PodManager) -> None:
    nodes = kwok_nodes()
    nodes[0].vms = [VM(f"big-{n}", 0.05, 0.33) for n in range(20)]
    exporter.load_scenario(nodes)
    vms = list(exporter.vms.values())
    stats = pods.update_vm_node_assignments(vms)
    print(f"twenty VMs of a third of a node: {stats}")
    waiting = next(vm for vm in vms if not vm.scheduled_node)
    print(f"  {waiting.id}: {pods.why_pending(waiting.id)}")


def main() -> None:
    with PodManager(backend="embedded") as pods:
        exporter = ExporterState(pods)
        initial_placement(exporter)
        migration(exporter)
        exhaustion(exporter, pods)


main()
