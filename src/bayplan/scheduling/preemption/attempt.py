"""One attempt to make room for a pod that fits nowhere: may it, where might it help, whom would it cost, which node.

Upstream begins the dry run at a random node and, on a complete tie, takes any of the nodes. Here the beginning is an
argument and the first of the tied nodes is taken; the others are told.

Source of truth: kube-scheduler 1.36 framework/preemption/preemption.go and plugins/defaultpreemption.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from bayplan.model.meta import condition
from bayplan.model.policies import PodDisruptionBudget
from bayplan.scheduling.decision import Preemption, Victims
from bayplan.scheduling.filtering import prepare
from bayplan.scheduling.framework import Refusal
from bayplan.scheduling.messages import fit_error
from bayplan.scheduling.preemption.aftermath import BY_SCHEDULER, DISRUPTION_TARGET
from bayplan.scheduling.preemption.budgets import Budgets
from bayplan.scheduling.preemption.choice import choose
from bayplan.scheduling.preemption.dry_run import NOBODY, Candidate, dry_run

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bayplan.scheduling.arguments import DefaultPreemptionArgs
    from bayplan.scheduling.decision import Decision
    from bayplan.scheduling.framework import Profile
    from bayplan.scheduling.pods import PodInfo
    from bayplan.scheduling.state import ClusterState, NodeState

_NOT_HELPFUL = Refusal("", ("Preemption is not helpful for scheduling",), hopeless=True)
UNDER_WAY = "not eligible due to a terminating pod on the nominated node."
"""The message for a pod that waits for those it had evicted."""


def preempt(state: ClusterState, profile: Profile, pod: PodInfo, decision: Decision, offset: int = 0) -> Preemption:
    """What evicting pods of lower priority would do for a pod that was found unschedulable on this very state."""
    if profile.preemption is None:
        return Preemption(eligible=False)
    objection = _objection(state, pod, decision)
    if objection:
        return Preemption(eligible=False, message=objection)
    nodes = [node for node in state.nodes if _may_help(decision, node)]
    first = offset % len(nodes) if nodes else 0
    most = _enough(len(nodes), profile.preemption)
    candidates, rejected = _dry_runs(state, profile, pod, (*nodes[first:], *nodes[:first]), most)
    if not candidates:
        others = len(state.nodes) - len(rejected)
        tally = [*Counter(rejected.values()).items(), *([(_NOT_HELPFUL, others)] if others else [])]
        return Preemption(rejected=rejected, message=fit_error(len(state.nodes), tally))
    decided_by, left = choose(candidates)
    victims = {each.node: Victims(tuple(one.key for one in each.victims), each.violations) for each in candidates}
    any_of = tuple(each.node for each in left) if len(left) > 1 else ()
    return Preemption(left[0].node, decided_by, any_of, victims, rejected)


def _objection(state: ClusterState, pod: PodInfo, decision: Decision) -> str:
    """Why a pod may not evict others now. It waits for those it had evicted before, unless waiting has become vain."""
    if pod.pod.spec.preemption_policy == "Never":
        return "not eligible due to preemptionPolicy=Never."
    nominated = state.node(state.nomination_of(pod.key) or pod.pod.status.nominated_node_name)
    if nominated is None or not _may_help(decision, nominated):
        return ""
    if any(each.priority < pod.priority and _leaving(each) for each in nominated.pods.values()):
        return UNDER_WAY
    return ""


def _leaving(pod: PodInfo) -> bool:
    """Whether a pod is being deleted because a scheduler evicted it."""
    found = condition(pod.pod.status.conditions, DISRUPTION_TARGET) if pod.terminating else None
    return found is not None and found.status == "True" and found.reason == BY_SCHEDULER


def _may_help(decision: Decision, node: NodeState) -> bool:
    refusal = decision.refusals.get(node.name, decision.whole)
    return refusal is not None and not refusal.hopeless


def _dry_runs(
    state: ClusterState, profile: Profile, pod: PodInfo, nodes: Sequence[NodeState], most: int
) -> tuple[list[Candidate], dict[str, Refusal]]:
    """Nodes where evictions help, those that break no budget first, and nodes where they do not, until `most` do."""
    if not state.has_pods_below(pod.priority):
        return [], {node.name: NOBODY for node in nodes}
    if not nodes:
        return [], {}
    filters, budgets = prepare(profile, pod, state), Budgets(state.all(PodDisruptionBudget))
    harmless: list[Candidate] = []
    violating: list[Candidate] = []
    rejected: dict[str, Refusal] = {}
    for node in nodes:
        found = dry_run(pod, node, filters, state, budgets)
        if isinstance(found, Refusal):
            rejected[node.name] = found
            continue
        (violating if found.violations else harmless).append(found)
        if harmless and len(harmless) + len(violating) >= most:
            break
    return [*harmless, *violating[:most]], rejected


def _enough(nodes: int, args: DefaultPreemptionArgs) -> int:
    """How many candidates end the dry run, if one of them breaks no budget."""
    return max(nodes * args.min_candidate_nodes_percentage // 100, args.min_candidate_nodes_absolute)
