"""States to remember, and the kubelet's files of the same."""

from __future__ import annotations

from pathlib import Path

from bayplan.node.admission import Remembered
from bayplan.node.checkpoint.own import Checkpoint
from bayplan.node.cpu.state import CpuState
from bayplan.node.memory.state import Block, MemoryState, NodeMemory, Table
from bayplan.node.sets import mask_of, parse_list

FILES = Path(__file__).parent / "data"
ONE, TWO, THREE = (f"0aa1e2b8-53a7-4a5f-9d5e-0a4c5f6f7e0{n}" for n in (1, 2, 3))
GI = 1024**3

CPUS = CpuState(
    parse_list("0-3,9,11,13-15"),
    {ONE: {"app": parse_list("4-7"), "side car": parse_list("10,12")}, TWO: {"trainer": parse_list("8")}},
)
BOTH = mask_of([0, 1])
MEMORY = MemoryState(
    nodes={
        0: NodeMemory(2, BOTH, {"memory": Table(64 * GI, GI, 63 * GI, 10 * GI, 53 * GI), "hugepages-1Gi": Table()}),
        1: NodeMemory(2, BOTH, {"memory": Table(64 * GI, 0, 64 * GI, 0, 64 * GI), "hugepages-1Gi": Table()}),
        10: NodeMemory(0, 1 << 10, {}),
    },
    blocks={
        ONE: {
            "app": (Block("memory", BOTH, 8 * GI), Block("hugepages-1Gi", BOTH, 0)),
            "side car": (Block("memory", BOTH, 2 * GI),),
        }
    },
)
CHECKPOINT = Checkpoint(
    "static", "Static", Remembered(CPUS, MEMORY, {ONE: {"app": {"nvidia.com/gpu": ("GPU-0", "GPU-3")}}})
)


def file(name: str) -> bytes:
    """One of the kubelet's."""
    return (FILES / name).read_bytes()
