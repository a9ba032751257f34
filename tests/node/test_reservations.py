"""What is kept of a machine adds up, and what it cannot keep is refused with the numbers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.node.configuration import read_configuration
from bayplan.node.machine import Cpu, Machine, NumaNode, Topology
from bayplan.node.reservations import ReservationError, divide
from bayplan.node.sets import mask_of

GI = 1024**3
MI = 1024**2
MACHINE = Machine(
    name="small",
    topology=Topology(tuple(Cpu(i, i % 4, 0, i % 4 // 2, 0) for i in range(7))),
    nodes=(NumaNode(0, 8 * GI, {2048: 512}), NumaNode(1, 8 * GI)),
    offline=mask_of([7]),
)


def refusal(*flags: str) -> str:
    with pytest.raises(ReservationError) as refused:
        divide(read_configuration(arguments=flags), MACHINE)
    return refused.value.message


def test_shares_add_up() -> None:
    flags = ["--system-reserved=cpu=500m,memory=1Gi", "--kube-reserved=cpu=250m,memory=512Mi,pid=100"]
    shares = divide(read_configuration(arguments=flags), MACHINE)
    assert shares.capacity == {"cpu": 7000, "memory": 16 * GI, "hugepages-2Mi": GI}
    assert shares.reserved == {"cpu": 750, "memory": 1636 * MI}
    assert shares.allocatable == {"cpu": 6250, "memory": 16 * GI - 1636 * MI, "hugepages-2Mi": GI}


def test_memory_reserved_by_node_equals_what_is_reserved_in_all() -> None:
    flags = ["--system-reserved=memory=1Gi", "--memory-manager-policy=Static"]
    good = divide(read_configuration(arguments=[*flags, "--reserved-memory=0:memory=1Gi;1:memory=100Mi"]), MACHINE)
    assert good.reserved == {"memory": 1124 * MI}
    assert refusal(*flags, "--reserved-memory=0:memory=1Gi,hugepages-2Mi=4Mi") == (
        'machine small: the total amount "4Mi" of type "hugepages-2Mi" is not equal to the value "0" '
        "determined by Node Allocatable feature\n"
        'the total amount "1Gi" of type "memory" is not equal to the value "1124Mi" '
        "determined by Node Allocatable feature"
    )


@pytest.mark.parametrize(
    ("flags", "fault"),
    [
        pytest.param(
            ["--system-reserved=cpu=6", "--kube-reserved=cpu=1500m"],
            'Resource "cpu" has a reservation of 7500m (system 6, kube 1500m) but capacity of 7. '
            "Expected capacity >= reservation.",
            id="more CPUs than there are",
        ),
        pytest.param(
            ["--system-reserved=memory=16Gi"],
            'Resource "memory" has a reservation of 16484Mi (system 16Gi, eviction 100Mi) but capacity of 16Gi. '
            "Expected capacity >= reservation.",
            id="the eviction threshold counts",
        ),
        pytest.param(
            ["--reserved-cpus=6-9"],
            "reserved-cpus: 6-9 is not a subset of online-cpus: 0-6 (7 offline, 8-9 not there)",
            id="CPUs that are off or not there",
        ),
        pytest.param(
            ["--cpu-manager-policy=static"],
            "[cpumanager] the static policy requires systemreserved.cpu + kubereserved.cpu to be greater than zero",
            id="the static policy without a reserved CPU",
        ),
        pytest.param(
            ["--reserved-memory=2:memory=1Gi"],
            "the reserved memory configuration references a NUMA node 2 that does not exist on this machine "
            "(nodes 0, 1)",
            id="a node that is not there",
        ),
        pytest.param(
            ["--reserved-memory=1:memory=9Gi,hugepages-2Mi=2Mi"],
            "NUMA node 1: 9Gi of memory reserved, and it has 8Gi\n"
            "NUMA node 1: 2Mi of hugepages-2Mi reserved, and it has 0",
            id="more than a node has",
        ),
    ],
)
def test_the_impossible_is_refused_with_its_numbers(flags: list[str], fault: str) -> None:
    assert refusal(*flags) == f"machine small: {fault}"


def test_all_faults_come_at_once() -> None:
    assert (
        len(refusal("--reserved-cpus=9", "--system-reserved=memory=20Gi", "--reserved-memory=3:memory=1").split("\n"))
        == 3
    )


@given(st.integers(0, 7000), st.integers(0, 7000), st.integers(0, 20 * GI))
def test_nothing_is_ever_below_zero(system: int, kube: int, memory: int) -> None:
    flags = [f"--system-reserved=cpu={system}m,memory={memory}", f"--kube-reserved=cpu={kube}m"]
    configuration = read_configuration(arguments=flags)
    if system + kube > 7000 or memory + 100 * MI > 16 * GI:
        with pytest.raises(ReservationError, match="Expected capacity >= reservation"):
            divide(configuration, MACHINE)
    else:
        assert min(divide(configuration, MACHINE).allocatable.values()) >= 0
        assert configuration.policies.reserved == -(-(system + kube) // 1000)
