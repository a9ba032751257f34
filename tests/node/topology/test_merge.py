"""Merging hints: the rules one by one, and that nothing is lost by not walking every combination."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.node.sets import ids_of, parse_list
from bayplan.node.topology.hint import Hint, Hints
from bayplan.node.topology.masks import joined, subsets
from bayplan.node.topology.merge import Numa, Why, _counted_meets, listed, merge, only_single
from tests.node.topology.product_walk import walk

FOUR = Numa(0b1111)
CHAIN = Numa(0b1111, {one: {other: 10 + abs(one - other) for other in range(4)} for one in range(4)})


def wish(nodes: str | None, preferred: bool = False) -> Hint:
    return Hint(None if nodes is None else parse_list(nodes), preferred)


def like(nodes: str | None) -> Hint:
    return wish(nodes, True)


@pytest.mark.parametrize(
    ("lists", "nodes", "preferred", "why"),
    [
        pytest.param([], "0-3", True, Why.INDIFFERENT, id="without lists the whole machine is as good as any part"),
        pytest.param([[like(None)]], "0-3", True, Why.INDIFFERENT, id="who does not care takes the whole machine"),
        pytest.param([[like("2"), like("1")]], "1", True, Why.AGREED, id="of equally many nodes the lower ids win"),
        pytest.param([[like("0-1"), like("3")]], "3", True, Why.AGREED, id="fewer nodes win over lower ids"),
        pytest.param([[wish("0"), like("1-3")]], "1-3", True, Why.AGREED, id="preferred wins over narrow"),
        pytest.param(
            [[like("0"), like("1")], [like("1"), wish("0")]], "1", True, Why.AGREED, id="all must prefer the same"
        ),
        pytest.param(
            [[like("0-1")], [like("0")]], "0", False, Why.COMPROMISE, id="nodes preferred in part are not preferred"
        ),
        pytest.param([[like("2")], [like(None)]], "2", True, Why.AGREED, id="who does not care goes along"),
        pytest.param(
            [[like("2")], [wish(None)]], "2", False, Why.COMPROMISE, id="who can go nowhere spoils the preference"
        ),
        pytest.param([[like("0")], [like("1")]], "0-3", False, Why.NOTHING_SHARED, id="nothing is shared"),
        pytest.param([[], [like("1")]], "0-3", False, Why.NOTHING_SHARED, id="a list without hints combines with none"),
        pytest.param(
            [[wish("0"), wish("0-1")], [wish("0-1"), wish("0-2")]],
            "0-1",
            False,
            Why.COMPROMISE,
            id="as many nodes as the neediest needs, not the fewest",
        ),
        pytest.param(
            [[wish("0-2")], [wish("0-1,3"), wish("2-3")]],
            "0-1",
            False,
            Why.COMPROMISE,
            id="below what the neediest needs, the most",
        ),
        pytest.param(
            [[wish("0"), wish("0-2")], [wish("1-3"), wish("1-2")]],
            "1-2",
            False,
            Why.COMPROMISE,
            id="exactly what the neediest needs",
        ),
        pytest.param(
            [[wish("2"), wish("0-1")], [wish("3"), wish("0-1")]],
            "0-1",
            False,
            Why.COMPROMISE,
            id="above what the neediest needs, where nothing else is shared",
        ),
    ],
)
def test_the_best_combination(lists: list[list[Hint]], nodes: str, preferred: bool, why: Why) -> None:
    merged = merge(lists, FOUR)
    assert (merged.hint, merged.why) == (wish(nodes, preferred), why)
    assert merged.hint == walk(lists, FOUR)


@pytest.mark.parametrize(
    ("numa", "nodes"),
    [
        pytest.param(FOUR, "0,2", id="lower ids, where closeness does not count"),
        pytest.param(CHAIN, "2-3", id="neighbours, where it does"),
    ],
)
def test_of_equally_many_nodes_the_closest_win_where_that_is_asked(numa: Numa, nodes: str) -> None:
    assert merge([[like("0,2"), like("2-3"), like("0,3")]], numa).hint == like(nodes)


def test_distances_go_by_id_where_ids_have_holes() -> None:
    far = Numa(parse_list("0,4,9"), {0: {0: 10, 4: 30, 9: 20}, 4: {0: 30, 4: 10, 9: 40}, 9: {0: 20, 4: 40, 9: 10}})
    assert merge([[like("0,4"), like("0,9"), like("4,9")]], far).hint == like("0,9")


@pytest.mark.parametrize(
    ("provider", "lists"),
    [
        pytest.param(None, [[like(None)]], id="no opinion at all"),
        pytest.param({}, [[like(None)]], id="no resource to speak of"),
        pytest.param({"gpu": None}, [[like(None)]], id="no opinion on the resource"),
        pytest.param({"gpu": []}, [[wish(None)]], id="nothing will do"),
        pytest.param({"a": [like("1")], "b": [wish("2")]}, [[like("1")], [wish("2")]], id="a list for each resource"),
    ],
)
def test_what_providers_say_becomes_lists(provider: Hints, lists: list[list[Hint]]) -> None:
    assert [[*each] for each in listed([provider])] == lists


def test_for_a_single_node_only_preferred_hints_of_one_node_or_any_count() -> None:
    hints = [like("0"), wish("1"), like("1-2"), like(None), wish(None)]
    assert [*only_single([hints])] == [[like("0"), like(None)]]


def test_sets_of_nodes_come_by_size_then_by_their_ids() -> None:
    order = [[*ids_of(mask)] for mask in subsets(parse_list("0,2,5"))]
    assert order == [[0], [2], [5], [0, 2], [0, 5], [2, 5], [0, 2, 5]]
    assert joined([1, 10, 100]) == [1, 10, 100, 11, 101, 110, 111]


SPARSE = parse_list("0,2,3,7")
MASKS = st.none() | st.integers(0, 255)


@st.composite
def machines(draw: st.DrawFn) -> Numa:
    nodes = draw(st.sampled_from([1, 0b11, 0b1111, SPARSE, 0b111111]))
    ids = [*ids_of(nodes)]
    if not draw(st.booleans()):
        return Numa(nodes)
    return Numa(nodes, {one: {other: draw(st.integers(10, 14)) for other in ids} for one in ids})


LISTS = st.lists(st.lists(st.builds(Hint, MASKS, st.booleans()), max_size=8), max_size=4)


@given(machines(), LISTS)
def test_the_choice_is_that_of_the_walk_over_all_combinations(numa: Numa, lists: list[list[Hint]]) -> None:
    assert merge(lists, numa).hint == walk(lists, numa)


@given(machines(), LISTS, st.randoms(use_true_random=False))
def test_no_order_changes_the_choice(numa: Numa, lists: list[list[Hint]], chance: random.Random) -> None:
    shuffled = [chance.sample(each, len(each)) for each in chance.sample(lists, len(lists))]
    assert merge(shuffled, numa) == merge(lists, numa)


FAMILIES = st.sets(st.integers(1, 255))


@given(FAMILIES, FAMILIES)
def test_counting_finds_the_sets_that_pairs_have_in_common(left: set[int], right: set[int]) -> None:
    assert _counted_meets(left, right, 255) == {one & other for one in left for other in right} - {0}
