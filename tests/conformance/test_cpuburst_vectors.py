"""What Koordinator's CPU burst answered, and what we do: every recorded step agrees."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bayplan.conformance.frame import Report, judge, read_cases, runner

FILE = Path(__file__).parents[1] / "vectors" / "cpuburst" / "koord_cpuburst.jsonl.gz"
RUN = runner("cpuburst/koord_cpuburst")
CASES = [*read_cases(FILE)]


def test_every_recorded_step_is_ours() -> None:
    report = Report()
    for case in CASES:
        report.add(judge(RUN, case))
    assert report.all_agree, "\n".join(report.lines())
    assert report.total.total() == len(CASES) == 90


@pytest.mark.parametrize("field", ["expected_cfs_burst_us", "expected_ceil_quota_us"])
def test_another_burst_or_ceiling_is_a_disagreement(field: str) -> None:
    verdict = judge(RUN, {**CASES[0], field: -1})
    assert verdict.difference == f"{field}: {CASES[0][field]}, expected -1"


@pytest.mark.parametrize("field", ["node_state", "allowed", "tokens", "operation", "final_operation", "quota_us"])
def test_so_is_another_answer_of_a_step(field: str) -> None:
    """A runner that agrees with anything would agree with everything above."""
    first, *others = CASES[0]["steps"]
    steps: list[dict[str, Any]] = [first, {**others[0], field: "x"}, *others[1:]]
    assert judge(RUN, {**CASES[0], "steps": steps}).difference.startswith(f"step 1: {field}: ")
