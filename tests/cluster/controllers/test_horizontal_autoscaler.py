"""HorizontalPodAutoscalers give a workload as many replicas as it needs, not too fast and within bounds."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as some

from bayplan.cluster.embedded.controllers.horizontal_autoscaler import HorizontalAutoscaler
from bayplan.cluster.embedded.controllers.horizontal_autoscaler_limits import (
    MEMORY,
    PERIOD,
    Bounds,
    Memory,
    Note,
    limit,
)
from bayplan.cluster.embedded.controllers.horizontal_autoscaler_metrics import (
    MetricError,
    Question,
    Tolerances,
    propose,
)
from bayplan.cluster.embedded.kubelet.behaviour import USUAL
from bayplan.cluster.kinds import DEPLOYMENT, HORIZONTAL_POD_AUTOSCALER, POD
from bayplan.cluster.objects import Object
from bayplan.model.clock import SECOND, Instant, rfc3339

from .stage import START, Stage, workload

NOW = Instant(START + 3600 * SECOND)
BOUNDS = Bounds(1, 10)


def pod(name: str, cpu: str | None, *, request: str | None = "1", phase: str = "Running", **more: Any) -> Object:
    """A pod that has run for an hour and uses so much CPU; None: it says nothing."""
    since = rfc3339(Instant(NOW - more.get("age", 3600) * SECOND))
    annotations = {} if cpu is None else {"behaviour.bayplan.dev/cpu": f"constant {cpu}"}
    running = [] if cpu is None else [{"name": "main", "state": {"running": {"startedAt": since}}}]
    ready = {"type": "Ready", "status": str(more.get("ready", True)), "lastTransitionTime": since}
    document: dict[str, Any] = {
        "metadata": {"name": name, "uid": name, "annotations": annotations},
        "spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": request} if request else {}}}]},
        "status": {"phase": phase, "startTime": since, "conditions": [ready], "containerStatuses": running},
    }
    if more.get("deleted"):
        document["metadata"]["deletionTimestamp"] = since
    return Object.from_raw(POD, msgspec.json.encode(document))


def ask(pods: list[Object], share: int = 50, replicas: int | None = None) -> Any:
    target = {"averageUtilization": share}
    asked = Question("cpu", target, len(pods) if replicas is None else replicas, Tolerances())
    return propose(asked, pods, NOW, USUAL)


@pytest.mark.parametrize(
    ("pods", "expected"),
    [
        pytest.param([pod("a", "1"), pod("b", "1")], 4, id="twice the target is twice the pods"),
        pytest.param([pod("a", "0.52"), pod("b", "0.5")], 2, id="a little more is near enough"),
        pytest.param([pod("a", "0.1"), pod("b", "0.1"), pod("c", "0.1")], 1, id="a fifth of the target is a third"),
        pytest.param([pod("a", "1"), pod("b", None)], 2, id="upwards a silent pod is taken to use nothing"),
        pytest.param(
            [pod("a", "0.1"), pod("b", None)], 2, id="downwards a silent pod is taken to use all it asked for"
        ),
        pytest.param([pod("a", "1"), pod("b", None, phase="Pending")], 2, id="upwards a pending pod uses nothing"),
        pytest.param([pod("a", "0.1"), pod("b", None, phase="Pending")], 1, id="downwards a pending pod is ignored"),
        pytest.param([pod("a", "1"), pod("b", "9", deleted=True)], 2, id="one that is going does not count"),
        pytest.param([pod("a", "1"), pod("b", "9", age=60, ready=False)], 2, id="one that is starting does not count"),
        pytest.param([pod("a", "1"), pod("b", "1", age=5)], 2, id="nor one that has only just become ready"),
    ],
)
def test_what_a_share_asks_for(pods: list[Object], expected: int) -> None:
    assert ask(pods).replicas == expected


def test_what_the_status_tells() -> None:
    assert ask([pod("a", "0.2"), pod("b", "0.4")]).current == {"averageUtilization": 30, "averageValue": "300m"}
    asked = Question("cpu", {"averageValue": "100m"}, 2, Tolerances())
    proposal = propose(asked, [pod("a", "0.2"), pod("b", "0.4")], NOW, USUAL)
    assert proposal == (6, {"averageValue": "300m"})


@pytest.mark.parametrize(
    ("pods", "words"),
    [
        pytest.param(
            [pod("a", None)],
            "failed to get cpu utilization: unable to get metrics for resource cpu: "
            "no metrics returned from resource metrics API",
            id="nobody says anything",
        ),
        pytest.param(
            [pod("a", "1", request=None)],
            "failed to get cpu utilization: missing request for cpu in container main of Pod a",
            id="a share of nothing",
        ),
        pytest.param(
            [pod("a", "1", age=1)],
            "failed to get cpu utilization: did not receive metrics for targeted pods (pods might be unready)",
            id="all are starting",
        ),
    ],
)
def test_what_cannot_be_answered(pods: list[Object], words: str) -> None:
    with pytest.raises(MetricError) as raised:
        ask(pods)
    assert str(raised.value) == words


def test_without_rules_it_grows_twofold_and_shrinks_after_five_minutes() -> None:
    fresh = Memory()
    assert limit(None, fresh, 3, 10, Bounds(1, 20), NOW)[0] == 6
    assert limit(None, fresh, 3, 10, Bounds(1, 20), NOW).why[0] == "ScaleUpLimit"
    assert limit(None, fresh, 3, 12, Bounds(1, 5), NOW).why[0] == "TooManyReplicas"
    held = limit(None, Memory(latest=5), 5, 1, BOUNDS, NOW)
    assert (held.replicas, held.able[0]) == (5, "ScaleDownStabilized")
    memory = Memory(latest=1, earlier=(Note(5, Instant(NOW - 301 * SECOND)),))
    assert limit(None, memory, 5, 1, BOUNDS, NOW).replicas == 1
    assert limit(None, Memory(latest=1), 2, 0, Bounds(2, 5), NOW).why[0] == "TooFewReplicas"


def rules(**more: Any) -> dict[str, Any]:
    up = {"stabilizationWindowSeconds": 0, "policies": [{"type": "Pods", "value": 2, "periodSeconds": 60}]}
    down = {"stabilizationWindowSeconds": 0, "policies": [{"type": "Percent", "value": 50, "periodSeconds": 60}]}
    return {"scaleUp": up | more.get("up", {}), "scaleDown": down | more.get("down", {})}


@pytest.mark.parametrize(
    ("behavior", "memory", "present", "desired", "expected", "why"),
    [
        pytest.param(rules(), Memory(), 3, 9, 5, "ScaleUpLimit", id="two more a minute"),
        pytest.param(
            rules(), Memory(latest=9, up=(Note(2, Instant(NOW - 30 * SECOND)),)), 5, 9, 5, "ScaleUpLimit", id="once"
        ),
        pytest.param(
            rules(), Memory(latest=9, up=(Note(2, Instant(NOW - 61 * SECOND)),)), 5, 9, 7, "ScaleUpLimit", id="again"
        ),
        pytest.param(rules(), Memory(latest=1), 8, 1, 4, "ScaleDownLimit", id="half of them a minute"),
        pytest.param(
            rules(down={"selectPolicy": "Disabled"}), Memory(latest=1), 8, 1, 8, "ScaleDownLimit", id="never less"
        ),
        pytest.param(
            rules(up={"stabilizationWindowSeconds": 60}), Memory(latest=3), 3, 9, 3, "DesiredWithinRange", id="patience"
        ),
    ],
)
def test_with_rules(
    behavior: dict[str, Any], memory: Memory, present: int, desired: int, expected: int, why: str
) -> None:
    found = limit(behavior, memory, present, desired, BOUNDS, NOW)
    assert (found.replicas, found.why[0]) == (expected, why)


@given(
    present=some.integers(1, 30),
    desired=some.integers(0, 100),
    least=some.integers(1, 5),
    more=some.integers(0, 20),
    ruled=some.booleans(),
)
def test_it_never_leaves_its_bounds(present: int, desired: int, least: int, more: int, ruled: bool) -> None:
    bounds = Bounds(least, least + more)
    present = min(max(present, bounds.least), bounds.most)
    found = limit(rules() if ruled else None, Memory(latest=desired), present, desired, bounds, NOW)
    assert bounds.least <= found.replicas <= bounds.most


def test_memory_is_written_only_when_it_changes() -> None:
    memory = Memory().recommended(3, 2, NOW)
    assert memory.recommended(3, 3, Instant(NOW + PERIOD)) is memory
    later = memory.recommended(5, 3, Instant(NOW + 4 * PERIOD))
    assert later.earlier[-1] == Note(3, Instant(NOW + 3 * PERIOD))
    assert Memory.of({MEMORY: later.text()}) == later
    assert Memory.of({MEMORY: "rubbish"}) == Memory()


# --- stories


def stage(replicas: int, cpu: str, **spec: Any) -> Stage:
    world = Stage(HorizontalAutoscaler())
    world.hands.starts = lambda _pod: False
    resources = {"requests": {"cpu": "1"}}
    template = {
        "metadata": {"labels": {"app": "web"}, "annotations": {"behaviour.bayplan.dev/cpu": f"constant {cpu}"}},
        "spec": {"containers": [{"name": "main", "image": "x", "resources": resources}]},
    }
    world.create(DEPLOYMENT, "web", workload(replicas) | {"template": template})
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    world.create(HORIZONTAL_POD_AUTOSCALER, "web", {"scaleTargetRef": target, "maxReplicas": 10, **spec})
    run(world)
    return world


def run(world: Stage) -> None:
    """All pods run, and have for an hour."""
    since = rfc3339(Instant(world.now - 3600 * SECOND))
    for one in world.pods():
        ready = {"type": "Ready", "status": "True", "lastTransitionTime": since}
        containers = [{"name": "main", "state": {"running": {"startedAt": since}}}]
        status = {"phase": "Running", "startTime": since, "conditions": [ready], "containerStatuses": containers}
        world.server.write_status(one, status)
    world.settle()


def size(world: Stage) -> int:
    found: int = world.server.get(DEPLOYMENT, "default", "web").sections["spec"].plain()["replicas"]
    return found


def rescales(world: Stage) -> list[str]:
    return [event for event in world.events("web") if event.startswith("SuccessfulRescale")]


def conditions(world: Stage) -> dict[str, tuple[str, str]]:
    told = world.status(HORIZONTAL_POD_AUTOSCALER, "web")["conditions"]
    return {one["type"]: (one["status"], one["reason"]) for one in told}


def test_it_scales_up_by_what_pods_use() -> None:
    world = stage(2, "0.8", metrics=[_cpu(50)])
    world.wait(14)
    assert size(world) == 2
    world.wait(1)
    assert size(world) == 4
    assert rescales(world)[-1] == (
        "SuccessfulRescale: New size: 4; reason: cpu resource utilization (percentage of request) above target"
    )
    assert conditions(world) == {
        "AbleToScale": ("True", "SucceededRescale"),
        "ScalingActive": ("True", "ValidMetricFound"),
        "ScalingLimited": ("False", "DesiredWithinRange"),
    }
    status = world.status(HORIZONTAL_POD_AUTOSCALER, "web")
    assert (status["currentReplicas"], status["desiredReplicas"]) == (2, 4)
    assert status["lastScaleTime"] == rfc3339(world.now)
    current = {"averageUtilization": 80, "averageValue": "800m"}
    assert status["currentMetrics"] == [{"type": "Resource", "resource": {"name": "cpu", "current": current}}]


def _cpu(share: int) -> dict[str, Any]:
    target = {"type": "Utilization", "averageUtilization": share}
    return {"type": "Resource", "resource": {"name": "cpu", "target": target}}


def test_it_waits_before_it_scales_down() -> None:
    world = stage(4, "0.1", metrics=[_cpu(50)])
    world.wait(15)
    assert size(world) == 4
    assert conditions(world)["AbleToScale"] == ("True", "ScaleDownStabilized")
    for _ in range(21):
        world.wait(15)
        run(world)
    assert size(world) == 1
    assert rescales(world) == ["SuccessfulRescale: New size: 1; reason: All metrics below target"]


@pytest.mark.parametrize(
    ("replicas", "spec", "expected", "reason"),
    [
        pytest.param(1, {"minReplicas": 3}, 3, "Current number of replicas below Spec.MinReplicas", id="too few"),
        pytest.param(9, {"maxReplicas": 5}, 5, "Current number of replicas above Spec.MaxReplicas", id="too many"),
    ],
)
def test_bounds_count_without_metrics(replicas: int, spec: dict[str, Any], expected: int, reason: str) -> None:
    world = stage(replicas, "0.5", **spec)
    world.wait(15)
    assert size(world) == expected
    assert f"SuccessfulRescale: New size: {expected}; reason: {reason}" in world.events("web")


def test_nothing_is_scaled_from_nought() -> None:
    world = stage(0, "0.5")
    world.wait(15)
    assert size(world) == 0
    assert conditions(world)["ScalingActive"] == ("False", "ScalingDisabled")


def test_a_target_that_is_not_there_is_told() -> None:
    world = stage(1, "0.5", scaleTargetRef={"apiVersion": "apps/v1", "kind": "Deployment", "name": "other"})
    world.wait(15)
    assert world.events("web")[-1] == 'FailedGetScale: deployments.apps "other" not found'
    assert conditions(world) == {"AbleToScale": ("False", "FailedGetScale")}


def test_external_metrics_have_no_source() -> None:
    external = {"metric": {"name": "queue"}, "target": {"type": "Value", "value": "5"}}
    world = stage(2, "0.5", metrics=[{"type": "External", "external": external}])
    world.wait(15)
    assert conditions(world)["ScalingActive"] == ("False", "FailedGetExternalMetric")
    reasons = [event.partition(":")[0] for event in world.events("web")][-2:]
    assert reasons == ["FailedGetExternalMetric", "FailedComputeMetricsReplicas"]


def test_two_autoscalers_of_one_target_do_nothing() -> None:
    world = stage(2, "0.9", metrics=[_cpu(50)])
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    world.create(HORIZONTAL_POD_AUTOSCALER, "rival", {"scaleTargetRef": target, "maxReplicas": 10})
    world.wait(15)
    assert size(world) == 2
    assert conditions(world)["ScalingActive"] == ("False", "AmbiguousSelector")


def test_a_steady_workload_is_left_alone() -> None:
    world = stage(2, "0.5", metrics=[_cpu(50)])
    world.wait(30)
    before = world.store.revision
    world.wait(60)
    assert world.store.revision == before
    assert conditions(world)["AbleToScale"] == ("True", "ReadyForNewScale")
