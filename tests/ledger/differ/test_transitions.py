"""Each observed transition is one event, at its own time."""

from __future__ import annotations

from typing import Any

import pytest

from bayplan.cluster.objects import Object
from tests.ledger.differ.lives import Watcher, condition, container, over, pod, running, told

READY = condition("Ready", "True", 12)
UNREADY = condition("Ready", "False", 30)
SCHEDULED = condition("PodScheduled", "True", 5)
RUN1, RUN2 = over(10, 20, 1, "Error", "r://1"), over(21, 29, 137, "OOMKilled", "r://2")


def runs(version: int, *conditions: dict[str, Any], **how: Any) -> Object:
    how = {"node": "a", "containers": (container(running(10)),), **how}
    return pod(version, "Running", SCHEDULED, *conditions, **how)


def with_main(version: int, *args: Any) -> Object:
    return runs(version, containers=(container(*args),))


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        pytest.param(
            pod(1),
            runs(2),
            [
                ("Phase", "", "Running", "Pending", 10),
                ("Condition", "PodScheduled", "True", "", 5),
                ("Bound", "", "a", "", 5),
            ],
            id="a pod that is bound and runs: the phase since its container started, the binding since PodScheduled",
        ),
        pytest.param(
            runs(1, READY),
            runs(2, UNREADY),
            [("Condition", "Ready", "False", "True", 30)],
            id="a condition that becomes false is an event too",
        ),
        pytest.param(
            runs(1, UNREADY),
            runs(2, condition("Ready", "True", 31)),
            [("Condition", "Ready", "True", "False", 31)],
            id="and becomes true again",
        ),
        pytest.param(
            runs(1, READY),
            runs(2),
            [("Condition", "Ready", "", "True", 50)],
            id="a condition that is taken away goes when that was seen",
        ),
        pytest.param(
            runs(1, READY),
            runs(2, condition("Ready", "True", 44, "Changed", "words")),
            [],
            id="another reason or time of the same status is no transition",
        ),
        pytest.param(
            runs(1),
            with_main(2, RUN1),
            [("Exit", "main", "Error", "", 20)],
            id="a container that ends gives an exit as it finished",
        ),
        pytest.param(
            with_main(1, RUN1),
            with_main(2, running(21), 1, RUN1),
            [("Restart", "main", "1", "0", 21)],
            id="its restart moves the ended run aside, and does not end it again",
        ),
        pytest.param(
            runs(1),
            with_main(2, running(21), 1, RUN1),
            [("Restart", "main", "1", "0", 21), ("Exit", "main", "Error", "", 20)],
            id="a restart seen at once tells of the exit as well",
        ),
        pytest.param(
            runs(1),
            with_main(2, RUN2, 1, RUN1),
            [
                ("Restart", "main", "1", "0", 21),
                ("Exit", "main (run 1)", "Error", "", 20),
                ("Exit", "main", "OOMKilled", "", 29),
            ],
            id="two runs that ended between two versions are two exits",
        ),
        pytest.param(
            runs(1),
            with_main(2, running(40), 7, RUN2),
            [("Restart", "main", "7", "0", 40), ("Exit", "main", "OOMKilled", "", 29)],
            id="restarts that nobody saw are one transition, and the exits of which nothing is left are none",
        ),
        pytest.param(
            with_main(1, running(40), 7),
            with_main(2, running(40), 3),
            [],
            id="a count that falls is no restart",
        ),
        pytest.param(
            pod(1),
            pod(2, containers=(container({"waiting": {"reason": "ErrImagePull"}}),)),
            [],
            id="a container that waits has done nothing yet",
        ),
        pytest.param(
            runs(1),
            runs(2, gpus=4),
            [("Resized", "nvidia.com/gpu", "4000", "1000", 50)],
            id="a resize in place",
        ),
        pytest.param(
            runs(1),
            runs(2, meta={"deletionTimestamp": "2026-01-01T00:01:10Z", "deletionGracePeriodSeconds": 30}),
            [("Deleting", "", "", "", 40)],
            id="a deletion was asked for its grace period before the deadline that the object holds",
        ),
        pytest.param(
            runs(1),
            pod(2, "Succeeded", SCHEDULED, node="a", containers=(container(RUN1),)),
            [("Phase", "", "Succeeded", "Running", 20), ("Exit", "main", "Error", "", 20)],
            id="a pod has ended as its last container finished",
        ),
        pytest.param(
            runs(1),
            pod(2, "Failed", SCHEDULED, condition("DisruptionTarget", "True", 33), node="a"),
            [("Phase", "", "Failed", "Running", 33), ("Condition", "DisruptionTarget", "True", "", 33)],
            id="a pod that was given up has ended as its condition says",
        ),
        pytest.param(
            runs(1, UNREADY),
            pod(2, "Failed", SCHEDULED, UNREADY, node="a", status={"reason": "NodeLost"}),
            [("Phase", "", "Failed", "Running", 50)],
            id="a pod of which nothing says when it failed failed when that was seen",
        ),
    ],
)
def test_between_two_versions(first: Object, second: Object, expected: list[Any]) -> None:
    watcher = Watcher()
    watcher.see(9, first)
    assert told(watcher.see(50, second)) == expected


@pytest.mark.parametrize(
    ("first", "expected"),
    [
        pytest.param(pod(1), [("Phase", "", "Pending", "", 0)], id="a pending pod is so since its creation"),
        pytest.param(
            with_main(1, running(21), 1, RUN1),
            [("Phase", "", "Running", "", 10), ("Condition", "PodScheduled", "True", "", 5)],
            id="a running pod: phase and conditions at their own times, and nothing that came before",
        ),
        pytest.param(
            pod(1, "Succeeded", READY, node="a", containers=(container(RUN1),)),
            [("Phase", "", "Succeeded", "", 20), ("Condition", "Ready", "True", "", 12)],
            id="a pod that has ended already",
        ),
    ],
)
def test_at_first_sight(first: Object, expected: list[Any]) -> None:
    assert told(Watcher().see(50, first)) == expected


@pytest.mark.parametrize("version", [pytest.param(5, id="the same version"), pytest.param(4, id="an older version")])
def test_what_is_not_newer_adds_nothing(version: int) -> None:
    watcher = Watcher()
    watcher.see(9, runs(5))
    known = watcher.pod
    assert not len(watcher.see(50, pod(version, "Failed", node="a")))
    assert watcher.pod is known


def test_versions_are_compared_as_numbers_beyond_32_bits() -> None:
    watcher = Watcher()
    watcher.see(1, pod(9_999_999_999))
    assert told(watcher.see(2, pod(10_000_000_000, "Failed")))


def test_the_disappearance_is_an_event_of_its_own_version() -> None:
    watcher = Watcher()
    watcher.see(9, runs(5))
    assert told(watcher.lose(60, runs(8))) == [("Gone", "", "", "", 60)]
