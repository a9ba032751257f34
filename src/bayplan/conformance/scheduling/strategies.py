"""Family sched/strategies: one decision with another scoring strategy of NodeResourcesFit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from bayplan.conformance.frame import Verdict
from bayplan.conformance.scheduling.cases import cluster, first_difference, pod_of, refused
from bayplan.conformance.scheduling.decisions import chosen
from bayplan.scheduling.arguments import NodeResourcesFitArgs, ScoringStrategy
from bayplan.scheduling.cycle import decide
from bayplan.scheduling.decision import Outcome
from bayplan.scheduling.plugins.node_resources_fit import NodeResourcesFit
from bayplan.scheduling.profiles import default_profile

if TYPE_CHECKING:
    from bayplan.conformance.scheduling.cases import Case
    from bayplan.scheduling.decision import Decision


def run(case: Case) -> Verdict:
    """Run one case."""
    strategy = msgspec.convert(case["scoringStrategy"], ScoringStrategy)
    args = {NodeResourcesFit.name: NodeResourcesFitArgs(scoring_strategy=strategy)}
    decision = decide(cluster(case), default_profile("default-scheduler", 100, args), pod_of(case["pod"]))
    told = first_difference(_answer(decision), case["expected"])
    return Verdict(case["id"], strategy.type, agrees=not told, difference=told)


def _answer(decision: Decision) -> Case:
    kept = {name: refused(refusal) for name, refusal in decision.refusals.items()}
    for told in kept.values():
        del told["code"]
    scored = {
        name: {
            "feasible": True,
            "nodeResourcesFit": decision.scores[name][NodeResourcesFit.name],
            "total": decision.total(name),
        }
        for name in decision.feasible
    }
    found: Case = {"nodes": kept | scored}
    if decision.outcome is Outcome.SCHEDULED:
        return found | chosen(decision)
    return found | {"chosen": None, "fitError": decision.fit_error}
