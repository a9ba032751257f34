"""The quality-of-service class of a pod: who is evicted and throttled first.

Guaranteed: every container limits cpu and memory, and requests equal limits. BestEffort: nobody asks for either.
Burstable: all others. Where the pod as a whole has resources, they alone decide.

Source of truth: kubernetes 1.36 pkg/apis/core/v1/helper/qos.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING

from bayplan.model.quantity import parse
from bayplan.model.resources import CPU, MEMORY

if TYPE_CHECKING:
    from collections.abc import Iterable

    from bayplan.model.meta import ResourceList
    from bayplan.model.pods import Pod, PodSpec


class QosClass(enum.StrEnum):
    """The three classes, in the words of the wire."""

    GUARANTEED = "Guaranteed"
    BURSTABLE = "Burstable"
    BEST_EFFORT = "BestEffort"


def qos_class(pod: Pod) -> QosClass:
    """The class in the pod's status, or, if there is none yet, the one that follows from its spec."""
    return QosClass(pod.status.qos_class) if pod.status.qos_class else compute_qos(pod.spec)


def compute_qos(spec: PodSpec) -> QosClass:
    """The class that follows from a pod's spec."""
    if spec.resources is not None:
        every = [spec.resources]
        may_be_guaranteed = not spec.resources.limits or _limits_both(spec.resources.limits)
    else:
        every = [container.resources for container in (*spec.containers, *spec.init_containers)]
        may_be_guaranteed = all(_limits_both(resources.limits) for resources in every)
    requests = _sum(resources.requests for resources in every)
    limits = _sum(resources.limits for resources in every)
    if not requests and not limits:
        return QosClass.BEST_EFFORT
    return QosClass.GUARANTEED if may_be_guaranteed and requests == limits else QosClass.BURSTABLE


def _limits_both(limits: ResourceList) -> bool:
    return all(name in limits and parse(limits[name]).nanos > 0 for name in (CPU, MEMORY))


def _sum(lists: Iterable[ResourceList]) -> dict[str, int]:
    total: dict[str, int] = {}
    for resources in lists:
        for name in (CPU, MEMORY):
            nanos = parse(resources[name]).nanos if name in resources else 0
            if nanos > 0:
                total[name] = total.get(name, 0) + nanos
    return total
