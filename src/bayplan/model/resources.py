"""What a pod takes from a node, counted as the scheduler counts.

    requests = max( containers + sidecars,  largest of: an init container + the sidecars started before it )
               replaced per resource by the pod's own requests where it has them,  + overhead

A container that was resized in place counts with the larger of what is asked, allocated and in force.

Amounts are exact nanos until the end, then base units rounded up: thousandths of a core for cpu, else bytes or pieces.
Source of truth: k8s.io/component-helpers 0.36 resource/helpers.go with the scheduler's default feature gates.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

from bayplan.model.meta import condition
from bayplan.model.quantity import NANOS, away_from_zero, parse

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bayplan.model.meta import ResourceList
    from bayplan.model.pods import Container, ContainerStatus, Pod, PodSpec, ResourceRequirements

CPU = "cpu"
MEMORY = "memory"
EPHEMERAL_STORAGE = "ephemeral-storage"
PODS = "pods"
HUGEPAGES_PREFIX = "hugepages-"

Amounts = dict[str, int]
_Side = Literal["requests", "limits"]
_MILLI_NANOS = NANOS // 1000
# What a container without a request counts for in scoring, so that such pods spread too.
_NONZERO = {CPU: 100 * _MILLI_NANOS, MEMORY: 200 * 1024 * 1024 * NANOS}


class NonzeroRequest(NamedTuple):
    """What scoring counts: thousandths of a core and bytes, with a default for containers that ask for nothing."""

    cpu: int
    memory: int


def amounts(resources: Mapping[str, str]) -> Amounts:
    """A resource map in base units: a node's allocatable, a quota."""
    return _rounded(_nanos(resources))


def pod_requests(pod: Pod) -> Amounts:
    """What the scheduler sets aside for a pod."""
    return _rounded(_requests(pod, {}))


def pod_limits(pod: Pod) -> Amounts:
    """What a pod may use at most; a resource that nothing limits is missing."""
    total = _aggregate(pod, "limits", {})
    _replace_by_pod_level(pod, "limits", total)
    for name, text in pod.spec.overhead.items():
        if total.get(name):
            total[name] += parse(text).nanos
    return _rounded(total)


def nonzero_requests(pod: Pod) -> NonzeroRequest:
    """What the scheduler scores a pod by."""
    missing = _NONZERO
    if has_pod_level_requests(pod.spec):
        present = _requests(pod, {})
        missing = {name: nanos for name, nanos in _NONZERO.items() if name not in present}
    found = _rounded(_requests(pod, missing))
    return NonzeroRequest(found.get(CPU, 0), found.get(MEMORY, 0))


def is_pod_level(resource: str) -> bool:
    """Whether a pod as a whole can ask for the resource."""
    return resource in (CPU, MEMORY) or resource.startswith(HUGEPAGES_PREFIX)


def has_pod_level_requests(spec: PodSpec) -> bool:
    """Whether the pod as a whole asks for anything."""
    return spec.resources is not None and any(map(is_pod_level, spec.resources.requests))


def _requests(pod: Pod, missing: Amounts) -> Amounts:
    total = _aggregate(pod, "requests", missing)
    _replace_by_pod_level(pod, "requests", total)
    for name, text in pod.spec.overhead.items():
        total[name] = total.get(name, 0) + parse(text).nanos
    return total


def _aggregate(pod: Pod, side: _Side, missing: Amounts) -> Amounts:
    """The containers' part of the formula. `missing` stands in for what a container leaves out."""
    statuses = {status.name: status for status in pod.status.container_statuses if status.resources}
    total: Amounts = {}
    for container in pod.spec.containers:
        _add(total, _of_container(pod, container, statuses.get(container.name), side, missing))
    if not pod.spec.init_containers:
        return total
    statuses = {status.name: status for status in pod.status.init_container_statuses if status.resources}
    sidecars: Amounts = {}
    peak: Amounts = {}
    for container in pod.spec.init_containers:
        status = statuses.get(container.name) if container.is_sidecar else None
        use = _of_container(pod, container, status, side, missing)
        if container.is_sidecar:
            _add(total, use)
            _add(sidecars, use)
            use = sidecars
        else:
            _add(use, sidecars)
        _raise_to(peak, use)
    _raise_to(total, peak)
    return total


def _of_container(
    pod: Pod, container: Container, status: ContainerStatus | None, side: _Side, missing: Amounts
) -> Amounts:
    if status is None:
        use = _nanos(_pick(container.resources, side))
    else:
        use = _in_force(pod, container.resources, status.resources, status.allocated_resources, side)
    for name, nanos in missing.items():
        use.setdefault(name, nanos)
    return use


def _replace_by_pod_level(pod: Pod, side: _Side, total: Amounts) -> None:
    own = pod.spec.resources
    if own is None:
        return
    if pod.status.resources is None:
        effective = _nanos(_pick(own, side))
    else:
        effective = _in_force(pod, own, pod.status.resources, pod.status.allocated_resources, side)
        if side == "limits":  # upstream takes no limits in force for limits unknown
            effective = effective or _nanos(own.limits)
    for name in _pick(own, side):
        if is_pod_level(name):
            total[name] = effective.get(name, 0)


def _in_force(
    pod: Pod, asked: ResourceRequirements, actual: ResourceRequirements | None, allocated: ResourceList, side: _Side
) -> Amounts:
    """What counts during a resize: the largest of all, leaving out what is asked when the node cannot ever give it."""
    pending = condition(pod.status.conditions, "PodResizePending")
    use = {} if pending is not None and pending.reason == "Infeasible" else _nanos(_pick(asked, side))
    if actual is not None:
        _raise_to(use, _nanos(_pick(actual, side)))
    if side == "requests":
        _raise_to(use, _nanos(allocated))
    return use


def _pick(resources: ResourceRequirements, side: _Side) -> ResourceList:
    return resources.requests if side == "requests" else resources.limits


def _nanos(resources: Mapping[str, str]) -> Amounts:
    return {name: parse(text).nanos for name, text in resources.items()}


def _add(total: Amounts, more: Amounts) -> None:
    for name, nanos in more.items():
        total[name] = total.get(name, 0) + nanos


def _raise_to(total: Amounts, other: Amounts) -> None:
    for name, nanos in other.items():
        if name not in total or nanos > total[name]:
            total[name] = nanos


def _rounded(total: Amounts) -> Amounts:
    return {name: away_from_zero(nanos, _MILLI_NANOS if name == CPU else NANOS) for name, nanos in total.items()}
