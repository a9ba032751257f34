"""`bayplan cpu burst`: what it shows, what it refuses, and that it leaves nothing behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from benchmarks.cpu_work import Running, Work, are_groups_writable, real_groups
from syrupy.assertion import SnapshotAssertion

from bayplan.agent.burst import Happening, Watched
from bayplan.cli.cpu.burst import happening_line, shown, table_lines
from bayplan.cli.main import main
from bayplan.cli.printers import columns
from bayplan.model.clock import VirtualClock, parse_rfc3339
from bayplan.node.cgroup import detect
from bayplan.node.cgroup.detect import Survey
from bayplan.node.cgroup.fake import FakeTree
from bayplan.node.cgroup.journal import BusyJournalError, Journal
from bayplan.node.cgroup.port import Bandwidth, Counters, Group

WEB = "/kubepods/pod/web"
NOW = VirtualClock().now()
OWN = Bandwidth(10_000)


@pytest.fixture
def tree(monkeypatch: pytest.MonkeyPatch) -> FakeTree:
    """Control groups in memory instead of the machine's: a container of a kubelet, limited to half a CPU."""
    tree = FakeTree(2)
    tree.create(WEB).set_bandwidth(Bandwidth(50_000))
    monkeypatch.setattr(detect, "find_tree", lambda _: tree)
    return tree


def watched(path: str, throttled: int, given: Bandwidth | None = None) -> Watched:
    counters = Counters(30, 10 + throttled)
    return Watched(
        path, Bandwidth(50_000), counters, Counters(10, 10), NOW, "bursting" if given else "watching", given=given
    )


def test_the_table(snapshot: SnapshotAssertion) -> None:
    groups = [watched("/app/a", 0), watched(WEB, 15, Bandwidth(150_000)), watched("/app/b", 2)]
    assert columns(table_lines(groups)) == snapshot


def test_the_lines(snapshot: SnapshotAssertion) -> None:
    happenings = [
        Happening(NOW, WEB, "burst", 1.5, "1 of 1 periods throttled (100%), quota x3.00 for 200 ms"),
        Happening(NOW, WEB, "released", 0.5, "0.4 ms after its time"),
        Happening(NOW, WEB, "refused", None, "somebody else set it to 80000 of 100000 us"),
    ]
    assert "\n".join(map(happening_line, happenings)) == snapshot


