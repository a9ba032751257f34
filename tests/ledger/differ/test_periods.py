"""GPUs from bind to release, running, waiting; ends that nobody saw."""

from __future__ import annotations

from typing import Any

import pytest

from bayplan.cluster.objects import Object
from bayplan.ledger.rows import GpuPeriod, GpuPod, PendingPeriod, PodResource, PodSnapshot, RunningPeriod
from tests.ledger.differ.lives import Watcher, at, condition, container, over, pod, running, spans

SCHEDULED = condition("PodScheduled", "True", 5)


def refused(reason: str, second: float, message: str = "") -> dict[str, Any]:
    return condition("PodScheduled", "False", second, reason, message)


def runs(version: int, **how: Any) -> Object:
    how = {"node": "a", "containers": (container(running(10)),), **how}
    return pod(version, "Running", SCHEDULED, **how)


def ended(version: int, phase: str = "Succeeded", *conditions: dict[str, Any], **how: Any) -> Object:
    how = {"node": "a", "containers": (container(over(10, 40)),), **how}
    return pod(version, phase, SCHEDULED, *conditions, **how)


Story = list[tuple[float, Object]]
BOUND = pod(2, "Pending", SCHEDULED, node="a")


@pytest.mark.parametrize(
    ("story", "gone", "expected"),
    [
        pytest.param([(0, pod(1))], None, [], id="nothing is held before a pod is bound"),
        pytest.param([(0, pod(1)), (6, BOUND)], None, [(5, None, 1000)], id="GPUs are held from the binding on"),
        pytest.param(
            [(6, BOUND), (11, runs(3)), (41, ended(4))],
            None,
            [(5, 40, 1000)],
            id="and until the last container finished, not until that was seen",
        ),
        pytest.param(
            [(99, ended(4))], None, [(5, 40, 1000)], id="a pod first seen after its end held them all the same"
        ),
        pytest.param([(11, runs(3))], 60, [(5, 60, 1000)], id="a pod that disappears while it runs releases then"),
        pytest.param([(11, runs(3)), (41, ended(4))], 60, [(5, 40, 1000)], id="an ended pod has released before"),
        pytest.param(
            [(11, runs(3)), (30, runs(4, meta={"deletionTimestamp": "2026-01-01T00:00:59Z"}))],
            None,
            [(5, None, 1000)],
            id="a terminating pod holds on",
        ),
        pytest.param(
            [(11, runs(3)), (20, runs(4, gpus=4)), (41, ended(5, gpus=4))],
            None,
            [(5, 20, 1000), (20, 40, 4000)],
            id="a resize in place closes a period and opens the next",
        ),
        pytest.param(
            [(11, runs(3)), (41, ended(5, gpus=4))],
            None,
            [(5, 40, 1000)],
            id="a resize seen with the end only has held nothing",
        ),
        pytest.param(
            [(0, pod(1, created=0)), (9, pod(2, node="a"))],
            None,
            [(9, None, 1000)],
            id="without the condition a binding is as old as its sight",
        ),
        pytest.param(
            [(9, pod(1, node="a"))], None, [(0, None, 1000)], id="a pod made on its node is bound from creation"
        ),
        pytest.param(
            [(9, pod(1, "Pending", condition("PodScheduled", "True", -50), node="a"))],
            None,
            [(0, None, 1000)],
            id="nothing is bound before it is created",
        ),
        pytest.param([(41, ended(4, "Failed", node=""))], None, [], id="a pod that failed without a node held nothing"),
        pytest.param(
            [(11, runs(3)), (50, ended(4, "Failed", containers=(container(running(10)),)))],
            None,
            [(5, 50, 1000)],
            id="a container of which no end is known does not tell when the pod failed",
        ),
        pytest.param(
            [(11, runs(3)), (41, ended(4)), (70, runs(5))],
            80,
            [(5, 40, 1000), (70, 80, 1000)],
            id="a pod that runs again after its end holds again from then on",
        ),
        pytest.param(
            [(11, runs(3)), (12, runs(4, gpus=0))], None, [(5, 12, 1000)], id="a resize to none releases everything"
        ),
    ],
)
def test_gpu_periods(story: Story, gone: float | None, expected: list[Any]) -> None:
    watcher = told(story, gone)
    assert spans(watcher.all(GpuPeriod), "gpus") == expected


def told(story: Story, gone: float | None = None) -> Watcher:
    watcher = Watcher()
    for second, version in story:
        watcher.see(second, version)
    if gone is not None:
        watcher.lose(gone)
    return watcher


