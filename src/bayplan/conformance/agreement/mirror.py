"""Our side: the state as the real scheduler knows it, and what we decide on it.

The mirror never places a pod by its own decision. It adopts what the real scheduler did, so that one difference does
not cascade. The node is that of the columnar path, which the embedded engine goes by; reasons and scores are those of
the readable one, so if the two ever parted, that would be a disagreement, too.
"""

from __future__ import annotations

import msgspec

from bayplan.model.meta import KubernetesObject
from bayplan.model.pods import Pod
from bayplan.scheduling.decision import Decision, Outcome
from bayplan.scheduling.fast.scheduler import FastScheduler
from bayplan.scheduling.messages import with_preemption
from bayplan.scheduling.pods import PodInfo
from bayplan.scheduling.preemption import preempt
from bayplan.scheduling.profiles import default_profile
from bayplan.scheduling.state import ClusterState


class Mirror:
    """The cluster as both sides see it."""

    def __init__(self, percentage: int = 100) -> None:
        self._profile = default_profile(percentage_of_nodes_to_score=percentage)
        self._fast = FastScheduler(self._profile)

    @property
    def state(self) -> ClusterState:
        """What decisions are made on."""
        return self._fast.state

    def decide(self, pod: Pod) -> Decision:
        """What we would do with a pod now, preemption included."""
        info = PodInfo(pod)
        decision = self._fast.decide(info)
        chosen = self._fast.choose(info)
        decision = msgspec.structs.replace(decision, node=chosen if isinstance(chosen, str) else chosen.node)
        if decision.outcome is not Outcome.UNSCHEDULABLE:
            return decision
        return with_preemption(decision, self._profile, preempt(self.state, self._profile, info, decision))

    def adopt(self, item: KubernetesObject) -> None:
        """An object is as it is now: a pod bound, or nominated; a node changed."""
        self._fast.put(item)

    def forget(self, item: KubernetesObject) -> None:
        """An object is gone."""
        self._fast.drop(item)
