"""An explanation: a pod decided anew on the cluster as it is, with every reason, in the order in which people read it.

A pod that has a place is taken out first, and the cluster without it is asked where it would go now. All nodes are
judged, also where a scheduler would have been content with a sample: so the set of best nodes is exact. A pod without
a place gets every refusal of every node, not only the first, what evicting others would do, and the smallest changes
that would make it fit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from enum import StrEnum
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from bayplan.model.meta import condition
from bayplan.scheduling.cycle import decide
from bayplan.scheduling.decision import Decision, Outcome
from bayplan.scheduling.filtering import prepare
from bayplan.scheduling.framework import Refusal
from bayplan.scheduling.messages import with_preemption
from bayplan.scheduling.pods import PodInfo
from bayplan.scheduling.preemption import preempt
from bayplan.scheduling.whatif import Answer, smallest_changes

if TYPE_CHECKING:
    from collections.abc import Iterable

    from bayplan.model.pods import Pod
    from bayplan.model.policies import Event
    from bayplan.scheduling.framework import Profile
    from bayplan.scheduling.state import ClusterState


class Standing(StrEnum):
    """How the place that a pod has compares with the one that it would be given now."""

    SAME = "the node it is on"
    TIED = "another node with the same total as the one it is on: a tie"
    BETTER = "a node with a better total than the one it is on: the cluster has changed since, or a sample was scored"
    UNFIT = "another node: the one it is on would not take it now, so the cluster has changed since"
    NOWHERE = "no node: the cluster has changed since"


class Plugin(msgspec.Struct, frozen=True):
    """A plugin that turned nodes away: how many as the first to do so, how many at all, and for which reasons."""

    name: str
    first: int
    all: int
    reasons: Mapping[str, int]


class Waiting(msgspec.Struct, frozen=True):
    """What is known of a pod's time in the queue: since when, how often it was tried, and what was said last."""

    since: str = ""
    attempts: int = 0
    said: str = ""


class Explanation(msgspec.Struct, frozen=True):
    """All that is to be said about one pod."""

    pod: Pod
    decision: Decision
    refusals: Mapping[str, tuple[Refusal, ...]]
    """Every refusal, by node in search order; the first is the one that counts."""
    answer: Answer = Answer()

    @property
    def on(self) -> str:
        """The node that the pod is on."""
        return self.pod.spec.node_name

    @property
    def standing(self) -> Standing:
        """For a pod that has a place: what the decision now means for it."""
        decision = self.decision
        if decision.node == self.on:
            return Standing.SAME
        if not decision.node:
            return Standing.NOWHERE
        if self.on in decision.best:
            return Standing.TIED
        return Standing.BETTER if self.on in decision.feasible else Standing.UNFIT

    @property
    def ranked(self) -> list[str]:
        """The nodes that fit: the chosen one, then by total, then in search order."""
        decision = self.decision
        return sorted(decision.feasible, key=lambda node: (node != decision.node, -decision.total(node)))

    @property
    def scorers(self) -> list[str]:
        """The plugins that scored, in the profile's order."""
        return [*dict.fromkeys(plugin for scores in self.decision.scores.values() for plugin in scores)]

    @property
    def turned_away(self) -> list[Plugin]:
        """The plugins that turned nodes away: those that came first most often, first."""
        first: Counter[str] = Counter(each[0].plugin for each in self.refusals.values())
        every: dict[str, Counter[str]] = {}
        number: Counter[str] = Counter()
        for refusals in self.refusals.values():
            for each in refusals:
                number[each.plugin] += 1
                every.setdefault(each.plugin, Counter()).update(each.reasons)
        found = [Plugin(name, first[name], number[name], every[name]) for name in number]
        return sorted(found, key=lambda each: (-each.first, -each.all, each.name))


def explain(state: ClusterState, profile: Profile, pod: Pod, *, suggestions: int = 5) -> Explanation:
    """Explain a pod, whether it is part of the state or not. The state stays as it is."""
    info = PodInfo(_unbound(pod))
    rest = state
    place = state.place_of(info.key)
    if place is not None:
        rest = state.copy([place])
        rest.drop_pod(info.key)
    whole = replace(profile, percentage_of_nodes_to_score=100)
    decision = decide(rest, whole, info)
    if decision.outcome is Outcome.SCHEDULED or pod.spec.node_name:
        return Explanation(pod, decision, _refusals(rest, whole, info, decision))
    if decision.outcome is Outcome.UNSCHEDULABLE:
        decision = with_preemption(decision, whole, preempt(rest, whole, info, decision))
    answer = smallest_changes(rest, whole, info, most=suggestions)
    return Explanation(pod, decision, _refusals(rest, whole, info, decision), answer)


def _unbound(pod: Pod) -> Pod:
    """As it came to the scheduler. A nomination is past once the pod has its place."""
    if not pod.spec.node_name:
        return pod
    return replace(pod, spec=replace(pod.spec, node_name=""), status=replace(pod.status, nominated_node_name=""))


def _refusals(
    state: ClusterState, profile: Profile, pod: PodInfo, decision: Decision
) -> dict[str, tuple[Refusal, ...]]:
    """The refusal that counted, then those that the search did not get to."""
    if decision.outcome is Outcome.GATED:
        return {}
    if decision.whole is not None:
        return {node.name: (decision.whole,) for node in state.nodes}
    filters = prepare(profile, pod, state)
    found = {}
    for node in state.nodes:
        first = decision.refusals.get(node.name)
        if first is not None:
            crowded = filters.with_nominated(node, pod, state)
            asked, there = crowded if crowded is not None else (filters, node)
            others = (each for each in asked.refusals(there) if each.plugin != first.plugin)
            found[node.name] = (first, *others)
    return found


def waiting(pod: Pod, events: Iterable[Event] = ()) -> Waiting:
    """What a pod's condition and events tell of its time in the queue."""
    found = condition(pod.status.conditions, "PodScheduled")
    failed = [each for each in events if each.reason == "FailedScheduling"]
    attempts = sum((each.series.count if each.series else each.count) or 1 for each in failed)
    refused = found is not None and found.status == "False"
    since = (found.last_transition_time if refused and found else None) or pod.metadata.creation_timestamp or ""
    return Waiting(since, attempts, found.message if refused and found else "")
