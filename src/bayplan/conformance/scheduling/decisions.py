"""Family sched/decisions: one pod, one decision, with what every plugin said of every node.

The columnar path must choose the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bayplan.conformance.frame import Verdict
from bayplan.conformance.scheduling.cases import cluster, fast_difference, first_difference, pod_of, refused
from bayplan.scheduling.cycle import decide
from bayplan.scheduling.decision import Outcome
from bayplan.scheduling.fast.scheduler import FastScheduler
from bayplan.scheduling.messages import with_preemption
from bayplan.scheduling.preemption import preempt
from bayplan.scheduling.profiles import default_profile

if TYPE_CHECKING:
    from bayplan.conformance.scheduling.cases import Case
    from bayplan.scheduling.decision import Decision
    from bayplan.scheduling.state import ClusterState

PROFILE = default_profile(percentage_of_nodes_to_score=100)


def run(case: Case) -> Verdict:
    """Run one case."""
    state, pod = cluster(case), pod_of(case["pod"])
    decision = decide(state, PROFILE, pod)
    if decision.outcome is Outcome.UNSCHEDULABLE:
        decision = with_preemption(decision, PROFILE, preempt(state, PROFILE, pod, decision))
    ours = answer(state, decision)
    if decision.restricting and "feasibleOrder" not in case["expected"]:
        ours.pop("feasibleOrder", None)  # upstream walks a list of node names in random order
    told = first_difference(ours, case["expected"])
    told = told or fast_difference(FastScheduler(PROFILE, state=state).choose(pod), decision)
    return Verdict(case["id"], decision.outcome, agrees=not told, difference=told)


def answer(state: ClusterState, decision: Decision) -> Case:
    """A decision in the recordings' form."""
    found: Case = {"outcome": str(decision.outcome), "chosen": None}
    if decision.outcome is Outcome.GATED:
        assert decision.whole is not None
        return found | {"plugin": decision.whole.plugin, "reasons": [*decision.whole.reasons]}
    found |= {"nodeOrder": [node.name for node in state.nodes], "nodes": nodes(state, decision)}
    if decision.outcome is Outcome.UNSCHEDULABLE:
        texts = {"fitError": decision.fit_error, "message": decision.message}
        return found | texts | {"unschedulablePlugins": [*decision.plugins]}
    return found | {"scored": decision.scored, "feasibleOrder": [*decision.feasible], **chosen(decision)}


def chosen(decision: Decision) -> Case:
    """The choice, or those among which upstream draws lots."""
    best = sorted(decision.best) if decision.restricting else [*decision.best]
    if decision.any_of:
        return {"chosen": None, "chosenAnyOf": sorted(decision.any_of), "topNodes": best}
    return {"chosen": decision.node, "topNodes": best}


def nodes(state: ClusterState, decision: Decision) -> Case:
    """What was said of each node."""
    if decision.whole is not None:
        return {node.name: refused(decision.whole) for node in state.nodes}
    kept = {name: refused(refusal) for name, refusal in decision.refusals.items()}
    scored = {
        name: {"feasible": True, "scores": dict(decision.scores[name]), "total": decision.total(name)}
        for name in decision.feasible
    }
    return kept | scored
