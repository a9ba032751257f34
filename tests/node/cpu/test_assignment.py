"""Packed selection: what is taken, in which order, and what always holds."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.node.cpu.assignment import Level, take_packed
from bayplan.node.errors import AllocationError
from bayplan.node.machine import Topology
from bayplan.node.sets import format_list, parse_list
from tests.node.cpu.machines import HYBRID, machine, machines, regular_machines, sets_of, shuffles

TWO_NODES = machine(sockets=2, nodes=2, cores=8)
"""Node 0: 0-3 and 8-11; node 1: 4-7 and 12-15."""
FOUR_NODES = machine(sockets=2, nodes=4, cores=8)
"""Socket 0: node 0 (0-1, 8-9), node 1 (2-3, 10-11); socket 1: node 2 (4-5, 12-13), node 3 (6-7, 14-15)."""
TWO_CACHES = machine(cores=8, cores_per_cache=4)
"""One node; L3 group 0: 0-3 and 8-11; group 1: 4-7 and 12-15."""
SPREAD, BY_CACHE = {"spread": True}, {"prefer_cache": True}


@pytest.mark.parametrize(
    ("topology", "available", "count", "options", "expected"),
    [
        pytest.param(TWO_NODES, "0-15", 0, {}, "", id="nothing is nothing"),
        pytest.param(TWO_NODES, "0-15", 2, {}, "0,8", id="a whole core before two halves"),
        pytest.param(TWO_NODES, "0-15", 3, {}, "0-1,8", id="an odd CPU comes from the next core"),
        pytest.param(TWO_NODES, "1-15", 1, {}, "8", id="a core in use is filled before another is opened"),
        pytest.param(TWO_NODES, "0-3,5-15", 2, {}, "5,13", id="the node with fewer free CPUs comes first"),
        pytest.param(TWO_NODES, "1-15", 8, {}, "4-7,12-15", id="a whole node where one is free"),
        pytest.param(TWO_NODES, "0-15", 16, {}, "0-15", id="all of it"),
        pytest.param(TWO_NODES, "1-7", 3, {}, "1-3", id="halves where there are no whole cores"),
        pytest.param(FOUR_NODES, "1-15", 8, {}, "4-7,12-15", id="a whole socket before nodes of two"),
        pytest.param(FOUR_NODES, "1-15", 4, {}, "2-3,10-11", id="a whole node of the socket with fewer free CPUs"),
        pytest.param(TWO_NODES, "0-15", 4, SPREAD, "0-3", id="spread: siblings come late"),
        pytest.param(TWO_NODES, "0-15", 8, SPREAD, "0-3,8-11", id="spread: a whole node all the same"),
        pytest.param(TWO_NODES, "0-3,5-15", 4, SPREAD, "5-7,12", id="spread: the socket with fewer free CPUs first"),
        pytest.param(TWO_CACHES, "1-7,9-15", 8, {}, "1-4,9-12", id="caches are nothing unless asked for"),
        pytest.param(TWO_CACHES, "1-7,9-15", 8, BY_CACHE, "4-7,12-15", id="by cache: a whole one"),
        pytest.param(TWO_CACHES, "2-7,10-15", 6, BY_CACHE, "4-6,12-14", id="by cache: a part of one that suffices"),
        pytest.param(TWO_CACHES, "2-7,10-15", 10, BY_CACHE, "2,4-7,10,12-15", id="by cache: a whole one and a part"),
        pytest.param(TWO_CACHES, "2-7,10-15", 5, BY_CACHE, "4-6,12-13", id="by cache: an odd one in part"),
        pytest.param(HYBRID, "1-4", 2, {}, "1-2", id="a core is whole when all of it is free"),
        pytest.param(HYBRID, "0-4", 2, {}, "1-2", id="small cores before large ones"),
        pytest.param(HYBRID, "1-4", 2, {"as_upstream": True}, "0,4", id="as upstream: a busy CPU goes with its core"),
    ],
)
def test_packed(topology: Topology, available: str, count: int, options: dict[str, Any], expected: str) -> None:
    assert format_list(take_packed(topology, parse_list(available), count, **options).cpus) == expected


def test_a_selection_tells_its_steps() -> None:
    steps = take_packed(TWO_NODES, TWO_NODES.all, 11).taken
    assert [(step.level, step.group, format_list(step.cpus)) for step in steps] == [
        (Level.NODE, 0, "0-3,8-11"),
        (Level.CORE, 4, "4,12"),
        (Level.CPU, 5, "5"),
    ]


def test_too_few_is_refused_in_the_kubelets_words() -> None:
    with pytest.raises(AllocationError) as refused:
        take_packed(TWO_NODES, 0b111, 4)
    assert refused.value.message == "not enough cpus available to satisfy request: requested=4, available=3"


def test_cpus_that_the_machine_does_not_have_are_not_given() -> None:
    with pytest.raises(AllocationError):
        take_packed(TWO_NODES, 1 << 99, 1)


@given(data=st.data(), topology=machines(), spread=st.booleans(), prefer_cache=st.booleans())
def test_as_many_as_asked_all_of_them_free(
    data: st.DataObject, topology: Topology, spread: bool, prefer_cache: bool
) -> None:
    free = data.draw(sets_of(topology.all))
    count = data.draw(st.integers(0, free.bit_count()))
    found = take_packed(topology, free, count, spread=spread, prefer_cache=prefer_cache)
    assert found.cpus & ~free == 0
    assert found.cpus.bit_count() == count
    assert sum(step.cpus for step in found.taken) == found.cpus  # disjoint, and all


@given(data=st.data(), topology=machines(), options=st.sampled_from([{}, SPREAD, BY_CACHE]))
def test_the_order_in_which_cpus_are_told_does_not_matter(
    data: st.DataObject, topology: Topology, options: dict[str, bool]
) -> None:
    free = data.draw(sets_of(topology.all))
    count = data.draw(st.integers(0, free.bit_count()))
    shuffled = data.draw(shuffles(topology))
    assert take_packed(shuffled, free, count, **options) == take_packed(topology, free, count, **options)


@given(data=st.data(), topology=regular_machines())
def test_a_request_of_a_nodes_size_gets_a_node_where_one_is_free(data: st.DataObject, topology: Topology) -> None:
    node = data.draw(st.sampled_from([*topology.nodes.values()]))
    free = data.draw(sets_of(topology.all)) | node
    assert take_packed(topology, free, node.bit_count()).cpus in topology.nodes.values()


@given(data=st.data(), topology=regular_machines())
def test_whole_cores_where_there_are_enough(data: st.DataObject, topology: Topology) -> None:
    free = data.draw(sets_of(topology.all))
    whole = [core for core in topology.cores.values() if core & free == core]
    count = data.draw(st.integers(0, len(whole))) * topology.per_core
    found = take_packed(topology, free, count).cpus
    assert topology.siblings(found) == found


@given(data=st.data(), topology=regular_machines(), prefer_cache=st.booleans())
def test_on_regular_machines_both_modes_agree(data: st.DataObject, topology: Topology, prefer_cache: bool) -> None:
    free = data.draw(sets_of(topology.all))
    count = data.draw(st.integers(0, free.bit_count()))
    ours = take_packed(topology, free, count, prefer_cache=prefer_cache)
    assert ours == take_packed(topology, free, count, prefer_cache=prefer_cache, as_upstream=True)
