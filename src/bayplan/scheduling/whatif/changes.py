"""A change as a value: what it is, how much of it, and how it is applied to a pod or to a copy of the cluster's state.

A set of changes costs, compared in this order:
    the number of changes
    their kinds, the most disturbing first: kinds stand in `Kind` from the least to the most disturbing
    their amounts: the share of a request given up, the size of the node added, the priority and size of the pod moved
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable

    from bayplan.model.pods import Pod
    from bayplan.scheduling.state import ClusterState

Amount = tuple[int, ...]


class Kind(StrEnum):
    """The kinds of changes, the least disturbing first: to the pod itself, then to a node, then to others."""

    LOWER_REQUEST = "lower-request"
    ADD_TOLERATION = "add-toleration"
    DROP_NODE_SELECTOR = "drop-node-selector"
    RELAX_NODE_AFFINITY = "relax-node-affinity"
    SOFTEN_SPREAD = "soften-spread"
    DROP_POD_AFFINITY = "drop-pod-affinity"
    DROP_POD_ANTI_AFFINITY = "drop-pod-anti-affinity"
    DROP_HOST_PORT = "drop-host-port"
    REMOVE_GATES = "remove-scheduling-gates"
    UNCORDON_NODE = "uncordon-node"
    RECOVER_NODE = "recover-node"
    ADD_NODE = "add-node"
    MOVE_POD = "move-pod"

    @property
    def rank(self) -> int:
        """How disturbing it is."""
        return _RANKS[self]


_RANKS = {kind: rank for rank, kind in enumerate(Kind)}


class Change(msgspec.Struct, frozen=True, tag_field="kind", rename="camel"):
    """One change. `what` tells it from others of its kind, whatever node it is made for."""

    @property
    def kind(self) -> Kind:
        """Which it is."""
        return Kind(str(type(self).__struct_config__.tag))

    @property
    def what(self) -> str:
        """What is changed."""
        return ""

    @property
    def amount(self) -> Amount:
        """How much of it."""
        return ()

    @property
    def nodes(self) -> tuple[str, ...] | None:
        """The nodes that it changes; None for a change to the pod itself."""
        return None

    def __hash__(self) -> int:
        return hash((self.kind, self.what))  # some hold selectors, which have no hash

    def to_pod(self, pod: Pod) -> Pod:
        """The pod, changed."""
        return pod

    def to_state(self, state: ClusterState) -> None:
        """Change a state; one of the caller's own."""


class Cost(NamedTuple):
    """What a set of changes costs; the smaller the better."""

    changes: int
    kinds: tuple[int, ...]
    amounts: tuple[Amount, ...]


def cost(changes: Iterable[Change]) -> Cost:
    """What they cost together."""
    ranked = sorted(((each.kind.rank, each.amount) for each in changes), reverse=True)
    return Cost(len(ranked), tuple(rank for rank, _ in ranked), tuple(amount for _, amount in ranked))


def applied(changes: Iterable[Change], pod: Pod, state: ClusterState) -> tuple[Pod, ClusterState]:
    """The pod and the cluster with all of the changes. What was given stays as it is."""
    made = [*changes]
    touched = [each.nodes for each in made if each.nodes is not None]
    if touched:
        state = state.copy({name for names in touched for name in names})
    for each in made:
        pod = each.to_pod(pod)
        each.to_state(state)
    return pod, state
