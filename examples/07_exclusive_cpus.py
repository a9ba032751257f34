"""Nodes with a machine hand out CPUs one by one, next to the GPUs. Run it: python examples/07_exclusive_cpus.py

The kubelet's own managers decide. A Guaranteed pod that asks for whole CPUs gets them for itself, on the NUMA node that
its GPUs hang on. One that cannot be aligned is refused, although the scheduler, which counts amounts, sent it there.
"""

from __future__ import annotations

import asyncio
import json

from bayplan.cluster.embedded.engine import EmbeddedCluster
from bayplan.cluster.kinds import NODE, POD
from bayplan.model.nodes import Node
from bayplan.model.pods import Pod
from bayplan.testing import fake_cluster, node, pod, until_gone
from bayplan.testing.pods import PodManifest

KUBELET = """
cpuManagerPolicy: static
topologyManagerPolicy: restricted
reservedSystemCPUs: 0,112
"""
DGX = (
    node("dgx-1")
    .having("metadata.annotations", {"bayplan.dev/machine": "dgx-h100", "bayplan.dev/kubelet-config": KUBELET})
    .having("status", {})  # what it offers follows from its machine
)


def trainer(name: str, cpu: int, gpu: int) -> PodManifest:
    return pod(name).requests(cpu=cpu, memory="64Gi", gpu=gpu).limits(cpu=cpu, memory="64Gi")


async def main() -> None:
    cluster = fake_cluster(DGX, seed=7)
    await cluster.advance(1)
    offered = (await cluster.get(NODE, "dgx-1")).view(Node).status.allocatable
    print("dgx-1 offers", ", ".join(f"{amount} {name}" for name, amount in offered.items()))

    for wanted in (trainer("one", 32, 2), trainer("two", 64, 4), trainer("three", 48, 1), trainer("four", 60, 1)):
        await cluster.create(POD, wanted.document(), "default")
        await cluster.advance(10)
        await tell(cluster, wanted.name)

    print("\none goes, and four is tried again")
    await cluster.delete(POD, "one", "default")
    await until_gone(cluster, pod("one"))
    await cluster.create(POD, trainer("four-again", 60, 1).document(), "default")
    await cluster.advance(10)
    await tell(cluster, "four-again")


async def tell(cluster: EmbeddedCluster, name: str) -> None:
    found = (await cluster.get(POD, name, "default")).view(Pod)
    said = json.loads(found.metadata.annotations.get("bayplan.dev/holdings", "{}"))
    if found.status.phase == "Failed":
        free = {resource: dict(by_node) for resource, by_node in said["refused"]["free"].items()}
        print(f"{name}: {found.status.reason}, free by NUMA node: {free}")
        return
    for container, held in said["containers"].items():
        gpus = ", ".join(held["devices"]["nvidia.com/gpu"])
        print(f"{name}: {container} holds CPUs {held['cpus']} and {gpus} on NUMA node {held['affinity']}")


asyncio.run(main())
