"""Our side: the state as the real scheduler knows it, and what we decide on it.

The mirror never places a pod by its own decision. It adopts what the real scheduler did, so that one difference does
not cascade.
"""

from __future__ import annotations

from bayplan.model.meta import KubernetesObject
from bayplan.model.pods import Pod
from bayplan.scheduling.cycle import decide, next_start
from bayplan.scheduling.decision import Decision, Outcome
from bayplan.scheduling.messages import with_preemption
from bayplan.scheduling.pods import PodInfo
from bayplan.scheduling.preemption import preempt
from bayplan.scheduling.profiles import default_profile
from bayplan.scheduling.state import ClusterState


class Mirror:
    """The cluster as both sides see it."""

    def __init__(self, percentage: int = 100) -> None:
        self.state = ClusterState()
        self._profile = default_profile(percentage_of_nodes_to_score=percentage)
        self._start = 0

    def decide(self, pod: Pod) -> Decision:
        """What we would do with a pod now, preemption included."""
        info = PodInfo(pod)
        decision = decide(self.state, self._profile, info, self._start)
        self._start = next_start(decision)
        if decision.outcome is not Outcome.UNSCHEDULABLE:
            return decision
        return with_preemption(decision, self._profile, preempt(self.state, self._profile, info, decision))

    def adopt(self, item: KubernetesObject) -> None:
        """An object is as it is now: a pod bound, or nominated; a node changed."""
        self.state.put(item)

    def forget(self, item: KubernetesObject) -> None:
        """An object is gone."""
        self.state.drop(item)
