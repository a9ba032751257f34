"""SystemReservation: three pools that never overlap, and refusals with the numbers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.node.machine import Cpu, Topology
from bayplan.node.sets import format_list, parse_list
from bayplan.node.tiers.reservation import ReservationError, SystemReservation

EIGHT = Topology(tuple(Cpu(i, i, i // 4, i // 4, i // 4) for i in range(8)))
"""Eight CPUs in two NUMA nodes."""


def test_the_first_workers_are_the_systems() -> None:
    reservation = SystemReservation(EIGHT)
    assert format_list(reservation.reserve_for_system(2)) == "0-1"
    assert format_list(reservation.shared_pool) == "2-7"


def test_exclusive_workers_are_of_one_numa_node_where_they_fit() -> None:
    reservation = SystemReservation(EIGHT)
    reservation.reserve_for_system(2)
    assert format_list(reservation.assign("two", 2)) == "2-3"  # the fuller node suffices: the other stays whole
    assert format_list(reservation.assign("three", 3)) == "4-6"
    assert format_list(reservation.shared_pool) == "7"


def test_a_task_larger_than_a_numa_node_takes_as_few_as_it_can() -> None:
    assert format_list(SystemReservation(EIGHT).assign("big", 6)) == "0-1,4-7"


def test_the_same_again_changes_nothing() -> None:
    reservation = SystemReservation(EIGHT)
    assert reservation.assign("one", 2) == reservation.assign("one", 2)
    assert reservation.shared_pool.bit_count() == 6


def test_what_is_released_is_shared_again() -> None:
    reservation = SystemReservation(EIGHT)
    reservation.assign("one", 2)
    reservation.release("one")
    reservation.release("one")
    assert reservation.shared_pool == EIGHT.all


@pytest.mark.parametrize(
    ("reserve", "held", "told"),
    [
        pytest.param(8, 0, "cannot reserve 8 of 8 workers for the system", id="all of them"),
        pytest.param(-1, 0, "cannot reserve -1 of 8 workers for the system", id="less than none"),
        pytest.param(3, 2, "cannot reserve workers 0-2: 0-1 is exclusive to task", id="those of a task"),
    ],
)
def test_an_impossible_reservation_is_refused_with_the_numbers(reserve: int, held: int, told: str) -> None:
    reservation = SystemReservation(EIGHT)
    if held:
        reservation.assign("task", held)
    before = reservation.shared_pool
    with pytest.raises(ReservationError, match=told):
        reservation.reserve_for_system(reserve)
    assert reservation.shared_pool == before


def test_a_reservation_that_leaves_nothing_to_share_is_refused() -> None:
    reservation = SystemReservation(EIGHT)
    reservation.reserve_for_system(1)
    reservation.assign("task", 4)  # 4-7
    with pytest.raises(ReservationError, match="cannot reserve 4 workers: with 4 exclusive ones none of 8 is left"):
        reservation.reserve_for_system(4)
    assert format_list(reservation.shared_pool) == "1-3"


@pytest.mark.parametrize("count", [0, 6, 9])
def test_an_impossible_assignment_is_refused_with_the_numbers(count: int) -> None:
    reservation = SystemReservation(EIGHT)
    reservation.reserve_for_system(2)
    told = f"cannot have {count} workers of its own: 6 are shared, and one must stay so .2 of 8 are the system's"
    with pytest.raises(ReservationError, match=told):
        reservation.assign("t", count)


@given(st.lists(st.tuples(st.sampled_from(["reserve", "a", "b", "c", "-a", "-b"]), st.integers(-1, 9)), max_size=20))
def test_the_pools_never_overlap_and_always_are_the_machine(orders: list[tuple[str, int]]) -> None:
    reservation = SystemReservation(EIGHT)
    for what, count in orders:
        try:
            if what == "reserve":
                reservation.reserve_for_system(count)
            elif what.startswith("-"):
                reservation.release(what[1:])
            else:
                reservation.assign(what, count)
        except ReservationError:
            continue
    pools = [reservation.reserved_workers, reservation.shared_pool, *reservation.exclusive_assignments.values()]
    assert sum(pools) == parse_list("0-7")
    assert sum(pool.bit_count() for pool in pools) == 8
    assert reservation.shared_pool
