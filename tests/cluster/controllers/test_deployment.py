"""Deployments roll templates out, back and on, within their bounds, and tell how it goes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from bayplan.cluster.embedded.controllers.deployment import DeploymentController
from bayplan.cluster.embedded.controllers.deployment_parts import (
    DESIRED_REPLICAS,
    MAX_REPLICAS,
    Parts,
    max_surge,
    max_unavailable,
    rescaled,
    shrunk,
    size_of_new,
    surplus,
)
from bayplan.cluster.embedded.deletion import DeleteOptions
from bayplan.cluster.kinds import DEPLOYMENT, POD, REPLICA_SET
from bayplan.cluster.objects import Object
from bayplan.model.meta import ObjectMeta
from bayplan.model.pods import Pod
from bayplan.model.workloads import (
    Deployment,
    DeploymentSpec,
    ReplicaSet,
    ReplicaSetSpec,
    ReplicaSetStatus,
    RollingUpdate,
    UpdateStrategy,
)

from .stage import Stage, template, workload


def deployment(replicas: int, surge: int | str = "25%", unavailable: int | str = "25%", limit: int = 10) -> Deployment:
    strategy = UpdateStrategy(rolling_update=RollingUpdate(max_surge=surge, max_unavailable=unavailable))
    spec = DeploymentSpec(replicas=replicas, strategy=strategy, revision_history_limit=limit)
    return Deployment(metadata=ObjectMeta(name="web"), spec=spec)


def part(name: str, size: int, available: int | None = None, most: int = 0, desired: int = 0) -> ReplicaSet:
    annotations = {MAX_REPLICAS: str(most), DESIRED_REPLICAS: str(desired)} if most else {}
    return ReplicaSet(
        metadata=ObjectMeta(name=name, creation_timestamp=f"2026-01-0{len(name)}T00:00:00Z", annotations=annotations),
        spec=ReplicaSetSpec(replicas=size),
        status=ReplicaSetStatus(replicas=size, available_replicas=size if available is None else available),
    )


@pytest.mark.parametrize(
    ("replicas", "surge", "unavailable", "expected"),
    [
        pytest.param(10, "25%", "25%", (3, 2), id="surge is rounded up and unavailability down"),
        pytest.param(2, "0%", "1%", (0, 1), id="where both come to nothing one may be missing"),
        pytest.param(1, "25%", "25%", (1, 0), id="a single pod surges"),
        pytest.param(3, 0, 7, (0, 3), id="no more can be missing than there are"),
        pytest.param(0, "50%", "50%", (0, 0), id="of none none can be missing"),
    ],
)
def test_bounds(replicas: int, surge: int | str, unavailable: int | str, expected: tuple[int, int]) -> None:
    wanted = deployment(replicas, surge, unavailable)
    assert (max_surge(wanted), max_unavailable(wanted)) == expected


@pytest.mark.parametrize(
    ("wanted", "new", "old", "expected"),
    [
        pytest.param(deployment(10, 3, 2), 0, [10], 3, id="a new one begins with the surge"),
        pytest.param(deployment(10, 3, 2), 3, [8], 5, id="it takes the room that the old ones leave"),
        pytest.param(deployment(10, 3, 2), 5, [8], 5, id="it waits where there is no room"),
        pytest.param(deployment(10, 3, 2), 9, [2], 10, id="it never grows beyond what is asked for"),
        pytest.param(deployment(3, 1, 0), 5, [], 3, id="one that is too large shrinks"),
    ],
)
def test_size_of_the_new_one(wanted: Deployment, new: int, old: list[int], expected: int) -> None:
    parts = Parts(part("new", new), tuple(part("o" * number, size) for number, size in enumerate(old, 1)))
    assert size_of_new(wanted, parts) == expected


@pytest.mark.parametrize(
    ("new", "old", "expected"),
    [
        pytest.param((3, 0), [(10, 10)], [("o", 8)], id="the unavailable new ones do not count"),
        pytest.param((5, 5), [(8, 8)], [("o", 3)], id="what the new ones replace goes"),
        pytest.param((5, 0), [(8, 8)], [], id="while the new ones do not come the old ones stay"),
        pytest.param((3, 0), [(10, 7)], [("o", 8)], id="the unhealthy go first and no available one with them"),
        pytest.param((0, 0), [(5, 0), (8, 8)], [("o", 0)], id="a stuck rollout goes before what works"),
        pytest.param((3, 3), [(2, 1), (8, 8)], [("o", 1), ("o", 0), ("oo", 5)], id="the older ones go first"),
    ],
)
def test_shrinking(new: tuple[int, int], old: list[tuple[int, int]], expected: list[tuple[str, int]]) -> None:
    newest = part("new", *new)
    parts = Parts(newest, tuple(part("o" * number, *sizes) for number, sizes in enumerate(old, 1)))
    found = shrunk(deployment(10, 3, 2), parts, newest)
    assert [(one.part.metadata.name, one.size) for one in found] == expected


@pytest.mark.parametrize(
    ("replicas", "parts", "expected"),
    [
        pytest.param(5, Parts(part("new", 3), ()), {"new": 5}, id="a single one takes it all"),
        pytest.param(5, Parts(None, (part("o", 0), part("oo", 0))), {"oo": 5}, id="of none that runs the newest does"),
        pytest.param(
            20,
            Parts(part("new", 5, most=11, desired=10), (part("o", 6, most=11, desired=10),)),
            {"o": 11, "new": 10},
            id="several grow in proportion",
        ),
        pytest.param(
            5,
            Parts(part("new", 5, most=11, desired=10), (part("o", 6, most=11, desired=10),)),
            {"o": 3, "new": 3},
            id="several shrink in proportion",
        ),
        pytest.param(
            0,
            Parts(part("new", 5, most=11, desired=10), (part("o", 6, most=11, desired=10),)),
            {"o": 0, "new": 0},
            id="to nothing all go",
        ),
        pytest.param(
            3,
            Parts(part("new", 3, most=4, desired=3), (part("o", 2, most=4, desired=9),)),
            {"o": 0},
            id="beside one that is complete the others go",
        ),
    ],
)
def test_scaling(replicas: int, parts: Parts, expected: dict[str, int]) -> None:
    found = rescaled(deployment(replicas, 1, 1), parts)
    assert {one.part.metadata.name: one.size for one in found} == expected


def test_history_keeps_the_newest_and_whatever_still_runs() -> None:
    old = [part("o" * number, size) for number, size in enumerate([0, 1, 0, 0], 1)]
    assert [one.metadata.name for one in surplus(deployment(1, limit=1), old)] == ["o", "ooo"]


def conditions(stage: Stage) -> dict[str, tuple[str, str]]:
    found = stage.status(DEPLOYMENT, "web")["conditions"]
    return {one["type"]: (one["status"], one["reason"]) for one in found}


def parts(stage: Stage) -> dict[str, Object]:
    """The ReplicaSets by the image of their template."""
    found = stage.store.objects(REPLICA_SET, "default")
    return {one.sections["spec"].plain()["template"]["spec"]["containers"][0]["image"]: one for one in found}


def roll_to(stage: Stage, image: str, **spec: Any) -> None:
    stage.patch(DEPLOYMENT, "web", {"spec": {"template": template(image), **spec}})


def test_a_new_deployment_makes_one_replica_set() -> None:
    stage = Stage()
    stage.create(DEPLOYMENT, "web", workload(3), annotations={"team": "shop"})
    (made,) = stage.store.objects(REPLICA_SET, "default")
    digest = made.meta.labels["pod-template-hash"]
    assert made.name == f"web-{digest}"
    assert set(digest) <= set("bcdfghjklmnpqrstvwxz2456789")
    assert made.meta.annotations == {
        "team": "shop",
        "deployment.kubernetes.io/revision": "1",
        "deployment.kubernetes.io/desired-replicas": "3",
        "deployment.kubernetes.io/max-replicas": "4",
    }
    assert {pod.meta.labels["pod-template-hash"] for pod in stage.pods()} == {digest}
    meta = stage.server.get(DEPLOYMENT, "default", "web").meta
    assert meta.annotations["deployment.kubernetes.io/revision"] == "1"
    assert meta.generation == stage.status(DEPLOYMENT, "web")["observedGeneration"] == 1
    assert conditions(stage) == {
        "Available": ("True", "MinimumReplicasAvailable"),
        "Progressing": ("True", "NewReplicaSetAvailable"),
    }
    assert stage.events("web") == [f"ScalingReplicaSet: Scaled up replica set {made.name} from 0 to 3"]


def test_a_rollout_moves_within_its_bounds() -> None:
    stage = Stage()
    stage.create(DEPLOYMENT, "web", workload(4))
    roll_to(stage, "web:2")
    old, new = parts(stage)["web:1"].name, parts(stage)["web:2"].name
    assert stage.events("web")[1:] == [
        f"ScalingReplicaSet: Scaled {text}"
        for text in (
            f"up replica set {new} from 0 to 1",
            f"down replica set {old} from 4 to 3",
            f"up replica set {new} from 1 to 2",
            f"down replica set {old} from 3 to 2",
            f"up replica set {new} from 2 to 3",
            f"down replica set {old} from 2 to 1",
            f"up replica set {new} from 3 to 4",
            f"down replica set {old} from 1 to 0",
        )
    ]
    assert conditions(stage)["Progressing"] == ("True", "NewReplicaSetAvailable")
    assert parts(stage)["web:2"].meta.annotations["deployment.kubernetes.io/revision"] == "2"


def test_a_stuck_rollout_times_out_and_a_rollback_ends_it() -> None:
    stage = Stage()
    stage.create(DEPLOYMENT, "web", workload(3, progressDeadlineSeconds=60))
    stage.hands.starts = lambda pod: pod.view(Pod).spec.containers[0].image != "web:bad"
    stage.wait(5)
    roll_to(stage, "web:bad")
    assert conditions(stage)["Progressing"] == ("True", "ReplicaSetUpdated")
    stage.wait(60)
    assert conditions(stage)["Progressing"] == ("True", "ReplicaSetUpdated")
    stage.wait(1)
    assert conditions(stage) == {
        "Available": ("True", "MinimumReplicasAvailable"),
        "Progressing": ("False", "ProgressDeadlineExceeded"),
    }
    assert stage.status(DEPLOYMENT, "web")["unavailableReplicas"] == 1
    roll_to(stage, "web:1")
    assert conditions(stage)["Progressing"] == ("True", "NewReplicaSetAvailable")
    annotations = parts(stage)["web:1"].meta.annotations
    assert annotations["deployment.kubernetes.io/revision"] == "3"
    assert annotations["deployment.kubernetes.io/revision-history"] == "1"
    assert len(stage.pods()) == 3


def test_recreation_waits_until_the_old_pods_are_gone() -> None:
    stage = Stage()
    stage.create(DEPLOYMENT, "web", workload(2, strategy={"type": "Recreate"}))
    stage.hands.ends = lambda _pod: False
    roll_to(stage, "web:2")
    assert "web:2" not in parts(stage)
    assert conditions(stage)["Available"] == ("False", "MinimumReplicasUnavailable")
    for pod in stage.pods():
        stage.server.delete(POD, "default", pod.name, DeleteOptions(grace=0))
    stage.settle()
    assert {pod.view(Pod).spec.containers[0].image for pod in stage.pods()} == {"web:2"}
    assert conditions(stage)["Progressing"] == ("True", "NewReplicaSetAvailable")


def test_a_paused_deployment_scales_but_does_not_roll() -> None:
    stage = Stage()
    stage.create(DEPLOYMENT, "web", workload(2))
    stage.patch(DEPLOYMENT, "web", {"spec": {"paused": True}})
    assert conditions(stage)["Progressing"] == ("Unknown", "DeploymentPaused")
    roll_to(stage, "web:2", replicas=4)
    assert {pod.view(Pod).spec.containers[0].image for pod in stage.pods()} == {"web:1"}
    assert len(stage.pods()) == 4
    stage.patch(DEPLOYMENT, "web", {"spec": {"paused": False}})
    assert {pod.view(Pod).spec.containers[0].image for pod in stage.pods()} == {"web:2"}
    assert conditions(stage)["Progressing"] == ("True", "NewReplicaSetAvailable")


def test_only_so_many_old_replica_sets_are_kept() -> None:
    stage = Stage()
    stage.create(DEPLOYMENT, "web", workload(1, revisionHistoryLimit=1))
    for number in (2, 3, 4):
        stage.wait(1)
        roll_to(stage, f"web:{number}")
    assert set(parts(stage)) == {"web:3", "web:4"}


def test_a_deployment_takes_in_the_replica_set_that_was_left_behind() -> None:
    stage = Stage()
    stage.create(DEPLOYMENT, "web", workload(2))
    made = parts(stage)["web:1"]
    stage.store.remove(DEPLOYMENT, "default", "web")
    stage.patch(REPLICA_SET, made.name, {"metadata": {"ownerReferences": []}})
    again = stage.create(DEPLOYMENT, "web", workload(2))
    (found,) = stage.store.objects(REPLICA_SET, "default")
    assert found.uid == made.uid
    assert found.meta.owner_references[0].uid == again.uid
    assert conditions(stage)["Progressing"] == ("True", "NewReplicaSetAvailable")
    assert len(stage.pods()) == 2


def test_a_name_that_is_taken_leads_to_another() -> None:
    first, second = Stage(), Stage()
    first.create(DEPLOYMENT, "web", workload(1))
    taken = parts(first)["web:1"].name
    other = {**workload(0), "selector": {"matchLabels": {"app": "x"}}, "template": template(labels={"app": "x"})}
    second.create(REPLICA_SET, taken, other)
    second.create(DEPLOYMENT, "web", workload(1))
    assert second.status(DEPLOYMENT, "web")["collisionCount"] == 1
    assert len(second.names(app="web")) == 1


def test_min_ready_seconds_slow_a_rollout_down() -> None:
    stage = Stage()
    stage.create(
        DEPLOYMENT,
        "web",
        workload(2, minReadySeconds=5, strategy={"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}),
    )
    stage.wait(5)
    roll_to(stage, "web:2")
    for replaced in (1, 2):
        assert stage.status(DEPLOYMENT, "web")["updatedReplicas"] == replaced
        stage.wait(5)
    assert conditions(stage)["Progressing"] == ("True", "NewReplicaSetAvailable")


@settings(max_examples=25)
@given(
    replicas=some.integers(1, 8),
    surge=some.sampled_from([0, 1, 3, "25%", "100%"]),
    unavailable=some.sampled_from([1, 2, "25%", "50%"]),
)
def test_a_rollout_never_leaves_its_bounds_and_always_ends(
    replicas: int, surge: int | str, unavailable: int | str
) -> None:
    stage = Stage()
    rolling = {"rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}}
    stage.create(DEPLOYMENT, "web", workload(replicas, strategy=rolling))
    wanted = stage.server.get(DEPLOYMENT, "default", "web").view(Deployment)
    least, most = replicas - max_unavailable(wanted), replicas + max_surge(wanted)
    counts: list[tuple[int, int]] = []

    def count(_change: object) -> None:
        alive = [pod for pod in stage.pods() if pod.meta.deletion_timestamp is None]
        ready = [pod for pod in alive if pod.view(Pod).status.phase == "Running"]
        counts.append((len(ready), len(alive)))

    stage.store.listeners.append(count)
    roll_to(stage, "web:2")
    assert min(ready for ready, _ in counts) >= least
    assert max(alive for _, alive in counts) <= most
    assert {pod.view(Pod).spec.containers[0].image for pod in stage.pods()} == {"web:2"}
    assert not DeploymentController().reconcile(("default", "web"), stage.store, stage.now).writes
