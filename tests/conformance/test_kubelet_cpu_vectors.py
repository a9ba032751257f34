"""What the real kubelet's CPU manager answered, and what we do: every recorded case agrees."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import pytest

from bayplan.conformance.frame import Report, judge, read_cases, runner
from bayplan.conformance.kubelet.cases import pod_of
from bayplan.conformance.kubelet.cpu_assignment import answer
from bayplan.conformance.kubelet.static_policy import kept_apart

FOLDER = Path(__file__).parents[1] / "vectors" / "kubelet"
CASES = {"cpu_assignment": 1278, "cpu_assignment_endless": 4, "static_policy": 172, "topology_hints": 340}
APART = {"cpu_assignment": {"result-not-subset-of-available": 22, "combinations overwritten": 10}}


@functools.cache
def recorded(family: str) -> list[dict[str, Any]]:
    return [*read_cases(FOLDER / f"{family}.jsonl.gz")]


@pytest.mark.parametrize("family", CASES)
def test_recorded_answers_are_ours(family: str) -> None:
    run, report = runner(f"kubelet/{family}"), Report()
    for case in recorded(family):
        report.add(judge(run, case))
    assert report.all_agree, "\n".join(report.lines())
    assert report.apart == APART.get(family, {})


@pytest.mark.parametrize(("family", "cases"), CASES.items())
def test_no_case_is_left_out(family: str, cases: int) -> None:
    assert len(recorded(family)) == cases


def test_upstreams_defects_are_known_to_the_letter() -> None:
    """The cases that are set apart agree in the compatibility mode too."""
    for case in recorded("cpu_assignment"):
        if case.get("anomaly") or case.get("result_if_combos_copied"):
            assert answer(case, as_upstream=True) == (case["result"], case["error"]), case["id"]


def test_with_combinations_copied_the_answer_is_our_own() -> None:
    for case in recorded("cpu_assignment"):
        if case.get("result_if_combos_copied"):
            assert answer(case) == (case["result_if_combos_copied"], None), case["id"]


def test_regular_machines_need_no_compatibility_mode() -> None:
    for case in recorded("cpu_assignment"):
        if case["topology"]["kind"] == "regular" and not case.get("result_if_combos_copied"):
            assert answer(case) == (case["result"], case["error"]), case["id"]


def test_a_restart_that_fails_has_lost_what_could_be_reused() -> None:
    """By the format's words: a new policy object over the same state. It is recorded so for memory."""
    two, one = ({"cpu": cpus, "memory": "1Gi"} for cpus in "21")
    pod = {
        "uid": "p0",
        "qos": "Guaranteed",
        "init": [{"name": "i0", "requests": two, "limits": two}],
        "containers": [{"name": "c0", "requests": one, "limits": one}],
    }
    books = {"assignments": {"p0": {"i0": "1-2", "c0": "1"}}, "default": "0,3"}
    admitted = {"admit": True, "error": None, "failed_container": "", **books, "reusable": {"p0": "2"}}
    error = 'not all reserved cpus: "1" are present in defaultCpuSet: "0,3"'
    case = {
        "id": "B",
        "topology": {"cpus": [[cpu, cpu, 0, 0, 0] for cpu in range(4)]},
        "options": {},
        "num_reserved": 1,
        "reserved_cpus": "0",
        "topology_manager": {"mode": "fixed"},
        "new_error": None,
        "effective_reserved": "0",
        "effective_reserved_physical": "0",
        "initial_default": "0-3",
        "steps": [
            {"op": "admit", "pod": pod, "affinity": {}, "expect": admitted},
            {
                "op": "restart",
                "num_reserved": 1,
                "reserved_cpus": "1",
                "expect": {"error": error, **books, "reusable": {}},
            },
        ],
    }
    assert judge(runner("kubelet/static_policy"), case).difference == ""


def test_in_our_own_mode_the_books_balance_in_every_sequence() -> None:
    for case in recorded("static_policy"):
        if not case["new_error"]:
            assert kept_apart(case) == "", case["id"]


@pytest.mark.parametrize(
    ("family", "changes", "told"),
    [
        pytest.param("cpu_assignment", {"result": "99"}, "expected ('99', None)", id="other CPUs"),
        pytest.param("cpu_assignment", {"error": "no"}, "'no')", id="a refusal"),
        pytest.param("topology_hints", {"hints": {"cpu": []}}, "expected {'cpu': []}", id="other hints"),
        pytest.param("static_policy", {"initial_default": "0"}, "initial_default: ", id="another start"),
        pytest.param("static_policy", {"effective_reserved": "9"}, "effective_reserved: ", id="another reservation"),
        pytest.param("static_policy", {"new_error": "no"}, "new_error: None, expected 'no'", id="another construction"),
    ],
)
def test_an_answer_that_is_not_ours_is_a_disagreement(family: str, changes: dict[str, Any], told: str) -> None:
    """A runner that agrees with anything would agree with everything above."""
    case = next(case for case in recorded(family) if not case.get("new_error"))
    verdict = judge(runner(f"kubelet/{family}"), {**case, **changes})
    assert not verdict.agrees
    assert told in verdict.difference


@pytest.mark.parametrize("field", ["admit", "error", "reason", "assignments", "default", "reusable"])
def test_so_is_a_step_that_ends_otherwise(field: str) -> None:
    case = next(each for each in recorded("static_policy") if each["topology_manager"]["mode"] == "manager")
    first, *others = case["steps"]
    spoiled = {**case, "steps": [{**first, "expect": {**first["expect"], field: "x"}}, *others]}
    assert judge(runner("kubelet/static_policy"), spoiled).difference.startswith(f"step 0 admit.{field}: ")


def test_a_case_set_apart_must_still_be_answered_validly() -> None:
    """Nothing is available any more, so that our answer is a refusal where CPUs are recorded."""
    case = next(each for each in recorded("cpu_assignment") if each.get("anomaly"))
    verdict = judge(runner("kubelet/cpu_assignment"), {**case, "available": ""})
    assert not verdict.agrees
    assert not verdict.apart


def test_a_sequence_is_set_apart_from_the_step_on_where_upstream_errs() -> None:
    case = next(each for each in recorded("static_policy") if len(each["steps"]) > 2)
    last = {**case["steps"][-1], "expect": {}}
    anomaly = {"step": len(case["steps"]) - 1, "kind": "handed out twice"}
    verdict = judge(runner("kubelet/static_policy"), {**case, "steps": [*case["steps"][:-1], last], "anomaly": anomaly})
    assert (verdict.agrees, verdict.apart) == (True, "handed out twice")


def test_a_pod_of_another_class_than_recorded_is_told() -> None:
    pod = recorded("topology_hints")[0]["pod"]
    with pytest.raises(ValueError, match="expected BestEffort"):
        pod_of({**pod, "qos": "BestEffort"})
