"""ReplicaSets keep their number of pods, count them, and let the right ones go."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as some

from bayplan.cluster.embedded.controllers.conditions import status_body
from bayplan.cluster.embedded.controllers.replica_set import ReplicaSetController, failed
from bayplan.cluster.embedded.controllers.replica_set_ranking import DELETION_COST, doomed
from bayplan.cluster.kinds import POD, REPLICA_SET, RESOURCE_QUOTA
from bayplan.cluster.objects import Object
from bayplan.model.clock import SECOND, Instant, rfc3339
from bayplan.model.objects import from_builtins
from bayplan.model.workloads import ReplicaSetStatus

from .stage import START, Stage, running, template, workload

NOW = Instant(START + 1000 * SECOND)


def pod(uid: str = "a", *, node: str = "n", phase: str = "Running", ready: int | None = 100, **more: Any) -> Object:
    """A pod as the ranking sees it: ready, created and restarted so many seconds ago and times."""
    age, restarts, cost = more.get("age", 100), more.get("restarts", 0), more.get("cost")
    conditions = []
    if ready is not None:
        at = rfc3339(Instant(NOW - ready * SECOND))
        conditions.append({"type": "Ready", "status": "True", "lastTransitionTime": at})
    document = {
        "metadata": {
            "name": uid,
            "uid": uid,
            "creationTimestamp": rfc3339(Instant(NOW - age * SECOND)),
            "annotations": {} if cost is None else {DELETION_COST: cost},
        },
        "spec": {"nodeName": node},
        "status": {
            "phase": phase,
            "conditions": conditions,
            "containerStatuses": [{"name": "main", "restartCount": restarts}],
        },
    }
    return Object.from_raw(POD, msgspec.json.encode(document))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param(pod(node="", ready=None), pod(phase="Pending"), id="one without a node goes first"),
        pytest.param(pod(phase="Pending", ready=None), pod(), id="a pending one goes before a running one"),
        pytest.param(pod(phase="Unknown"), pod(), id="one that nobody hears of goes before a running one"),
        pytest.param(pod(ready=None), pod(cost="-5"), id="an unready one goes before a ready one, whatever its cost"),
        pytest.param(pod(cost="-5"), pod(node="lonely"), id="a cheaper one goes before a dearer one"),
        pytest.param(pod(cost="0"), pod(cost="7"), id="costs are compared as numbers"),
        pytest.param(pod(), pod("b", node="lonely", cost="+3"), id="a cost that cannot be read is none"),
        pytest.param(pod(), pod("b", node="lonely", ready=1), id="one on a crowded node goes first"),
        pytest.param(pod(ready=1), pod("b", ready=900), id="one that has been ready for a short time goes first"),
        pytest.param(pod("a", ready=100), pod("b", ready=101), id="of about the same age the uid decides"),
        pytest.param(pod(restarts=3), pod(restarts=1), id="one that restarts often goes first"),
        pytest.param(pod(age=10), pod("b", age=500), id="a young one goes before an old one"),
    ],
)
def test_which_pod_goes_first(first: Object, second: Object) -> None:
    company = [pod("x"), pod("y")]
    assert doomed([first, second], [*company, first, second], 1, NOW) == [first]
    assert doomed([second, first], [*company, first, second], 1, NOW) == [first]


def test_it_makes_its_pods_and_counts_them() -> None:
    stage = Stage()
    stage.create(REPLICA_SET, "web", workload(3))
    assert stage.status(REPLICA_SET, "web") == {
        "replicas": 3,
        "fullyLabeledReplicas": 3,
        "readyReplicas": 3,
        "availableReplicas": 3,
        "terminatingReplicas": 0,
        "observedGeneration": 1,
    }
    made = stage.names()
    assert all(name.startswith("web-") for name in made)
    assert sorted(stage.events("web")) == sorted(f"SuccessfulCreate: Created pod: {name}" for name in made)


def test_more_than_a_burst_comes_in_several_looks() -> None:
    stage = Stage(hands=False)
    stage.create(REPLICA_SET, "web", workload(1203))
    assert len(stage.pods()) == 1203


def test_a_large_set_that_has_its_pods_is_counted_at_leisure_and_scaled_at_once() -> None:
    stage = Stage()
    web = stage.create(REPLICA_SET, "web", workload(300))
    stage.wait(1)
    counted = stage.status(REPLICA_SET, "web")
    stage.set_status(web, counted | {"readyReplicas": 7})
    assert stage.status(REPLICA_SET, "web")["readyReplicas"] == 7
    stage.wait(0.05)
    assert stage.status(REPLICA_SET, "web") == counted
    stage.patch(REPLICA_SET, "web", {"spec": {"replicas": 310}})
    assert len(stage.pods()) == 310


def test_a_pod_counts_as_available_after_its_time() -> None:
    stage = Stage()
    stage.create(REPLICA_SET, "web", workload(2, minReadySeconds=10))
    assert "availableReplicas" not in stage.status(REPLICA_SET, "web")
    stage.wait(9)
    assert "availableReplicas" not in stage.status(REPLICA_SET, "web")
    stage.wait(1)
    assert stage.status(REPLICA_SET, "web")["availableReplicas"] == 2


def test_a_deleted_pod_is_replaced_at_once_and_counted_as_terminating() -> None:
    stage = Stage()
    stage.create(REPLICA_SET, "web", workload(2))
    stage.hands.ends = lambda _pod: False
    gone = stage.names()[0]
    stage.server.delete(POD, "default", gone)
    stage.settle()
    assert len(stage.pods()) == 3
    assert stage.status(REPLICA_SET, "web")["terminatingReplicas"] == 1


def test_a_failed_pod_is_replaced_and_left_alone() -> None:
    stage = Stage()
    stage.create(REPLICA_SET, "web", workload(1))
    stage.set_status(stage.pods()[0], {"phase": "Failed"})
    assert len(stage.pods()) == 2
    assert stage.status(REPLICA_SET, "web")["replicas"] == 1


def test_scaling_down_deletes_the_unready_first() -> None:
    stage = Stage()
    stage.create(REPLICA_SET, "web", workload(3))
    unready = stage.pods()[1]
    stage.set_status(unready, running(stage.now, ready=False))
    stage.patch(REPLICA_SET, "web", {"spec": {"replicas": 2}})
    assert unready.name not in stage.names()
    assert stage.events("web")[-1] == f"SuccessfulDelete: Deleted pod: {unready.name}"


def test_it_adopts_what_it_selects_before_it_makes_more() -> None:
    stage = Stage()
    stage.create(POD, "stray", template()["spec"], labels={"app": "web"})
    stage.create(POD, "other", template()["spec"], labels={"app": "db"})
    stage.create(REPLICA_SET, "web", workload(2))
    assert len(stage.names(app="web")) == 2
    owner = stage.server.get(POD, "default", "stray").meta.controller
    assert owner is not None
    assert owner.name == "web"
    assert stage.server.get(POD, "default", "other").meta.controller is None


def test_a_stray_that_comes_later_is_adopted_and_one_too_many_goes() -> None:
    stage = Stage()
    stage.create(REPLICA_SET, "web", workload(2))
    stage.create(POD, "stray", template()["spec"], labels={"app": "web"})
    assert len(stage.pods()) == 2


def test_it_lets_go_of_a_pod_that_it_no_longer_selects() -> None:
    stage = Stage()
    stage.create(REPLICA_SET, "web", workload(2))
    name = stage.names()[0]
    stage.patch(POD, name, {"metadata": {"labels": {"app": "debug"}}})
    assert stage.server.get(POD, "default", name).meta.owner_references == ()
    assert len(stage.names(app="web")) == 2
    stage.patch(POD, name, {"metadata": {"labels": {"app": "web"}}})
    assert len(stage.names(app="web")) == 2


def test_a_quota_that_refuses_is_told_and_tried_again() -> None:
    stage = Stage()
    stage.create(RESOURCE_QUOTA, "small", {"hard": {"pods": "2"}})
    quota = stage.server.get(RESOURCE_QUOTA, "default", "small")
    stage.server.write_status(quota, {"hard": {"pods": "2"}, "used": {"pods": "0"}})
    stage.create(REPLICA_SET, "web", workload(3))
    assert len(stage.pods()) == 2
    assert stage.status(REPLICA_SET, "web")["replicas"] == 2
    refusals = [event for event in stage.events("web") if event.startswith("FailedCreate: Error creating: pods ")]
    assert refusals
    assert all("exceeded quota: small" in event for event in refusals)
    stage.patch(RESOURCE_QUOTA, "small", {"spec": {"hard": {"pods": "5"}}})
    quota = stage.server.get(RESOURCE_QUOTA, "default", "small")
    stage.server.write_status(quota, {"hard": {"pods": "5"}, "used": {"pods": "2"}})
    stage.wait(60)
    assert len(stage.pods()) == 3


def test_a_failure_is_a_condition_that_keeps_its_first_time() -> None:
    status = failed(ReplicaSetStatus(replicas=1), "FailedCreate", "no room", START)
    (condition,) = status_body(failed(status, "FailedCreate", "still no room", NOW), "replicas")["conditions"]
    assert condition == {
        "type": "ReplicaFailure",
        "status": "True",
        "lastTransitionTime": rfc3339(START),
        "reason": "FailedCreate",
        "message": "no room",
    }


@given(sizes=some.lists(some.integers(0, 6), min_size=1, max_size=6))
def test_whatever_the_size_it_is_reached_and_then_nothing_is_done(sizes: list[int]) -> None:
    stage = Stage()
    stage.create(REPLICA_SET, "web", workload(0))
    for size in sizes:
        stage.patch(REPLICA_SET, "web", {"spec": {"replicas": size}})
        assert len(stage.pods()) == size
        assert from_builtins(stage.status(REPLICA_SET, "web"), ReplicaSetStatus).available_replicas == size
    assert not ReplicaSetController().reconcile(("default", "web"), stage.store, stage.now).writes
