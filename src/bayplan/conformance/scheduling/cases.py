"""What the families of scheduling have in common: the cluster of a case, and the first thing that differs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from bayplan.model.nodes import Node
from bayplan.model.pods import Pod
from bayplan.model.policies import Namespace, PodDisruptionBudget, Service
from bayplan.model.workloads import ReplicaSet, ReplicationController, StatefulSet
from bayplan.scheduling.pods import PodInfo
from bayplan.scheduling.state import ClusterState

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bayplan.model.meta import KubernetesObject
    from bayplan.scheduling.decision import Decision
    from bayplan.scheduling.framework import Refusal

Case = dict[str, Any]

_KINDS: dict[str, type[KubernetesObject]] = {
    "nodes": Node,
    "namespaces": Namespace,
    "services": Service,
    "replicationControllers": ReplicationController,
    "replicaSets": ReplicaSet,
    "statefulSets": StatefulSet,
    "podDisruptionBudgets": PodDisruptionBudget,
    "pods": Pod,
}
"""The arrays of a case. Nodes come before the pods on them."""


def cluster(case: Case) -> ClusterState:
    """The state that a case describes."""
    return ClusterState(
        item
        for name, kind in _KINDS.items()
        for item in msgspec.convert(case.get(name) or [], list[kind])  # type: ignore[valid-type]  # a kind by name
    )


def pod_of(document: Case) -> PodInfo:
    """The pod to decide about."""
    return PodInfo(msgspec.convert(document, Pod))


def refused(refusal: Refusal) -> Case:
    """A node's refusal in the recordings' form."""
    return {"feasible": False, "plugin": refusal.plugin, "code": refusal.code, "reasons": sorted(refusal.reasons)}


def fast_difference(chosen: str | Decision, decision: Decision) -> str:
    """How the choice of the columnar path differs from the decision of the readable one."""
    node = chosen if isinstance(chosen, str) else chosen.node
    return "" if node == decision.node else f"the columnar path chose {node!r}, the readable one {decision.node!r}"


def first_difference(ours: Mapping[str, Any], theirs: Mapping[str, Any], path: str = "") -> str:
    """Where two answers part for the first time: at which key, and what each of them says there."""
    for key in (*theirs, *(key for key in ours if key not in theirs)):
        at = f"{path}.{key}" if path else key
        if key not in ours or key not in theirs:
            return f"{at}: {ours.get(key, 'nothing')!r}, expected {theirs.get(key, 'nothing')!r}"
        mine, other = ours[key], theirs[key]
        if isinstance(mine, dict) and isinstance(other, dict):
            inner = first_difference(mine, other, at)
            if inner:
                return inner
        elif mine != other:
            return f"{at}: {mine!r}, expected {other!r}"
    return ""
