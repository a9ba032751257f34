"""A trace replayed in its own time."""

from __future__ import annotations

from pathlib import Path

import pytest

from bayplan.cli.main import main
from bayplan.model.clock import SECOND, Instant
from bayplan.simulate.openb.story import trace_story
from bayplan.simulate.openb.trace import TraceError, read_trace
from bayplan.simulate.recording.comparison import compared
from bayplan.simulate.recording.replay import EmbeddedReplay, policy_of
from bayplan.simulate.recording.story import Story

_NODES = "sn,cpu_milli,memory_mib,gpu,model\nn0,64000,262144,2,P100\nn1,96000,393216,2,G2\n"
_PODS = """\
name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time
p0,4000,8192,2,1000,P100,LS,Succeeded,0,600,0
p1,4000,8192,1,400,,LS,Running,60,900.0,61.0
p2,4000,8192,1,700,,LS,Failed,120,400,130
p3,4000,8192,2,1000,P100,LS,Running,300,1200,700
p4,4000,8192,8,1000,,LS,Pending,400,500,
"""


def _files(folder: Path, pods: str = _PODS) -> tuple[Path, Path]:
    (folder / "nodes.csv").write_text(_NODES)
    (folder / "pods.csv").write_text(pods)
    return folder / "nodes.csv", folder / "pods.csv"


def _story(folder: Path, pods: str = _PODS) -> Story:
    return trace_story(read_trace(*_files(folder, pods), timed=True), Instant(0))


def test_pods_come_run_and_go_when_they_did(tmp_path: Path) -> None:
    lives = _story(tmp_path).pods
    told = {uid: [life.arrived, life.bound, life.ended, life.gone] for uid, life in lives.items()}
    assert told == {
        uid: [None if each is None else each * SECOND for each in times]
        for uid, times in {
            "p0": (0, 0, 600, None),
            "p1": (60, 61, None, 900),
            "p2": (120, 130, 400, None),
            "p3": (300, 700, None, 1200),
            "p4": (400, None, None, 500),
        }.items()
    }


async def test_a_policy_places_them_in_virtual_time(tmp_path: Path) -> None:
    story = _story(tmp_path)
    outcome = await EmbeddedReplay(story, policy_of("fgd", story)).run()
    found = compared(outcome.pods, story.began, outcome.until)
    assert not outcome.refusals
    assert (found.recorded.placed, found.replayed.placed, found.replayed.never_placed) == (4, 4, 1)
    stays = {each.name: each.replayed for each in outcome.pods}
    assert stays["openb/p3"].bound == 600 * SECOND  # once p0 has left the only two P100
    assert {stays["openb/p1"].node, stays["openb/p2"].node} == {"n1"}


def test_the_command(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    nodes, pods = map(str, _files(tmp_path))
    assert main(["simulate", "replay", pods, "--nodes", nodes, "--policy", "fgd"]) == 0
    assert "Never Placed   1" in capfd.readouterr().out
    assert main(["simulate", "replay", pods]) == 2
    assert "add --nodes CSV" in capfd.readouterr().err
    assert main(["simulate", "replay", pods, "--nodes", nodes, "--engine", "lab"]) == 2
    assert "kube-scheduler knows no shares of GPUs" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        pytest.param(",60,900.0,", ",,900.0,", "no creation_time; bayplan simulate openb takes", id="no time"),
        pytest.param("900.0", "noon", "deletion_time: expected seconds, not 'noon'", id="a time that is none"),
        pytest.param("60,900", "-60,900", "creation_time: expected seconds, not '-60'", id="a time before the trace"),
        pytest.param("900.0", "9" * 400, "deletion_time: expected seconds", id="a time that no calendar has"),
        pytest.param("900.0", "60", "deletion_time: 60 is before scheduled_time, 61", id="placed after it was gone"),
        pytest.param("60,900.0,61.0", "60,59.5,", "deletion_time: 59.5 is before creation_time, 60", id="gone early"),
        pytest.param("61.0", "12", "scheduled_time: 12 is before creation_time, 60", id="placed before it came"),
    ],
)
def test_a_trace_without_times_cannot_be_replayed(tmp_path: Path, old: str, new: str, told: str) -> None:
    with pytest.raises(TraceError) as refused:
        _story(tmp_path, _PODS.replace(old, new))
    assert refused.value.message.startswith(f"{tmp_path / 'pods.csv'}:3: {told}")


def test_a_trace_that_was_read_without_times_has_no_story(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="p0: no creation_time"):
        trace_story(read_trace(*_files(tmp_path)), Instant(0))
