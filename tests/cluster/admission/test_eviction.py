"""Evictions: who may go, who pays, and what a budget says when it cannot."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.cluster.embedded.admission.eviction import decide
from bayplan.cluster.embedded.admission.fields import Doc
from bayplan.model.errors import Forbidden, ServerError, TooManyRequests

NOW = "2026-01-01T00:00:00Z"
BLOCKED = "Cannot evict pod as it would violate the pod's disruption budget."
SILENT = "The disruption budget b does not allow evicting pods currently"


def pod(phase: str = "Running", ready: str = "True", **meta: Any) -> Doc:
    return {
        "metadata": {"name": "p"} | meta,
        "status": {"phase": phase, "conditions": [{"type": "Ready", "status": ready}]},
    }


def budget(allowed: int = 0, current: int = 3, desired: int = 2, policy: str = "", **status: Any) -> Doc:
    spec = {"unhealthyPodEvictionPolicy": policy} if policy else {}
    numbers = {"disruptionsAllowed": allowed, "currentHealthy": current, "desiredHealthy": desired}
    return {
        "metadata": {"name": "b", "generation": 1},
        "spec": spec,
        "status": {"observedGeneration": 1, "expectedPods": 3, **numbers, **status},
    }


@pytest.mark.parametrize(
    ("subject", "budgets"),
    [
        pytest.param(pod(), [], id="no budget"),
        pytest.param(pod("Pending"), [budget(), budget()], id="pending"),
        pytest.param(pod("Succeeded"), [budget()], id="finished"),
        pytest.param(pod("Failed"), [budget()], id="failed"),
        pytest.param(pod(deletionTimestamp=NOW), [budget()], id="on its way out"),
        pytest.param(pod(ready="False"), [budget(current=2)], id="unready while enough are healthy"),
        pytest.param(pod(ready="False"), [budget(current=0, policy="AlwaysAllow")], id="unready and always allowed"),
    ],
)
def test_some_pods_go_and_nobody_pays(subject: Doc, budgets: list[Doc]) -> None:
    assert decide(subject, budgets, now=NOW) is None


def test_a_ready_pod_costs_a_disruption() -> None:
    change = decide(pod(), [budget(2, disruptedPods={"q": "before"})], now=NOW)
    assert change is not None
    assert change.name == "b"
    assert change.status["disruptionsAllowed"] == 1
    assert change.status["disruptedPods"] == {"q": "before", "p": NOW}
    assert "conditions" not in change.status


@pytest.mark.parametrize(
    ("before", "since"),
    [
        pytest.param([], NOW, id="no condition yet"),
        pytest.param(
            [{"type": "DisruptionAllowed", "status": "True", "lastTransitionTime": "before"}], NOW, id="it turns"
        ),
        pytest.param(
            [{"type": "DisruptionAllowed", "status": "False", "lastTransitionTime": "before"}], "before", id="it stays"
        ),
    ],
)
def test_the_last_disruption_turns_the_condition(before: list[Doc], since: str) -> None:
    change = decide(pod(), [budget(1, conditions=before)], now=NOW)
    assert change is not None
    assert change.status["conditions"] == [
        {
            "type": "DisruptionAllowed",
            "status": "False",
            "observedGeneration": 1,
            "lastTransitionTime": since,
            "reason": "InsufficientPods",
            "message": "",
        }
    ]


def says(reason: str, message: str) -> dict[str, Any]:
    return {"conditions": [{"type": "DisruptionAllowed", "status": "False", "reason": reason, "message": message}]}


@pytest.mark.parametrize(
    ("subject", "given_budget", "why", "retry"),
    [
        pytest.param(pod(), budget(), SILENT, 0, id="no disruption left"),
        pytest.param(
            pod(),
            budget(current=2, desired=2),
            "The disruption budget b needs 2 healthy pods and has 2 currently",
            0,
            id="too few healthy",
        ),
        pytest.param(
            pod(ready="False"),
            budget(current=0, desired=2),
            "The disruption budget b needs 2 healthy pods and has 0 currently",
            0,
            id="unready while too few are healthy",
        ),
        pytest.param(
            pod(),
            budget(current=0, **says("SyncFailed", "no scale")),
            f"{SILENT} because it failed sync: no scale",
            0,
            id="its numbers are not to be trusted",
        ),
        pytest.param(pod(), budget(**says("Other", "because")), f"{SILENT} (Other): because", 0, id="it says why"),
        pytest.param(
            pod(),
            budget(1, observedGeneration=0),
            "The disruption budget b is still being processed by the server.",
            10,
            id="its numbers are out of date",
        ),
    ],
)
def test_a_budget_that_cannot_pay_says_try_again(subject: Doc, given_budget: Doc, why: str, retry: int) -> None:
    with pytest.raises(TooManyRequests) as refused:
        decide(subject, [given_budget], now=NOW)
    assert refused.value.message == BLOCKED
    assert [(cause.reason, cause.message) for cause in refused.value.causes] == [("DisruptionBudget", why)]
    assert refused.value.details.retryAfterSeconds == retry


def test_two_budgets_are_too_many() -> None:
    with pytest.raises(ServerError, match="This pod has more than one PodDisruptionBudget"):
        decide(pod(), [budget(1), budget(1)], now=NOW)


@pytest.mark.parametrize(
    ("given_budget", "why"),
    [
        pytest.param(budget(-1), "pdb disruptions allowed is negative", id="negative"),
        pytest.param(
            budget(1, disruptedPods={str(i): NOW for i in range(2001)}),
            "DisruptedPods map too big - too many evictions not confirmed by PDB controller",
            id="nobody keeps the budget",
        ),
    ],
)
def test_a_broken_budget_refuses(given_budget: Doc, why: str) -> None:
    with pytest.raises(Forbidden) as refused:
        decide(pod(), [given_budget], now=NOW)
    assert refused.value.message == f'poddisruptionbudget.policy "b" is forbidden: {why}'


@given(st.integers(0, 5), st.integers(0, 8))
def test_a_budget_pays_exactly_what_it_has(allowed: int, attempts: int) -> None:
    current = budget(allowed)
    went = 0
    for i in range(attempts):
        try:
            change = decide(pod(name=f"p{i}"), [current], now=NOW)
        except TooManyRequests:
            continue
        assert change is not None
        current = current | {"status": change.status}
        went += 1
    assert went == min(allowed, attempts)
