"""Hints for CPUs: which NUMA nodes would do, and which are preferred."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.node.cpu.hints import container_hints, generate, pod_hints
from bayplan.node.cpu.policy import StaticPolicy
from bayplan.node.cpu.state import CpuState
from bayplan.node.machine import Topology
from bayplan.node.needs import PodNeed
from bayplan.node.policies import NodePolicies
from bayplan.node.sets import ids_of, parse_list
from bayplan.node.topology.hint import Hints
from tests.node.cpu.machines import guaranteed, machine, machines, sets_of

TWO_NODES = machine(sockets=2, nodes=2, cores=8)
"""Node 0: 0-3 and 8-11; node 1: 4-7 and 12-15."""
FOUR_NODES = machine(sockets=2, nodes=4, cores=8)


def written(hints: Hints) -> str:
    """Nodes joined, preferred ones starred: `0* 1* 01`."""
    if hints is None:
        return "no opinion"
    found = hints["cpu"] or ()
    return " ".join("".join(map(str, ids_of(hint.nodes or 0))) + "*" * hint.preferred for hint in found)


@pytest.mark.parametrize(
    ("topology", "available", "reusable", "count", "by_socket", "expected"),
    [
        pytest.param(TWO_NODES, "0-15", "", 2, False, "0* 1* 01", id="either node will do, both are more than needed"),
        pytest.param(TWO_NODES, "4-15", "", 8, False, "1* 01", id="a node with too little is left out"),
        pytest.param(TWO_NODES, "1-7,9-15", "", 8, False, "1* 01", id="one node is enough if it were empty"),
        pytest.param(TWO_NODES, "1-6,9-14", "", 8, False, "01", id="nothing is preferred where no single node is left"),
        pytest.param(TWO_NODES, "0-15", "", 9, False, "01*", id="two nodes are what it takes"),
        pytest.param(TWO_NODES, "0-15", "", 17, False, "", id="nothing will do"),
        pytest.param(TWO_NODES, "0-3", "4", 2, False, "01", id="reusable CPUs must be inside"),
        pytest.param(TWO_NODES, "5-7", "4", 4, False, "1* 01", id="reusable CPUs count"),
        pytest.param(FOUR_NODES, "0-15", "", 12, False, "012* 013* 023* 123* 0123", id="three of four"),
        pytest.param(
            FOUR_NODES,
            "0-15",
            "",
            5,
            True,
            "01* 02* 03* 12* 13* 23* 012 013 023 123 0123",
            id="sockets add none",
        ),
        pytest.param(
            FOUR_NODES,
            "0-15",
            "",
            2,
            True,
            "0* 1* 2* 3* 01* 02 03 12 13 23* 012 013 023 123 0123",
            id="by socket: two nodes of a socket are as good as one",
        ),
    ],
)
def test_hints(topology: Topology, available: str, reusable: str, count: int, by_socket: bool, expected: str) -> None:
    found = generate(topology, parse_list(available), parse_list(reusable), count, by_socket=by_socket)
    assert written({"cpu": found}) == expected


POLICY = StaticPolicy(TWO_NODES, NodePolicies(cpu="static", reserved=1))
EMPTY = CpuState(TWO_NODES.all)


@pytest.mark.parametrize(
    ("pod", "state", "reusable", "expected"),
    [
        pytest.param(guaranteed(0), EMPTY, "", "no opinion", id="no CPUs of its own"),
        pytest.param(guaranteed(8), EMPTY, "", "1* 01", id="reserved CPUs are not for it"),
        pytest.param(guaranteed(2), EMPTY.assigned("pod", "c0", 0b11), "", "0* 01", id="what it holds is hinted again"),
        pytest.param(
            guaranteed(3), EMPTY.assigned("pod", "c0", 0b11), "", "", id="where it holds another number, none"
        ),
        pytest.param(guaranteed(2), EMPTY, "1-2", "0* 01", id="what it may reuse holds it"),
    ],
)
def test_both_scopes_hint_the_same_for_one_container(
    pod: PodNeed, state: CpuState, reusable: str, expected: str
) -> None:
    free = parse_list(reusable)
    assert written(container_hints(POLICY, state, free, pod, pod.containers[0])) == expected
    assert written(pod_hints(POLICY, state, free, pod)) == expected


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        pytest.param(guaranteed(4, 4), "1* 01", id="containers add up"),
        pytest.param(guaranteed(2, init=(8,)), "1* 01", id="the largest init container counts where it is more"),
        pytest.param(guaranteed(7, init=(1, 7)), "0* 1* 01", id="init containers take turns"),
        pytest.param(guaranteed(6, sidecars=(2,)), "1* 01", id="sidecars stay"),
        pytest.param(guaranteed(2, sidecars=(14,)), "", id="more than there is"),
    ],
)
def test_a_pod_is_hinted_for_its_peak(pod: PodNeed, expected: str) -> None:
    assert written(pod_hints(POLICY, EMPTY, 0, pod)) == expected


def test_what_a_pod_holds_in_part_holds_it() -> None:
    pod = guaranteed(2, 2)
    assert written(pod_hints(POLICY, EMPTY.assigned("pod", "c0", 0b110), 0, pod)) == "0* 01"
    assert written(pod_hints(POLICY, EMPTY.assigned("pod", "c0", 0b110).assigned("pod", "c1", 0b11000), 0, pod)) == "01"


def test_a_pod_with_resources_of_its_own_is_left_alone() -> None:
    pod = PodNeed("pod", guaranteed(2).containers, pod_level=True)
    assert container_hints(POLICY, EMPTY, 0, pod, pod.containers[0]) is None
    assert pod_hints(POLICY, EMPTY, 0, pod) is None


def test_reusable_cpus_that_are_free_again_count_once() -> None:
    as_upstream = StaticPolicy(TWO_NODES, NodePolicies(cpu="static", reserved=1, as_upstream=True))
    state, pod, reusable = CpuState(0b1111), guaranteed(4), 0b1110
    assert written(pod_hints(POLICY, state, reusable, pod)) == ""
    assert written(pod_hints(as_upstream, state, reusable, pod)) == "0* 01"


@given(data=st.data(), topology=machines())
def test_every_hint_has_room_and_no_room_is_missed(data: st.DataObject, topology: Topology) -> None:
    free = data.draw(sets_of(topology.all))
    count = data.draw(st.integers(1, len(topology.cpus)))
    hints = generate(topology, free, 0, count)
    assert all((topology.in_nodes(hint.nodes or 0) & free).bit_count() >= count for hint in hints)
    assert bool(hints) == (free.bit_count() >= count)
    assert len({hint.nodes for hint in hints}) == len(hints)
