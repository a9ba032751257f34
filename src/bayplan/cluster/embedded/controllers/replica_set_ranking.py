"""Which pods of a ReplicaSet go first when there are too many.

Those that do least: not assigned before assigned, pending before running, unready before ready, cheap before dear
(`pod-deletion-cost`), crowded nodes before empty ones, shortly ready before long ready, often restarted before seldom,
young before old. Ages are compared by their power of two, so that pods of about the same age are told apart by uid:
by chance, yet always the same way. Source of truth: ActivePodsWithRanks in pkg/controller/controller_utils.go.
"""

from __future__ import annotations

import functools
import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec

from bayplan.cluster.embedded.controllers.readiness import is_active, is_ready, ready_since
from bayplan.cluster.objects import Object
from bayplan.model.clock import Instant, parse_rfc3339
from bayplan.model.pods import Pod

DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
_COST = re.compile(r"0|-?[1-9][0-9]*|-0[0-9]*")  # what upstream's check of the first digit lets through
_PHASES = {"Unknown": 1, "Running": 2}
_NANOSECONDS = 1000  # in an Instant's unit


class _Candidate(msgspec.Struct, frozen=True, eq=False):
    item: Object
    head: tuple[bool, int, bool, int, int]
    """What is compared first: assigned, phase, ready, cost, and how empty its node is."""
    since: Instant | None
    restarts: tuple[int, int]
    created: Instant | None


def doomed(pods: Sequence[Object], related: Iterable[Object], count: int, now: Instant) -> list[Object]:
    """The `count` pods to delete, the first to go first. `related` are the pods whose company counts as a crowd."""
    if count >= len(pods):
        return [*pods]
    crowd = Counter(pod.spec.node_name for one in related if is_active(pod := one.view(Pod)))
    candidates = [_candidate(one, crowd) for one in pods]
    candidates.sort(key=functools.cmp_to_key(functools.partial(_compare, now)))
    return [one.item for one in candidates[:count]]


def deletion_cost(pod: Pod) -> int:
    """What the pod's annotation says; 0 where it says nothing that can be read."""
    text = pod.metadata.annotations.get(DELETION_COST, "")
    cost = int(text) if _COST.fullmatch(text) else 0
    return cost if -(2**31) <= cost < 2**31 else 0


def _candidate(item: Object, crowd: Counter[str]) -> _Candidate:
    pod = item.view(Pod)
    node, created = pod.spec.node_name, pod.metadata.creation_timestamp
    head = (bool(node), _PHASES.get(pod.status.phase, 0), is_ready(pod), deletion_cost(pod), -crowd[node])
    return _Candidate(item, head, ready_since(pod), _restarts(pod), parse_rfc3339(created) if created else None)


def _restarts(pod: Pod) -> tuple[int, int]:
    sidecars = {one.name for one in pod.spec.init_containers if one.is_sidecar}
    return (
        max((one.restart_count for one in pod.status.container_statuses), default=0),
        max((one.restart_count for one in pod.status.init_container_statuses if one.name in sidecars), default=0),
    )


def _compare(now: Instant, one: _Candidate, other: _Candidate) -> int:
    if one.head != other.head:
        return -1 if one.head < other.head else 1
    if one.head[2] and one.since != other.since:
        return _younger(one.since, other.since, one, other, now)
    if one.restarts != other.restarts:
        return -1 if one.restarts > other.restarts else 1
    if one.created != other.created:
        return _younger(one.created, other.created, one, other, now)
    return 0


def _younger(first: Instant | None, second: Instant | None, one: _Candidate, other: _Candidate, now: Instant) -> int:
    if first is None or second is None:
        return -1 if first is None else 1
    difference = _power(now - first) - _power(now - second)
    return difference or (-1 if one.item.uid < other.item.uid else 1)


def _power(age: int) -> int:
    return int(math.log2(age * _NANOSECONDS)) if age > 0 else -1
