"""Whatever comes and goes: no byte is given twice, none is lost, and in the end everything is as it was."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bayplan.node.errors import AllocationError
from bayplan.node.machine import NumaNode
from bayplan.node.memory.manager import MemoryManager
from bayplan.node.needs import ContainerNeed, PodNeed, Role
from bayplan.node.sets import ids_of
from bayplan.node.topology.hint import Hint

RESOURCES = ("memory", "hugepages-1Ki")
NODES = [NumaNode(each, 20 * 1024, {1: 6}) for each in (0, 1, 3)]
MASKS = [0b1, 0b10, 0b1000, 0b11, 0b1001, 0b1010, 0b1011]

NEEDS = st.builds(
    lambda role, memory, pages: (role, {"memory": memory * 512, **({RESOURCES[1]: pages * 1024} if pages else {})}),
    st.sampled_from(Role),
    st.integers(1, 60),
    st.integers(0, 8),
)
HINTS = st.builds(Hint, st.none() | st.sampled_from(MASKS), st.booleans())


Step = tuple[PodNeed, list[Hint]] | tuple[str, str]


def pod_of(uid: str, needs: list[tuple[Role, dict[str, int]]]) -> PodNeed:
    ordered = sorted(needs, key=lambda need: need[0] is Role.APP)
    return PodNeed(
        uid, tuple(ContainerNeed(f"c{number}", role, memory=asked) for number, (role, asked) in enumerate(ordered))
    )


@st.composite
def histories(draw: st.DrawFn) -> list[Step]:
    """Pods that are admitted, more than once too, and containers that go."""
    pods = [pod_of(uid, draw(st.lists(NEEDS, min_size=1, max_size=3))) for uid in "pq"]
    removals = st.tuples(st.sampled_from("pq"), st.sampled_from(["c0", "c1", "c2"]))
    admissions = st.tuples(st.sampled_from(pods), st.lists(HINTS, min_size=3, max_size=3))
    return draw(st.lists(admissions | removals, max_size=8))


STEPS = histories()


def fresh() -> MemoryManager:
    return MemoryManager(NODES, "Static", {0: {"memory": 1024}})


def admit(memory: MemoryManager, pod: PodNeed, affinities: list[Hint]) -> None:
    try:
        for container, affinity in zip(pod.containers, affinities, strict=False):
            memory.allocate(pod, container, affinity)
    except AllocationError:
        return


def play(memory: MemoryManager, steps: list[Step]) -> None:
    for what, how in steps:
        if isinstance(what, PodNeed) and not isinstance(how, str):
            admit(memory, what, how)
        elif isinstance(what, str) and isinstance(how, str):
            memory.remove(what, how)


def check(memory: MemoryManager) -> None:
    state = memory.state
    blocks = [block for containers in state.blocks.values() for held in containers.values() for block in held]
    for resource in RESOURCES:
        tables = [node.table(resource) for node in state.nodes.values()]
        assert all(table.free >= 0 and table.reserved >= 0 for table in tables)
        assert all(table.free + table.reserved == table.allocatable for table in tables)
        assert sum(table.reserved for table in tables) == sum(b.size for b in blocks if b.resource == resource)
    for each, node in state.nodes.items():
        lying = [block for block in blocks if block.nodes >> each & 1]
        assert node.assignments == len(lying)
        assert {block.nodes for block in lying} <= {node.cells}, "a node serves one group"


@given(STEPS)
def test_the_books_are_right_after_every_step(steps: list[Step]) -> None:
    memory = fresh()
    for step in steps:
        play(memory, [step])
        check(memory)


@given(STEPS)
def test_what_is_remembered_fits_the_machine(steps: list[Step]) -> None:
    memory = fresh()
    play(memory, steps)
    again = MemoryManager(NODES, "Static", {0: {"memory": 1024}}, memory.state)
    assert (again.state.nodes, again.state.blocks) == (memory.state.nodes, memory.state.blocks)


@given(STEPS, STEPS)
def test_a_fork_does_not_see_what_the_other_does(steps: list[Step], more: list[Step]) -> None:
    memory = fresh()
    play(memory, steps)
    before = memory.state
    fork = memory.fork()
    play(fork, more)
    assert memory.state == before
    play(memory, more)
    assert memory.state == fork.state


@given(STEPS)
def test_once_all_is_removed_all_is_as_it_was(steps: list[Step]) -> None:
    memory = fresh()
    play(memory, steps)
    for uid, containers in memory.state.blocks.items():
        for container in containers:
            memory.remove(uid, container)
    assert (memory.state.nodes, memory.state.blocks) == (fresh().state.nodes, {})


@given(STEPS, st.sampled_from(MASKS))
def test_hints_say_where_there_is_room(steps: list[Step], mask: int) -> None:
    """What a hint offers to a pod of one container, it can have there; what no hint offers, it cannot."""
    memory = fresh()
    play(memory, steps)
    pod = PodNeed("new", (ContainerNeed("c", memory={"memory": 4096}),))
    offered = {hint.nodes for hint in (memory.hints(pod, pod.containers[0]) or {}).get("memory") or ()}
    fork = memory.fork()
    admit(fork, pod, [Hint(mask, False)])
    held = fork.state.held("new", "c")
    got = held[0].nodes if held else None
    if mask in offered:
        assert got == mask
    else:
        assert got is None or (got in offered and {*ids_of(mask)} < {*ids_of(got)})
