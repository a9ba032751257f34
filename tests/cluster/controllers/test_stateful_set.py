"""StatefulSets number their pods, make and delete them in order, and keep their storage."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from bayplan.cluster.embedded.controllers.stateful_set import StatefulSetController
from bayplan.cluster.embedded.deletion import DeleteOptions
from bayplan.cluster.kinds import CONTROLLER_REVISION, PERSISTENT_VOLUME_CLAIM, POD, STATEFUL_SET
from bayplan.model.pods import Pod

from .stage import Stage, running, template, workload

CLAIM = {
    "metadata": {"name": "data"},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
}


def stateful(replicas: int, **spec: Any) -> dict[str, Any]:
    return workload(replicas, serviceName="web", **spec)


def images(stage: Stage) -> list[str]:
    return [pod.view(Pod).spec.containers[0].image for pod in stage.pods()]


def roll_to(stage: Stage, image: str, **spec: Any) -> None:
    stage.patch(STATEFUL_SET, "web", {"spec": {"template": template(image), **spec}})


def test_pods_come_one_after_the_other() -> None:
    stage = Stage()
    stage.hands.starts = lambda _pod: False
    stage.create(STATEFUL_SET, "web", stateful(3))
    assert stage.names() == ["web-0"]
    stage.set_status(stage.pods()[0], running(stage.now))
    assert stage.names() == ["web-0", "web-1"]
    stage.set_status(stage.pods()[1], running(stage.now))
    stage.set_status(stage.pods()[2], running(stage.now))
    assert stage.events("web") == [
        f"SuccessfulCreate: Create Pod web-{number} in StatefulSet web successful" for number in range(3)
    ]
    (revision,) = stage.store.objects(CONTROLLER_REVISION, "default")
    assert stage.status(STATEFUL_SET, "web") == {
        "observedGeneration": 1,
        "replicas": 3,
        "readyReplicas": 3,
        "currentReplicas": 3,
        "updatedReplicas": 3,
        "currentRevision": revision.name,
        "updateRevision": revision.name,
        "collisionCount": 0,
        "availableReplicas": 3,
    }


def test_a_pod_knows_its_number() -> None:
    stage = Stage()
    stage.create(STATEFUL_SET, "web", stateful(1, ordinals={"start": 5}))
    (pod,) = stage.pods()
    (revision,) = stage.store.objects(CONTROLLER_REVISION, "default")
    assert pod.name == "web-5"
    assert pod.meta.labels == {
        "app": "web",
        "statefulset.kubernetes.io/pod-name": "web-5",
        "apps.kubernetes.io/pod-index": "5",
        "controller-revision-hash": revision.name,
    }
    assert (pod.view(Pod).spec.hostname, pod.view(Pod).spec.subdomain) == ("web-5", "web")


def test_in_parallel_all_come_at_once_and_go_at_once() -> None:
    stage = Stage()
    stage.hands.starts = lambda _pod: False
    stage.create(STATEFUL_SET, "web", stateful(3, podManagementPolicy="Parallel"))
    assert stage.names() == ["web-0", "web-1", "web-2"]
    stage.patch(STATEFUL_SET, "web", {"spec": {"replicas": 0}})
    assert stage.names() == []


def test_scaling_down_goes_from_the_last_and_waits_for_each() -> None:
    stage = Stage()
    stage.create(STATEFUL_SET, "web", stateful(3))
    stage.hands.ends = lambda _pod: False
    stage.patch(STATEFUL_SET, "web", {"spec": {"replicas": 1}})
    assert [pod.name for pod in stage.pods() if pod.meta.deletion_timestamp] == ["web-2"]
    stage.server.delete(POD, "default", "web-2", DeleteOptions(grace=0))
    stage.settle()
    assert [pod.name for pod in stage.pods() if pod.meta.deletion_timestamp] == ["web-1"]


def test_an_unhealthy_pod_holds_a_scale_down() -> None:
    stage = Stage()
    stage.create(STATEFUL_SET, "web", stateful(3))
    stage.set_status(stage.pods()[0], running(stage.now, ready=False))
    stage.patch(STATEFUL_SET, "web", {"spec": {"replicas": 2}})
    assert len(stage.pods()) == 3
    stage.set_status(stage.pods()[0], running(stage.now))
    assert len(stage.pods()) == 2


def test_an_update_goes_from_the_last_to_the_first() -> None:
    stage = Stage()
    stage.create(STATEFUL_SET, "web", stateful(3))
    before = stage.status(STATEFUL_SET, "web")["currentRevision"]
    stage.hands.starts = lambda pod: pod.name != "web-1"
    roll_to(stage, "web:2")
    assert images(stage) == ["web:1", "web:2", "web:2"]
    status = stage.status(STATEFUL_SET, "web")
    assert (status["currentRevision"], status["currentReplicas"], status["updatedReplicas"]) == (before, 1, 2)
    stage.set_status(stage.pods()[1], running(stage.now))
    assert images(stage) == ["web:2"] * 3
    status = stage.status(STATEFUL_SET, "web")
    assert status["currentRevision"] == status["updateRevision"] != before
    assert stage.events("web") == [
        f"Successful{verb}: {verb} Pod web-{number} in StatefulSet web successful"
        for number in (2, 1, 0)
        for verb in ("Delete", "Create")
    ]


def test_a_partition_keeps_the_lower_ones_as_they_are() -> None:
    stage = Stage()
    stage.create(STATEFUL_SET, "web", stateful(3, updateStrategy={"rollingUpdate": {"partition": 2}}))
    roll_to(stage, "web:2")
    assert images(stage) == ["web:1", "web:1", "web:2"]
    stage.server.delete(POD, "default", "web-0")
    stage.settle()
    assert images(stage) == ["web:1", "web:1", "web:2"]


def test_on_delete_only_who_is_deleted_is_updated() -> None:
    stage = Stage()
    stage.create(STATEFUL_SET, "web", stateful(2, updateStrategy={"type": "OnDelete"}))
    roll_to(stage, "web:2")
    assert images(stage) == ["web:1", "web:1"]
    stage.server.delete(POD, "default", "web-0")
    stage.settle()
    assert images(stage) == ["web:2", "web:1"]


def test_going_back_renumbers_the_old_revision() -> None:
    stage = Stage()
    stage.create(STATEFUL_SET, "web", stateful(1))
    first = stage.status(STATEFUL_SET, "web")["updateRevision"]
    roll_to(stage, "web:2")
    roll_to(stage, "web:1")
    assert stage.status(STATEFUL_SET, "web")["updateRevision"] == first
    assert stage.server.get(CONTROLLER_REVISION, "default", first).sections["revision"].plain() == 3
    assert stage.store.count(CONTROLLER_REVISION) == 2


def test_only_so_many_revisions_are_kept() -> None:
    stage = Stage()
    stage.create(STATEFUL_SET, "web", stateful(1, revisionHistoryLimit=1))
    for number in (2, 3, 4):
        roll_to(stage, f"web:{number}")
    assert stage.store.count(CONTROLLER_REVISION) == 2


def test_each_pod_waits_until_the_one_before_has_been_ready_long_enough() -> None:
    stage = Stage()
    stage.create(STATEFUL_SET, "web", stateful(2, minReadySeconds=10))
    stage.wait(9)
    assert stage.names() == ["web-0"]
    stage.wait(1)
    assert stage.names() == ["web-0", "web-1"]


def test_a_failed_pod_is_made_anew() -> None:
    stage = Stage()
    stage.create(STATEFUL_SET, "web", stateful(2))
    before = stage.pods()[0]
    stage.set_status(before, {"phase": "Failed"})
    assert stage.pods()[0].uid != before.uid
    assert len(stage.pods()) == 2


def test_each_pod_has_its_claims_and_they_outlive_it() -> None:
    stage = Stage()
    volumes = [{"name": "tmp", "emptyDir": {}}]
    spec = stateful(2, volumeClaimTemplates=[CLAIM]) | {"template": template(volumes=volumes)}
    stage.create(STATEFUL_SET, "web", spec)
    claims = [*stage.store.objects(PERSISTENT_VOLUME_CLAIM, "default")]
    assert [(one.name, one.meta.labels, one.meta.owner_references) for one in claims] == [
        (f"data-web-{number}", {"app": "web"}, ()) for number in range(2)
    ]
    volumes = stage.pods()[1].sections["spec"].plain()["volumes"]
    assert volumes == [{"name": "data", "persistentVolumeClaim": {"claimName": "data-web-1"}}, *volumes[1:]]
    assert [one["name"] for one in volumes] == ["data", "tmp"]
    assert stage.events("web")[:2] == [
        "SuccessfulCreate: Create Claim data-web-0 Pod web-0 in StatefulSet web success",
        "SuccessfulCreate: Create Pod web-0 in StatefulSet web successful",
    ]
    stage.patch(STATEFUL_SET, "web", {"spec": {"replicas": 0}})
    assert stage.store.count(PERSISTENT_VOLUME_CLAIM) == 2


@pytest.mark.parametrize(
    ("deleted", "scaled", "expected"),
    [
        pytest.param("Retain", "Retain", ([], []), id="kept in any case, nobody owns it"),
        pytest.param(
            "Delete", "Retain", (["StatefulSet"], ["StatefulSet"]), id="with the set it goes, the set's it is"
        ),
        pytest.param("Retain", "Delete", ([], ["Pod"]), id="one that goes with its pod is the pod's once that must go"),
        pytest.param("Delete", "Delete", (["StatefulSet"], ["Pod"]), id="with both it is the set's, then the pod's"),
    ],
)
def test_who_owns_a_claim(deleted: str, scaled: str, expected: tuple[list[str], list[str]]) -> None:
    stage = Stage()
    policy = {"whenDeleted": deleted, "whenScaled": scaled}
    spec = stateful(2, volumeClaimTemplates=[CLAIM], persistentVolumeClaimRetentionPolicy=policy)
    stage.create(STATEFUL_SET, "web", spec)

    def owners() -> list[str]:
        claim = stage.server.get(PERSISTENT_VOLUME_CLAIM, "default", "data-web-1")
        return [one.kind for one in claim.meta.owner_references]

    before = owners()
    stage.hands.ends = lambda _pod: False
    stage.patch(STATEFUL_SET, "web", {"spec": {"replicas": 1}})
    assert (before, owners()) == expected


def test_a_claim_that_goes_with_its_pod_is_waited_for() -> None:
    stage = Stage()
    policy = {"whenDeleted": "Retain", "whenScaled": "Delete"}
    spec = stateful(1, volumeClaimTemplates=[CLAIM], persistentVolumeClaimRetentionPolicy=policy)
    stage.create(STATEFUL_SET, "web", spec)
    stage.patch(STATEFUL_SET, "web", {"spec": {"replicas": 0}})
    stage.patch(STATEFUL_SET, "web", {"spec": {"replicas": 1}})
    assert stage.names() == []
    stage.store.remove(PERSISTENT_VOLUME_CLAIM, "default", "data-web-0")
    stage.settle()
    assert stage.names() == ["web-0"]


def test_a_pod_of_another_name_is_neither_adopted_nor_counted() -> None:
    stage = Stage()
    stage.create(POD, "stray", template()["spec"], labels={"app": "web"})
    stage.create(STATEFUL_SET, "web", stateful(1))
    assert stage.server.get(POD, "default", "stray").meta.controller is None
    assert stage.status(STATEFUL_SET, "web")["replicas"] == 1


@settings(max_examples=25)
@given(
    steps=some.lists(some.tuples(some.integers(0, 4), some.sampled_from(["web:1", "web:2"])), min_size=1, max_size=5),
    policy=some.sampled_from(["OrderedReady", "Parallel"]),
)
def test_whatever_is_asked_is_reached_and_then_nothing_is_done(steps: list[tuple[int, str]], policy: str) -> None:
    stage = Stage()
    stage.create(STATEFUL_SET, "web", stateful(1, podManagementPolicy=policy))
    for replicas, image in steps:
        roll_to(stage, image, replicas=replicas)
        assert images(stage) == [image] * replicas
        assert stage.names() == [f"web-{number}" for number in range(replicas)]
    assert not StatefulSetController().reconcile(("default", "web"), stage.store, stage.now).writes
