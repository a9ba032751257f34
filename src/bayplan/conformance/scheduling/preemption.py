"""Family sched/preemption: one pod that fits nowhere, one attempt to evict others for it.

Where upstream takes any of the tied nodes, the recording names them all, and so do we.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bayplan.conformance.frame import Verdict
from bayplan.conformance.scheduling.cases import cluster, first_difference, pod_of, refused
from bayplan.scheduling.cycle import decide
from bayplan.scheduling.messages import with_preemption
from bayplan.scheduling.preemption import preempt
from bayplan.scheduling.profiles import default_profile

if TYPE_CHECKING:
    from bayplan.conformance.scheduling.cases import Case
    from bayplan.scheduling.decision import Decision, Preemption, Victims

PROFILE = default_profile(percentage_of_nodes_to_score=100)


def run(case: Case) -> Verdict:
    """Run one case: candidates, refusals, choice and texts must agree."""
    state, pod = cluster(case), pod_of(case["pod"])
    decision = decide(state, PROFILE, pod)
    preemption = preempt(state, PROFILE, pod, decision)
    told = first_difference(_answer(with_preemption(decision, PROFILE, preemption), preemption), case["expected"])
    kind = next((feature for feature in case["features"] if feature.startswith("kind.")), "kind.other")
    return Verdict(case["id"], kind, agrees=not told, difference=told)


def _answer(decision: Decision, preemption: Preemption) -> Case:
    """An attempt in the recordings' form, which leaves out what is empty."""
    chosen = "" if preemption.any_of else preemption.node
    lists = {
        "notConsidered": sorted(node for node, refusal in decision.refusals.items() if refusal.hopeless),
        "candidates": {node: _victims(victims) for node, victims in preemption.candidates.items()},
        "rejected": {node: refused(refusal) for node, refusal in preemption.rejected.items()},
        "nominatedAnyOf": sorted(preemption.any_of),
        "decidedBy": preemption.decided_by,
    }
    return {
        "outcome": "preempt" if preemption.node else "noPreemption",
        "fitError": decision.fit_error,
        "message": decision.message,
        "nominatedNode": chosen or None,
        **{key: value for key, value in lists.items() if value},
        **(_choice(preemption.victims) if chosen else {}),
    }


def _choice(victims: Victims) -> Case:
    found = _victims(victims)
    return {**found, "victims": sorted(found["victims"]), "pdbViolated": victims.violations > 0}


def _victims(victims: Victims) -> Case:
    return {"victims": ["/".join(key) for key in victims.pods], "numPDBViolations": victims.violations}
