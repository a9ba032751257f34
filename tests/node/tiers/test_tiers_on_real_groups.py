"""Three real processes compete for a CPU: each tier leaves the first one less than the tier before."""

from __future__ import annotations

import pytest
from benchmarks.cpu_work import are_groups_writable
from benchmarks.tiers import compete

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not are_groups_writable(), reason="control groups are not writable here"),
]


def share(tier: int) -> float:
    """What the first of three got of the CPU time that the three got."""
    used = [each.usage_ns for each in compete(tier, 2.0)]
    return used[0] / sum(used)


def test_each_tier_takes_more_from_a_task() -> None:
    left_alone, lower, lowest = share(0), share(1), share(2)
    assert left_alone > lower > lowest  # by their weights: 33%, 20% and 5%
    assert lowest < left_alone / 2


def test_only_tier_three_holds_a_task_back_that_is_alone() -> None:
    free, held = (compete(tier, 2.0, ("task",))[0].usage_ns for tier in (2, 3))
    assert held < free / 2
