"""What the real kube-apiserver answered to create, update and patch, and what we do: every recorded case agrees."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import pytest

from bayplan.conformance.frame import Report, judge, read_cases, runner

FOLDER = Path(__file__).parents[1] / "vectors" / "apiserver"


@functools.cache
def recorded(family: str) -> dict[str, list[dict[str, Any]]]:
    """The cases of a family by kind."""
    found: dict[str, list[dict[str, Any]]] = {}
    for case in read_cases(FOLDER / f"{family}.jsonl.gz"):
        found.setdefault(case["kind"], []).append(case)
    return found


def kinds(family: str) -> list[Any]:
    return [pytest.param(family, kind, id=f"{family} of {kind}") for kind in sorted(recorded(family))]


@pytest.mark.parametrize(("family", "kind"), [*kinds("admission"), *kinds("patch")])
def test_every_recorded_answer_is_ours(family: str, kind: str) -> None:
    run, report = runner(f"apiserver/{family}"), Report()
    for case in recorded(family)[kind]:
        report.add(judge(run, case))
    assert report.all_agree, "\n".join(report.lines())


@pytest.mark.parametrize(("family", "cases"), [("admission", 1296), ("patch", 361)])
def test_no_case_is_left_out(family: str, cases: int) -> None:
    assert sum(map(len, recorded(family).values())) == cases


@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        pytest.param({"status": 200}, "status: 201, expected 200", id="another status"),
        pytest.param({"object": {"kind": "Pod"}}, "object.", id="another object"),
        pytest.param({"warnings": ["be warned"]}, "warnings: ", id="a warning that we do not give"),
    ],
)
def test_an_answer_that_is_not_ours_is_a_disagreement(spoil: dict[str, Any], told: str) -> None:
    """A frame that agrees with anything would agree with everything above."""
    case = next(each for each in recorded("admission")["Pod"] if each["expected"]["status"] == 201)
    verdict = judge(runner("apiserver/admission"), {**case, "expected": {**case["expected"], **spoil}})
    assert not verdict.agrees
    assert told in verdict.difference


def test_a_refusal_with_other_causes_is_a_disagreement() -> None:
    case = next(each for each in recorded("admission")["Pod"] if len(each["expected"].get("causes", ())) > 1)
    fewer = {**case["expected"], "causes": case["expected"]["causes"][1:]}
    verdict = judge(runner("apiserver/admission"), {**case, "expected": fewer})
    assert verdict.difference.startswith("causes: not expected [")


@pytest.mark.parametrize("kind", ["Pod", "Deployment", "ConfigMap"])
def test_a_patch_in_several_steps_must_agree_in_each(kind: str) -> None:
    case = next(each for each in recorded("patch")[kind] if each["expected"][-1]["status"] == 200)
    last = {**case["expected"][-1], "status": 201}
    verdict = judge(runner("apiserver/patch"), {**case, "expected": [*case["expected"][:-1], last]})
    assert verdict.difference.startswith(f"step {len(case['steps']) - 1}: status")
