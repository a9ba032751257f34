"""Alerts, run queues and kernels: small rules, each with its table."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.model.clock import SECOND, Instant
from bayplan.node.throttling.alerts import Alert, Rule, State, step
from bayplan.node.throttling.kernels import has_burst, has_expiry_defect
from bayplan.node.throttling.run_queue import RunQueue, waited_ns

RULE = Rule("throttled", 0.05, 3 * SECOND)


@pytest.mark.parametrize(
    ("values", "states"),
    [
        pytest.param([0.05, 0.05], "ii", id="the threshold itself is no alert"),
        pytest.param([0.2, 0.2, 0.2, 0.2], "pppf", id="it fires once it lasted"),
        pytest.param([0.2, 0.2, 0.0, 0.2], "ppip", id="a dip begins anew"),
        pytest.param([0.2] * 4 + [0.045] * 5, "pppf" + "f" * 5, id="a little below the threshold is not the end"),
        pytest.param([0.2] * 4 + [0.0] * 4, "pppffffi", id="it ends once it was low for as long"),
        pytest.param([0.2] * 4 + [0.0, 0.0, 0.2, 0.0, 0.0], "pppf" + "f" * 5, id="a short pause does not end it"),
    ],
)
def test_alerts(values: list[float], states: str) -> None:
    alert, seen = Alert(), ""
    for second, value in enumerate(values):
        alert = step(alert, RULE, value, Instant(second * SECOND))
        seen += alert.state[0]
    assert seen == states


def test_without_a_hold_it_fires_at_once() -> None:
    assert step(Alert(), Rule("x", 0.05, 0), 0.06, Instant(0)).state is State.FIRING


def test_an_ended_thread_stays_in_the_sum() -> None:
    queue = RunQueue()
    assert queue.add({1: 10, 2: 5}) == 15
    assert queue.add({1: 12}) == 17
    assert queue.add({1: 12, 2: 3}) == 17  # the id 2 again, another thread
    assert queue.add({1: 12, 2: 4}) == 18
    assert queue.add({}) == 18


def test_a_thread_that_comes_later_brings_none_of_its_past() -> None:
    queue = RunQueue()
    assert queue.add({1: 10}) == 10
    assert queue.add({1: 11, 2: 10**12}) == 11
    assert queue.add({1: 11, 2: 10**12 + 7}) == 18
    assert queue.add({1: 11}) == 18
    assert queue.add({1: 11, 2: 2 * 10**12}) == 18  # it was elsewhere meanwhile


def test_threads_that_are_asked_only_later_begin_then() -> None:
    queue = RunQueue()
    assert queue.add(None) == 0
    assert queue.add({1: 10**12}) == 0
    assert queue.add(None) == 0
    assert queue.add({1: 10**12 + 5}) == 5


@given(st.lists(st.dictionaries(st.integers(1, 5), st.integers(0, 100))))
def test_the_sum_never_goes_back(readings: list[dict[int, int]]) -> None:
    queue, before = RunQueue(), 0
    for reading in readings:
        total = queue.add(reading)
        assert total >= before
        before = total


def test_schedstat_of_another_shape_is_refused() -> None:
    assert waited_ns("11 22 33\n") == 22
    with pytest.raises(ValueError, match="2 numbers instead of 3"):
        waited_ns("1 2")


@pytest.mark.parametrize(
    ("release", "defective"),
    [
        pytest.param("3.10.0-957.el7.x86_64", True, id="long ago"),
        pytest.param("4.14.153", True, id="the last bad 4.14"),
        pytest.param("4.14.154-128.181.amzn2.x86_64", False, id="the first good 4.14"),
        pytest.param("4.19.83", True, id="the last bad 4.19"),
        pytest.param("4.19.84", False, id="the first good 4.19"),
        pytest.param("5.3.8", True, id="the last bad 5.3"),
        pytest.param("5.3.9", False, id="the first good 5.3"),
        pytest.param("5.2.21", True, id="a series that ended before the repair"),
        pytest.param("5.4", False, id="mainline"),
        pytest.param("6.18.44-fc", False, id="now"),
        pytest.param("unknown", False, id="no number, no accusation"),
    ],
)
def test_kernels_with_the_known_defect(release: str, defective: bool) -> None:
    assert has_expiry_defect(release) is defective


def test_bursts_came_with_linux_5_14() -> None:
    assert [has_burst(release) for release in ("5.13.19", "5.14.0", "6.1.0", "?")] == [False, True, True, False]
