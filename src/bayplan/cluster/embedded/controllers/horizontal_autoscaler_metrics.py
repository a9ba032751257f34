"""How many replicas a metric asks for.

The ratio of what pods use to what they should use, times the pods that count. Pods that are starting or say nothing do
not count at first; if the answer would be to scale, they are put back with the value that speaks against it.

Source of truth: pkg/controller/podautoscaler/replica_calculator.go and metrics/utilization.go. Amounts are thousandths
of the resource's unit, of memory too.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from bayplan.cluster.embedded.kubelet.behaviour import Defaults
from bayplan.cluster.embedded.kubelet.usage import Usage, container_usage
from bayplan.cluster.objects import Object
from bayplan.model.clock import SECOND, Instant, parse_rfc3339
from bayplan.model.meta import condition
from bayplan.model.pods import Pod
from bayplan.model.quantity import Format, Quantity, parse

CPU, MEMORY = "cpu", "memory"
_INITIALIZATION = 300 * SECOND  # --horizontal-pod-autoscaler-cpu-initialization-period
_READINESS_DELAY = 30 * SECOND  # --horizontal-pod-autoscaler-initial-readiness-delay
_WINDOW = 15 * SECOND  # what a sample of metrics-server covers, at its default resolution

Doc = dict[str, Any]
Samples = dict[str, int]
"""By pod, what it uses."""


class MetricError(ValueError):
    """No number comes of a metric; the words are upstream's."""


class Tolerances(NamedTuple):
    """How far the ratio may be from 1 before anything is done."""

    down: float = 0.1
    up: float = 0.1

    def cover(self, ratio: float) -> bool:
        """Whether the ratio is near enough."""
        return 1.0 - self.down <= ratio <= 1.0 + self.up


class Proposal(NamedTuple):
    """How many replicas, and the present value as the status tells it."""

    replicas: int
    current: Doc


class Groups(NamedTuple):
    """The pods of a target by what their samples are worth."""

    ready: int
    unready: set[str]
    missing: set[str]
    ignored: set[str]


def samples(pods: Iterable[Object], resource: str, container: str, now: Instant, behaviour: Defaults) -> Samples:
    """What the pods use of a resource, or one container of each. Raises MetricError when none of them runs."""
    measured = {pod.name: found for pod in pods if (found := container_usage(pod, now, behaviour))}
    if not measured:
        raise MetricError(
            f"unable to get metrics for resource {resource}: no metrics returned from resource metrics API"
        )
    if container:
        return {name: _amount(found[container], resource) for name, found in measured.items() if container in found}
    return {name: sum(_amount(one, resource) for one in found.values()) for name, found in measured.items()}


def _amount(used: Usage, resource: str) -> int:
    if resource == CPU:
        return used.cpu
    return used.memory * 1000 if resource == MEMORY else 0


def grouped(pods: Iterable[Pod], measured: Mapping[str, int], resource: str, now: Instant) -> Groups:
    """Tell ready pods from those that are starting, silent or on their way out."""
    groups = Groups(0, set(), set(), set())
    ready = 0
    for pod in pods:
        name = pod.metadata.name
        if pod.metadata.deletion_timestamp is not None or pod.status.phase == "Failed":
            groups.ignored.add(name)
        elif pod.status.phase == "Pending":
            groups.unready.add(name)
        elif name not in measured:
            groups.missing.add(name)
        elif resource == CPU and _is_starting(pod, now):
            groups.unready.add(name)
        else:
            ready += 1
    return groups._replace(ready=ready)


def _is_starting(pod: Pod, now: Instant) -> bool:
    """Whether a pod's CPU tells of its start rather than of its work."""
    ready = condition(pod.status.conditions, "Ready")
    if ready is None or pod.status.start_time is None or ready.last_transition_time is None:
        return True
    started, turned = parse_rfc3339(pod.status.start_time), parse_rfc3339(ready.last_transition_time)
    if started + _INITIALIZATION > now:
        return ready.status == "False" or now < turned + _WINDOW
    return ready.status == "False" and started + _READINESS_DELAY > turned


class Question(NamedTuple):
    """What is asked of a resource metric."""

    resource: str
    target: Doc
    replicas: int
    """How many there are."""
    tolerances: Tolerances
    container: str = ""


def propose(asked: Question, pods: Sequence[Object], now: Instant, behaviour: Defaults) -> Proposal:
    """How many replicas a resource metric asks for. Raises MetricError."""
    by_value = "averageValue" in asked.target
    what = "usage" if by_value else "utilization"
    if not by_value and "averageUtilization" not in asked.target:
        raise MetricError(
            "invalid resource metric source: neither an average utilization target nor an average value (usage) target "
            "was set"
        )
    try:
        measured = samples(pods, asked.resource, asked.container, now, behaviour)
        return _by_value(asked, pods, measured, now) if by_value else _by_share(asked, pods, measured, now)
    except MetricError as error:
        raise MetricError(f"failed to get {asked.resource} {what}: {error}") from None


