"""Counting GPUs as a device plugin offers them: whole ones, and shares of time-sliced ones.

A node whose GPUs are shared offers `nvidia.com/gpu.shared`, as many of each GPU as its label `nvidia.com/gpu.replicas`
says, so a share is that fraction of a GPU.
"""

from __future__ import annotations

from collections.abc import Mapping

from bayplan.model.nodes import Node
from bayplan.model.pods import Pod, PodSpec
from bayplan.model.resources import amounts, pod_requests
from bayplan.scheduling.gpus.asking import SHARE

WHOLE = "nvidia.com/gpu"
SHARED = "nvidia.com/gpu.shared"
REPLICAS = "nvidia.com/gpu.replicas"
PRODUCT = "nvidia.com/gpu.product"


def replicas(node: Node) -> int:
    """How many pods may share one of a node's GPUs."""
    text = node.metadata.labels.get(REPLICAS, "")
    return int(text) if text.isascii() and text.isdecimal() and int(text) else 1


def gpus_of_node(node: Node) -> int:
    """The GPUs a node has to give."""
    offered = amounts(node.status.allocatable)
    return offered.get(WHOLE, 0) + offered.get(SHARED, 0) // replicas(node)


def gpus_of_pod(pod: Pod, replicas_of_node: int) -> float:
    """The GPUs a pod holds on a node."""
    requests = pod_requests(pod) if _speaks_of_gpus(pod.spec) else {}
    return gpus_asked(requests, pod.metadata.annotations.get(SHARE, ""), replicas_of_node)


def _speaks_of_gpus(spec: PodSpec) -> bool:
    """Whether it is worth adding up what is asked for."""
    containers = (*spec.containers, *spec.init_containers)
    asked = (spec.overhead, *(each.resources.requests for each in containers))
    return any(WHOLE in each or SHARED in each for each in asked)


def gpus_asked(requests: Mapping[str, int], share: str, replicas_of_node: int) -> float:
    """The GPUs that are asked for; `share` is the annotation with thousandths of one."""
    gpus = requests.get(WHOLE, 0) + requests.get(SHARED, 0) / replicas_of_node
    return gpus + int(share) / 1000 if share.isdecimal() and not gpus else gpus
