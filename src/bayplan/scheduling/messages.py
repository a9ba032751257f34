"""What people read when a pod found no place, word for word as kube-scheduler says it.

    fit error    0/3 nodes are available: 1 Insufficient cpu, 2 node(s) were unschedulable.
    event        the fit error, then what came of it: "no new claims to deallocate, preemption: 0/3 nodes are ..."

Source of truth: kube-scheduler 1.36 framework/types.go (FitError) and runtime/framework.go (RunPostFilterPlugins).
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable

    from bayplan.scheduling.decision import Decision, Preemption
    from bayplan.scheduling.framework import Profile, Refusal

NO_NODES = "no nodes available to schedule pods"
_CLAIMS = "DynamicResources"
_NOTHING_TO_FREE = "no new claims to deallocate"
_NEVER_ASKED = "not found"
"""What upstream says where the claims were not looked at before the search broke off."""


def fit_error(nodes: int, refusals: Iterable[tuple[Refusal, int]], whole: Refusal | None = None) -> str:
    """Why none of the nodes will do: each reason with the number of nodes, sorted as text ("14 ..." before "2 ...").

    `refusals` go with how many nodes each is of.
    """
    if nodes == 0:
        return NO_NODES
    available = f"0/{nodes} nodes are available:"
    if whole is not None:
        return f"{available} {', '.join(whole.reasons)}."
    counts: Counter[str] = Counter()
    for refusal, number in refusals:
        counts.update(dict.fromkeys(refusal.reasons, number))
    told = ", ".join(sorted(f"{count} {reason}" for reason, count in counts.items()))
    return f"{available} {told}." if told else available


def with_preemption(decision: Decision, profile: Profile, preemption: Preemption | None) -> Decision:
    """The decision of a pod that found no place, completed by what came of evicting others."""
    return msgspec.structs.replace(decision, preemption=preemption, message=event(decision, profile, preemption))


def event(decision: Decision, profile: Profile, preemption: Preemption | None) -> str:
    """The whole sentence of the event. It ends with the fit error if a node is about to be freed."""
    if decision.nodes == 0:
        return decision.fit_error
    if profile.claims and not _claims_were_asked(decision, profile):
        return f"{decision.fit_error} {_NEVER_ASKED}"
    if preemption is not None and preemption.node:
        return decision.fit_error
    told = [_NOTHING_TO_FREE] if profile.claims else []
    if preemption is not None and preemption.message:
        told.append(f"preemption: {preemption.message}")
    return " ".join((decision.fit_error, *([", ".join(told)] if told else [])))


def _claims_were_asked(decision: Decision, profile: Profile) -> bool:
    """Whether the filters got as far as DynamicResources, or broke off before it with a refusal of all nodes."""
    whole = decision.whole
    if whole is None or not whole.hopeless:
        return True
    order = [plugin.name for plugin in profile.filters]
    last = whole.plugin or max(decision.restricting, key=order.index)
    return _CLAIMS in order[: order.index(last) + 1]
