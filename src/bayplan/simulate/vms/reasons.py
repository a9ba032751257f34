"""Why a VM is where it is and not where somebody wished it: the scheduler's decision, made anew and read.

The decision comes from the house's own scheduler on the cluster as it is, whoever really schedules there; so a refusal
has the name of its plugin, also where a real kube-scheduler only wrote a sentence.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from bayplan.scheduling.cycle import decide
from bayplan.scheduling.pods import PodInfo
from bayplan.scheduling.profiles import default_profile

if TYPE_CHECKING:
    from bayplan.model.errors import ApiError
    from bayplan.model.pods import Pod
    from bayplan.scheduling.decision import Decision
    from bayplan.scheduling.framework import Profile, Refusal
    from bayplan.scheduling.state import ClusterState

TIE = "tie"
PRECOPY, BUDGET, DIRECT = "pre-copy", "PodDisruptionBudget", "direct"
"""Reasons that are no plugin's."""
_BUDGET_NAME = re.compile(r"disruption budget (\S+)")
_PROFILE = replace(default_profile(), percentage_of_nodes_to_score=100)


class Why(msgspec.Struct, frozen=True):
    """A reason: whose it is, and in words. All empty when there is nothing to explain."""

    plugin: str = ""
    text: str = ""

    def __str__(self) -> str:
        return self.text


def judge(state: ClusterState, pod: Pod, profile: Profile | None = None) -> Decision:
    """Where a pod that is not part of the state would go by a profile, as if it had no place yet."""
    whole = _PROFILE if profile is None else replace(profile, percentage_of_nodes_to_score=100)
    spec, status = replace(pod.spec, node_name=""), replace(pod.status, nominated_node_name="")
    return decide(state, whole, PodInfo(replace(pod, spec=spec, status=status)))


def why_refused(decision: Decision, node: str = "", said: str = "", *, leaving: str = "") -> Why:
    """Why a node would not take a pod; without a node, why most would not, leaving apart the one that it is to leave.

    `said` is what the scheduler that refused it wrote: its word where ours is another.
    """
    refusal = _refusal(decision, node, leaving)
    if refusal is not None:
        where = f"{node}: " if node else ""
        return Why(refusal.plugin, f"{where}{refusal.plugin}: {', '.join(refusal.reasons)}")
    if decision.node or not decision.plugins:
        return Why("", said or decision.fit_error)
    return Why(decision.plugins[0], said or decision.fit_error)


def _refusal(decision: Decision, node: str, leaving: str) -> Refusal | None:
    if node and (found := decision.refusals.get(node)) is not None and found.plugin:
        return found
    if decision.whole is not None:
        return decision.whole
    if node:
        return None
    asked = {name: each for name, each in decision.refusals.items() if each.plugin}
    others = [each for name, each in asked.items() if name != leaving] or list(asked.values())
    most = Counter(each.plugin for each in others).most_common(1)
    return next((each for each in others if each.plugin == most[0][0]), None)


def why_elsewhere(decision: Decision, wished: str, chosen: str) -> Why:
    """Why a pod went to one node and not to the one it was wished on."""
    if wished == chosen:
        return Why()
    if wished not in decision.scores:
        if wished in decision.refusals or decision.whole is not None:
            return why_refused(decision, wished)
        return Why("", f"{wished}: no such node that could take it")
    if chosen not in decision.scores:
        return Why("", f"{chosen} was chosen by another scheduler than ours, which would refuse it")
    ours, theirs = decision.scores[wished], decision.scores[chosen]
    lead = decision.total(chosen) - decision.total(wished)
    if lead == 0:
        return Why(TIE, f"{chosen} and {wished} score {decision.total(chosen)}: a tie")
    if lead < 0:
        return Why("", f"{wished} scores {-lead} more than {chosen} by now: the cluster has changed since")
    plugin = max(theirs, key=lambda name: theirs[name] - ours.get(name, 0))
    points = f"{plugin} gives {theirs[plugin]} against {ours.get(plugin, 0)}"
    return Why(plugin, f"{chosen} scores {decision.total(chosen)}, {wished} {decision.total(wished)}: {points}")


def forbidden_by(error: ApiError) -> tuple[str, str]:
    """What an API server says where a disruption budget forbids an eviction, and the budget's name if it says it."""
    text = error.causes[0].message if error.causes else error.message
    found = _BUDGET_NAME.search(text)
    return text, found[1] if found else ""
