"""Distributed selection: even shares from as few nodes as will do."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.node.cpu.assignment import take_packed
from bayplan.node.cpu.distributed import take_distributed
from bayplan.node.errors import AllocationError
from bayplan.node.machine import Topology
from bayplan.node.sets import format_list, parse_list
from tests.node.cpu.machines import machine, machines, regular_machines, sets_of, shuffles

TWO_NODES = machine(sockets=2, nodes=2, cores=8)
"""Node 0: 0-3 and 8-11; node 1: 4-7 and 12-15."""
EIGHT_NODES = machine(sockets=2, nodes=8, cores=16)
"""Node n: 2n, 2n+1 and their siblings 2n+16, 2n+17."""


def shares(topology: Topology, cpus: int) -> list[int]:
    return [(cpus & members).bit_count() for members in topology.nodes.values()]


@pytest.mark.parametrize(
    ("topology", "available", "count", "group", "expected"),
    [
        pytest.param(TWO_NODES, "0-15", 0, 1, [0, 0], id="nothing is nothing"),
        pytest.param(TWO_NODES, "0-15", 4, 1, [4, 0], id="one node where one will do"),
        pytest.param(TWO_NODES, "1-15", 8, 1, [0, 8], id="the one node that will do"),
        pytest.param(TWO_NODES, "0-15", 10, 1, [5, 5], id="two nodes have equal shares"),
        pytest.param(TWO_NODES, "0-15", 10, 2, [6, 4], id="in groups: the first gets the odd one"),
        pytest.param(TWO_NODES, "2-15", 10, 2, [4, 6], id="in groups: the odd one goes where more is left"),
        pytest.param(TWO_NODES, "0-15", 11, 2, [8, 3], id="packed where the count is no multiple of the group"),
        pytest.param(TWO_NODES, "0-7,12-15", 10, 1, [2, 8], id="packed where one node has less than its share"),
        pytest.param(EIGHT_NODES, "0-31", 16, 2, [4, 4, 4, 4, 0, 0, 0, 0], id="the first of equals"),
    ],
)
def test_distributed(topology: Topology, available: str, count: int, group: int, expected: list[int]) -> None:
    found = take_distributed(topology, parse_list(available), count, group=group)
    assert shares(topology, found.cpus) == expected


def test_as_upstream_a_remembered_combination_is_overwritten() -> None:
    """Four nodes are chosen, 0 to 3; the fourth is replaced by the last one that was looked at in its place."""
    found = take_distributed(EIGHT_NODES, EIGHT_NODES.all, 16, as_upstream=True)
    assert shares(EIGHT_NODES, found.cpus) == [4, 4, 4, 0, 0, 0, 0, 4]


ODD_LEFTOVERS = parse_list("0-2,4-6")
"""Three free CPUs on each of two nodes: one whole group of two each, and one CPU over."""


@pytest.mark.parametrize("as_upstream", [False, True])
def test_leftovers_that_do_not_come_in_groups_end_in_packing(as_upstream: bool) -> None:
    """Upstream never returns here."""
    found = take_distributed(TWO_NODES, ODD_LEFTOVERS, 6, group=2, as_upstream=as_upstream)
    assert format_list(found.cpus) == "0-2,4-6"


def test_too_few_is_refused_in_the_kubelets_words() -> None:
    with pytest.raises(AllocationError) as refused:
        take_distributed(TWO_NODES, 0b111, 4)
    assert refused.value.message == "not enough cpus available to satisfy request: requested=4, available=3"


@given(data=st.data(), topology=machines(), group=st.sampled_from([1, 2, 4]), spread=st.booleans())
def test_as_many_as_asked_all_of_them_free(data: st.DataObject, topology: Topology, group: int, spread: bool) -> None:
    free = data.draw(sets_of(topology.all))
    count = data.draw(st.integers(0, free.bit_count()))
    found = take_distributed(topology, free, count, group=group, spread=spread)
    assert found.cpus & ~free == 0
    assert found.cpus.bit_count() == count
    assert sum(step.cpus for step in found.taken) == found.cpus


@given(data=st.data(), topology=machines(), group=st.sampled_from([1, 2, 4]))
def test_the_order_in_which_cpus_are_told_does_not_matter(data: st.DataObject, topology: Topology, group: int) -> None:
    free = data.draw(sets_of(topology.all))
    count = data.draw(st.integers(0, free.bit_count()))
    shuffled = data.draw(shuffles(topology))
    assert take_distributed(shuffled, free, count, group=group) == take_distributed(topology, free, count, group=group)


@given(data=st.data(), topology=machines(), group=st.sampled_from([1, 2]))
def test_as_upstream_it_always_returns_too(data: st.DataObject, topology: Topology, group: int) -> None:
    free = data.draw(sets_of(topology.all))
    count = data.draw(st.integers(0, free.bit_count()))
    try:
        take_distributed(topology, free, count, group=group, as_upstream=True)
    except AllocationError as refused:
        assert refused.message.startswith("accounting error, ")  # noqa: PT017 - most requests are not refused


@given(data=st.data(), topology=regular_machines())
def test_one_node_is_used_where_one_will_do(data: st.DataObject, topology: Topology) -> None:
    node = data.draw(st.sampled_from([*topology.nodes.values()]))
    free = data.draw(sets_of(topology.all)) | node
    count = data.draw(st.integers(1, node.bit_count()))
    found = take_distributed(topology, free, count).cpus
    assert topology.nodes_of(found).bit_count() == 1


@given(topology=regular_machines(), data=st.data())
def test_on_one_node_it_is_packed(topology: Topology, data: st.DataObject) -> None:
    node = data.draw(st.sampled_from([*topology.nodes.values()]))
    count = data.draw(st.integers(0, node.bit_count()))
    assert take_distributed(topology, node, count) == take_packed(topology, node, count)
