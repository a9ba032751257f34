"""GPUs by the device: a pod goes only where its share, or as many whole devices, are left.

A share that cannot be read is a wish for a GPU that nobody can fulfil: the pod goes nowhere until it is mended.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bayplan.scheduling.framework import NodeFilter, Plugin, Refusal
from bayplan.scheduling.gpus.asking import SHARE, WHOLE
from bayplan.scheduling.gpus.devices import fits, left

if TYPE_CHECKING:
    from bayplan.scheduling.gpus.asking import Ask
    from bayplan.scheduling.pods import PodInfo
    from bayplan.scheduling.state import ClusterState, NodeState

_SHOWN = 40
"""Characters of an annotation that are worth repeating."""
NO_GPU = "node(s) had no GPU"
NO_DEVICE = "node(s) had no GPU with enough left"
NO_FREE_DEVICE = "node(s) didn't have enough GPUs free"


class GpuShare(Plugin):
    """Fits pods to devices."""

    name = "GpuShare"

    def filter(self, pod: PodInfo, state: ClusterState) -> NodeFilter | Refusal | None:
        """For pods that ask for GPUs."""
        ask = pod.gpus.ask
        if ask.unread is not None:
            return Refusal(self.name, (unread_share(ask.unread),), hopeless=True)
        return _Fits(ask) if ask.number else None


def unread_share(text: str) -> str:
    """What is wrong with a share that is none."""
    shown = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
    return f'annotation {SHARE} expects thousandths of one GPU, 1 to {WHOLE - 1}, not "{shown}"'


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
