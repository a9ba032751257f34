"""What virtual containers use."""

from __future__ import annotations

from typing import Any

import pytest

from bayplan.cluster.embedded.kubelet.curves import read_curve
from bayplan.cluster.embedded.kubelet.usage import Usage, container_usage, usage
from bayplan.model.clock import SECOND, Instant
from tests.cluster.kubelet.stage import START, Stage, container

GIB = 1024**3
ASKED = {"requests": {"cpu": "2", "memory": "4Gi"}, "limits": {"nvidia.com/gpu": "2"}}


def staged(behaviour: dict[str, str], until: float = 10, **spec: Any) -> Stage:
    stage = Stage()
    stage.node()
    stage.pod(behaviour=behaviour, **{"containers": [container(resources=ASKED)], **spec})
    stage.to(until)
    return stage


def at(stage: Stage, second: float) -> Usage:
    return usage(stage.item(), Instant(START + round(second * SECOND)))


@pytest.mark.parametrize(
    ("curve", "second", "level"),
    [
        pytest.param("50%", 100, 1.0, id="a share of what was asked for"),
        pytest.param("constant 250m", 100, 0.25, id="an amount"),
        pytest.param("ramp from=0 to=100% over=10m", 300, 1.0, id="half way up a ramp"),
        pytest.param("ramp from=0 to=100% over=10m", 900, 2.0, id="past the end of a ramp"),
        pytest.param("daily low=10% high=90% peak=14h", 14 * 3600, 1.8, id="the peak of the day"),
        pytest.param("daily low=10% high=90% peak=14h", 2 * 3600, 0.2, id="the depth of the night"),
        pytest.param("bursts base=10% high=90% every=10m for=1m", 500, 0.2, id="between bursts"),
        pytest.param("bursts base=10% high=90% every=10m for=1m", 560, 1.8, id="in a burst"),
    ],
)
def test_curves(curve: str, second: int, level: float) -> None:
    assert read_curve(curve).at(START, Instant(START + second * SECOND), 2.0) == pytest.approx(level)


def test_annotations_say_what_is_used() -> None:
    stage = staged({"cpu": "25%", "memory": "1Gi", "gpu": "40%"})
    assert at(stage, 60) == Usage(500, GIB, 0.4)


def test_without_annotations_it_is_a_believable_part_of_the_requests() -> None:
    used = at(staged({}), 3600)
    assert 1000 < used.cpu < 1500
    assert 2 * GIB < used.memory < 4 * GIB
    assert 0.7 < used.gpu <= 1


def test_a_limit_is_never_passed() -> None:
    limited = container(resources={"limits": {"cpu": "1", "memory": "1Gi"}})
    stage = staged({"cpu": "300%", "memory": "5Gi"}, containers=[limited])
    assert at(stage, 60) == Usage(1000, GIB, 0.0)


def test_only_what_runs_uses_anything() -> None:
    assert at(staged({"pull": "1h"}), 60) == Usage()
    stage = staged({"run-for": "5s"}, 30, restartPolicy="Never")
    assert at(stage, 30) == Usage()


def test_containers_are_told_apart() -> None:
    one = container("one", resources=ASKED)
    stage = staged({"cpu.one": "1", "cpu.two": "2", "gpu": "50%"}, containers=[one, container("two")])
    found = container_usage(stage.item(), stage.world.now)
    assert {name: each.cpu for name, each in found.items()} == {"one": 1000, "two": 2000}
    assert usage(stage.item(), stage.world.now).gpu == 0.5
