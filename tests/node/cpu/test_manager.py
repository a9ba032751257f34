"""The CPU manager: who holds what while pods come and go, restarts happen and things are tried out."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.node.cpu.manager import CpuManager
from bayplan.node.cpu.state import CpuState
from bayplan.node.errors import AllocationError, PolicyError, SMTAlignmentError
from bayplan.node.machine import Topology
from bayplan.node.needs import PodNeed
from bayplan.node.policies import NodePolicies
from bayplan.node.provider import Provider
from bayplan.node.sets import CpuSet, format_list
from bayplan.node.topology.hint import NO_HINT, Hint
from tests.node.cpu.machines import guaranteed, machine, machines

MACHINE = machine(sockets=2, nodes=2, cores=8)
"""Node 0: 0-3 and 8-11; node 1: 4-7 and 12-15. Reserved: 0."""


def settings(*options: str, reserved: int = 1, as_upstream: bool = False) -> NodePolicies:
    on = dict.fromkeys(options, "true")
    return NodePolicies(cpu="static", cpu_options=on, reserved=reserved, as_upstream=as_upstream)


def manager(*options: str, as_upstream: bool = False) -> CpuManager:
    return CpuManager(MACHINE, settings(*options, as_upstream=as_upstream))


def admit(cpu: CpuManager, pod: PodNeed, nodes: int | None = None) -> None:
    for container in pod.containers:
        cpu.allocate(pod, container, Hint(nodes, True))


def remove(cpu: CpuManager, pod: PodNeed) -> None:
    for container in pod.containers:
        cpu.remove(pod.uid, container.name)


def holdings(cpu: CpuManager, uid: str = "pod") -> dict[str, str]:
    return {name: format_list(cpus) for name, cpus in cpu.state.assignments.get(uid, {}).items()}


@pytest.mark.parametrize(
    ("pod", "expected", "shared"),
    [
        pytest.param(guaranteed(0), {}, "0-15", id="no CPUs of its own: the shared pool"),
        pytest.param(guaranteed(2), {"c0": "1,9"}, "0,2-8,10-15", id="whole CPUs become its own"),
        pytest.param(guaranteed(2, 2), {"c0": "1,9", "c1": "2,10"}, "0,3-8,11-15", id="containers have their own each"),
        pytest.param(
            guaranteed(2, init=(4,)), {"i0": "1-2,9-10", "c0": "1,9"}, "0,3-8,11-15", id="init CPUs are reused"
        ),
        pytest.param(
            guaranteed(2, init=(2, 4)),
            {"i0": "1,9", "i1": "1-2,9-10", "c0": "1,9"},
            "0,3-8,11-15",
            id="init containers reuse those before them",
        ),
        pytest.param(
            guaranteed(2, sidecars=(2,)), {"s0": "1,9", "c0": "2,10"}, "0,3-8,11-15", id="a sidecar keeps its own"
        ),
        pytest.param(
            guaranteed(2, init=(2,), sidecars=(2,)),
            {"i0": "1,9", "s0": "1,9", "c0": "2,10"},
            "0,3-8,11-15",
            id="a sidecar takes over from the init container, the app does not",
        ),
    ],
)
def test_who_gets_what(pod: PodNeed, expected: dict[str, str], shared: str) -> None:
    cpu = manager()
    admit(cpu, pod)
    assert holdings(cpu) == expected
    assert format_list(cpu.shared) == shared
    assert cpu.exclusive == MACHINE.all & ~cpu.shared
    assert cpu.assignable == cpu.shared & ~cpu.reserved


def test_a_pod_with_resources_of_its_own_is_left_alone() -> None:
    cpu = manager()
    admit(cpu, PodNeed("pod", guaranteed(2).containers, pod_level=True))
    assert cpu.exclusive == 0


def test_cpus_go_where_the_affinity_says() -> None:
    cpu = manager()
    admit(cpu, guaranteed(2), nodes=0b10)
    assert holdings(cpu) == {"c0": "4,12"}


def test_giving_again_changes_nothing() -> None:
    cpu, pod = manager(), guaranteed(2, init=(4,))
    admit(cpu, pod)
    before = cpu.state, cpu.reusable
    admit(cpu, pod)
    assert (cpu.state, cpu.reusable) == before


def test_a_container_that_asks_for_another_number_keeps_what_it_holds() -> None:
    cpu = manager()
    admit(cpu, guaranteed(2))
    admit(cpu, guaranteed(4))
    assert holdings(cpu) == {"c0": "1,9"}


def test_removal_gives_back_what_no_sibling_holds() -> None:
    cpu, pod = manager(), guaranteed(2, init=(4,))
    admit(cpu, pod)
    cpu.remove("pod", "i0")
    assert format_list(cpu.exclusive) == "1,9"
    cpu.remove("pod", "c0")
    cpu.remove("pod", "c0")
    cpu.remove("ghost", "c0")
    assert cpu.state == CpuState(MACHINE.all)


def test_only_the_last_pod_can_reuse() -> None:
    cpu = manager()
    pod = guaranteed(2, init=(2,))
    cpu.allocate(pod, pod.containers[0], NO_HINT)
    assert {uid: format_list(cpus) for uid, cpus in cpu.reusable.items()} == {"pod": "1,9"}
    admit(cpu, guaranteed(2, uid="other"))
    assert not cpu.reusable


def test_a_refused_pod_keeps_what_its_earlier_containers_got() -> None:
    cpu = manager()
    with pytest.raises(AllocationError):
        admit(cpu, guaranteed(2, 14))
    assert holdings(cpu) == {"c0": "1,9"}


def test_how_cpus_were_chosen_can_be_asked() -> None:
    cpu = manager()
    admit(cpu, guaranteed(3))
    how = cpu.how("pod", "c0")
    assert how is not None
    assert [(step.level, step.group) for step in how.taken] == [("core", 1), ("cpu", 8)]
    cpu.remove("pod", "c0")
    assert cpu.how("pod", "c0") is None


def test_where_cores_stay_whole_a_full_node_still_knows_its_pods() -> None:
    """Upstream refuses a running pod that is looked at again when fewer cores are left than it asks for."""
    ours, upstream, pod = manager("full-pcpus-only"), manager("full-pcpus-only", as_upstream=True), guaranteed(14)
    for cpu in (ours, upstream):
        admit(cpu, pod)
    admit(ours, pod)
    with pytest.raises(SMTAlignmentError):
        admit(upstream, pod)


def test_where_cores_stay_whole_an_affinity_does_not_split_one() -> None:
    """CPU 8 is the sibling of a reserved one. Upstream gives it away where the affinity has nothing better."""
    ours, upstream, pod = manager("full-pcpus-only"), manager("full-pcpus-only", as_upstream=True), guaranteed(8)
    for cpu in (ours, upstream):
        admit(cpu, pod, nodes=0b01)
    assert holdings(ours) == {"c0": "1-4,9-12"}
    assert holdings(upstream) == {"c0": "1-4,8-11"}


def test_policy_none_shares_everything() -> None:
    cpu, pod = CpuManager(MACHINE, NodePolicies()), guaranteed(2)
    admit(cpu, pod)
    assert cpu.hints(pod, pod.containers[0]) is None
    assert cpu.pod_hints(pod) is None
    assert (cpu.reserved, cpu.shared, cpu.assignable, cpu.exclusive) == (0, MACHINE.all, 0, 0)


@pytest.mark.parametrize(
    ("policies", "message"),
    [
        pytest.param(NodePolicies(cpu="dynamic"), 'unknown policy: "dynamic"', id="unknown"),
        pytest.param(
            NodePolicies(cpu_options={"b": "2", "a": "1"}),
            "None policy: received unsupported options=map[a:1 b:2]",
            id="none has no options",
        ),
    ],
)
def test_refused_policies(policies: NodePolicies, message: str) -> None:
    with pytest.raises(PolicyError) as refused:
        CpuManager(MACHINE, policies)
    assert refused.value.message == message


def test_a_fork_is_on_its_own() -> None:
    cpu = manager()
    admit(cpu, guaranteed(2))
    before = cpu.state, cpu.reusable
    trial: Provider = cpu.fork()
    other = guaranteed(4, uid="other", init=(2,))
    for container in other.containers:
        trial.allocate(other, container, NO_HINT)
    trial.remove("pod", "c0")
    assert (cpu.state, cpu.reusable) == before
    assert cpu.how("pod", "c0") is not None


OPTIONS = [
    (),
    ("full-pcpus-only",),
    ("strict-cpu-reservation",),
    ("distribute-cpus-across-numa",),
    ("distribute-cpus-across-cores",),
    ("prefer-align-cpus-by-uncorecache",),
    ("full-pcpus-only", "distribute-cpus-across-numa", "strict-cpu-reservation"),
]
counts = st.lists(st.integers(0, 6), max_size=2).map(tuple)
pods = st.builds(
    lambda uid, apps, init, sidecars: guaranteed(*apps, uid=uid, init=init, sidecars=sidecars),
    st.sampled_from(["p0", "p1", "p2", "p3"]),
    counts,
    counts,
    counts,
)
events = st.lists(
    st.tuples(st.sampled_from(["admit", "admit", "remove", "restart"]), pods, st.integers(0, 7)), max_size=12
)


def check_books(cpu: CpuManager, *, strict: bool) -> None:
    """Nobody's CPUs are another pod's, the shared pool's or the system's, and none is lost."""
    held: CpuSet = 0
    for containers in cpu.state.assignments.values():
        pod = 0
        for cpus in containers.values():
            pod |= cpus
        assert pod & held == 0
        held |= pod
    assert held & (cpu.shared | cpu.reserved) == 0
    assert held == cpu.exclusive
    assert held | cpu.shared | cpu.reserved == cpu.topology.all
    assert (cpu.shared & cpu.reserved) == (0 if strict else cpu.reserved)


@given(topology=machines(), options=st.sampled_from(OPTIONS), story=events)
def test_the_books_balance_whatever_happens(
    topology: Topology, options: tuple[str, ...], story: list[tuple[str, PodNeed, int]]
) -> None:
    policies = settings(*options)
    cpu = CpuManager(topology, policies)
    admitted: dict[str, PodNeed] = {}
    for what, pod, nodes in story:
        if what == "admit":
            known = admitted.setdefault(pod.uid, pod)
            try:
                admit(cpu, known, nodes or None)
            except AllocationError as refused:
                assert "CPUs" in refused.message or "cpus" in refused.message  # noqa: PT017 - most are not refused
        elif what == "remove":
            remove(cpu, admitted.pop(pod.uid, pod))
        else:
            cpu = CpuManager(topology, policies, cpu.state)
        check_books(cpu, strict="strict-cpu-reservation" in options)


@given(topology=machines(), pod=pods, nodes=st.integers(0, 7))
def test_running_containers_do_not_share(topology: Topology, pod: PodNeed, nodes: int) -> None:
    cpu = CpuManager(topology, settings())
    try:
        admit(cpu, pod, nodes or None)
    except AllocationError:
        return
    staying = [cpu.state.held(pod.uid, each.name) or 0 for each in pod.containers if each.name[0] in "sc"]
    assert sum(cpus.bit_count() for cpus in staying) == sum(staying).bit_count()
