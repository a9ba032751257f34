"""What budgets allow, as pods come, go and change their health."""

from __future__ import annotations

from typing import Any

import pytest

from bayplan.cluster.embedded import subresources
from bayplan.cluster.embedded.controllers.disruption import DisruptionController
from bayplan.cluster.embedded.controllers.job import JobController
from bayplan.cluster.kinds import DEPLOYMENT, JOB, POD, POD_DISRUPTION_BUDGET
from bayplan.model.errors import TooManyRequests
from tests.cluster.controllers.stage import Stage, running, workload

SELECTOR = {"selector": {"matchLabels": {"app": "web"}}}


def _stage() -> Stage:
    return Stage(DisruptionController(), JobController())


def _counts(stage: Stage) -> tuple[int, ...]:
    status = stage.status(POD_DISRUPTION_BUDGET, "pdb")
    names = ("expectedPods", "desiredHealthy", "currentHealthy", "disruptionsAllowed")
    return tuple(status[name] for name in names)


@pytest.mark.parametrize(
    ("budget", "counts"),
    [
        pytest.param({"minAvailable": 3}, (5, 3, 5, 2), id="a number that must stay"),
        pytest.param({"maxUnavailable": 1}, (5, 4, 5, 1), id="a number that may go"),
        pytest.param({"minAvailable": "50%"}, (5, 3, 5, 2), id="a share that must stay is rounded up"),
        pytest.param({"maxUnavailable": "30%"}, (5, 3, 5, 2), id="a share that may go is rounded up too"),
        pytest.param({"maxUnavailable": "100%"}, (5, 0, 5, 5), id="all may go"),
        pytest.param({"minAvailable": 7}, (5, 7, 5, 0), id="more than there are: none may go"),
    ],
)
def test_what_a_budget_allows(budget: dict[str, Any], counts: tuple[int, ...]) -> None:
    stage = _stage()
    stage.create(DEPLOYMENT, "web", workload(5))
    stage.create(POD_DISRUPTION_BUDGET, "pdb", {**SELECTOR, **budget})
    assert _counts(stage) == counts


def test_the_status_as_it_is_written() -> None:
    stage = _stage()
    stage.create(DEPLOYMENT, "web", workload(2))
    stage.create(POD_DISRUPTION_BUDGET, "pdb", {**SELECTOR, "minAvailable": 1})
    assert stage.status(POD_DISRUPTION_BUDGET, "pdb") == {
        "observedGeneration": 1,
        "disruptionsAllowed": 1,
        "currentHealthy": 2,
        "desiredHealthy": 1,
        "expectedPods": 2,
        "conditions": [
            {
                "type": "DisruptionAllowed",
                "status": "True",
                "observedGeneration": 1,
                "lastTransitionTime": "2026-01-01T00:00:00Z",
                "reason": "SufficientPods",
                "message": "",
            }
        ],
    }


def test_an_unready_pod_uses_up_the_budget() -> None:
    stage = _stage()
    stage.create(DEPLOYMENT, "web", workload(2))
    stage.create(POD_DISRUPTION_BUDGET, "pdb", {**SELECTOR, "maxUnavailable": 1})
    stage.set_status(stage.pods()[0], running(stage.now, ready=False))
    assert _counts(stage) == (2, 1, 1, 0)
    (told,) = stage.status(POD_DISRUPTION_BUDGET, "pdb")["conditions"]
    assert (told["status"], told["reason"]) == ("False", "InsufficientPods")


def test_a_budget_without_pods_allows_nothing_and_says_so() -> None:
    stage = _stage()
    stage.create(POD_DISRUPTION_BUDGET, "pdb", {**SELECTOR, "minAvailable": 0})
    assert _counts(stage) == (0, 0, 0, 0)
    assert stage.events("pdb") == ["NoPods: No matching pods found"]


def test_a_granted_eviction_that_does_not_come_is_given_back_after_two_minutes() -> None:
    stage = _stage()
    stage.create(DEPLOYMENT, "web", workload(2))
    stage.create(POD_DISRUPTION_BUDGET, "pdb", {**SELECTOR, "maxUnavailable": 1})
    pod = stage.pods()[0]
    status = stage.status(POD_DISRUPTION_BUDGET, "pdb")
    granted = {**status, "disruptionsAllowed": 0, "disruptedPods": {pod.name: "2026-01-01T00:00:00Z"}}
    stage.server.write_status(stage.server.get(POD_DISRUPTION_BUDGET, "default", "pdb"), granted)
    stage.wait(119)
    assert _counts(stage) == (2, 1, 1, 0)
    stage.wait(1)
    assert _counts(stage) == (2, 1, 2, 1)
    assert "disruptedPods" not in stage.status(POD_DISRUPTION_BUDGET, "pdb")
    assert (
        stage.events(pod.name)[-1] == "NotDeleted: Pod was expected by PDB default/default to be deleted but it wasn't"
    )


def test_evictions_one_after_the_other_wait_for_the_budget() -> None:
    stage = _stage()
    stage.create(DEPLOYMENT, "web", workload(3))
    stage.create(POD_DISRUPTION_BUDGET, "pdb", {**SELECTOR, "maxUnavailable": 1})
    stage.hands.starts = lambda _pod: False  # what replaces an evicted pod is not ready
    first, second, _ = stage.names()
    subresources.evict(stage.server, "default", first)
    stage.settle()
    with pytest.raises(TooManyRequests):
        subresources.evict(stage.server, "default", second)
    stage.hands.starts = lambda _pod: True
    for pod in stage.pods():
        stage.server.replace_sections(pod, {"status": running(stage.now)})
    stage.settle()
    subresources.evict(stage.server, "default", second)


def test_pods_of_what_cannot_be_scaled_cannot_be_counted() -> None:
    stage = _stage()
    pod = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "work:1"}]}
    stage.create(JOB, "job", {"template": {"metadata": {"labels": {"app": "web"}}, "spec": pod}})
    stage.create(POD_DISRUPTION_BUDGET, "pdb", {**SELECTOR, "maxUnavailable": 1})
    text = "jobs.batch does not implement the scale subresource"
    status = stage.status(POD_DISRUPTION_BUDGET, "pdb")
    (told,) = status["conditions"]
    assert (told["status"], told["reason"], told["message"]) == ("False", "SyncFailed", text)
    assert status["disruptionsAllowed"] == 0
    assert stage.events("pdb") == [
        f"CalculateExpectedPodCountFailed: Failed to calculate the number of expected pods: {text}"
    ]


def test_pods_of_nobody_are_counted_only_by_number() -> None:
    stage = _stage()
    body = {
        "metadata": {"name": "lone", "labels": {"app": "web"}},
        "spec": {"containers": [{"name": "a", "image": "a"}]},
    }
    stage.server.create(POD, "default", body)
    stage.settle()
    stage.create(POD_DISRUPTION_BUDGET, "pdb", {**SELECTOR, "maxUnavailable": 1})
    assert _counts(stage) == (0, 0, 1, 0)
    selector = "&LabelSelector{MatchLabels:map[string]string{app: web,},MatchExpressions:[]LabelSelectorRequirement{},}"
    (told,) = stage.events("pdb")
    assert told.startswith(
        f"UnmanagedPods: Pods selected by this PodDisruptionBudget (selector: {selector}) were found"
    )
