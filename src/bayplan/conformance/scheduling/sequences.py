"""Family sched/sequences: pods that arrive one by one, each decided on what those before it have left.

The columnar path goes through each sequence beside the readable one, and must choose the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bayplan.conformance.frame import Verdict
from bayplan.conformance.scheduling.cases import cluster, fast_difference, first_difference, pod_of
from bayplan.scheduling.cycle import decide
from bayplan.scheduling.decision import Outcome
from bayplan.scheduling.fast.scheduler import FastScheduler
from bayplan.scheduling.messages import with_preemption
from bayplan.scheduling.preemption import preempt
from bayplan.scheduling.profiles import default_profile

if TYPE_CHECKING:
    from bayplan.conformance.scheduling.cases import Case
    from bayplan.scheduling.decision import Decision


def run(case: Case) -> Verdict:
    """Run one case: every step must agree."""
    state = cluster(case)
    profile = default_profile(percentage_of_nodes_to_score=case["percentageOfNodesToScore"])
    size = "sampled" if case["percentageOfNodesToScore"] == 0 else "whole"
    fast = FastScheduler(profile, state=state)
    for number, (document, expected) in enumerate(zip(case["arrivals"], case["expected"], strict=True)):
        pod = pod_of(document)
        decision = decide(state, profile, pod, fast.start, score_single=False)
        chosen = fast.choose(pod)
        if decision.outcome is Outcome.UNSCHEDULABLE:
            decision = with_preemption(decision, profile, preempt(state, profile, pod, decision))
        told = first_difference(_answer(decision), expected) or fast_difference(chosen, decision)
        if told:
            return Verdict(case["id"], size, agrees=False, difference=f"arrival {number}: {told}")
        if decision.outcome is Outcome.SCHEDULED:
            fast.put_pod(pod, decision.node)
    return Verdict(case["id"], size, agrees=True)


def _answer(decision: Decision) -> Case:
    found: Case = {"pod": "/".join(decision.pod), "node": decision.node or None, "start": decision.start}
    if decision.outcome is Outcome.UNSCHEDULABLE:
        return found | {"message": decision.message}
    return found | {"evaluated": decision.evaluated, "feasible": len(decision.feasible)}
