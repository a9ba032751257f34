"""How fast failing nodes are emptied, zone by zone.

Nodes of one zone are tainted for eviction ten seconds apart. Where most of a zone is gone, the fault is more likely in
the zone than in its nodes: then a small zone stands still and a large one slows down. Where no node of any zone is
ready, the fault is the control plane's own, and nothing is evicted at all.

Source of truth: handleDisruption and ComputeZoneState in pkg/controller/nodelifecycle, with kube-controller-manager's
default rates.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from bayplan.model.clock import SECOND, Instant, parse_rfc3339
from bayplan.model.meta import condition
from bayplan.model.nodes import Node
from bayplan.model.taints import NO_EXECUTE

UNREACHABLE = "node.kubernetes.io/unreachable"
NOT_READY = "node.kubernetes.io/not-ready"
EVICTING = (NOT_READY, UNREACHABLE)
"""The keys of the taints by which a node that fails is emptied."""

_APART = 10 * SECOND  # --node-eviction-rate 0.1
_FAR_APART = 100 * SECOND  # --secondary-node-eviction-rate 0.01
_LARGE = 50  # --large-cluster-size-threshold
_UNHEALTHY = 0.55  # --unhealthy-zone-threshold
_REGION, _ZONE = "topology.kubernetes.io/region", "topology.kubernetes.io/zone"


def readiness(node: Node) -> str:
    """The status of the node's Ready condition: True, False, Unknown, or nothing."""
    ready = condition(node.status.conditions, "Ready")
    return "" if ready is None else ready.status


def zone_of(node: Node) -> tuple[str, str]:
    """Where a node stands."""
    labels = node.metadata.labels
    return labels.get(_REGION, ""), labels.get(_ZONE, "")


def next_slot(node: Node, nodes: Iterable[Node]) -> Instant | None:
    """From when on a node may be tainted for eviction; None while nothing may."""
    zones: dict[tuple[str, str], list[Node]] = {}
    for each in nodes:
        zones.setdefault(zone_of(each), []).append(each)
    if not any(readiness(each) == "True" for members in zones.values() for each in members):
        return None
    members = zones.get(zone_of(node), [])
    apart = _spacing(members)
    if apart is None:
        return None
    last = [
        parse_rfc3339(taint.time_added)
        for each in members
        if each.metadata.uid != node.metadata.uid
        for taint in each.spec.taints
        if taint.effect == NO_EXECUTE and taint.key in EVICTING and taint.time_added is not None
    ]
    return Instant(max(last) + apart) if last else Instant(0)


def _spacing(members: Sequence[Node]) -> int | None:
    down = sum(readiness(each) != "True" for each in members)
    if down > 2 and down < len(members) and down / len(members) >= _UNHEALTHY:
        return _FAR_APART if len(members) > _LARGE else None
    return _APART
