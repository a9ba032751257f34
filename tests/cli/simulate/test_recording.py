"""`bayplan simulate record` and `replay`: from a served cluster into a file, and from the file onto a page."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from bayplan.cli.main import main
from bayplan.cluster.kinds import POD
from bayplan.simulate.recording.file import Recording
from bayplan.testing import fake_cluster, job
from bayplan.testing import pod as a_pod
from tests.cli.serving import Command, Serving
from tests.simulate.twin.clusters import Tape, gpu_node


def test_a_cluster_is_recorded_for_a_while(command: Command, tmp_path: Path) -> None:
    path = tmp_path / "day.rec"
    told = command("simulate", "record", "--for", "500ms", "--out", str(path))
    assert told.code == 0, told.err
    recording = Recording(path)
    assert [*recording.entries()][-1].type == "END"
    assert not recording.cut


def test_ctrl_c_leaves_a_valid_file(serving: Serving, tmp_path: Path) -> None:
    path = tmp_path / "day.rec"
    before = serving.cluster.world.store.revision
    command = ["simulate", "record", "--kubeconfig", str(serving.kubeconfig), "--out", str(path)]
    with subprocess.Popen([sys.executable, "-m", "bayplan", *command], stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if "changes follow" in line:
                process.send_signal(signal.SIGINT)
                break
        rest = process.stderr.read()
    assert process.returncode == 130
    assert f"{path}:" in rest
    assert serving.cluster.world.store.revision == before
    recording = Recording(path)
    entries = [*recording.entries()]
    assert entries[-1].type == "END"
    assert not recording.cut
    assert sum(each.object is not None and each.object.kind is POD for each in entries) == 4


@pytest.fixture
async def day(tmp_path: Path) -> Path:
    """Some arrivals, one of which waits until another has ended."""
    path = tmp_path / "day.rec"
    cluster = fake_cluster(gpu_node("a"), gpu_node("b"))
    await cluster.advance(5)
    with Tape(cluster, path):
        await job("train").requests(gpu=6).behaves(run_for="5m").create(cluster)
        await cluster.advance(10)
        for number in range(2):
            await a_pod(f"wide-{number}").requests(gpu=5).create(cluster)
        await cluster.advance(900)
    return path


def _shown(text: str) -> str:
    return re.sub(r"\S+/day.rec", "day.rec", text)


def test_a_replay_beside_its_recording(
    day: Path, capfd: pytest.CaptureFixture[str], snapshot: SnapshotAssertion
) -> None:
    assert main(["simulate", "replay", str(day)]) == 0
    assert _shown(capfd.readouterr().out) == snapshot


def test_a_replay_for_programs(day: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", "replay", str(day), "--policy", "bestfit", "-o", "json"]) == 0
    found = json.loads(capfd.readouterr().out)
    assert (found["pods"], found["bothPlaced"]) == (3, 3)
    assert found["policy"] == "bestfit"
    assert found["replayed"]["most_pending"] == found["recorded"]["most_pending"] == 1
    assert len(found["placements"]) == 3


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        pytest.param(["--policy", "luck"], "no policy", id="an unknown policy"),
        pytest.param(["--engine", "lab", "--policy", "fgd"], "the lab runs kube-scheduler", id="FGD in the lab"),
    ],
)
def test_flags_that_cannot_be(day: Path, capfd: pytest.CaptureFixture[str], flags: list[str], words: str) -> None:
    assert main(["simulate", "replay", str(day), *flags]) == 2
    assert words in capfd.readouterr().err
