"""All managers of a node together: who is asked, who holds what, and what is left when a pod goes."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayplan.node.admission import Holding, NodeManagers, Remembered
from bayplan.node.errors import PolicyError, StateError
from bayplan.node.machine import Cpu, Device, Machine, NumaNode, Topology
from bayplan.node.memory.state import Block
from bayplan.node.needs import ContainerNeed, PodNeed, Role
from bayplan.node.policies import NodePolicies, TopologyPolicies
from bayplan.node.sets import parse_list
from bayplan.node.topology.hint import Hint

GPU = "example.com/gpu"

TWO_NODES = Machine(
    "two",
    Topology(tuple(Cpu(each, each - each % 2, each // 4, each // 4, each // 4) for each in range(8))),
    (NumaNode(0, 11), NumaNode(1, 10)),
    (Device(GPU, "g0", 1), Device(GPU, "g1", 2)),
)


def policies(topology: str = "single-numa-node", scope: str = "container") -> NodePolicies:
    return NodePolicies(
        cpu="static",
        reserved=1,
        reserved_cpus=1,
        topology=TopologyPolicies(topology, scope),
        memory="Static",
        reserved_memory={0: {"memory": 1}},
    )


def node(topology: str = "single-numa-node", scope: str = "container") -> NodeManagers:
    return NodeManagers(TWO_NODES, policies(topology, scope))


def need(name: str, cpus: int, memory: int, gpus: int = 0, role: Role = Role.APP) -> ContainerNeed:
    return ContainerNeed(name, role, cpus, {"memory": memory}, {GPU: gpus} if gpus else {})


def pod(uid: str, *containers: ContainerNeed) -> PodNeed:
    return PodNeed(uid, containers)


def test_everything_comes_from_the_same_numa_node() -> None:
    managers = node()
    managers.admit(pod("other", need("a", 1, 1, 1)))
    admission = managers.admit(pod("p", need("a", 2, 5, 1)))
    assert admission.admitted
    assert [*admission.choices[0].hints] == ["devices", "cpu", "memory"]
    assert managers.holdings("p") == {
        "a": Holding(
            cpus=parse_list("4-5"),
            memory=(Block("memory", 2, 5),),
            devices={GPU: ("g1",)},
            affinity=Hint(2, True),
            nodes=2,
        )
    }
    assert managers.pods == ("other", "p")


def test_a_device_elsewhere_refuses_the_pod() -> None:
    managers = node()
    managers.admit(pod("other", need("a", 3, 1)))
    managers.admit(pod("more", need("a", 1, 1, 1)))
    admission = managers.admit(pod("p", need("a", 2, 1, 2)))
    assert admission.refusal is not None
    assert admission.refusal.message == "Resources cannot be allocated with Topology locality"


@pytest.mark.parametrize(
    ("asked", "provider", "reason"),
    [
        pytest.param(need("b", 1, 1, 9), "devices", "UnexpectedAdmissionError", id="too many devices"),
        pytest.param(need("b", 9, 1), "cpu", "UnexpectedAdmissionError", id="too many CPUs"),
        pytest.param(need("b", 1, 99), "memory", "UnexpectedAdmissionError", id="too much memory"),
    ],
)
def test_the_manager_that_cannot_is_named_and_what_came_before_stays_until_removed(
    asked: ContainerNeed, provider: str, reason: str
) -> None:
    managers = node("none")
    start = managers.state
    admission = managers.admit(pod("p", need("a", 1, 1, 1), asked))
    assert admission.refusal is not None
    assert (admission.refusal.provider, admission.refusal.container, admission.refusal.reason) == (
        provider,
        "b",
        reason,
    )
    assert managers.holdings("p")["a"].devices == {GPU: ("g0",)}
    managers.remove("p")
    assert (managers.state, managers.pods) == (start, ())


def test_finished_init_containers_free_their_memory_alone() -> None:
    managers = node()
    asked = pod("p", need("i", 2, 6, 1, Role.INIT), need("s", 1, 1, role=Role.SIDECAR), need("a", 2, 3))
    assert managers.admit(asked).admitted
    before = managers.state
    managers.start_containers(asked)
    assert managers.state.cpu == before.cpu
    assert managers.state.devices == before.devices
    assert managers.memory.state.nodes[0].table("memory").reserved == 4
    assert [*managers.holdings("p")] == ["s", "a", "i"]


def test_a_restart_loses_affinities_alone() -> None:
    managers = node()
    managers.admit(pod("p", need("a", 2, 5, 1)))
    again = NodeManagers(TWO_NODES, policies(), managers.state)
    held = managers.holdings("p")["a"]
    assert again.holdings("p") == {"a": msgspec.structs.replace(held, affinity=None)}
    assert again.state == managers.state


def test_a_state_of_another_machine_is_refused() -> None:
    managers = node()
    managers.admit(pod("p", need("a", 2, 5, 1)))
    smaller = msgspec.structs.replace(TWO_NODES, devices=())
    with pytest.raises(StateError):
        NodeManagers(smaller, policies(), managers.state)


def test_impossible_settings_are_refused() -> None:
    with pytest.raises(PolicyError):
        NodeManagers(TWO_NODES, NodePolicies(memory="Static"))


def test_without_settings_nothing_is_managed_but_devices() -> None:
    managers = NodeManagers(TWO_NODES, NodePolicies())
    assert managers.admit(pod("p", need("a", 2, 5, 1))).admitted
    assert managers.holdings("p") == {"a": Holding(devices={GPU: ("g0",)})}
    assert managers.state == Remembered(devices={"p": {"a": {GPU: ("g0",)}}})


CONTAINERS = st.lists(
    st.tuples(st.sampled_from(Role), st.integers(0, 4), st.integers(1, 12), st.integers(0, 2)), min_size=1, max_size=3
)
STEPS = st.lists(st.tuples(st.sampled_from("pqrs"), CONTAINERS, st.booleans()), max_size=6)


def built(uid: str, asked: list[tuple[Role, int, int, int]]) -> PodNeed:
    ordered = sorted(asked, key=lambda each: each[0] is Role.APP)
    return pod(
        uid, *(need(f"c{at}", cpus, memory, gpus, role) for at, (role, cpus, memory, gpus) in enumerate(ordered))
    )


@settings(max_examples=50)
@given(
    st.sampled_from(["none", "best-effort", "restricted", "single-numa-node"]),
    st.sampled_from(["container", "pod"]),
    STEPS,
)
def test_whatever_comes_in_the_end_all_is_as_it_was(
    topology: str, scope: str, steps: list[tuple[str, list[tuple[Role, int, int, int]], bool]]
) -> None:
    managers = node(topology, scope)
    start = managers.state
    for uid, asked, starts in steps:
        managers.remove(uid)
        wanted = built(uid, asked)
        fork, before = managers.fork(), managers.state
        told = fork.admit(wanted)
        assert managers.state == before, "a fork leaves no trace"
        assert managers.admit(wanted).admitted == told.admitted
        assert managers.state == fork.state
        if not told.admitted:
            managers.remove(uid)
            assert (managers.cpu.state, managers.devices.held) == (before.cpu, before.devices)
        elif starts:
            managers.start_containers(wanted)
        if told.admitted and topology == "single-numa-node" and scope == "container":
            assert all(held.nodes.bit_count() <= 1 for held in managers.holdings(uid).values())
    for uid in managers.pods:
        managers.remove(uid)
    assert managers.state == start
