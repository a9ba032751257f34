"""A bare cluster to try things on: so many nodes of one shape and nobody on them."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

from bayplan.service.yaml_lines import FileError, read_yaml
from bayplan.simulate.manifests import KUBELET_VERSION
from bayplan.simulate.scenario import Scenario

Doc = dict[str, Any]

NOBODY = Scenario(nodes=())
"""A scenario without nodes, teams or load."""

_USUAL_SHAPE: Doc = {
    "metadata": {
        "labels": {"kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64", "nvidia.com/gpu.product": "A100"}
    },
    "status": {
        "capacity": {"cpu": "96", "memory": "768Gi", "pods": "110", "nvidia.com/gpu": "8"},
        "nodeInfo": {"kubeletVersion": KUBELET_VERSION, "operatingSystem": "linux", "architecture": "amd64"},
    },
}


def read_shape(path: Path) -> Doc:
    """A Node manifest whose labels, taints and capacity the nodes get. Raises FileError, OSError."""
    found = read_yaml(str(path), path.read_bytes())
    shape = found.value
    if not isinstance(shape, dict) or shape.get("kind", "Node") != "Node":
        raise FileError(found.fault("", "expected one Node manifest"))
    if not (shape.get("status") or {}).get("capacity"):
        raise FileError(found.fault("status.capacity", "expected the node's capacity: cpu, memory, pods, ..."))
    return shape


def nodes_of(count: int, shape: Doc | None = None) -> list[Doc]:
    """The manifests of the nodes, named node-1, node-2, ..."""
    nodes = []
    for number in range(1, count + 1):
        node = copy.deepcopy(_USUAL_SHAPE if shape is None else shape)
        name = f"node-{number}"
        meta = node.setdefault("metadata", {})
        meta["name"] = name
        meta["labels"] = {**(meta.get("labels") or {}), "kubernetes.io/hostname": name}
        node["status"].setdefault("allocatable", node["status"]["capacity"])
        nodes.append({"apiVersion": "v1", "kind": "Node", **node})
    return nodes
