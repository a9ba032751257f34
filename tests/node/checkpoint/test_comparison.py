"""The kubelet's state and ours: nothing is said of what agrees."""

from __future__ import annotations

import msgspec
import pytest

from bayplan.node.admission import Remembered
from bayplan.node.checkpoint.comparison import cpu_differences, memory_differences
from bayplan.node.checkpoint.kubelet_cpu import read_cpu_state
from bayplan.node.checkpoint.kubelet_memory import read_memory_state
from bayplan.node.checkpoint.own import Checkpoint
from bayplan.node.memory.state import Block, MemoryState, NodeMemory, Table
from tests.node.checkpoint.states import CHECKPOINT, CPUS, GI, MEMORY, ONE, TWO, file


@pytest.mark.parametrize("name", ["cpu-v2-1.36.json", "cpu-v3-1.36.json", "cpu-v4-1.37.json"])
def test_the_same_cpus(name: str) -> None:
    assert cpu_differences(read_cpu_state(file(name)), CHECKPOINT) == []


@pytest.mark.parametrize("name", ["memory-v1-1.36.json", "memory-v2-1.36.json", "memory-v3-1.37.json"])
def test_the_same_memory(name: str) -> None:
    assert memory_differences(read_memory_state(file(name)), CHECKPOINT) == []


def test_other_cpus() -> None:
    state = CPUS.removed(TWO, "trainer").assigned(ONE, "app", 0b111 << 4).assigned("new", "web", 1 << 15)
    ours = Checkpoint("none", state=Remembered(state))
    assert [str(each) for each in cpu_differences(read_cpu_state(file("cpu-v2-1.36.json")), ours)] == [
        "policy of the CPU manager: the kubelet has static, we have none",
        "shared CPUs: the kubelet has 0-3,9,11,13-15, we have 0-3,8-9,11,13-14",
        f"CPUs of pod {ONE}, container app: the kubelet has 4-7, we have 4-6",
        f"CPUs of pod {TWO}, container trainer: the kubelet has 8, we have nothing",
        "CPUs of pod new, container web: the kubelet has nothing, we have 15",
    ]


def test_other_memory() -> None:
    nodes = {
        0: NodeMemory(1, 1, {"memory": Table(64 * GI, GI, 63 * GI, 8 * GI, 55 * GI)}),
        1: MEMORY.nodes[1],
    }
    ours = msgspec.structs.replace(
        CHECKPOINT, state=Remembered(memory=MemoryState(nodes, {ONE: {"app": (Block("memory", 1, 8 * GI),)}}))
    )
    assert [str(each) for each in memory_differences(read_memory_state(file("memory-v1-1.36.json")), ours)] == [
        f"memory of pod {ONE}, container app: the kubelet has 0 of hugepages-1Gi on 0-1, 8Gi of memory on 0-1, "
        "we have 8Gi of memory on 0",
        f"memory of pod {ONE}, container side car: the kubelet has 2Gi of memory on 0-1, we have nothing",
        "group of NUMA node 0: the kubelet has 0-1, we have 0",
        "memory reserved on NUMA node 0: the kubelet has 10Gi, we have 8Gi",
        "memory free on NUMA node 0: the kubelet has 53Gi, we have 55Gi",
        "NUMA node 10: the kubelet has it, we have nothing",
    ]
