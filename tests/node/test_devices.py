"""The device manager: which NUMA nodes would do, which devices are given, and what it says where it cannot."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.node.devices import DeviceManager
from bayplan.node.errors import AllocationError, StateError
from bayplan.node.machine import Device, Machine, NumaNode, Topology
from bayplan.node.needs import ContainerNeed, PodNeed, Role
from bayplan.node.topology.hint import NO_HINT, Hint

GPU, NIC = "example.com/gpu", "example.com/nic"
FOUR = [("g0", 1), ("g1", 1), ("g2", 2), ("g3", 2)]


def machine(*gpus: tuple[str, int], sick: str = "") -> Machine:
    devices = [Device(GPU, name, nodes, healthy=name not in sick.split()) for name, nodes in gpus]
    return Machine("m", Topology(()), (NumaNode(0, 0), NumaNode(1, 0), NumaNode(2, 0)), (*devices, Device(NIC, "n0")))


def needs(count: int, name: str = "a", role: Role = Role.APP, resource: str = GPU) -> ContainerNeed:
    return ContainerNeed(name, role, devices={resource: count})


def place(manager: DeviceManager, pod: PodNeed, affinity: Hint = NO_HINT) -> dict[str, tuple[str, ...]]:
    for container in pod.containers:
        manager.allocate(pod, container, affinity)
    return {name: held[GPU] for name, held in manager.held[pod.uid].items()}


@pytest.mark.parametrize(
    ("gpus", "taken", "asked", "expected"),
    [
        pytest.param(FOUR, 0, 1, [(1, True), (2, True), (3, False)], id="either node, or both"),
        pytest.param(FOUR, 0, 3, [(3, True)], id="more than a node has"),
        pytest.param(FOUR, 1, 2, [(2, True), (3, False)], id="a node where one is taken"),
        pytest.param(FOUR, 3, 1, [(2, True), (3, False)], id="the last one"),
        pytest.param(FOUR, 1, 4, [], id="more than are free"),
        pytest.param(
            [("g0", 1), ("g1", 3)], 0, 2, [(1, True), (3, False)], id="a device that hangs on two nodes counts in both"
        ),
        pytest.param([("g0", 0), ("g1", 0)], 0, 1, None, id="devices of no place leave it open"),
        pytest.param([("g0", 1), ("g1", 0)], 0, 2, [], id="a device of no place is in no set of nodes"),
        pytest.param([("g0", 1), ("g1", 0b10001)], 0, 1, [(1, True)], id="nodes that the machine does not have"),
    ],
)
def test_hints(gpus: list[tuple[str, int]], taken: int, asked: int, expected: list[tuple[int, bool]] | None) -> None:
    manager = DeviceManager(machine(*gpus))
    if taken:
        place(manager, PodNeed("other", (needs(taken),)))
    pod = PodNeed("p", (needs(asked),))
    hints = {GPU: None if expected is None else [Hint(*each) for each in expected]}
    assert manager.hints(pod, pod.containers[0]) == hints
    assert manager.pod_hints(pod) == hints


def test_a_resource_without_devices_is_not_its_business() -> None:
    manager = DeviceManager(machine(*FOUR))
    pod = PodNeed("p", (needs(3, resource="example.com/licence"),))
    manager.allocate(pod, pod.containers[0], NO_HINT)
    assert (manager.hints(pod, pod.containers[0]), manager.pod_hints(pod), manager.held) == ({}, {}, {})


def test_who_holds_what_it_asks_for_hints_at_it() -> None:
    manager = DeviceManager(machine(*FOUR))
    pod = PodNeed("p", (needs(2),))
    place(manager, pod, Hint(2, True))
    assert manager.hints(pod, pod.containers[0]) == {GPU: [Hint(2, True), Hint(3, False)]}
    assert manager.hints(pod, needs(3)) == {GPU: []}
    assert manager.pod_hints(pod) == {GPU: [Hint(2, True), Hint(3, False)]}


@pytest.mark.parametrize(
    ("affinity", "asked", "given_ids"),
    [
        pytest.param(NO_HINT, 2, ("g0", "g1"), id="the lowest ids"),
        pytest.param(Hint(2, True), 1, ("g2",), id="of the affinity"),
        pytest.param(Hint(2, False), 3, ("g0", "g2", "g3"), id="of the affinity first, then others"),
        pytest.param(Hint(4, False), 1, ("g0",), id="none is near"),
        pytest.param(Hint(2, False), 5, ("g0", "g1", "g2", "g3", "x"), id="one of no place comes last"),
        pytest.param(Hint(2, False), 4, ("g0", "g1", "g2", "g3"), id="one of no place is left"),
    ],
)
def test_devices_come_from_the_affinity(affinity: Hint, asked: int, given_ids: tuple[str, ...]) -> None:
    manager = DeviceManager(machine(("x", 0), *reversed(FOUR)))
    assert place(manager, PodNeed("p", (needs(asked),)), affinity) == {"a": given_ids}


def test_sick_devices_are_not_given() -> None:
    manager = DeviceManager(machine(*FOUR, sick="g0 g2"))
    assert place(manager, PodNeed("p", (needs(2),))) == {"a": ("g1", "g3")}


def test_init_containers_leave_their_devices_to_the_pod() -> None:
    manager = DeviceManager(machine(*FOUR))
    pod = PodNeed("p", (needs(3, "i", Role.INIT), needs(1, "s", Role.SIDECAR), needs(3, "a")))
    assert manager.pod_hints(pod) == {GPU: [Hint(3, True)]}
    assert place(manager, pod) == {"i": ("g0", "g1", "g2"), "s": ("g0",), "a": ("g1", "g2", "g3")}


def test_what_can_be_used_again_draws_the_hints() -> None:
    manager = DeviceManager(machine(*FOUR))
    pod = PodNeed("p", (needs(1, "i", Role.INIT), needs(1, "a")))
    manager.allocate(pod, pod.containers[0], Hint(2, True))
    assert manager.hints(pod, pod.containers[1]) == {GPU: [Hint(2, True), Hint(3, False)]}


@pytest.mark.parametrize(
    ("sick", "asked", "message"),
    [
        pytest.param(
            "",
            5,
            f"requested number of devices unavailable for {GPU}. Requested: 5, Available: 4",
            id="more than there are",
        ),
        pytest.param(
            "g0 g1 g2 g3",
            1,
            f"no healthy devices present; cannot allocate unhealthy devices {GPU}",
            id="all are sick",
        ),
    ],
)
def test_where_it_cannot(sick: str, asked: int, message: str) -> None:
    manager = DeviceManager(machine(*FOUR, sick=sick))
    with pytest.raises(AllocationError) as caught:
        place(manager, PodNeed("p", (needs(asked),)))
    assert caught.value.message == message


def test_a_request_does_not_change_under_way() -> None:
    manager = DeviceManager(machine(*FOUR))
    place(manager, PodNeed("p", (needs(1),)))
    with pytest.raises(
        AllocationError, match=f'pod "p" container "a" changed request for resource "{GPU}" from 1 to 2'
    ):
        place(manager, PodNeed("p", (needs(2),)))


def test_what_it_knew_it_knows_again() -> None:
    manager = DeviceManager(machine(*FOUR))
    place(manager, PodNeed("p", (needs(2),)), Hint(2, True))
    larger = machine(("a0", 1), *FOUR, ("z9", 1))
    assert DeviceManager(larger, manager.held).held == manager.held


def test_devices_that_fell_sick_are_told_of() -> None:
    manager = DeviceManager(machine(*FOUR))
    pod = PodNeed("p", (needs(1),))
    place(manager, pod)
    again = DeviceManager(machine(*FOUR, sick="g0"), manager.held)
    with pytest.raises(AllocationError, match="previously allocated devices are no longer healthy"):
        place(again, pod)


@pytest.mark.parametrize(
    ("resource", "ids", "told"), [(GPU, ("g0", "g7"), "g7"), ("example.com/tpu", ("t1", "t0"), "t0, t1")]
)
def test_remembered_devices_that_are_not_there_are_refused(resource: str, ids: tuple[str, ...], told: str) -> None:
    with pytest.raises(StateError) as caught:
        DeviceManager(machine(*FOUR), {"p": {"a": {resource: ids}}})
    assert caught.value.message == (
        f"pod p, container a holds devices of {resource} that the machine does not have: {told}"
    )


PODS = st.lists(
    st.tuples(
        st.sampled_from("pqr"),
        st.lists(st.tuples(st.sampled_from(Role), st.integers(1, 4)), min_size=1, max_size=3),
        st.none() | st.integers(1, 7),
    ),
    max_size=6,
)


@given(PODS)
def test_no_device_is_given_to_two_pods_and_all_come_back(
    steps: list[tuple[str, list[tuple[Role, int]], int | None]],
) -> None:
    manager = DeviceManager(machine(*FOUR))
    untouched = manager.fork()
    for uid, asked, nodes in steps:
        ordered = sorted(asked, key=lambda each: each[0] is Role.APP)
        pod = PodNeed(uid, tuple(needs(count, f"c{at}", role) for at, (role, count) in enumerate(ordered)))
        for container in manager.held.get(uid, {}):
            manager.remove(uid, container)
        with contextlib.suppress(AllocationError):
            place(manager, pod, Hint(nodes, False))
        by_pod = [{each for held in held_by.values() for each in held[GPU]} for held_by in manager.held.values()]
        assert sum(map(len, by_pod)) == len(set().union(*by_pod))
    assert untouched.held == {}, "a fork sees nothing of it"
    for uid, containers in manager.held.items():
        for container in containers:
            manager.remove(uid, container)
    assert manager.state == untouched.state
