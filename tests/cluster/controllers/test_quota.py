"""What a namespace uses, as things come and go."""

from __future__ import annotations

from typing import Any

from bayplan.cluster.embedded.controllers.quota import QuotaController
from bayplan.cluster.kinds import CONFIG_MAP, DEPLOYMENT, POD, RESOURCE_QUOTA
from tests.cluster.controllers.stage import Stage, workload


def _stage(**hard: str) -> Stage:
    stage = Stage(QuotaController())
    stage.create(RESOURCE_QUOTA, "quota", {"hard": hard})
    return stage


def _used(stage: Stage) -> Any:
    return stage.status(RESOURCE_QUOTA, "quota")["used"]


def _sized(cpu: str) -> dict[str, Any]:
    spec = workload(2)
    spec["template"]["spec"]["containers"][0]["resources"] = {"requests": {"cpu": cpu}}
    return spec


def test_a_new_quota_counts_what_is_there() -> None:
    stage = Stage(QuotaController())
    stage.create(DEPLOYMENT, "web", _sized("250m"))
    stage.create(RESOURCE_QUOTA, "quota", {"hard": {"requests.cpu": "2", "pods": "10", "count/deployments.apps": "3"}})
    assert stage.status(RESOURCE_QUOTA, "quota") == {
        "hard": {"count/deployments.apps": "3", "pods": "10", "requests.cpu": "2"},
        "used": {"count/deployments.apps": "1", "pods": "2", "requests.cpu": "500m"},
    }


def test_what_goes_is_given_back() -> None:
    stage = _stage(**{"requests.cpu": "2", "pods": "10"})
    stage.create(DEPLOYMENT, "web", _sized("250m"))
    assert _used(stage) == {"pods": "2", "requests.cpu": "500m"}
    stage.patch(DEPLOYMENT, "web", {"spec": {"replicas": 1}})
    assert _used(stage) == {"pods": "1", "requests.cpu": "250m"}


def test_a_pod_that_is_over_no_longer_counts() -> None:
    stage = _stage(pods="10", **{"count/pods": "10"})
    stage.create(POD, "p", {"containers": [{"name": "a", "image": "a"}]})
    assert _used(stage) == {"count/pods": "1", "pods": "1"}
    stage.set_status(stage.pods()[0], {"phase": "Succeeded"})
    assert _used(stage) == {"count/pods": "1", "pods": "0"}


def test_a_pod_that_hangs_in_its_deletion_ceases_to_count() -> None:
    stage = _stage(pods="10")
    stage.hands.ends = lambda _pod: False
    stage.create(POD, "p", {"containers": [{"name": "a", "image": "a"}]})
    stage.server.delete(POD, "default", "p")
    stage.wait(60)
    assert _used(stage) == {"pods": "1"}
    stage.wait(1)
    assert _used(stage) == {"pods": "0"}


def test_a_wider_quota_is_told_at_once() -> None:
    stage = _stage(configmaps="1")
    stage.server.create(CONFIG_MAP, "default", {"metadata": {"name": "c"}})
    stage.patch(RESOURCE_QUOTA, "quota", {"spec": {"hard": {"configmaps": "5"}}})
    assert stage.status(RESOURCE_QUOTA, "quota") == {"hard": {"configmaps": "5"}, "used": {"configmaps": "1"}}
