"""Pods and nodes for plans: a small machine, on which everything can be tried."""

from __future__ import annotations

from bayplan.node.configuration import NodeConfiguration, read_configuration
from bayplan.node.machine import Cpu, Device, Machine, NumaNode, Topology
from bayplan.node.plan import Candidate, candidate
from bayplan.testing import pod
from bayplan.testing.pods import IMAGE

GIB = 1024**3
GPU = "nvidia.com/gpu"

SMALL = Machine(
    "small",
    Topology(tuple(Cpu(each, each - each % 2, each // 8, each // 4, each // 4) for each in range(16))),
    tuple(NumaNode(node, 8 * GIB) for node in range(4)),
    (Device(GPU, "gpu-0", 0b10), Device(GPU, "gpu-1", 0b1000)),
)
"""Two sockets of two NUMA nodes of two cores of two threads; GPUs on nodes 1 and 3."""


def settings(*flags: str) -> NodeConfiguration:
    """A kubelet with static CPUs, CPU 0 reserved, and these flags."""
    return read_configuration(arguments=["--cpu-manager-policy=static", "--reserved-cpus=0", *flags])


def guaranteed(name: str, cpu: float | str, memory: str = "1Gi", gpu: int | None = None) -> Candidate:
    """A Guaranteed pod of one container, `app`."""
    limits = {"cpu": str(cpu), "memory": memory, **({GPU: str(gpu)} if gpu else {})}
    app = {"name": "app", "image": IMAGE, "resources": {"limits": limits, "requests": limits}}
    return candidate(pod(name).having("metadata.uid", name).having("spec.containers", [app]).view())
