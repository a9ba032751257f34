"""The GPUs that a pod asks for or a node offers, in as few words as a column has.

Which resources are GPUs: the device plugins of NVIDIA, AMD and Intel, by the names they register.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from bayplan.model.nodes import Node
from bayplan.model.pods import Pod
from bayplan.model.resources import amounts, pod_requests

if TYPE_CHECKING:
    from bayplan.cluster.objects import Object

_NAMES = ("nvidia.com/gpu", "nvidia.com/gpu.shared", "amd.com/gpu", "gpu.intel.com/i915", "gpu.intel.com/xe")
_SLICES = "nvidia.com/mig-"
NONE = "<none>"


def gpu_text(pod: Object) -> str:
    """`8`, or `1 gpu.shared`; `<none>` for a pod that asks for none."""
    return _text(gpus_of_pod(pod))


def gpus_of_pod(pod: Object) -> dict[str, int]:
    """GPU resources that a pod asks for."""
    return _only(pod_requests(pod.view(Pod)))


def gpus_of_node(node: Object) -> dict[str, int]:
    """GPU resources that a node offers."""
    return _only(amounts(node.view(Node).status.allocatable))


def held_text(held: Mapping[str, int], offered: Mapping[str, int]) -> str:
    """`5/8`: what is held of what a node offers."""
    return ",".join(_named(f"{held.get(name, 0)}/{amount}", name) for name, amount in offered.items()) or NONE


def _only(resources: Mapping[str, int]) -> dict[str, int]:
    return {
        name: amount
        for name, amount in sorted(resources.items())
        if amount and (name in _NAMES or name.startswith(_SLICES))
    }


def _text(gpus: Mapping[str, int]) -> str:
    return ",".join(_named(str(amount), name) for name, amount in gpus.items()) or NONE


def _named(amount: str, name: str) -> str:
    """Whole GPUs are just a number."""
    short = name.rpartition("/")[2]
    return amount if short == "gpu" else f"{amount} {short}"
