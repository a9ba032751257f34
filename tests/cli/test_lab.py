"""`bayplan lab`: what is there, and a real control plane that comes and goes without a trace."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bayplan.cluster.lab import running
from bayplan.cluster.lab.running import LabTaken, Note, claim, find, read_notes, release
from bayplan.cluster.lab.toolchain import VARIABLE, LabUnavailableError, Toolchain, cache_folder, chosen_minor
from bayplan.model.errors import NotFound
from tests.cli.serving import Command

Capture = pytest.CaptureFixture[str]

_CACHE, _KUBERNETES = cache_folder().parent, chosen_minor()  # before a test has a home of its own


@pytest.fixture
def alone(away: Path, monkeypatch: pytest.MonkeyPatch, capfd: Capture) -> Command:
    """A command without a cluster."""
    return Command(capfd)


def test_the_doctor_says_what_is_found_and_what_would_be_built(
    alone: Command, away: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assets = away / "assets"
    assets.mkdir()
    (assets / "etcd").touch(mode=0o755)
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(assets))
    monkeypatch.setenv("XDG_CACHE_HOME", str(away / "cache"))
    monkeypatch.setenv("PATH", "/nowhere")
    code, out, _ = alone("lab", "doctor")
    rows = [line.split() for line in out.splitlines()]
    assert code == 0
    assert rows[1] == ["etcd", "KUBEBUILDER_ASSETS", str(assets / "etcd")]
    assert ["kwok", "to", "be", "built"] in rows
    assert "would build etcdctl, kube-apiserver" in out
    assert alone("lab", "doctor", "--kubernetes", "1.0").err.startswith("error: no lab for Kubernetes 1.0\n")


def test_no_lab_is_said_with_the_way_to_one(alone: Command) -> None:
    assert alone("lab", "status") == (0, "", "no lab runs; start one: bayplan lab up\n")
    assert alone("lab", "down") == (1, "", 'error: no lab "lab" runs\nhint: start one: bayplan lab up\n')
    assert alone("lab", "kubeconfig", "--name", "x").code == 1
    assert alone("lab", "up", "--name", "../x").code == 2


def test_a_name_is_taken_once_and_a_dead_one_makes_room(away: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "_alive", lambda pid: pid == 1)
    claim(Note("a", 2, "1.36"))
    claim(Note("a", 1, "1.36"))
    assert find("a").pid == 1
    with pytest.raises(LabTaken):
        claim(Note("a", 1, "1.36"))
    with pytest.raises(NotFound, match="running are a"):
        find("b")
    release("a")
    assert read_notes() == []
    assert not running.notes_folder().exists()


@pytest.fixture
def real(away: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """State and temporary files of its own, the programs of everybody."""
    folder = away / "tmp"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setenv("XDG_CACHE_HOME", str(_CACHE))
    monkeypatch.setenv(VARIABLE, _KUBERNETES)
    yield folder
    for note in read_notes():
        os.kill(note.pid, signal.SIGKILL)


def _needs_programs() -> None:
    try:
        missing = [each.name for each in Toolchain().find() if each.path is None]
    except LabUnavailableError as error:
        pytest.skip(error.message)
    if missing:
        pytest.skip(f"no lab here: {', '.join(missing)} to be built")


def _bayplan(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "bayplan", *arguments], capture_output=True, text=True, check=False)


def _soon(condition: Callable[[], bool]) -> bool:
    """Killing takes a moment: the kernel buries the dead when it finds time."""
    for _ in range(400):
        if condition():
            return True
        time.sleep(0.05)
    return False


def _children(note: Note) -> set[int]:
    """The programs of a lab, by the note that its folder keeps."""
    return {int(pid) for pid in (Path(note.kubeconfig).parent / "pids").read_text().split()}


def _runs(pid: int) -> bool:
    """A process that nobody has buried yet does not run."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.slow
def test_a_lab_comes_serves_and_goes_without_a_trace(real: Path) -> None:
    _needs_programs()
    up = _bayplan("lab", "up", "--name", "one")
    assert up.returncode == 0, up.stderr
    note = find("one")
    assert up.stdout == f"export KUBECONFIG={note.kubeconfig}\n"
    assert note.version == _KUBERNETES
    assert (
        _bayplan("get", "ns", "default", "-o", "name", "--kubeconfig", note.kubeconfig).stdout == "namespace/default\n"
    )
    assert 'a lab "one" runs already' in _bayplan("lab", "up", "--name", "one").stderr
    programs = _children(note)
    assert len(programs) == 5
    assert _bayplan("lab", "down", "--name", "one").returncode == 0
    assert not any(map(_runs, programs))
    assert not any(real.iterdir())
    assert not running.notes_folder().exists()


@pytest.mark.slow
def test_a_lab_whose_supervisor_is_killed_is_swept_up(real: Path) -> None:
    _needs_programs()
    assert _bayplan("lab", "up", "--name", "two", "--without", "kwok", "--without", "scheduler").returncode == 0
    note = find("two")
    programs = _children(note)
    os.kill(note.pid, signal.SIGKILL)
    assert _soon(lambda: not any(real.iterdir()) and not any(map(_runs, programs)))
    assert _bayplan("lab", "status").stderr.startswith("no lab runs")


@pytest.mark.slow
def test_an_interrupt_before_it_is_ready_leaves_nothing(real: Path) -> None:
    _needs_programs()
    command = [sys.executable, "-m", "bayplan", "lab", "up", "--name", "three"]
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    ) as starting:
        assert _soon(lambda: any(real.glob("bayplan-three-*/etcd.log")))
        starting.send_signal(signal.SIGINT)
        assert starting.wait(60) == 130
    assert _soon(lambda: not any(real.iterdir()))
    assert read_notes() == []
