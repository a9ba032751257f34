"""GPUs by the device: a pod goes only where its share, or as many whole devices, are left."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bayplan.scheduling.framework import NodeFilter, Plugin, Refusal
from bayplan.scheduling.gpus.devices import fits, left

if TYPE_CHECKING:
    from bayplan.scheduling.gpus.asking import Ask
    from bayplan.scheduling.pods import PodInfo
    from bayplan.scheduling.state import ClusterState, NodeState

NO_GPU = "node(s) had no GPU"
NO_DEVICE = "node(s) had no GPU with enough left"
NO_FREE_DEVICE = "node(s) didn't have enough GPUs free"


class GpuShare(Plugin):
    """Fits pods to devices."""

    name = "GpuShare"

    def filter(self, pod: PodInfo, state: ClusterState) -> NodeFilter | None:
        """For pods that ask for GPUs."""
        ask = pod.gpus.ask
        return _Fits(ask) if ask.number else None


class _Fits(NodeFilter):
    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    def check(self, node: NodeState) -> Refusal | None:
        devices = left(node)
        if fits(devices, self._ask):
            return None
        if len(devices) < self._ask.number:
            return Refusal(GpuShare.name, (NO_GPU if not devices else NO_FREE_DEVICE,), hopeless=True)
        return Refusal(GpuShare.name, (NO_DEVICE if self._ask.is_share else NO_FREE_DEVICE,))
