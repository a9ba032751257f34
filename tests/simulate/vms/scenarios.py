"""The three scenarios that a placement of VMs is first tried with; what comes out is the same on every backend."""

from __future__ import annotations

import random

from bayplan.cluster.kinds import POD_DISRUPTION_BUDGET
from bayplan.simulate.vms import VM, ExporterState, Migration, MoveResult, Node, PodManager

Counts = dict[str, int]


def five_nodes(prefix: str) -> list[Node]:
    return [Node(f"{prefix}-{number}") for number in range(1, 6)]


def initial_placement(pods: PodManager, prefix: str) -> Counts:
    """Ten VMs of random sizes, all wished onto the first of five nodes."""
    chance = random.Random(7)
    nodes = five_nodes(prefix)
    nodes[0].vms = [VM(f"vm-{n}", chance.uniform(0.1, 0.3), chance.uniform(0.2, 0.4)) for n in range(10)]
    state = ExporterState(pods)
    counts = state.load_scenario(nodes)
    assert_as_decided(state)
    assert all(use.memory_usage <= 1 for use in state.use().values())
    return counts


def migration(pods: PodManager, prefix: str) -> tuple[MoveResult, Migration, Migration]:
    """Of three VMs on three nodes one is wished onto a full node, must go back, and must go to the full one."""
    nodes = [Node(f"{prefix}-{n}", labels={"group": f"g{n}"}) for n in range(1, 4)]
    full, stays = VM("full", 0.2, 0.9, node_selector={"group": "g2"}), VM("stays", 0.1, 0.2)
    mover = VM("mover", 0.1, 0.3)
    state = ExporterState(pods)
    nodes[0].vms = [full]
    state.load_scenario(nodes)
    nodes[0].vms = [mover, stays]  # only now, that they do not take the room of the large one
    state.load_scenario(nodes)
    source = mover.scheduled_node
    other = next(node.name for node in nodes if node.name not in (source, f"{prefix}-2"))

    wish = state.move_vm("mover", source, f"{prefix}-2")
    back = pods.migrate(mover, other, source)
    refused = pods.migrate(mover, source, f"{prefix}-2")

    assert_as_decided(state)
    assert mover.scheduled_node == source
    return wish, back, refused


def exhaustion(pods: PodManager, prefix: str) -> Counts:
    """Twenty VMs of a third of a node's memory on five nodes: three each, the rest waits."""
    nodes = five_nodes(prefix)
    nodes[0].vms = [VM(f"big-{n}", 0.05, 0.33) for n in range(20)]
    state = ExporterState(pods)
    counts = state.load_scenario(nodes)
    assert_as_decided(state)
    assert [len(node.vms) for node in state.nodes.values()] == [3] * 5
    return counts


def assert_as_decided(state: ExporterState) -> None:
    """A node's VMs are those whose pods the scheduler put there, and every VM is somewhere."""
    pods, mirror = state.pod_manager, state.pod_manager.mirror
    there = {vm.id: name for name, node in state.nodes.items() for vm in node.vms}
    decided = {vm: place.node for vm in mirror.vms() if (place := mirror.place(vm)) is not None and place.node}
    assert there == decided
    assert sum(state.counts().values()) == len(state.vms)
    assert sum(pods.update_vm_node_assignments(list(state.vms.values())).values()) == len(state.vms)


def budget(pods: PodManager, unavailable: int) -> None:
    """A budget over the VMs labelled guarded; an older one goes."""
    document = {
        "metadata": {"name": "guard"},
        "spec": {"maxUnavailable": unavailable, "selector": {"matchLabels": {"guarded": "yes"}}},
    }
    placing = pods._placing

    async def replace() -> None:
        for item in (await placing.cluster.list(POD_DISRUPTION_BUDGET, placing.terms.namespace)).items:
            await placing.cluster.delete(POD_DISRUPTION_BUDGET, item.name, item.namespace)
        await placing.cluster.create(POD_DISRUPTION_BUDGET, document, placing.terms.namespace)

    pods._thread.call(replace())


def guarded(pods: PodManager, prefix: str, *, running: bool = True) -> list[VM]:
    """Three VMs under the eyes of a budget, on five nodes."""
    pods.ensure_nodes(five_nodes(prefix))
    vms = [VM(f"guarded-{n}", 0.1, 0.1, labels={"guarded": "yes"}) for n in range(3)]
    pods.sync_pods_with_vms(vms)
    assert pods.update_vm_node_assignments(vms) == {"scheduled": 3, "pending": 0, "missing": 0}
    assert not running or pods.wait_until_running(vms)
    return vms
