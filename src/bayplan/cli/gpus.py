"""The GPUs that a pod asks for or a node offers, in as few words as a column has.

Which resources are GPUs, the ledger's rule says (`ledger/differ/gpus.py`). It is imported once somebody wants to know:
most listings have no such column.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import TYPE_CHECKING

from bayplan.model.nodes import Node
from bayplan.model.pods import Pod
from bayplan.model.resources import amounts, pod_requests

if TYPE_CHECKING:
    from bayplan.cluster.objects import Object
    from bayplan.ledger.differ.gpus import GpuVendors

NONE = "<none>"


def gpu_text(pod: Object, vendors: GpuVendors | None = None) -> str:
    """`8`, or `1 gpu.shared`; `<none>` for a pod that asks for none. `vendors`: where others are set than are known."""
    return _text(gpus_of_pod(pod, vendors))


def gpus_of_pod(pod: Object, vendors: GpuVendors | None = None) -> dict[str, int]:
    """GPU resources that a pod asks for."""
    return _only(pod_requests(pod.view(Pod)), vendors)


def gpus_of_node(node: Object) -> dict[str, int]:
    """GPU resources that a node offers."""
    return _only(amounts(node.view(Node).status.allocatable))


def held_text(held: Mapping[str, int], offered: Mapping[str, int]) -> str:
    """`5/8`: what is held of what a node offers."""
    return ",".join(_named(f"{held.get(name, 0)}/{amount}", name) for name, amount in offered.items()) or NONE


def _only(resources: Mapping[str, int], vendors: GpuVendors | None = None) -> dict[str, int]:
    rule = vendors or _known()
    return {name: amount for name, amount in sorted(resources.items()) if amount and rule.of(name) is not None}


@functools.cache
def _known() -> GpuVendors:
    from bayplan.ledger.differ.gpus import GpuVendors

    return GpuVendors()


def _text(gpus: Mapping[str, int]) -> str:
    return ",".join(_named(str(amount), name) for name, amount in gpus.items()) or NONE


def _named(amount: str, name: str) -> str:
    """Whole GPUs are just a number."""
    short = name.rpartition("/")[2]
    return amount if short == "gpu" else f"{amount} {short}"
