"""What pods a scenario leads one to expect, how often, and how much of what is free they could not use.

The expectation is what FGD goes by, and what fragmentation is measured by under every policy: of what nodes have left,
the share that a pod drawn from the expected ones could not use (Weng et al., USENIX ATC 2023). Where nobody asks for
GPUs it is measured in CPU.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from bayplan.model import objects
from bayplan.model.pods import Pod
from bayplan.model.resources import CPU, MEMORY, pod_requests
from bayplan.scheduling.gpus.asking import WHOLE, hold_of
from bayplan.scheduling.plugins.gpu_policies.fragmentation import TypicalPod
from bayplan.simulate import manifests
from bayplan.simulate.scenario import Arrivals, Scenario, Size, Workload
from bayplan.simulate.seats import Seat
from bayplan.simulate.vm_pods import first_pod


class Expected(msgspec.Struct, frozen=True):
    """A sort of pods."""

    cpu: int
    memory: int
    gpus: int
    milli: int
    weight: float
    for_share: bool = False


def expected(scenario: Scenario, there: Iterable[Pod] = ()) -> list[Expected]:
    """The sorts of pods of a scenario, each with how many come, roughly, in its time; and of pods that are there."""
    return [*_sorts(scenario), *_present(there)]


def typical(sorts: Iterable[Expected]) -> tuple[TypicalPod, ...]:
    """The same for FGD."""
    return tuple(TypicalPod(each.cpu, each.milli, each.gpus, (), each.weight) for each in sorts)


def _sorts(scenario: Scenario) -> Iterator[Expected]:
    hours = scenario.duration.seconds / 3600
    for workload in scenario.workloads:
        if workload.kind == "DaemonSet":
            continue
        shares: list[tuple[Size | None, float]] = [(size, size.share) for size in workload.sizes] or [(None, 1.0)]
        total = sum(share for _, share in shares)
        often = _often(workload.arrivals, hours) * _pods_each(workload)
        for size, share in shares:
            made = manifests.workload(workload, "x", size=size)
            body = made.body if workload.kind == "Pod" else made.body["spec"]["template"]
            yield _sort(body, often * share / total)
    for group in scenario.vms:
        often = group.count + (_often(group.arrivals, hours) if group.arrivals is not None else 0)
        yield _sort(first_pod(group, scenario).body, often)


def _present(pods: Iterable[Pod]) -> Iterator[Expected]:
    sorts = Counter(_expected(pod) for pod in pods if not pod.is_terminal and not _is_daemon(pod))
    for each, count in sorts.items():
        yield msgspec.structs.replace(each, weight=float(count))


def _is_daemon(pod: Pod) -> bool:
    owner = pod.metadata.controller
    return owner is not None and owner.kind in ("DaemonSet", "Node")


def _often(arrivals: Arrivals | None, hours: float) -> float:
    if arrivals is None:
        return 1.0
    if arrivals.per_hour is not None:
        often = arrivals.per_hour * hours
    elif arrivals.every is not None:
        often = 1 + hours * 3600 / arrivals.every.seconds
    else:
        return float(arrivals.count or 0)
    return often if arrivals.count is None else min(often, arrivals.count)


def _pods_each(workload: Workload) -> float:
    if workload.replicas is not None:
        return (workload.replicas.low + workload.replicas.high) / 2
    key = "completions" if workload.kind == "Job" else "replicas"
    given = workload.spec.get(key, 1)
    return float(given) if isinstance(given, int) else 1.0


def _sort(body: manifests.Doc, weight: float) -> Expected:
    spec = {**body["spec"], "containers": [_admitted(each) for each in body["spec"].get("containers", ())]}
    return _expected(objects.from_builtins({"metadata": body.get("metadata", {}), "spec": spec}, Pod), weight)


def _expected(pod: Pod, weight: float = 0.0) -> Expected:
    requests = pod_requests(pod)
    ask = hold_of(requests, pod.metadata.annotations).ask
    return Expected(requests.get(CPU, 0), requests.get(MEMORY, 0), ask.number, ask.milli, weight, ask.is_for_share)


def _admitted(container: manifests.Doc) -> manifests.Doc:
    """A limit without a request is one, too, and numbers are texts: as an API server stores it."""
    limits, requests = ({**container.get("resources", {}).get(side, {})} for side in ("limits", "requests"))
    asked = {name: str(amount) for name, amount in {**limits, **requests}.items()}
    return {"name": container.get("name", ""), "resources": {"requests": asked}}


def fragmentation(sorts: Iterable[Expected], seats: Iterable[Seat]) -> float:
    """Of what is free, the share that the expected pods could not use, 0 to 1."""
    there = [seat for seat in seats if seat.ready and not seat.cordoned]
    wanted = [each for each in sorts if each.weight > 0]
    if not there or not wanted:
        return 0.0
    with_gpus = any(each.gpus for each in wanted)
    if with_gpus:
        wanted = [each for each in wanted if each.gpus]
    total = sum(each.weight for each in wanted)
    cpu = np.array([seat.capacity[0] - seat.cpu for seat in there])
    memory = np.array([seat.capacity[1] - seat.memory for seat in there])
    left = _devices(there) if with_gpus else None
    free = float(cpu.clip(0).sum() if left is None else left.clip(0).sum())
    if free <= 0:
        return 0.0
    useful = 0.0
    for each in wanted:
        fits = (cpu >= each.cpu) & (memory >= each.memory)
        if left is None:
            usable = cpu.clip(0)
        else:
            large = left >= min(each.milli, WHOLE)
            usable = (left * large).sum(axis=1)
            fits &= large.sum(axis=1) >= each.gpus
        useful += each.weight / total * float((usable * fits).sum())
    return min(1.0, max(0.0, 1 - useful / free))


def _devices(seats: Sequence[Seat]) -> NDArray[np.int64]:
    """What is left of each device, one row a node."""
    widest = max(len(seat.devices) for seat in seats)
    return np.array([seat.devices + [0] * (widest - len(seat.devices)) for seat in seats])
