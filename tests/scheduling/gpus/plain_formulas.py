"""The policies' formulas once more, node by node and in plain loops, as the paper and its simulator tell them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from bayplan.model.resources import CPU
from bayplan.scheduling.gpus.columns import MODEL
from bayplan.scheduling.gpus.devices import left
from bayplan.scheduling.plugins.gpu_policies.fragmentation import TypicalPod
from bayplan.scheduling.pods import PodInfo
from bayplan.scheduling.state import NodeState
from tests.scheduling.gpus.made import TYPICAL


def _cpu_left(node: NodeState) -> int:
    return node.allocatable[CPU] - node.requested.get(CPU, 0)


def best_fit(pod: PodInfo, node: NodeState) -> int:
    cpu = (_cpu_left(node) - pod.nonzero.cpu) / 128000 * 0.5
    gpu = (sum(left(node)) - pod.gpus.ask.total) / 8000 * 0.5
    return int((1 - (cpu + gpu)) * 100)


def dot_prod(pod: PodInfo, node: NodeState) -> int:
    cpu = _cpu_left(node) / 128000 * (pod.nonzero.cpu / 128000)
    gpu = sum(left(node)) / 8000 * (pod.gpus.ask.total / 8000)
    return int(100 * (1 - (cpu + gpu) / 2))


def packing(pod: PodInfo, node: NodeState) -> int:
    ask, devices = pod.gpus.ask, left(node)
    if not ask.number:
        return 0
    free = devices.count(1000)
    if free == len(devices):
        return max(33 - free, free)
    chosen = sorted(each for each in devices if each >= ask.milli)[: ask.number]
    if 1000 in chosen:
        return max(50 - chosen.count(1000), 33)
    return max(100 - sum(each * 100 // 1000 for each in chosen) // 10, 50)


def clustering(pod: PodInfo, node: NodeState) -> int:
    def size(info: PodInfo) -> str:
        return "share" if info.gpus.ask.is_share else str(info.gpus.ask.number)

    if not pod.gpus.ask.number:
        return 0
    there = {size(each) for each in node.pods.values() if each.gpus.ask.number}
    full = 25 * (8000 - sum(left(node))) // 8000
    if size(pod) in there:
        return full + (75 if len(there) == 1 else 50)
    return full + (0 if there else 25)


def fragmented(devices: Sequence[int], cpu: int, model: str, expected: Sequence[TypicalPod] = TYPICAL) -> float:
    total = sum(each.weight for each in expected)
    found = 0.0
    for each in expected:
        able = [one for one in devices if one >= each.gpu_milli]
        fits = (
            each.gpus > 0
            and len(able) >= each.gpus
            and cpu >= each.cpu_milli
            and (not each.models or model in each.models)
        )
        wasted = sum(one for one in devices if one < each.gpu_milli) if fits else sum(devices)
        found += each.weight / total * wasted
    return found


def fgd(pod: PodInfo, node: NodeState) -> int:
    return max(fgd_by_device(pod, node).values())


def fgd_by_device(pod: PodInfo, node: NodeState) -> dict[int, int]:
    """Points by the device that a share would go to; for other pods by -1."""
    ask, devices, cpu, model = pod.gpus.ask, left(node), _cpu_left(node), node.labels.get(MODEL, "")
    before = fragmented(devices, cpu, model)

    def points(after: Sequence[int]) -> int:
        fall = before - fragmented(after, cpu - pod.nonzero.cpu, model)
        return int(100 / (1 + math.exp(-fall / 1000)))

    if not ask.is_share:
        rest, wanted = list(devices), ask.number
        for device, each in enumerate(devices):
            if wanted and each == 1000:
                rest[device], wanted = 0, wanted - 1
        return {-1: points(rest)}
    return {
        device: points([one - ask.milli if at == device else one for at, one in enumerate(devices)])
        for device, each in enumerate(devices)
        if each >= ask.milli
    }


FORMULAS: dict[str, Callable[[PodInfo, NodeState], int]] = {
    "bestfit": best_fit,
    "dotprod": dot_prod,
    "gpupacking": packing,
    "gpuclustering": clustering,
    "fgd": fgd,
}