@pytest.mark.usefixtures("away")
def test_a_dry_run_writes_nothing(tree: FakeTree, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cpu", "burst", "--for", "200ms"]) == 0
    head, row, end = capsys.readouterr().out.splitlines()
    assert head.split()[0] == "GROUP"
    assert row.split() == [WEB, "0.5", "0.5", "0%", "0/0", "0", "watching"]
    assert end == (
        "groups 1, bursts 0; nothing was written: --apply --beside-kubelet does it, for they are the kubelet's"
    )
    assert tree.group(WEB).bandwidth() == Bandwidth(50_000)


@pytest.mark.parametrize(
    ("groups", "flags", "told"),
    [
        pytest.param(["/app"], [], "--apply does it", id="groups of nobody"),
        pytest.param([WEB], ["--beside-kubelet"], "--apply does it", id="the kubelet's, and it is allowed"),
        pytest.param(
            ["/app", WEB],
            [],
            "--apply does it; 1 of the groups are the kubelet's: for them --beside-kubelet as well",
            id="both",
        ),
    ],
)
@pytest.mark.usefixtures("away")
def test_a_dry_run_says_how_to_write(
    groups: list[str], flags: list[str], told: str, tree: FakeTree, capsys: pytest.CaptureFixture[str]
) -> None:
    tree.create("/app").set_bandwidth(Bandwidth(50_000))
    wish = [word for each in groups for word in ("--group", each)]
    assert main(["cpu", "burst", "--for", "50ms", *wish, *flags]) == 0
    assert capsys.readouterr().out.splitlines()[-1].endswith(f"nothing was written: {told}")


@pytest.mark.usefixtures("away")
def test_a_group_without_counters_is_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    tree = FakeTree(1)
    tree.create("/low").set_bandwidth(Bandwidth(50_000))
    tree.kernel.remove("/cpuacct/low")
    monkeypatch.setattr(detect, "find_tree", lambda _: tree)
    assert main(["cpu", "burst", "--for", "50ms", "--group", "/low"]) == 0
    assert capsys.readouterr().err == "/low has a CPU limit and is left out: it is not in cpuacct's hierarchy\n"


def test_a_dry_run_shows_what_would_be_and_says_so() -> None:
    head, row = table_lines([watched(WEB, 15, Bandwidth(150_000))], applied=False)
    assert (head[2], row[2]) == ("WOULD", "1.5")
    told = shown(watched(WEB, 15, Bandwidth(150_000)), applied=False)
    assert (told.now_cpus, told.would_cpus) == (0.5, 1.5)


@pytest.mark.usefixtures("away", "tree")
def test_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cpu", "burst", "--mode", "koordinator", "--for", "200ms", "-o", "json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["mode"], told["applied"], told["groups"][0]["group"]) == ("koordinator", False, WEB)
    assert told["happenings"][0]["what"] == "would burst"
    assert told["happenings"][0]["why"] == "cfs_burst of 50 ms"
    assert parse_rfc3339(told["happenings"][0]["at"])
    assert (told["groups"][0]["limitCpus"], told["happenings"][0]["limitCpus"]) == (0.5, 0.5)


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        pytest.param(["--group", "/nope"], 1, "error: group /nope is not there", id="a group that is not there"),
        pytest.param(
            ["--group", WEB, "--apply"],
            1,
            f"error: {WEB} belongs to the kubelet and the container runtime: nothing is written",
            id="a group of the kubelet",
        ),
        pytest.param(
            ["--apply"],
            1,
            "error: control groups below /sys/fs/cgroup are not writable: nothing is written",
            id="no rights",
        ),
        pytest.param(["--for", "0s"], 2, 'expected some time; got "0s"', id="no time at all"),
        pytest.param(["--interval", "2s"], 2, 'expected 5ms to 1000ms; got "2s"', id="looks that are too rare"),
        pytest.param(["--interval", "2ms"], 2, 'expected 5ms to 1000ms; got "2ms"', id="looks that are too many"),
        pytest.param(["--mode", "long"], 2, "'long' is not one of 'short', 'koordinator'", id="an unknown mode"),
    ],
)
@pytest.mark.usefixtures("away", "tree")
def test_refusals(
    arguments: list[str], code: int, told: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(detect, "survey", lambda _: Survey(2, False, {}, (), False, {}))
    assert main(["cpu", "burst", *arguments]) == code
    assert told in capsys.readouterr().err


class Bursting:
    """The command, applied to a real group that is always throttled, up to its first burst."""

    def __init__(self, group: Group, away: Path) -> None:
        self.group = group
        group.set_bandwidth(OWN)
        self.load = Running(group, Work(unit=0.05, every=0, lasts=60))
        self.load.go()
        wish = ["--group", group.path, "--apply", "--for", "60s", "--journal", str(away / "journal")]
        environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
        command = [sys.executable, "-m", "bayplan", "cpu", "burst", *wish]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment, cwd=away)
        assert self.process.stdout is not None
        assert "  burst " in self.process.stdout.readline()

    def end(self, how: signal.Signals) -> list[str]:
        self.process.send_signal(how)
        told, _ = self.process.communicate()
        self.load.end()
        return told.splitlines()


on_real_groups = pytest.mark.skipif(not are_groups_writable(), reason="control groups are not writable here")


@pytest.mark.slow
@on_real_groups
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "Ctrl-C"])
def test_applied_to_a_real_group_and_undone_on(how: signal.Signals, away: Path) -> None:
    with real_groups("cli") as (_, (group,)):
        last = Bursting(group, away).end(how)[-1]
        assert last.startswith("groups 1, bursts ")
        assert last.endswith("; every limit is back")
        assert group.bandwidth() == OWN


@pytest.mark.slow
@on_real_groups
def test_killed_during_a_burst_it_leaves_nothing_behind(away: Path) -> None:
    with real_groups("cli") as (_, (group,)):
        for _ in range(3):
            Bursting(group, away).end(signal.SIGKILL)
            for _ in range(3000):
                if group.bandwidth() == OWN and not is_busy(away / "journal"):
                    break
                time.sleep(0.01)
            assert group.bandwidth() == OWN


def is_busy(journal: Path) -> bool:
    """Whether a keeper still has the journal."""
    try:
        Journal(journal).close()
    except BusyJournalError:
        return True
    return False


@pytest.mark.slow
@on_real_groups
def test_a_journal_that_cannot_be_written_is_one_line(capfd: pytest.CaptureFixture[str]) -> None:
    with real_groups("journal") as (_, (group,)):
        arguments = ["--group", group.path, "--apply", "--for", "1s", "--journal", "/proc/no/journal"]
        assert main(["cpu", "burst", *arguments]) == 1
    told = capfd.readouterr()
    assert told.out == ""
    assert told.err.startswith("error: the process that writes limits cannot start: /proc/no: ")
    assert len(told.err.splitlines()) == 1
