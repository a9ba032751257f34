"""Preemption, the rules on their own: which node is taken, and whose eviction breaks a budget."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from bayplan.scheduling.pods import PodInfo
from bayplan.scheduling.preemption.budgets import Budgets
from bayplan.scheduling.preemption.choice import choose
from bayplan.scheduling.preemption.dry_run import Candidate
from bayplan.testing.policies import BudgetManifest
from tests.scheduling.preempting import budget, started


def info(name: str, priority: int = 0, day: int | None = 1, **labels: str) -> PodInfo:
    return PodInfo(started(name, priority, day).labelled(labels).view())


# --- the choice


def candidate(name: str, *victims: tuple[int, int | None], violations: int = 0) -> Candidate:
    """A node with victims of these priorities, started on these days."""
    pods = [info(f"{name}-{index}", priority, day) for index, (priority, day) in enumerate(victims)]
    return Candidate(name, tuple(pods), violations)


@pytest.mark.parametrize(
    ("candidates", "decided_by", "left"),
    [
        pytest.param([candidate("a", (9, 1), violations=3)], "onlyCandidate", ["a"], id="a node without rivals"),
        pytest.param(
            [candidate("a", (0, 1), violations=1), candidate("b", (9, 1), (9, 1))],
            "pdbViolations",
            ["b"],
            id="a budget counts more than priorities and numbers",
        ),
        pytest.param(
            [candidate("a", (9, 1)), candidate("b", (8, 1), (8, 1), (8, 1))],
            "highestPriority",
            ["b"],
            id="three pods go rather than one that is more important",
        ),
        pytest.param(
            [candidate("a", (9, 1), (0, 1)), candidate("b", (9, 1))],
            "sumPriorities",
            ["b"],
            id="of two nodes with the same top victim the one with fewer victims",
        ),
        pytest.param(
            [candidate("a", (-9, 1), (-9, 1)), candidate("b", (-9, 1))],
            "sumPriorities",
            ["b"],
            id="negative priorities do not make more victims cheaper",
        ),
        pytest.param(
            [candidate("a", (5, 1), (3, 1)), candidate("b", (5, 1), (4, 1))],
            "sumPriorities",
            ["a"],
            id="as many victims, less important in sum",
        ),
        pytest.param(
            [candidate("a", (5, 1), (-(2**31), 1)), candidate("b", (5, 1))],
            "numVictims",
            ["b"],
            id="the lowest priority there is adds nothing to the sum, so the number decides",
        ),
        pytest.param(
            [candidate("a", (5, 3), (0, 9)), candidate("b", (5, 4), (0, 1))],
            "latestStart",
            ["b"],
            id="the top victim that has run for a shorter time, whenever the others began",
        ),
        pytest.param(
            [candidate("a", (5, 3)), candidate("b", (5, None))],
            "latestStart",
            ["b"],
            id="a pod that has not started counts as the latest",
        ),
        pytest.param(
            [candidate("a", (5, 3)), candidate("b", (5, 2)), candidate("c", (5, 3))],
            "random",
            ["a", "c"],
            id="a complete tie leaves several",
        ),
    ],
)
def test_the_choice(candidates: Sequence[Candidate], decided_by: str, left: list[str]) -> None:
    assert (decided_by, left) == (choose(candidates)[0], [each.node for each in choose(candidates)[1]])


# --- budgets


WEB = [info("one", app="web"), info("two", app="web")]


@pytest.mark.parametrize(
    ("budgets", "pods", "violating"),
    [
        pytest.param([], WEB, [], id="no budget, no violation"),
        pytest.param([budget("b", 2, app="web")], WEB, [], id="a budget for all of them"),
        pytest.param([budget("b", 1, app="web")], WEB, ["two"], id="the less important one is beyond the budget"),
        pytest.param([budget("b", 0, app="web")], WEB, ["one", "two"], id="a budget that is used up"),
        pytest.param([budget("b", -1, app="web")], WEB[:1], ["one"], id="a budget that is overdrawn"),
        pytest.param([budget("b", 0, app="db")], WEB, [], id="a budget for others"),
        pytest.param(
            [budget("b", 0, app="web").having("metadata.namespace", "elsewhere")],
            WEB,
            [],
            id="a budget of another namespace",
        ),
        pytest.param(
            [budget("b", 1, "one", app="web")], WEB, [], id="a pod whose eviction was granted costs nothing more"
        ),
        pytest.param(
            [budget("a", 2, app="web"), budget("b", 1, app="web")],
            WEB,
            ["two"],
            id="each of several budgets must allow it",
        ),
        pytest.param(
            [budget("a", 1, app="web"), budget("b", 2, app="web")],
            WEB,
            ["two"],
            id="a budget that allows it does not make up for one that does not",
        ),
        pytest.param(
            [budget("b", 0).having("spec.selector", {})],
            WEB,
            [],
            id="an empty selector covers nobody",
        ),
        pytest.param([budget("b", 0)], WEB, [], id="no selector covers nobody"),
        pytest.param(
            [budget("b", 0).having("spec.selector.matchExpressions", [{"key": "app", "operator": "Near"}])],
            WEB,
            [],
            id="a selector that cannot be read covers nobody",
        ),
        pytest.param(
            [budget("b", 0).having("spec.selector.matchExpressions", [{"key": "x", "operator": "DoesNotExist"}])],
            [info("bare"), info("one", app="web")],
            ["one"],
            id="a pod without labels is covered by no budget",
        ),
    ],
)
def test_whose_eviction_breaks_a_budget(
    budgets: list[BudgetManifest], pods: list[PodInfo], violating: list[str]
) -> None:
    broken, kept = Budgets(each.view() for each in budgets).split(pods)
    assert [each.key[1] for each in broken] == violating
    assert [each.key[1] for each in kept] == [each.key[1] for each in pods if each.key[1] not in violating]


def test_a_budget_is_charged_afresh_on_every_node() -> None:
    budgets = Budgets([budget("b", 1, app="web").view()])
    assert budgets.split(WEB) == budgets.split(WEB)