def _counted(asked: Question, pods: Sequence[Object], measured: Samples, now: Instant) -> Groups:
    if not pods:
        raise MetricError("no pods returned by selector while calculating replica count")
    groups = grouped((pod.view(Pod) for pod in pods), measured, asked.resource, now)
    for name in groups.ignored | groups.unready:
        measured.pop(name, None)
    if not measured:
        raise MetricError("did not receive metrics for targeted pods (pods might be unready)")
    return groups


def _by_share(asked: Question, pods: Sequence[Object], measured: Samples, now: Instant) -> Proposal:
    target = asked.target["averageUtilization"]
    groups = _counted(asked, pods, measured, now)
    requests = {pod.name: requested(pod.view(Pod), asked.resource, asked.container) for pod in pods}

    def ratio(values: Samples) -> tuple[float, int, int]:
        known = {name: value for name, value in values.items() if name in requests}
        total = sum(requests[name] for name in known)
        if total == 0:
            raise MetricError("no metrics returned matched known pods")
        share = sum(known.values()) * 100 // total
        return share / target, share, sum(known.values()) // len(known)

    first, share, average = ratio(measured)
    fallback = {name: requests[name] * max(100, target) // 100 for name in groups.missing}
    filled = _filled(first, measured, groups, fallback)
    again = None if filled is None else ratio(filled)[0]
    replicas = _decided(asked, first, again, groups.ready, len(filled or ()))
    return Proposal(replicas, {"averageUtilization": share, "averageValue": quantity(asked.resource, average)})


def _by_value(asked: Question, pods: Sequence[Object], measured: Samples, now: Instant) -> Proposal:
    target = parse(asked.target["averageValue"]).milli()
    groups = _counted(asked, pods, measured, now)
    average = sum(measured.values()) // len(measured)
    filled = _filled(average / target, measured, groups, dict.fromkeys(groups.missing, target))
    again = None if filled is None else sum(filled.values()) // len(filled) / target
    replicas = _decided(asked, average / target, again, groups.ready, len(filled or ()))
    return Proposal(replicas, {"averageValue": quantity(asked.resource, average)})


def _filled(ratio: float, measured: Samples, groups: Groups, fallback: Samples) -> Samples | None:
    """The samples with values for those that did not count; None where all that matter did."""
    unready = bool(groups.unready) and ratio > 1.0
    if not unready and not groups.missing:
        return None
    filled = dict(measured)
    if ratio < 1.0:
        filled |= fallback
    elif ratio > 1.0:
        filled |= dict.fromkeys(groups.missing, 0)
    return filled | dict.fromkeys(groups.unready, 0) if unready else filled


def _decided(asked: Question, ratio: float, again: float | None, ready: int, counted: int) -> int:
    if again is None:
        return asked.replicas if asked.tolerances.cover(ratio) else math.ceil(ratio * ready)
    if asked.tolerances.cover(again) or (ratio < 1.0 < again) or (again < 1.0 < ratio):
        return asked.replicas  # too little, or the other way round: then nothing
    replicas = math.ceil(again * counted)
    backwards = (again < 1.0 and replicas > asked.replicas) or (again > 1.0 and replicas < asked.replicas)
    return asked.replicas if backwards else replicas


def requested(pod: Pod, resource: str, container: str) -> int:
    """What a pod asks for of a resource, or one container of it. Raises MetricError where one says nothing."""
    spec, name = pod.spec, pod.metadata.name
    if not container and spec.resources is not None and spec.resources.requests:
        if resource not in spec.resources.requests:
            raise MetricError(f"missing pod-level request for {resource} in Pod {name}")
        return parse(spec.resources.requests[resource]).milli()
    total = 0
    for one in (*spec.containers, *(each for each in spec.init_containers if each.is_sidecar)):
        if container and container != one.name:
            continue
        if resource not in one.resources.requests:
            raise MetricError(f"missing request for {resource} in container {one.name} of Pod {name}")
        total += parse(one.resources.requests[resource]).milli()
        if container:
            return total
    if container:
        raise MetricError(f"container {container} not found in Pod {name}")
    return total


def quantity(resource: str, milli: int) -> str:
    """An amount as the status writes it."""
    return str(Quantity.of_milli(milli, Format.BINARY_SI if resource == MEMORY else Format.DECIMAL_SI))
