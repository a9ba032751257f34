"""What nodes with GPUs have for pods beside them, and what pods take of it, with GPUs or without."""

from __future__ import annotations

from typing import Any

import pytest

from bayplan.cluster.kinds import NODE, POD
from bayplan.cluster.live.reflector_core import Change
from bayplan.cluster.objects import Object
from bayplan.ledger.recording import Recording, When
from bayplan.ledger.rows import NodeRoomPeriod, PodRoomPeriod, Rows
from tests.ledger.differ.lives import GPU, Ledger, at, condition, node, over, pod, spans
from tests.ledger.differ.lives import container as status_of

GIB = 1 << 30
BOUND = condition("PodScheduled", "True", 5)
Told = tuple[float, Object] | tuple[float, str, Object]
"""At that second a version, or the disappearance (`gone`), of an object."""


def host(version: int, gpus: int = 8, cpu: str = "8", **how: Any) -> Object:
    """A version of node a."""
    devices = {GPU: str(gpus)} if gpus else {}
    return node(version, devices, allocatable={**devices, "cpu": cpu, "memory": "64Gi", "pods": "20"}, **how)


def guest(version: int, phase: str = "Running", *conditions: dict[str, Any], cpu: str = "2", **how: Any) -> Object:
    """A version of a pod without GPUs, on node a."""
    asked = {"resources": {"requests": {"cpu": cpu, "memory": "1Gi"}}}
    spec = {"containers": [{"name": "main", "image": "web:1", **asked}], "nodeName": how.pop("on", "a")}
    return pod(version, phase, *conditions, uid="g1", spec=spec, **how)


def recorded(story: list[Told], *, restarts: bool = False) -> Ledger:
    """What a ledger holds after a story; with `restarts` its recorder is started again after each part of it."""
    ledger, recording = Ledger(), Recording("c1")
    for second, *gone, obj in story:
        rows = Rows()
        assert isinstance(obj, Object)
        change = Change("DELETED" if gone else "MODIFIED", obj)
        recording.take(obj.kind, [change], When(at(second)), rows)
        recording.settle(at(second), rows)
        ledger.take(rows)
        if restarts:
            recording = Recording("c1", ledger.remembered())
    return ledger


@pytest.mark.parametrize("restarts", [False, True], ids=["in one go", "with restarts"])
@pytest.mark.parametrize(
    ("story", "expected"),
    [
        pytest.param([(9, host(1))], [(0, None, 8000, 64 * GIB, 20, "")], id="a node has its room since it was made"),
        pytest.param(
            [(9, host(1, unschedulable=True))],
            [(9, None, 8000, 64 * GIB, 20, "cordoned")],
            id="since when pods are kept away nothing tells, so since it was seen",
        ),
        pytest.param([(9, host(1, gpus=0))], [], id="one without GPUs is nobody's business"),
        pytest.param(
            [(9, host(1)), (20, host(2)), (30, host(3, cpu="7"))],
            [(0, 30, 8000, 64 * GIB, 20, ""), (30, None, 7000, 64 * GIB, 20, "")],
            id="less room is another period, a heartbeat is not",
        ),
        pytest.param(
            [(9, host(1)), (20, host(2, ready="Unknown")), (30, host(3, ready="False", unschedulable=True))],
            [
                (0, 20, 8000, 64 * GIB, 20, ""),
                (20, 30, 8000, 64 * GIB, 20, "not ready"),
                (30, None, 8000, 64 * GIB, 20, "not ready, cordoned"),
            ],
            id="what keeps pods away is history too",
        ),
        pytest.param(
            [(9, host(1)), (20, host(2, gpus=0)), (30, "gone", host(3, gpus=0))],
            [(0, 30, 8000, 64 * GIB, 20, "")],
            id="a node that loses its GPUs keeps its story, until it goes",
        ),
    ],
)
def test_room_of_a_node(story: list[Told], expected: list[Any], restarts: bool) -> None:
    ledger = recorded(story, restarts=restarts)
    assert spans(ledger.all(NodeRoomPeriod), "cpu", "memory", "pods", "hurdle") == expected


