"""Family sched/ties: a list of totals, the position that wins."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bayplan.conformance.frame import Verdict
from bayplan.scheduling.ties import heap_winner

if TYPE_CHECKING:
    from bayplan.conformance.scheduling.cases import Case


def run(case: Case) -> Verdict:
    """Run one case."""
    ours, theirs = heap_winner(case["totals"]), case["winner"]
    told = "" if ours == theirs else f"winner: {ours}, expected {theirs}"
    return Verdict(case["id"], "ties", agrees=not told, difference=told)
