"""The memory manager: whom it serves, from which NUMA nodes, and what it says where it cannot."""

from __future__ import annotations

import pytest

from bayplan.model.qos import QosClass
from bayplan.node.errors import AllocationError, PolicyError
from bayplan.node.machine import NumaNode
from bayplan.node.memory.manager import MemoryManager
from bayplan.node.memory.state import Block, Table, hugepages
from bayplan.node.needs import ContainerNeed, PodNeed, Role
from bayplan.node.topology.hint import NO_HINT, Hint, Hints

ANYWHERE = Hint(None, True)


def manager(*free: int, as_upstream: bool = False) -> MemoryManager:
    """A machine whose NUMA nodes have this much memory, 1 of which is the system's on the first."""
    nodes = [NumaNode(each, size + (each == 0)) for each, size in enumerate(free)]
    return MemoryManager(nodes, "Static", {0: {"memory": 1}}, as_upstream=as_upstream)


def app(name: str, memory: int, role: Role = Role.APP) -> ContainerNeed:
    return ContainerNeed(name, role, memory={"memory": memory})


def pod(uid: str, *containers: ContainerNeed) -> PodNeed:
    return PodNeed(uid, containers)


def place(memory: MemoryManager, need: PodNeed, *affinities: Hint) -> None:
    for number, container in enumerate(need.containers):
        memory.allocate(need, container, affinities[number] if number < len(affinities) else NO_HINT)


def used(memory: MemoryManager) -> list[int]:
    return [node.table("memory").reserved for node in memory.state.nodes.values()]


def as_pairs(hints: Hints) -> list[tuple[int | None, bool]]:
    return [(hint.nodes, hint.preferred) for hint in (hints or {})["memory"] or ()]


@pytest.mark.parametrize(
    ("policy", "reserved", "message"),
    [
        pytest.param("static", {}, 'unknown policy: "static"', id="an unknown policy"),
        pytest.param("BestEffort", {}, 'policy "BestEffort" is not available for platform "linux"', id="not on Linux"),
        pytest.param(
            "Static",
            {0: {"hugepages-2Mi": 1}},
            "[memorymanager] you should specify the system reserved memory",
            id="no memory for the system",
        ),
        pytest.param(
            "Static",
            {3: {"memory": 1}},
            "the reserved memory configuration references a NUMA node 3 that does not exist on this machine",
            id="memory of a node that is not there",
        ),
        pytest.param(
            "Static",
            {0: {"memory": 101}},
            "NUMA node 0: 101 bytes of memory are reserved for the system, but there are only 100",
            id="more memory than there is",
        ),
    ],
)
def test_settings_that_cannot_be_are_refused(policy: str, reserved: dict[int, dict[str, int]], message: str) -> None:
    with pytest.raises(PolicyError) as caught:
        MemoryManager([NumaNode(0, 100)], policy, reserved)
    assert caught.value.message == message


def test_huge_pages_are_no_ordinary_memory() -> None:
    node = NumaNode(0, 5 << 30, {2048: 512, 1 << 20: 1})
    memory = MemoryManager([node], "Static", {0: {"memory": 1 << 30, "hugepages-2Mi": 2 << 20}})
    assert memory.state.nodes[0].tables == {
        "hugepages-2Mi": Table(1 << 30, 2 << 20, (1 << 30) - (2 << 20), 0, (1 << 30) - (2 << 20)),
        "hugepages-1Gi": Table(1 << 30, 0, 1 << 30, 0, 1 << 30),
        "memory": Table(5 << 30, 1 << 30, 2 << 30, 0, 2 << 30),
    }


@pytest.mark.parametrize(
    ("kib", "name"),
    [(4, "hugepages-4Ki"), (2048, "hugepages-2Mi"), (1 << 20, "hugepages-1Gi"), (1536, "hugepages-1536Ki")],
)
def test_huge_pages_are_named_by_their_size(kib: int, name: str) -> None:
    assert hugepages(kib) == name


@pytest.mark.parametrize(
    "need",
    [
        pytest.param(PodNeed("p", (app("a", 5),), qos=QosClass.BURSTABLE), id="a pod that is not Guaranteed"),
        pytest.param(PodNeed("p", (app("a", 5),), pod_level=True), id="a pod with resources as a whole"),
    ],
)
def test_some_pods_are_left_alone(need: PodNeed) -> None:
    memory = manager(10)
    place(memory, need)
    assert memory.state.blocks == {}
    assert memory.hints(need, need.containers[0]) is None
    assert memory.pod_hints(need) is None