@pytest.mark.parametrize(
    ("story", "gone", "expected"),
    [
        pytest.param([(6, BOUND)], None, [], id="a bound pod that waits for its image does not run"),
        pytest.param([(11, runs(3))], None, [(10, None)], id="it runs since its first container started"),
        pytest.param([(11, runs(3)), (41, ended(4))], None, [(10, 40)], id="until its last one finished"),
        pytest.param([(99, ended(4))], None, [(10, 40)], id="also when nobody looked"),
        pytest.param([(11, runs(3))], 60, [(10, 60)], id="or until it is gone"),
        pytest.param([(41, ended(4, "Failed", containers=()))], None, [], id="what never started never ran"),
    ],
)
def test_running_periods(story: Story, gone: float | None, expected: list[Any]) -> None:
    assert spans(told(story, gone).all(RunningPeriod)) == expected


FULL = "0/5 nodes are available: 5 Insufficient nvidia.com/gpu."


@pytest.mark.parametrize(
    ("story", "gone", "expected"),
    [
        pytest.param([(0, pod(1))], None, [(0, None, "", "")], id="a new pod waits for being tried"),
        pytest.param(
            [(0, pod(1)), (3, pod(2, "Pending", refused("Unschedulable", 2, FULL))), (6, runs(3))],
            None,
            [(0, 2, "", ""), (2, 5, "Unschedulable", FULL)],
            id="then for a place, until it is bound",
        ),
        pytest.param(
            [(3, pod(2, "Pending", refused("Unschedulable", 2, FULL)))],
            None,
            [(0, 2, "", ""), (2, None, "Unschedulable", FULL)],
            id="both are told of a pod first seen while it waits",
        ),
        pytest.param(
            [
                (1, pod(1, "Pending", refused("SchedulingGated", 0))),
                (4, pod(2, "Pending", refused("Unschedulable", 0, FULL))),
            ],
            None,
            [(0, 4, "SchedulingGated", ""), (4, None, "Unschedulable", FULL)],
            id="another reason under the same status began when it was seen",
        ),
        pytest.param(
            [
                (1, pod(1, "Pending", refused("Unschedulable", 0, "a"))),
                (4, pod(2, "Pending", refused("Unschedulable", 0, "b"))),
            ],
            None,
            [(0, 4, "Unschedulable", "a"), (4, None, "Unschedulable", "b")],
            id="so did another text",
        ),
        pytest.param([(9, runs(3))], None, [(0, 5, "", "")], id="the queue time of a pod seen later is known"),
        pytest.param([(1, pod(1))], 8, [(0, 8, "", "")], id="a pod that disappears waits no longer"),
        pytest.param([(1, pod(1)), (9, pod(2, "Failed"))], None, [(0, 9, "", "")], id="nor one that failed unplaced"),
        pytest.param([(1, pod(1, node="a"))], None, [], id="a pod made on its node never waited"),
    ],
)
def test_pending_periods(story: Story, gone: float | None, expected: list[Any]) -> None:
    assert spans(told(story, gone).all(PendingPeriod), "reason", "message") == expected


def test_an_end_while_nobody_looked_lies_between_bounds() -> None:
    watcher = told([(11, runs(3))])
    watcher.restart()
    watcher.lose(500, inferred_after=at(100))
    (row,) = watcher.all(GpuPod)
    assert (row.end_at, row.end_inferred, row.end_after, row.gone_at) == (at(500), True, at(100), at(500))
    for period in (*watcher.all(GpuPeriod), *watcher.all(RunningPeriod)):
        assert (period.end_at, period.end_inferred, period.end_after) == (at(500), True, at(100))
    assert [row.end_at for row in watcher.all(PodResource)] == [at(500)]


def test_a_pod_says_itself_that_it_was_still_there() -> None:
    deleting = {"deletionTimestamp": "2026-01-01T00:05:30Z", "deletionGracePeriodSeconds": 30}
    watcher = told([(11, runs(3))])
    watcher.lose(500, runs(4, meta=deleting), inferred_after=at(100))
    (row,) = watcher.all(GpuPod)
    assert (row.end_inferred, row.end_after) == (True, at(300))


def test_an_end_that_the_last_version_tells_is_not_inferred() -> None:
    watcher = told([(11, runs(3))])
    watcher.lose(500, ended(4), inferred_after=at(20))
    (row,) = watcher.all(GpuPod)
    assert (row.end_at, row.end_inferred, row.gone_at) == (at(40), False, at(500))


def test_the_last_version_is_kept_as_the_last() -> None:
    watcher = told([(11, runs(3))])
    watcher.lose(60, ended(4))
    assert [(row.resource_version, row.gone) for row in watcher.all(PodSnapshot)] == [(3, False), (4, True)]


def test_a_reused_name_is_two_pods() -> None:
    first, second = told([(11, runs(3))]), told([(70, runs(9, uid="u2", created=65))])
    first.lose(60)
    assert [row.end_at for row in first.all(GpuPod)] == [at(60)]
    assert [(row.uid, row.end_at) for row in second.all(GpuPod)] == [("u2", None)]
