"""`bayplan simulate run` and `validate` as a person meets them."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from bayplan.cli.main import main
from bayplan.simulate import eventlog

Capture = pytest.CaptureFixture[str]


def test_a_run_writes_log_and_summary(tmp_path: Path, capsys: Capture) -> None:
    assert main(["simulate", "run", "03-exhaustion", "--out", str(tmp_path / "out")]) == 0
    told = capsys.readouterr().out
    assert "created 10  placed 6  pending 4" in told
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert (summary["created"], summary["pending"], summary["complete"]) == (10, 4, True)
    lines = [*eventlog.read(tmp_path / "out" / "events.jsonl")]
    assert lines[-1] == eventlog.Ended(t=600.0, complete=True)


def test_seed_and_span_can_be_others(capsys: Capture) -> None:
    assert main(["simulate", "run", "01-initial-placement", "--seed", "9", "--for", "1m", "-o", "json"]) == 0
    summary = json.loads(capsys.readouterr().out)
    assert (summary["seed"], summary["duration"], summary["agreement"]["moves"]) == (9, 60.0, 12)


def test_a_policy_and_a_configuration_are_one_too_many(tmp_path: Path, capsys: Capture) -> None:
    file = str(tmp_path / "scheduler.yaml")
    assert main(["simulate", "run", "03-exhaustion", "--policy", "fgd", "--scheduler-config", file]) == 2
    assert "expected one of them" in capsys.readouterr().err


def test_an_unknown_policy_is_refused(capsys: Capture) -> None:
    assert main(["simulate", "run", "03-exhaustion", "--policy", "worst"]) == 1
    assert 'no policy "worst"' in capsys.readouterr().err


def test_what_the_lab_cannot_do_is_told_before_it_starts(capsys: Capture) -> None:
    assert main(["simulate", "run", "04-node-failures", "--engine", "lab", "--policy", "fgd"]) == 1
    told = capsys.readouterr().err
    assert all(word in told for word in ("not for the lab", "workloads[1].runTime", "events[0].do.fail", "policy fgd"))


def test_files_are_checked_each_with_its_faults(tmp_path: Path, capsys: Capture) -> None:
    broken = tmp_path / "broken.yaml"
    broken.write_text("nodes:\n  - {name: a, count: -1, capacity: {cpu: 1}, colour: red}\n")
    assert main(["simulate", "validate", "03-exhaustion", str(broken)]) == 1
    assert capsys.readouterr().out.splitlines() == [
        "03-exhaustion: valid: 3 nodes, 0 workloads, 1 groups of VMs, 0 events",
        f"{broken}:2: nodes[0].count: expected int >= 0 [BP-X004]",
        f"{broken}:2: nodes[0].colour: unknown key [BP-X003]",
    ]


def test_the_schema_is_printed(capsys: Capture) -> None:
    assert main(["simulate", "validate", "--schema"]) == 0
    assert json.loads(capsys.readouterr().out)["title"] == "bayplan scenario"


def test_ctrl_c_leaves_a_valid_log_and_says_how_far_it_came(tmp_path: Path) -> None:
    out = tmp_path / "out"
    log = out / "events.jsonl"
    command = [sys.executable, "-m", "bayplan", "simulate", "run", "day", "--for", "2000h", "--out", str(out)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        while not log.exists() or log.stat().st_size < 100_000:  # the first moment has 40 kB
            assert process.poll() is None
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=120)
    assert process.returncode == 130, told
    assert "interrupted at " in told
    assert "interrupted at 0s " not in told
    last = [*eventlog.read(log)][-1]
    assert isinstance(last, eventlog.Ended)
    assert not last.complete


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        pytest.param("week", None, 'no file and no scenario "week"', id="a name that does not ship"),
        pytest.param("week.yaml", None, "week.yaml: No such file", id="a file that is not there"),
        pytest.param("prod.twin", b"\x1f\x8b\x08\x00", "a twin or a recording, no scenario", id="a twin"),
    ],
)
def test_what_is_no_scenario_is_said_to_be_none(
    name: str, content: bytes | None, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.chdir(tmp_path)
    if content is not None:
        Path(name).write_bytes(content)
    assert main(["simulate", "run", name]) == 1
    assert told in capsys.readouterr().err