def test_policy_none_keeps_out_of_everything() -> None:
    memory = MemoryManager([NumaNode(0, 10)], "None", {})
    need = pod("p", app("a", 99))
    place(memory, need)
    memory.remove("p", "a")
    assert (memory.hints(need, need.containers[0]), memory.pod_hints(need), memory.state.blocks) == (None, None, {})


@pytest.mark.parametrize(
    ("held", "asked", "expected"),
    [
        pytest.param([], 10, [(1, True), (2, True), (3, False)], id="each node, or both"),
        pytest.param([], 11, [(3, True)], id="more than a node has"),
        pytest.param([], 21, [], id="more than there is"),
        pytest.param([(1, 4)], 10, [(2, True)], id="a node that is used alone takes no part in a group"),
        pytest.param([(1, 4)], 6, [(1, True), (2, True)], id="but takes more alone"),
        pytest.param([(3, 15)], 5, [(3, False)], id="a node of a group does not go alone"),
        pytest.param([(3, 15)], 6, [], id="a group that is full"),
        pytest.param([(1, 4), (2, 4)], 15, [], id="nodes used alone make no group"),
    ],
)
def test_hints(held: list[tuple[int, int]], asked: int, expected: list[tuple[int, bool]]) -> None:
    memory = manager(10, 10)
    for number, (nodes, size) in enumerate(held):
        place(memory, pod(f"p{number}", app("a", size)), Hint(nodes, True))
    need = pod("new", app("a", asked))
    hints = memory.hints(need, need.containers[0])
    assert hints == memory.pod_hints(need)
    assert (as_pairs(hints) if hints else []) == expected
    if not expected:
        assert hints == {}


def test_all_kinds_of_memory_must_be_there() -> None:
    nodes = [NumaNode(0, 1 << 30), NumaNode(1, 1 << 30, {2048: 4})]
    memory = MemoryManager(nodes, "Static", {0: {"memory": 1}})
    need = PodNeed("p", (ContainerNeed("a", memory={"memory": 1, "hugepages-2Mi": 2 << 20}),))
    both = [Hint(2, True), Hint(3, False)]
    assert memory.hints(need, need.containers[0]) == {"memory": both, "hugepages-2Mi": both}


def test_a_kind_that_no_node_has_is_refused() -> None:
    memory = manager(10)
    need = PodNeed("p", (ContainerNeed("a", memory={"memory": 1, "hugepages-2Mi": 2 << 20}),))
    with pytest.raises(AllocationError, match="no NUMA nodes with enough memory"):
        place(memory, need)


def test_who_holds_what_it_asks_for_hints_at_it() -> None:
    memory = manager(10, 10)
    need = pod("p", app("a", 4), app("b", 5))
    place(memory, need, Hint(2, True), Hint(1, True))
    assert memory.hints(need, need.containers[1]) == {"memory": [Hint(1, True)]}
    assert memory.hints(need, app("a", 5)) is None
    assert memory.pod_hints(need) is None, "the first container holds less than the whole pod asks for"
    assert memory.pod_hints(pod("p", app("a", 4))) == {"memory": [Hint(2, True)]}


@pytest.mark.parametrize(
    ("affinity", "asked", "expected"),
    [
        pytest.param(NO_HINT, 4, [4, 0, 0], id="without an affinity the lowest node"),
        pytest.param(Hint(2, True), 4, [0, 4, 0], id="the affinity"),
        pytest.param(Hint(2, False), 14, [10, 4, 0], id="an affinity that is too small is extended"),
        pytest.param(Hint(6, True), 12, [0, 10, 2], id="a group is filled in the order of its nodes"),
    ],
)
def test_memory_comes_from_the_affinity(affinity: Hint, asked: int, expected: list[int]) -> None:
    memory = manager(10, 10, 10)
    place(memory, pod("p", app("a", asked)), affinity)
    assert used(memory) == expected


