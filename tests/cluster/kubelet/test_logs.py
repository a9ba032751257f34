"""What `kubectl logs` shows of a virtual container, and what it says when there is nothing to show."""

from __future__ import annotations

from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from bayplan.cluster.embedded.kubelet.logs import logs
from bayplan.model.errors import BadRequest
from tests.cluster.kubelet.stage import Stage, container


def staged(behaviour: dict[str, str], until: float, **spec: Any) -> Stage:
    stage = Stage()
    stage.node()
    stage.pod(behaviour=behaviour, **spec)
    stage.to(until)
    return stage


def read(stage: Stage, name: str = "", *, previous: bool = False, tail: int | None = None) -> str:
    return logs(stage.item(), name, previous, tail, stage.world.now)


def test_a_running_container_writes_a_line_every_so_often(snapshot: SnapshotAssertion) -> None:
    stage = staged({"log": "step $n of $pod after $elapsed", "log-every": "30s"}, 130)
    assert read(stage) == snapshot


def test_a_crashed_container_shows_its_last_run_and_the_one_before(snapshot: SnapshotAssertion) -> None:
    stage = staged({"run-for": "90s", "exit-code": "1"}, 186)
    assert read(stage) == read(stage, previous=True)  # it waits for its next run
    stage.to(200)
    assert {"now": read(stage), "previous": read(stage, previous=True)} == snapshot


def test_the_tail_is_the_end_of_the_whole() -> None:
    stage = staged({}, 3600)
    whole = read(stage)
    assert read(stage, tail=5).splitlines() == whole.splitlines()[-5:]
    assert read(stage, tail=0) == ""
    assert read(stage, tail=10_000) == whole


def test_logs_only_grow() -> None:
    stage = staged({}, 600)
    before = read(stage)
    stage.to(1200)
    assert read(stage).startswith(before)


@pytest.mark.parametrize(
    ("behaviour", "spec", "name", "previous", "message"),
    [
        pytest.param(
            {}, {}, "web", False, "container web is not valid for pod p", id="there is no container of that name"
        ),
        pytest.param(
            {},
            {"containers": [container("a"), container("b")]},
            "",
            False,
            "a container name must be specified for pod p, choose one of: [a b]",
            id="one of several must be chosen",
        ),
        pytest.param(
            {"pull": "1h"},
            {},
            "",
            False,
            'container "app" in pod "p" is waiting to start: ContainerCreating',
            id="it is being created",
        ),
        pytest.param(
            {"run-for.first": "1h"},
            {"initContainers": [container("first")]},
            "app",
            False,
            'container "app" in pod "p" is waiting to start: PodInitializing',
            id="the pod is being initialised",
        ),
        pytest.param(
            {"missing-image": ""},
            {},
            "",
            False,
            'container "app" in pod "p" is waiting to start: trying and failing to pull image',
            id="its image is missing",
        ),
        pytest.param(
            {}, {}, "", True, 'previous terminated container "app" in pod "p" not found', id="it has only run once"
        ),
    ],
)
def test_refusals_are_the_api_server_s(
    behaviour: dict[str, str], spec: dict[str, Any], name: str, previous: bool, message: str
) -> None:
    stage = staged(behaviour, 10, **spec)
    with pytest.raises(BadRequest) as refused:
        read(stage, name, previous=previous)
    assert refused.value.message == message
