"""Changes to the cluster: a node is opened, cured or added, another pod moves. The pod itself stays as it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from bayplan.model.nodes import Node
from bayplan.scheduling.plugins.node_unschedulable import CORDON
from bayplan.scheduling.pods import PodInfo
from bayplan.scheduling.whatif.changes import Amount, Change, Kind

if TYPE_CHECKING:
    from bayplan.scheduling.state import ClusterState


class _MendNode(Change, frozen=True):
    node: str

    @property
    def nodes(self) -> tuple[str, ...]:
        return (self.node,)

    def to_node(self, node: Node) -> Node:
        """The node, mended."""
        raise NotImplementedError

    def to_state(self, state: ClusterState) -> None:
        found = state.node(self.node)
        assert found is not None  # the change was made for it
        state.put_node(self.to_node(found.node))


class UncordonNode(_MendNode, frozen=True, tag=str(Kind.UNCORDON_NODE)):
    """A node takes pods again."""

    def to_node(self, node: Node) -> Node:
        """The node, uncordoned."""
        taints = tuple(each for each in node.spec.taints if each.key != CORDON.key)
        return replace(node, spec=replace(node.spec, unschedulable=False, taints=taints))

    def __str__(self) -> str:
        return f"{self.node} were uncordoned"


class RecoverNode(_MendNode, frozen=True, tag=str(Kind.RECOVER_NODE)):
    """A node is well again: the taints that tell of its condition are gone."""

    taints: tuple[str, ...]

    def to_node(self, node: Node) -> Node:
        """The node, recovered."""
        kept = tuple(each for each in node.spec.taints if each.key not in self.taints)
        return replace(node, spec=replace(node.spec, taints=kept))

    def __str__(self) -> str:
        return f"{self.node} recovered (it is tainted {', '.join(self.taints)})"


class AddNode(Change, frozen=True, tag=str(Kind.ADD_NODE)):
    """One more node, empty, of an existing one's shape. `size` is by what shapes are compared."""

    like: str
    size: tuple[int, ...]
    offers: dict[str, str]
    node: Node

    @property
    def nodes(self) -> tuple[str, ...]:
        return ()

    @property
    def amount(self) -> Amount:
        return self.size

    def to_state(self, state: ClusterState) -> None:
        state.put_node(self.node)

    def __str__(self) -> str:
        offers = ", ".join(f"{amount} {name}" for name, amount in self.offers.items())
        return f"there were one more node like {self.like} ({offers})"


class MovePod(Change, frozen=True, tag=str(Kind.MOVE_POD)):
    """Another pod goes to another node, where it fits. `share`: of its node, in millionths."""

    namespace: str
    name: str
    priority: int
    share: int
    origin: str
    to: str

    @property
    def nodes(self) -> tuple[str, ...]:
        return (self.origin, self.to)

    @property
    def amount(self) -> Amount:
        return (self.priority, self.share)

    def to_state(self, state: ClusterState) -> None:
        key = (self.namespace, self.name)
        origin = state.node(self.origin)
        assert origin is not None  # the change was made for it
        pod = origin.pods[key].pod
        state.put_pod(PodInfo(replace(pod, spec=replace(pod.spec, node_name=self.to))), self.to)

    def __str__(self) -> str:
        return f"pod {self.namespace}/{self.name} moved from {self.origin} to {self.to}"
