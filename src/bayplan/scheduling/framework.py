"""What a plugin is, and what a profile is made of.

A plugin is asked once per pod and hands back something to be asked once per node: a `NodeFilter`, a `NodeScore`, or
None if it has nothing to say about this pod (it is skipped, which differs from a score of 0). What upstream keeps in a
cycle state between its calls is simply held by these objects.

Source of truth: kube-scheduler 1.36 framework/interface.go and runtime/framework.go.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal, Self

import msgspec

from bayplan.scheduling.arguments import DefaultPreemptionArgs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bayplan.scheduling.pods import PodInfo
    from bayplan.scheduling.state import ClusterState, NodeState

MAX_SCORE = 100


class Refusal(msgspec.Struct, frozen=True):
    """Why not. `hopeless`: removing pods would not help (upstream: UnschedulableAndUnresolvable)."""

    plugin: str
    reasons: tuple[str, ...]
    hopeless: bool = False

    @property
    def code(self) -> str:
        """Upstream's name of it."""
        return "UnschedulableAndUnresolvable" if self.hopeless else "Unschedulable"


class NodeFilter:
    """One plugin's opinion about one pod, asked for each node."""

    only: frozenset[str] | None = None
    """If given, no other nodes than these are asked at all."""

    def check(self, node: NodeState) -> Refusal | None:
        """Whether the node will not do."""
        raise NotImplementedError

    def copy(self) -> Self:
        """One whose `add` and `remove` leave this one as it is. Plugins without memory return themselves."""
        return self

    def add(self, pod: PodInfo, node: NodeState) -> None:
        """Suppose another pod was on a node, too."""

    def remove(self, pod: PodInfo, node: NodeState) -> None:
        """Suppose a pod was gone from a node."""


class NodeScore:
    """One plugin's taste for one pod, asked for each feasible node."""

    def score(self, node: NodeState) -> int:
        """How good the node is, by the plugin's own measure."""
        raise NotImplementedError

    def normalise(self, nodes: Sequence[NodeState], scores: list[int]) -> list[int]:
        """The scores of all feasible nodes brought to 0..100."""
        return scores


class Plugin:
    """A plugin. What it does not have, it has nothing to say about."""

    name: ClassVar[str]

    def enqueue(self, pod: PodInfo) -> Refusal | None:
        """Whether the pod must stay out of the queue."""
        return None

    def filter(self, pod: PodInfo, state: ClusterState) -> NodeFilter | Refusal | None:
        """What to ask of nodes. A Refusal turns all nodes down at once."""
        return None

    def score(self, pod: PodInfo, state: ClusterState, nodes: Sequence[NodeState]) -> NodeScore | None:
        """What to score these nodes, the feasible ones, by."""
        return None


class Profile(msgspec.Struct, frozen=True):
    """A scheduler by name: its plugins, in order, with what they weigh."""

    scheduler_name: str
    gates: tuple[Plugin, ...]
    filters: tuple[Plugin, ...]
    scorers: tuple[tuple[Plugin, int], ...]
    preemption: DefaultPreemptionArgs | None = DefaultPreemptionArgs()
    """None where DefaultPreemption is not enabled."""
    claims: bool = True
    """Whether DynamicResources takes part after filtering; it then has a word in every failure."""
    percentage_of_nodes_to_score: int = 0
    ties: Literal["heap", "first"] = "heap"
    """Which of equals is taken: the one that upstream's heap brings up, or the first in the order of nodes."""


def scaled(scores: list[int], reverse: bool = False) -> list[int]:
    """Scores as hundredths of the largest; reversed, the largest gets 0."""
    most = max(scores, default=0)
    if most == 0:
        return [MAX_SCORE] * len(scores) if reverse else scores
    shares = [score * MAX_SCORE // most for score in scores]
    return [MAX_SCORE - share for share in shares] if reverse else shares
