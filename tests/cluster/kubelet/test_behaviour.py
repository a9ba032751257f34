"""What annotations mean, and what is said of those that mean nothing."""

from __future__ import annotations

import pathlib
from typing import Any

import pytest

from bayplan.cluster.embedded.kubelet.behaviour import PREFIX, READERS, Defaults, Failing, manners
from bayplan.model.clock import SECOND
from bayplan.model.meta import ObjectMeta
from bayplan.model.pods import Container, Pod, PodSpec
from tests.cluster.kubelet.stage import EXACT, Stage

MINUTE = 60 * SECOND


def pod(**annotations: str) -> Pod:
    meta = ObjectMeta(uid="u", annotations={f"{PREFIX}{key}": value for key, value in annotations.items()})
    init = (Container(name="prepare"), Container(name="proxy", restart_policy="Always"))
    return Pod(metadata=meta, spec=PodSpec(containers=(Container(name="app"),), init_containers=init))


@pytest.mark.parametrize(
    ("annotation", "value", "field", "expected"),
    [
        pytest.param("pull", "3s", "pull", 3 * SECOND, id="a duration"),
        pytest.param("run-for", "45m", "run_for", 45 * MINUTE, id="a run's length"),
        pytest.param("run-for", "forever", "run_for", None, id="no end"),
        pytest.param("exit-code", "3", "exits", (3,), id="an exit code"),
        pytest.param("exits", "1,1,0", "exits", (1, 1, 0), id="an exit code for each run"),
        pytest.param("missing-image", "", "missing_image", True, id="a flag"),
        pytest.param("oom-after", "1h", "oom_after", 60 * MINUTE, id="out of memory"),
        pytest.param(
            "fail-probe",
            "liveness after=10m; readiness after=1m for=30s",
            "failing",
            (Failing("liveness", 10 * MINUTE, None), Failing("readiness", MINUTE, MINUTE + 30 * SECOND)),
            id="probes that fail",
        ),
    ],
)
def test_an_annotation_sets_its_field(annotation: str, value: str, field: str, expected: Any) -> None:
    found = manners(pod(**{annotation: value}), EXACT)
    assert not found.problems
    assert getattr(found.of["app"], field) == expected


def test_the_container_s_own_annotation_wins() -> None:
    found = manners(pod(**{"run-for": "1h", "run-for.prepare": "5m", "pull": "7s", "pull.app": "9s"}), EXACT).of
    assert {name: each.run_for for name, each in found.items()} == {
        "app": 60 * MINUTE,
        "prepare": 5 * MINUTE,
        "proxy": None,
    }
    assert {name: each.pull // SECOND for name, each in found.items()} == {"app": 9, "prepare": 7, "proxy": 7}


def test_an_exit_code_alone_makes_the_container_end() -> None:
    assert manners(pod(), EXACT).of["app"].run_for is None
    assert manners(pod(**{"exit-code": "1"}), EXACT).of["app"].run_for == EXACT.run


@pytest.mark.parametrize(
    ("annotation", "value", "said"),
    [
        pytest.param("run-for", "soon", "'soon' is not a duration, such as 90s or 1h30m, or forever", id="no duration"),
        pytest.param("pull", "-3s", "'-3s' is not a duration, such as 90s or 1h30m", id="a negative duration"),
        pytest.param("exit-code", "256", "'256' is not an exit code from 0 to 255", id="too large an exit code"),
        pytest.param("exit-code", "1,2", "'1,2' is not an exit code from 0 to 255", id="several where one is meant"),
        pytest.param("missing-image", "maybe", "'maybe' is not true or false", id="no flag"),
        pytest.param("fail-probe", "heartbeat", "'heartbeat' is not a probe and when it fails", id="no such probe"),
        pytest.param("fail-probe", "liveness at=3s", "is not a probe and when it fails", id="no such option"),
        pytest.param("log", "step $m", "'step $m' is not a line with no other fields than", id="no such field"),
        pytest.param("cpu", "zigzag", "'zigzag' is not a usage curve", id="no such curve"),
        pytest.param("memory", "ramp to=lots", "'ramp to=lots' is not a usage curve", id="no level"),
        pytest.param(
            "gpu", "bursts high=1 every=1m for=2m", "is not a usage curve", id="a burst longer than its period"
        ),
        pytest.param("runfor", "1h", "'1h' is not a known setting, which are cpu, exit-code,", id="no such setting"),
        pytest.param(
            "pull.web", "1s", "is not for a container of this pod, which are prepare, proxy, app", id="whose?"
        ),
    ],
)
def test_what_cannot_be_read_is_named_and_left_out(annotation: str, value: str, said: str) -> None:
    found = manners(pod(**{annotation: value}), EXACT)
    assert [problem.annotation for problem in found.problems] == [PREFIX + annotation]
    assert said in str(found.problems[0])
    assert found.of == manners(pod(), EXACT).of


def test_an_unreadable_annotation_is_told_once_on_the_pod() -> None:
    stage = Stage()
    stage.node()
    stage.pod(behaviour={"run-for": "soon"})
    stage.to(100)
    told = [message for _, reason, message in stage.events if reason == "InvalidBehaviour"]
    assert told == [
        "annotation behaviour.bayplan.dev/run-for: 'soon' is not a duration, such as 90s or 1h30m, or forever; "
        "the default is used"
    ]
    assert stage.status().phase == "Running"


def test_defaults_vary_with_the_uid_and_with_nothing_else() -> None:
    def pulls(uid: str) -> int:
        return (
            manners(Pod(metadata=ObjectMeta(uid=uid), spec=PodSpec(containers=(Container("c"),))), Defaults())
            .of["c"]
            .pull
        )

    found = [pulls(f"uid-{number}") for number in range(100)]
    assert found == [pulls(f"uid-{number}") for number in range(100)]
    assert len(set(found)) > 90
    assert all(1.6 * SECOND <= pull <= 2.4 * SECOND for pull in found)


def test_every_annotation_is_documented() -> None:
    text = (pathlib.Path(__file__).parents[3] / "docs" / "behaviour.md").read_text()
    assert [name for name in READERS if f"`{name}`" not in text] == []