@pytest.mark.parametrize("restarts", [False, True], ids=["in one go", "with restarts"])
@pytest.mark.parametrize(
    ("story", "expected"),
    [
        pytest.param(
            [(1, host(1)), (6, guest(2, "Pending", BOUND)), (9, guest(3))],
            [(5, None, 2000, GIB)],
            id="a pod takes room from its binding on",
        ),
        pytest.param([(1, host(1)), (6, guest(2, "Pending", on=""))], [], id="one that is not bound takes none"),
        pytest.param(
            [(1, host(1)), (6, guest(2, "Running", BOUND)), (20, "gone", guest(3))],
            [(5, 20, 2000, GIB)],
            id="until it is gone",
        ),
        pytest.param(
            [
                (1, host(1)),
                (6, guest(2, "Running", BOUND)),
                (20, guest(3, "Succeeded", BOUND, containers=(status_of(over(7, 18)),))),
                (30, "gone", guest(4, "Succeeded")),
            ],
            [(5, 18, 2000, GIB)],
            id="or has ended",
        ),
        pytest.param(
            [(1, host(1)), (6, guest(2, "Running", BOUND)), (20, guest(3, "Running", BOUND, cpu="3"))],
            [(5, 20, 2000, GIB), (20, None, 3000, GIB)],
            id="a resize is another period",
        ),
        pytest.param(
            [(1, host(1)), (6, guest(2, "Running", BOUND)), (7, "gone", host(3)), (20, "gone", guest(4))],
            [(5, 20, 2000, GIB)],
            id="a pod that outlives its node is closed all the same",
        ),
        pytest.param(
            [(1, host(1)), (6, guest(5, "Running", BOUND)), (20, guest(4, "Running", BOUND, cpu="3"))],
            [(5, None, 2000, GIB)],
            id="an older version changes nothing",
        ),
        pytest.param(
            [
                (1, host(1)),
                (6, pod(2, "Running", BOUND, node="a")),
                (20, pod(3, "Running", BOUND, node="a", status={"qosClass": "Burstable"})),
                (30, "gone", pod(4, "Running", BOUND, node="a")),
            ],
            [(5, 30, 4000, 0)],
            id="a pod with GPUs takes room like any other",
        ),
    ],
)
def test_room_that_a_pod_takes(story: list[Told], expected: list[Any], restarts: bool) -> None:
    ledger = recorded(story, restarts=restarts)
    assert spans(ledger.all(PodRoomPeriod), "cpu", "memory") == expected


@pytest.mark.parametrize(
    ("story", "expected"),
    [
        pytest.param(
            [(6, guest(2, "Running", BOUND)), (9, host(1))],
            [(5, None, 2000, GIB)],
            id="the node is told after the pod",
        ),
        pytest.param(
            [(1, host(1, gpus=0)), (6, guest(2, "Running", BOUND)), (20, host(3))],
            [(5, None, 2000, GIB)],
            id="the node gets its GPUs after the pod",
        ),
        pytest.param(
            [(1, host(1, gpus=0)), (6, guest(2, "Running", BOUND)), (9, "gone", guest(3)), (20, host(4))],
            [],
            id="the pod went before that",
        ),
        pytest.param(
            [(1, host(1, gpus=0)), (6, guest(2, "Running", BOUND)), (20, host(3)), (30, "gone", guest(4))],
            [(5, 30, 2000, GIB)],
            id="the pod goes after that",
        ),
    ],
)
def test_pods_that_wait_for_the_word_of_their_node(story: list[Told], expected: list[Any]) -> None:
    assert spans(recorded(story).all(PodRoomPeriod), "cpu", "memory") == expected


def test_room_whose_takers_an_earlier_run_did_not_keep_is_not_known() -> None:
    story: list[Told] = [(1, host(1, gpus=0)), (6, guest(2, "Running", BOUND)), (20, host(3)), (30, host(4, cpu="7"))]
    assert len(recorded(story).all(NodeRoomPeriod)) == 2
    assert recorded(story, restarts=True).all(NodeRoomPeriod) == []


def test_a_reflector_is_told_of_guests_so_that_it_tells_when_they_are_gone() -> None:
    recording, rows = Recording("c1"), Rows()
    recording.take(NODE, [Change("ADDED", host(1))], When(at(1)), rows)
    recording.take(POD, [Change("ADDED", guest(2, "Running", BOUND))], When(at(6)), rows)
    (known,) = recording.known(POD).items()
    assert known == (("n", "p"), ("g1", "2"))
    gone = Change("DELETED", Object.from_raw(POD, b'{"metadata":{"namespace":"n","name":"p","uid":"g1"}}'), True)
    recording.take(POD, [gone], When(at(90), at(60)), rows)
    row = rows.by_type[PodRoomPeriod][-1]
    assert isinstance(row, PodRoomPeriod)
    assert (row.end_at, row.end_inferred, row.end_after) == (at(90), True, at(60))
    assert not recording.known(POD)