@pytest.mark.parametrize(
    ("held", "affinity", "asked", "message"),
    [
        pytest.param(
            [],
            NO_HINT,
            31,
            "failed to get the default NUMA affinity, no NUMA nodes with enough memory is available",
            id="nowhere enough",
        ),
        pytest.param(
            [(1, 1), (2, 1), (4, 1)],
            ANYWHERE,
            10,
            "failed to get the default NUMA affinity, no NUMA nodes with enough memory is available",
            id="every node is used a little",
        ),
        pytest.param(
            [(3, 12), (4, 5)],
            ANYWHERE,
            8,
            "failed to find the default preferred hint",
            id="a preference was promised, only a group is left",
        ),
        pytest.param(
            [(1, 4)],
            Hint(1, True),
            7,
            "failed to find NUMA nodes to extend the current topology hint",
            id="a node used alone cannot be extended",
        ),
        pytest.param(
            [(3, 12)],
            Hint(1, True),
            8,
            "failed to find the extended preferred hint",
            id="a preference was promised, only its group is left",
        ),
        pytest.param(
            [(1, 1)],
            Hint(3, True),
            5,
            "preferred hint violates NUMA node allocation",
            id="a group with a node that is used alone",
        ),
    ],
)
def test_where_it_cannot(held: list[tuple[int, int]], affinity: Hint, asked: int, message: str) -> None:
    memory = manager(10, 10, 10)
    for number, (nodes, size) in enumerate(held):
        place(memory, pod(f"p{number}", app("a", size)), Hint(nodes, True))
    before = memory.state
    with pytest.raises(AllocationError) as caught:
        place(memory, pod("new", app("a", asked)), affinity)
    assert caught.value.message == f"[memorymanager] {message}"
    assert memory.state == before


@pytest.mark.parametrize(
    ("as_upstream", "nodes"),
    [
        pytest.param(False, 3, id="its group takes it"),
        pytest.param(True, 1, id="upstream splits the group"),
    ],
)
def test_one_node_of_a_group_of_several(as_upstream: bool, nodes: int) -> None:
    memory = manager(30, 10, as_upstream=as_upstream)
    place(memory, pod("p", app("a", 12)), Hint(3, True))
    place(memory, pod("q", app("a", 5)), Hint(1, False))
    assert memory.state.held("q", "a") == (Block("memory", nodes, 5),)


def test_init_containers_leave_their_memory_to_the_pod() -> None:
    memory = manager(10)
    need = pod("p", app("i", 6, Role.INIT), app("s", 1, Role.SIDECAR), app("j", 7, Role.INIT), app("a", 3))
    place(memory, need)
    sizes = {name: blocks[0].size for name, blocks in memory.state.blocks["p"].items()}
    assert sizes == {"i": 0, "s": 1, "j": 4, "a": 3}, "their sum is the real use"
    assert used(memory) == [8]


@pytest.mark.parametrize(
    ("as_upstream", "charged"),
    [
        pytest.param(False, 2, id="what is left is used again"),
        pytest.param(True, 3, id="upstream has lost count, and charges it anew"),
    ],
)
def test_a_pod_that_comes_again_for_a_container_that_was_removed(as_upstream: bool, charged: int) -> None:
    memory = manager(10, as_upstream=as_upstream)
    need = pod("p", app("i", 3, Role.INIT), app("a", 1), app("b", 1))
    place(memory, need)
    memory.remove("p", "b")
    place(memory, need)
    assert used(memory) == [charged]


def test_the_pod_asks_for_the_most_that_it_needs_at_once() -> None:
    memory = manager(10, 10)
    need = pod("p", app("s", 2, Role.SIDECAR), app("i", 9, Role.INIT), app("a", 4), app("b", 4))
    assert as_pairs(memory.pod_hints(need)) == [(3, True)], "9 beside the sidecar's 2 are more than 2 + 4 + 4"


def test_allocation_is_idempotent_and_removal_gives_everything_back() -> None:
    memory = manager(10, 10)
    start = memory.state
    need = pod("p", app("i", 6, Role.INIT), app("a", 9))
    place(memory, need, Hint(2, True), Hint(2, True))
    after = memory.state
    place(memory, need)
    assert (memory.state.nodes, memory.state.blocks) == (after.nodes, after.blocks)
    for container in need.containers:
        memory.remove("p", container.name)
        memory.remove("p", container.name)
    assert memory.state == start


def test_a_fork_leaves_no_trace() -> None:
    memory = manager(10)
    fork = memory.fork()
    place(fork, pod("p", app("a", 5)))
    assert (used(memory), used(fork)) == ([0], [5])
