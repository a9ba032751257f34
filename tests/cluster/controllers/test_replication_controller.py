"""ReplicationControllers keep their number of pods as ReplicaSets do."""

from __future__ import annotations

import pytest

from bayplan.cluster.embedded.controllers.garbage_collector import GarbageCollector
from bayplan.cluster.embedded.controllers.replication_controller import ReplicationControllerController
from bayplan.cluster.kinds import POD, REPLICATION_CONTROLLER, RESOURCE_QUOTA

from .stage import Stage, template


@pytest.fixture
def world() -> Stage:
    return Stage(ReplicationControllerController(), GarbageCollector())


def test_it_makes_and_deletes_pods(world: Stage) -> None:
    world.create(REPLICATION_CONTROLLER, "web", {"replicas": 3, "selector": {"app": "web"}, "template": template()})
    assert len(world.pods(app="web")) == 3
    assert world.pods()[0].name.startswith("web-")
    assert world.status(REPLICATION_CONTROLLER, "web") == {
        "replicas": 3,
        "fullyLabeledReplicas": 3,
        "readyReplicas": 3,
        "availableReplicas": 3,
        "observedGeneration": 1,
    }
    world.patch(REPLICATION_CONTROLLER, "web", {"spec": {"replicas": 1}})
    assert len(world.pods(app="web")) == 1
    assert [event.partition(":")[0] for event in world.events("web")] == ["SuccessfulCreate"] * 3 + [
        "SuccessfulDelete"
    ] * 2
    assert world.settle() == 0


def test_it_adopts_what_it_selects_and_lets_go_of_what_it_does_not(world: Stage) -> None:
    spec = template()["spec"]
    world.create(POD, "stray", spec, labels={"app": "web"})
    world.create(REPLICATION_CONTROLLER, "web", {"replicas": 2, "selector": {"app": "web"}, "template": template()})
    assert len(world.pods(app="web")) == 2
    stray = world.server.get(POD, "default", "stray")
    assert stray.meta.controller is not None
    assert stray.meta.controller.kind == "ReplicationController"
    world.patch(POD, "stray", {"metadata": {"labels": {"app": "other"}}})
    assert world.server.get(POD, "default", "stray").meta.controller is None
    assert len(world.pods(app="web")) == 2


def test_a_refused_pod_is_told(world: Stage) -> None:
    quota = world.create(RESOURCE_QUOTA, "q", {"hard": {"pods": "0"}})
    world.server.write_status(quota, {"hard": {"pods": "0"}, "used": {"pods": "0"}})
    world.create(REPLICATION_CONTROLLER, "web", {"replicas": 1, "selector": {"app": "web"}, "template": template()})
    condition = world.status(REPLICATION_CONTROLLER, "web")["conditions"][0]
    assert (condition["type"], condition["reason"]) == ("ReplicaFailure", "FailedCreate")
    assert world.events("web")[0].startswith("FailedCreate: Error creating: pods ")


def test_deletion_orphans_its_pods_unless_asked_otherwise(world: Stage) -> None:
    world.create(REPLICATION_CONTROLLER, "web", {"replicas": 1, "selector": {"app": "web"}, "template": template()})
    world.server.delete(REPLICATION_CONTROLLER, "default", "web")
    world.settle()
    assert [pod.meta.owner_references for pod in world.pods(app="web")] == [()]
