"""A remembered state is taken up again if this machine could have come to it, and refused otherwise."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from bayplan.node.errors import StateError
from bayplan.node.machine import NumaNode
from bayplan.node.memory.manager import MemoryManager
from bayplan.node.memory.state import Block, MemoryState, NodeMemory
from bayplan.node.needs import ContainerNeed
from bayplan.node.topology.hint import Hint
from tests.node.memory.test_memory_manager import app, place, pod

NODES = [NumaNode(0, 11), NumaNode(1, 10)]
KEPT = {0: {"memory": 1}}
DIFFERENT = "[memorymanager] the expected machine state is different from the real one"


def remembered() -> MemoryState:
    memory = MemoryManager(NODES, "Static", KEPT)
    place(memory, pod("p", app("a", 12)), Hint(3, True))
    place(memory, pod("q", app("a", 3)), Hint(3, True))
    return memory.state


def restarted(state: MemoryState, nodes: list[NumaNode] = NODES, kept: dict[int, dict[str, int]] = KEPT) -> MemoryState:
    return MemoryManager(nodes, "Static", kept, state).state


def test_what_it_knew_it_knows_again_but_for_upstreams_count() -> None:
    state = remembered()
    counted = msgspec.structs.replace(state, reusable={"q": {3: {"memory": 1}}})
    assert restarted(counted) == state


def test_which_node_of_a_group_was_charged_does_not_matter() -> None:
    memory = MemoryManager(NODES, "Static", KEPT)
    place(memory, pod("p", app("a", 12)), Hint(3, True))
    place(memory, pod("q", app("a", 3)), Hint(3, True))
    memory.remove("p", "a")
    assert [node.table("memory").reserved for node in memory.state.nodes.values()] == [0, 3]
    assert restarted(memory.state) == memory.state


def test_a_group_of_which_one_node_has_the_pages() -> None:
    nodes = [NumaNode(0, 4096, {1: 2}), NumaNode(1, 4096)]
    kept = {0: {"memory": 1}}
    memory = MemoryManager(nodes, "Static", kept)
    place(memory, pod("p", ContainerNeed("a", memory={"memory": 6000, "hugepages-1Ki": 2048})))
    assert memory.state.blocks["p"]["a"][0] == Block("hugepages-1Ki", 3, 2048)
    assert restarted(memory.state, nodes, kept) == memory.state


def test_nothing_of_pages_that_the_machine_does_not_have() -> None:
    memory = MemoryManager(NODES, "Static", KEPT)
    place(memory, pod("p", ContainerNeed("a", memory={"memory": 1, "hugepages-1Gi": 0})))
    assert restarted(memory.state) == memory.state


def changed(node: int, **fields: Any) -> MemoryState:
    state = remembered()
    return msgspec.structs.replace(state, nodes={**state.nodes, node: state.nodes[node]._replace(**fields)})


def with_block(resource: str, nodes: int) -> MemoryState:
    state = remembered()
    return msgspec.structs.replace(state, blocks={**state.blocks, "x": {"c": (Block(resource, nodes, 1),)}})


@pytest.mark.parametrize(
    ("state", "message", "hint"),
    [
        pytest.param(
            MemoryState(blocks=remembered().blocks),
            "[memorymanager] machine state can not be empty when it has memory assignments",
            "",
            id="blocks without a machine",
        ),
        pytest.param(
            with_block("memory", 4),
            "[memorymanager] (pod: x, container: c) the memory assignment uses the NUMA that does not exist",
            "",
            id="a block on a node that is gone",
        ),
        pytest.param(
            with_block("hugepages-2Mi", 1),
            "[memorymanager] (pod: x, container: c) the memory assignment uses memory resource that does not exist",
            "",
            id="a block of pages that are gone",
        ),
        pytest.param(
            changed(1, assignments=7),
            DIFFERENT,
            "NUMA node 1: 7 assignments are remembered, containers have 2",
            id="another count",
        ),
        pytest.param(
            changed(1, cells=2),
            DIFFERENT,
            "NUMA node 1: group 1 is remembered, containers are on 0-1",
            id="another group",
        ),
        pytest.param(
            changed(1, tables={}),
            DIFFERENT,
            "NUMA node 1: remembered are [], the machine has ['memory']",
            id="other kinds of memory",
        ),
        pytest.param(
            MemoryState(nodes={0: NodeMemory(0, 1, {})}),
            DIFFERENT,
            "remembered are NUMA nodes [0], the machine has [0, 1]",
            id="other nodes",
        ),
    ],
)
def test_a_state_that_does_not_fit_is_refused(state: MemoryState, message: str, hint: str) -> None:
    with pytest.raises(StateError) as caught:
        restarted(state)
    assert (caught.value.message, caught.value.hint) == (message, hint)


@pytest.mark.parametrize(
    ("nodes", "kept", "hint"),
    [
        pytest.param(
            [NumaNode(0, 11), NumaNode(1, 12)],
            KEPT,
            "NUMA node 1: memory (total, system reserved, allocatable) was (10, 0, 10), is (12, 0, 12)",
            id="memory was added",
        ),
        pytest.param(
            NODES,
            {0: {"memory": 2}},
            "NUMA node 0: memory (total, system reserved, allocatable) was (11, 1, 10), is (11, 2, 9)",
            id="more is reserved",
        ),
    ],
)
def test_so_is_a_state_of_another_machine(nodes: list[NumaNode], kept: dict[int, dict[str, int]], hint: str) -> None:
    with pytest.raises(StateError) as caught:
        restarted(remembered(), nodes, kept)
    assert (caught.value.message, caught.value.hint) == (DIFFERENT, hint)


def test_so_are_sums_that_do_not_add_up() -> None:
    state = remembered()
    table = state.nodes[0].table("memory")
    broken = changed(0, tables={"memory": table._replace(free=table.free + 1)})
    with pytest.raises(StateError) as caught:
        restarted(broken)
    assert caught.value.hint == "NUMA nodes 0-1: 6 bytes of memory are remembered as free, containers leave 5"


def test_a_node_in_two_groups_may_remember_either() -> None:
    """Upstream allows that state, and forgets the order: whether it starts again is left to chance."""
    memory = MemoryManager([NumaNode(0, 31), NumaNode(1, 10)], "Static", KEPT, as_upstream=True)
    place(memory, pod("p", app("a", 12)), Hint(3, True))
    place(memory, pod("q", app("a", 3)), Hint(1, True))
    nodes = [NumaNode(0, 31), NumaNode(1, 10)]
    assert restarted(memory.state, nodes).nodes[0].cells == 1
    reordered = msgspec.structs.replace(memory.state, blocks=dict(reversed([*memory.state.blocks.items()])))
    assert restarted(reordered, nodes).nodes == memory.state.nodes
