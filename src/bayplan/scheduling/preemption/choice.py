"""The choice among nodes where evicting somebody would help: criteria in order, each keeping the best by it.

Source of truth: kube-scheduler 1.36 framework/preemption (pickOneNodeForPreemption).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bayplan.scheduling.preemption.dry_run import started

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from bayplan.scheduling.preemption.dry_run import Candidate

_ABOVE_ZERO = 2**31
"""Makes every priority a positive number, so that fewer victims sum up to less."""

_CRITERIA: tuple[tuple[str, Callable[[Candidate], int]], ...] = (
    ("pdbViolations", lambda each: each.violations),
    ("highestPriority", lambda each: each.victims[0].priority),
    ("sumPriorities", lambda each: sum(victim.priority + _ABOVE_ZERO for victim in each.victims)),
    ("numVictims", lambda each: len(each.victims)),
    ("latestStart", lambda each: -started(each.victims[0])),  # of the top priority it is the first to have started
)
"""Names and measures; the least is the best."""


def choose(candidates: Sequence[Candidate]) -> tuple[str, Sequence[Candidate]]:
    """What decided, and the nodes that are left: one, or several if upstream would take any of them ("random")."""
    if len(candidates) == 1:
        return "onlyCandidate", candidates
    for name, measure in _CRITERIA:
        measures = [measure(each) for each in candidates]
        least = min(measures)
        candidates = [each for each, value in zip(candidates, measures, strict=True) if value == least]
        if len(candidates) == 1:
            return name, candidates
    return "random", candidates
