"""Migration time: the closed form, and links that are shared."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.simulate.vms.precopy import MEGABIT, Done, Network, Transfer, precopy, shares, timeline

GB = 1_000_000_000
sizes = st.floats(1e6, 1e12)
rates = st.floats(1, 1e5)


@pytest.mark.parametrize(
    ("memory", "bandwidth", "dirty", "seconds", "pause"),
    [
        pytest.param(0, 1000, 0, 0, 0, id="nothing is moved at once"),
        pytest.param(10 * GB, 8000, 0, 10, 0.3, id="a VM that changes nothing is sent once"),
        pytest.param(10 * GB, 8000, 4000, (10 - 0.3) / 0.5 + 0.3, 0.3, id="half the bandwidth is for what has changed"),
        pytest.param(0.2 * GB, 8000, 9000, 0.2, 0.2, id="what fits into the pause is sent in it, however it changes"),
        pytest.param(10 * GB, 8000, 8000, math.inf, math.inf, id="what changes as fast as it is sent never arrives"),
        pytest.param(10 * GB, 0, 0, math.inf, math.inf, id="without bandwidth nothing arrives"),
    ],
)
def test_the_time_of_a_migration(memory: float, bandwidth: float, dirty: float, seconds: float, pause: float) -> None:
    found = precopy(memory, bandwidth, dirty)

    assert [found.seconds, found.pause] == pytest.approx([seconds, pause])
    assert found.converges == (seconds < math.inf)


@given(sizes, sizes, rates, rates)
def test_more_memory_never_takes_less(one: float, other: float, bandwidth: float, dirty: float) -> None:
    less, more = sorted((one, other))
    assert precopy(less, bandwidth, dirty).seconds <= precopy(more, bandwidth, dirty).seconds * (1 + 1e-9)


@given(sizes, rates, rates, rates)
def test_more_bandwidth_never_takes_longer(memory: float, one: float, other: float, dirty: float) -> None:
    less, more = sorted((one, other))
    assert precopy(memory, more, dirty).seconds <= precopy(memory, less, dirty).seconds * (1 + 1e-9)


@given(sizes, rates, rates, rates)
def test_a_busier_vm_never_takes_less(memory: float, bandwidth: float, one: float, other: float) -> None:
    less, more = sorted((one, other))
    assert precopy(memory, bandwidth, less).seconds <= precopy(memory, bandwidth, more).seconds * (1 + 1e-9)


@given(sizes, rates, rates)
def test_it_converges_or_says_that_it_does_not(memory: float, bandwidth: float, dirty: float) -> None:
    found = precopy(memory, bandwidth, dirty)
    assert found.converges == (dirty < bandwidth or memory <= bandwidth * MEGABIT * 0.3)
    assert found.pause <= max(0.3, 0) or not found.converges


nodes = st.sampled_from(["a", "b", "c", "d"])
transfers = st.lists(
    st.builds(
        Transfer,
        id=st.just(""),
        source=nodes,
        target=nodes,
        memory=sizes,
        dirty_mbps=st.floats(0, 5000),
        start=st.floats(0, 100),
    ),
    max_size=12,
).map(
    lambda found: [Transfer(str(n), t.source, t.target, t.memory, t.dirty_mbps, t.start) for n, t in enumerate(found)]
)


@given(transfers, st.floats(10, 1e5), st.floats(10, 1e5))
def test_no_link_and_no_network_carries_more_than_it_has(running: list[Transfer], link: float, total: float) -> None:
    found = shares(running, Network(link, total))

    assert sum(found.values()) <= total * (1 + 1e-9)
    for node in "abcd":
        for end in ("source", "target"):
            assert sum(found[each.id] for each in running if getattr(each, end) == node) <= link * (1 + 1e-9)


@given(transfers)
def test_every_transfer_ends_not_before_it_would_alone_and_not_after_its_time(running: list[Transfer]) -> None:
    network = Network(10_000, 20_000)
    found = timeline(running, network, timeout=50)

    assert found.keys() == {each.id for each in running}
    for each in running:
        end, alone = found[each.id], precopy(each.memory, 10_000, each.dirty_mbps).seconds
        if end.converged:
            assert end.end - each.start >= alone * (1 - 1e-6) - 1e-6
        assert each.start <= end.end <= each.start + 50 + 1e-6


def test_two_that_leave_one_node_take_twice_as_long_until_one_is_done() -> None:
    running = [
        Transfer("short", "a", "b", 5 * GB),
        Transfer("long", "a", "c", 10 * GB),
        Transfer("apart", "d", "e", 10 * GB),
    ]
    found = timeline(running, Network(8000), pause=0)

    assert {name: done.end for name, done in found.items()} == pytest.approx({"short": 10, "long": 15, "apart": 10})
    assert all(done.converged for done in found.values())


def test_one_that_does_not_converge_while_others_run_does_when_they_are_done() -> None:
    running = [Transfer("busy", "a", "b", 5 * GB, dirty_mbps=5000), Transfer("idle", "a", "c", 5 * GB)]

    found = timeline(running, Network(8000), pause=0)

    assert found["idle"].end == pytest.approx(10)
    assert found["busy"].end == pytest.approx(10 + 40 / 3)
    assert found["busy"].converged


def test_one_that_never_converges_is_given_up_and_declared() -> None:
    found = timeline([Transfer("busy", "a", "b", 5 * GB, dirty_mbps=9000)], Network(8000), timeout=60)

    assert found == {"busy": Done(60.0, False)}
