"""What the real topology and memory managers answered, and what ours do: every recorded case agrees."""

from __future__ import annotations

import copy
import functools
from pathlib import Path
from typing import Any

import pytest

from bayplan.conformance.frame import Report, Verdict, judge, read_cases, runner

FOLDER = Path(__file__).parents[1] / "vectors" / "kubelet"
CASES = {"topology_merge": (920, 0), "memory_manager": (131, 1), "node_admission": (118, 0)}
"""How many count, and how many upstream leaves to chance."""


@functools.cache
def recorded(family: str) -> list[dict[str, Any]]:
    return [*read_cases(FOLDER / f"{family}.jsonl.gz")]


@pytest.mark.parametrize(("family", "counted"), CASES.items())
def test_recorded_answers_are_ours(family: str, counted: tuple[int, int]) -> None:
    run, report = runner(f"kubelet/{family}"), Report()
    for case in recorded(family):
        report.add(judge(run, case))
    assert report.all_agree, "\n".join(report.lines())
    assert (report.total.total(), report.apart.total()) == counted


def spoiled(family: str, op: str, field: str) -> Verdict:
    """The first case with such a step, and something else expected there."""
    number, case = next(
        (number, copy.deepcopy(case))
        for case in recorded(family)
        for number, step in enumerate(case["steps"])
        if step["op"] == op and field in step["expect"]
    )
    case["steps"][number]["expect"][field] = "ghost"
    verdict = judge(runner(f"kubelet/{family}"), case)
    assert verdict.difference.startswith(f"step {number} {op}.{field}: "), verdict.difference
    return verdict


MEMORY = {
    "admit": ["admit", "reason", "message", "error", "failed_container", "stored_affinity", "blocks", "machine"],
    "hints": ["container_hints", "pod_hints", "reusable"],
    "restart": ["error", "machine"],
    "remove_pod": ["blocks", "machine"],
    "remove_container": ["blocks"],
    "start_containers": ["blocks", "machine"],
}
NODE = {
    "admit": ["admit", "reason", "message", "cpu_error", "memory_error", "failed_container", "stored_affinity"],
    "remove_pod": ["cpu_assignments", "cpu_default", "cpu_reusable", "blocks", "machine"],
    "start_containers": ["blocks", "machine"],
}


@pytest.mark.parametrize(
    ("family", "op", "field"),
    [
        (family, op, field)
        for family, ops in (("memory_manager", MEMORY), ("node_admission", NODE))
        for op, fields in ops.items()
        for field in fields
    ],
)
def test_an_answer_that_is_not_ours_is_a_disagreement(family: str, op: str, field: str) -> None:
    """A runner that agrees with anything would agree with everything above."""
    assert not spoiled(family, op, field).agrees


@pytest.mark.parametrize(("field", "value"), [("best_hint", [[7], True]), ("admit", None)])
def test_so_is_another_merge(field: str, value: object) -> None:
    assert not judge(runner("kubelet/topology_merge"), {**recorded("topology_merge")[0], field: value}).agrees


@pytest.mark.parametrize("field", ["new_error", "initial_state"])
def test_so_is_another_start(field: str) -> None:
    verdict = judge(runner("kubelet/memory_manager"), {**recorded("memory_manager")[0], field: "ghost"})
    assert verdict.difference.startswith(f"{field}: ")


def test_a_machine_that_the_topology_manager_cannot_have_is_told_with_its_name() -> None:
    case = recorded("memory_manager")[0]
    wide = {**case, "nodes": [{**case["nodes"][0], "id": each} for each in range(9)]}
    wide["new_error"] = "topology manager: unsupported on machines with more than 8 NUMA Nodes"
    assert judge(runner("kubelet/memory_manager"), wide).agrees
