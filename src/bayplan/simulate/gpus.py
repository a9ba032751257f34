"""Counting GPUs as device plugins offer them, by the ledger's own rule, so that a run and a ledger tell the same.

What is a GPU is a matter of vendors, and into how many pieces a node's are cut one of its labels: see
`ledger/differ/gpus.py`. Only the shares that our own schedulers hand out, by an annotation, are nothing a device plugin
knows of.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from bayplan.ledger.differ.gpus import GpuVendors, capacity
from bayplan.ledger.rows import MILLI
from bayplan.model.nodes import Node
from bayplan.model.pods import Pod, PodSpec
from bayplan.model.resources import pod_requests
from bayplan.scheduling.gpus.asking import SHARE, hold_of

_VENDORS = GpuVendors()


def gpus_offered(node: Node) -> float:
    """The GPUs a node has to give."""
    return sum(capacity(node.status.allocatable, _VENDORS, [], node.metadata.labels).values()) / MILLI


def is_cut(node: Node) -> bool:
    """Whether pods share some of a node's GPUs, each offered in pieces."""
    return slots_each(node) > 1


def gpus_of_pod(pod: Pod, labels: Mapping[str, str]) -> float:
    """The GPUs a pod holds on a node with these labels."""
    requests = pod_requests(pod) if _speaks_of_gpus(pod.spec) else {}
    return gpus_asked(requests, pod.metadata.annotations.get(SHARE, ""), labels)


def _speaks_of_gpus(spec: PodSpec) -> bool:
    """Whether it is worth adding up what is asked for."""
    containers = (*spec.containers, *spec.init_containers)
    asked = (spec.overhead, *(each.resources.requests for each in containers))
    return any(_devices(each) for each in asked)


def _devices(resources: Iterable[str]) -> list[str]:
    return [name for name in resources if _VENDORS.of(name) is not None]


def gpus_asked(requests: Mapping[str, int], share: str, labels: Mapping[str, str]) -> float:
    """The GPUs that are asked for; `share` is the annotation with thousandths of one."""
    counted = _VENDORS.counted(requests) if requests else {}
    gpus = sum(amount // _VENDORS.pieces(name, labels) for name, amount in counted.items()) / MILLI
    return hold_of({}, {SHARE: share}).ask.total / MILLI if share and not gpus else gpus


# --- as `bayplan up` draws them: one cell for each GPU, of as many slots as the most finely cut one has


def slots_each(node: Node) -> int:
    """How many pods may share one of a node's GPUs."""
    labels = node.metadata.labels
    return max((_VENDORS.pieces(name, labels) for name in _devices(node.status.allocatable)), default=1)


def slots_of(resources: Mapping[str, int], node: Node) -> int:
    """The slots that amounts of resources take on a node, or that it has: a GPU that is not cut takes a whole cell."""
    each, labels = slots_each(node), node.metadata.labels
    return sum(resources[name] * each // _VENDORS.pieces(name, labels) for name in _devices(resources))


def model_of(node: Node) -> str:
    """The model of a node's GPUs in a word: `NVIDIA-H100-80GB-HBM3` is an H100."""
    for name in sorted(_devices(node.status.allocatable)):
        if model := _VENDORS.model(name, node.metadata.labels):
            return model.removeprefix("NVIDIA-").split("-")[0] if name.startswith("nvidia.com/") else model
    return ""


def asked_text(requests: Mapping[str, int]) -> str:
    """`8 GPU`, `1 share`, `2 gaudi`; empty where none is asked for."""
    words = {"gpu": "GPU", "gpu.shared": "share"}
    shorts = [(requests[name], name.rpartition("/")[2]) for name in sorted(_devices(requests)) if requests[name]]
    return ", ".join(f"{amount} {words.get(short, short)}" for amount, short in shorts)
