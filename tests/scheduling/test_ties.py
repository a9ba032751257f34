"""The winner among equals is the one that Go's heap brings to the top."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.scheduling.ties import heap_winner, preorder_key


def go_heap_winner(totals: list[int]) -> int:
    """container/heap.Init, to the letter: sift down from the last parent to the first, then look at the top."""
    heap = [*enumerate(totals)]
    for root in range(len(heap) // 2 - 1, -1, -1):
        parent = root
        while (child := 2 * parent + 1) < len(heap):
            if child + 1 < len(heap) and heap[child + 1][1] > heap[child][1]:
                child += 1
            if heap[child][1] <= heap[parent][1]:
                break
            heap[parent], heap[child] = heap[child], heap[parent]
            parent = child
    return heap[0][0]


@given(st.lists(st.integers(0, 3), min_size=1, max_size=200))
def test_the_winner_is_the_top_of_gos_heap(totals: list[int]) -> None:
    assert heap_winner(totals) == go_heap_winner(totals)


@pytest.mark.parametrize(
    ("totals", "winner"),
    [
        pytest.param([7], 0, id="a node without rivals wins"),
        pytest.param([1, 9, 3], 1, id="the best total wins"),
        pytest.param([5, 5, 5, 5], 0, id="of all equals the first wins"),
        pytest.param([1, 1, 5, 5], 3, id="what is below the left child goes before the right child"),
        pytest.param([453, 463, 463, 463, 453, 471, 470, 471], 7, id="the example of the vectors"),
    ],
)
def test_winners(totals: list[int], winner: int) -> None:
    assert heap_winner(totals) == winner


@given(st.integers(0, 10_000))
def test_a_position_comes_before_its_left_subtree_and_that_before_the_right_one(position: int) -> None:
    left, right = 2 * position + 1, 2 * position + 2
    last_of_left = 2 * left + 2
    order = [position, left, last_of_left, right]
    assert sorted(order, key=preorder_key) == order


@given(st.lists(st.integers(0, 2**31), unique=True))
def test_keys_are_unique_and_fit_in_64_bits(positions: list[int]) -> None:
    keys = [preorder_key(position) for position in positions]
    assert len({*keys}) == len(keys)
    assert all(0 <= key < 2**63 for key in keys)


@given(st.lists(st.integers(0, 3), min_size=1, max_size=60), st.lists(st.integers(-3, -1), max_size=60))
def test_worse_nodes_at_the_end_change_nothing(totals: list[int], worse: list[int]) -> None:
    assert heap_winner([*totals, *worse]) == heap_winner(totals)
