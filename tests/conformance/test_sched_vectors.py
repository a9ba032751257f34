"""What the real kube-scheduler decided, and what we do: every recorded case agrees."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import pytest

from bayplan.conformance.frame import Report, judge, read_cases, runner

FOLDER = Path(__file__).parents[1] / "vectors" / "sched"
CASES = {"decisions": 771, "preemption": 87, "sequences": 76, "strategies": 95, "ties": 115}
STEPS = {"decisions": 5, "sequences": 10}
"""Of the long families the quick run takes every so-manieth case."""


@functools.cache
def recorded(family: str) -> list[dict[str, Any]]:
    return [*read_cases(FOLDER / f"{family}.jsonl.gz")]


@pytest.mark.parametrize("family", CASES)
def test_recorded_decisions_are_ours(family: str) -> None:
    agree(family, recorded(family)[:: STEPS.get(family, 1)])


@pytest.mark.slow
@pytest.mark.parametrize("family", STEPS)
def test_every_recorded_decision_is_ours(family: str) -> None:
    agree(family, recorded(family))


def agree(family: str, cases: list[dict[str, Any]]) -> None:
    run, report = runner(f"sched/{family}"), Report()
    for case in cases:
        report.add(judge(run, case))
    assert report.all_agree, "\n".join(report.lines())
    assert not report.apart


@pytest.mark.parametrize(("family", "cases"), CASES.items())
def test_no_case_is_left_out(family: str, cases: int) -> None:
    assert len(recorded(family)) == cases


def spoiled(family: str, case: dict[str, Any], changes: dict[str, Any]) -> str:
    verdict = judge(runner(f"sched/{family}"), {**case, "expected": {**case["expected"], **changes}})
    return "" if verdict.agrees else verdict.difference


@pytest.mark.parametrize(
    ("outcome", "changes", "told"),
    [
        pytest.param("scheduled", {"chosen": "x"}, "chosen: 'node-", id="another node"),
        pytest.param("scheduled", {"topNodes": []}, "topNodes: ", id="other equals"),
        pytest.param("scheduled", {"feasibleOrder": []}, "feasibleOrder: ", id="another order"),
        pytest.param("scheduled", {"nodes": {}}, "nodes.node-", id="a node that was left out"),
        pytest.param("unschedulable", {"fitError": "no"}, "fitError: ", id="another text"),
        pytest.param("unschedulable", {"message": "no"}, "message: ", id="another event"),
        pytest.param("unschedulable", {"unschedulablePlugins": []}, "unschedulablePlugins: [", id="other plugins"),
        pytest.param("gated", {"reasons": []}, "reasons: ['waiting", id="other reasons"),
        pytest.param("gated", {"more": 1}, "more: 'nothing', expected 1", id="something that we do not say"),
    ],
)
def test_a_decision_that_is_not_ours_is_a_disagreement(outcome: str, changes: dict[str, Any], told: str) -> None:
    """A runner that agrees with anything would agree with everything above."""
    case = next(each for each in recorded("decisions") if each["expected"]["outcome"] == outcome)
    assert spoiled("decisions", case, changes).startswith(told)


@pytest.mark.parametrize(
    ("feasible", "field", "value"),
    [
        pytest.param(True, "total", -1, id="another total"),
        pytest.param(True, "scores", {}, id="other scores"),
        pytest.param(False, "plugin", "Ghost", id="another plugin"),
        pytest.param(False, "code", "Ghost", id="another code"),
        pytest.param(False, "reasons", [], id="other reasons"),
    ],
)
def test_so_is_a_node_that_is_judged_otherwise(feasible: bool, field: str, value: object) -> None:
    case, name = next(
        (each, name)
        for each in recorded("decisions")
        for name, said in each["expected"].get("nodes", {}).items()
        if said["feasible"] is feasible
    )
    nodes = case["expected"]["nodes"]
    told = spoiled("decisions", case, {"nodes": {**nodes, name: {**nodes[name], field: value}}})
    assert told.startswith(f"nodes.{name}.{field}")


@pytest.mark.parametrize("field", ["node", "start", "evaluated", "feasible"])
def test_so_is_an_arrival_that_goes_elsewhere(field: str) -> None:
    case = recorded("sequences")[0]
    first, *others = case["expected"]
    told = judge(runner("sched/sequences"), {**case, "expected": [{**first, field: "x"}, *others]})
    assert told.difference.startswith(f"arrival 0: {field}: ")


def test_so_is_another_winner_of_a_tie() -> None:
    case = recorded("ties")[0]
    told = judge(runner("sched/ties"), {**case, "winner": -1}).difference
    assert told == f"winner: {case['winner']}, expected -1"
