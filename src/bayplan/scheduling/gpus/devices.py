"""The GPUs of a node one by one: what each has left, and which of them a pod gets.

Pods that were bound by somebody who does not write down devices count as if they had got what `best_fit` gives them, in
the order in which they came.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bayplan.scheduling.gpus.asking import RESOURCE, WHOLE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bayplan.scheduling.gpus.asking import Ask, Devices
    from bayplan.scheduling.state import NodeState


def left(node: NodeState) -> list[int]:
    """What each device has left. More pods than there is room for leave nothing, not less."""
    devices = [WHOLE] * node.allocatable.get(RESOURCE, 0)
    unplaced: list[Ask] = []
    for pod in node.pods.values():
        ask, known = pod.gpus
        if known:
            for device in known:
                if device < len(devices):
                    devices[device] = max(0, devices[device] - ask.milli)
        elif ask.number:
            unplaced.append(ask)
    for ask in unplaced:
        for device in best_fit(devices, ask):
            devices[device] -= ask.milli
    return devices


def fits(devices: Sequence[int], ask: Ask) -> bool:
    """Whether there are as many devices with so much left."""
    return sum(each >= ask.milli for each in devices) >= ask.number


def best_fit(devices: Sequence[int], ask: Ask) -> Devices:
    """For a share the device with the least left that will do; for whole ones the first free. Empty: there are none."""
    able = [device for device, each in enumerate(devices) if each >= ask.milli]
    if len(able) < ask.number:
        return ()
    if ask.is_share:
        able.sort(key=devices.__getitem__)
    return tuple(able[: ask.number])
