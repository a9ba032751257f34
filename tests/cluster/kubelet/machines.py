"""A stage whose node has a machine, and short ways to tell what its pods hold of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from bayplan.cluster.kinds import NODE
from bayplan.model.nodes import Node
from bayplan.node.annotations.equipment import CONFIGURATION, MACHINE
from bayplan.node.annotations.holdings import HOLDINGS
from tests.cluster.kubelet.stage import Stage, container

Doc = dict[str, Any]

TWO_NODES = """
name: two-nodes
layout: {sockets: 2, coresPerSocket: 4, threadsPerCore: 2, memoryPerNode: 16Gi, distances: {otherSocket: 21}}
devices:
- {resource: nvidia.com/gpu, id: gpu-0, nodes: "0"}
- {resource: nvidia.com/gpu, id: gpu-1, nodes: "1"}
"""
"""CPUs 0-3 and 8-11 on NUMA node 0, 4-7 and 12-15 on node 1; core 0 has CPUs 0 and 8."""

STATIC: Doc = {"cpuManagerPolicy": "static", "reservedSystemCPUs": "0,8"}
WHOLE_CORES = {**STATIC, "cpuManagerPolicyOptions": {"full-pcpus-only": "true"}}
RESTRICTED = {**STATIC, "topologyManagerPolicy": "restricted"}
MEMORY = {
    **RESTRICTED,
    "memoryManagerPolicy": "Static",
    "systemReserved": {"memory": "924Mi"},
    "reservedMemory": [{"numaNode": 0, "limits": {"memory": "1Gi"}}],
}


def stage_with(configuration: Mapping[str, Any] | None, machine: str = TWO_NODES, stage: Stage | None = None) -> Stage:
    """A stage whose node has a machine; what it offers is up to its kubelet."""
    stage = stage or Stage()
    said = {} if configuration is None else {CONFIGURATION: msgspec.json.encode(configuration).decode()}
    doc = {"metadata": {"name": "node-1", "annotations": {MACHINE: machine, **said}}}
    stage.world.server.create(NODE, "", doc)
    stage.world.settle()
    return stage


def asks(cpu: str = "2", memory: str = "1Gi", name: str = "app", **more: str) -> Doc:
    """A container whose limits are its requests: alone, it makes a Guaranteed pod."""
    return container(name, resources={"limits": {"cpu": cpu, "memory": memory, **more}})


def gpu(count: str) -> dict[str, str]:
    return {"nvidia.com/gpu": count}


def record(stage: Stage, name: str = "p") -> Doc:
    text = stage.item(name).meta.annotations.get(HOLDINGS)
    found: Doc = {} if text is None else msgspec.json.decode(text)
    return found


def held(stage: Stage, name: str = "p") -> str:
    """`app 1-2 mem 0 gpu gpu-0`, one for each container that holds something."""
    words = []
    for container_, each in record(stage, name).get("containers", {}).items():
        parts = [container_, each.get("cpus", "")]
        parts += [f"{resource} {nodes}" for resource, nodes, _ in each.get("memory", ())]
        parts += [f"{resource} {','.join(ids)}" for resource, ids in each.get("devices", {}).items()]
        words.append(" ".join(part for part in parts if part))
    return " | ".join(words)


def outcome(stage: Stage, name: str = "p") -> str:
    """What it holds, or why it was refused."""
    status = stage.status(name)
    return f"{status.reason}: {status.message}" if status.phase == "Failed" else held(stage, name)


def node(stage: Stage) -> Node:
    return stage.world.server.get(NODE, "", "node-1").view(Node)
