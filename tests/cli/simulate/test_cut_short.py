"""Commands that are asked to end before their time: what is done is shown, and the exit code tells the signal."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bayplan.cli.main import main
from bayplan.cli.simulate.compare import by_policy
from bayplan.simulate import comparing, eventlog
from bayplan.simulate.openb import run as openb
from tests.simulate.test_comparing import summary

Capture = pytest.CaptureFixture[str]


def _cut(work: Callable[..., Any], after: int, number: signal.Signals) -> Callable[..., Any]:
    """Work during which, after so many times, a signal comes."""
    times = 0

    def again(*arguments: Any) -> Any:
        nonlocal times
        if times == after:
            os.kill(os.getpid(), number)
        times += 1
        return work(*arguments)

    return again


@pytest.fixture
def trace(tmp_path: Path) -> list[str]:
    (tmp_path / "nodes.csv").write_text("sn,cpu_milli,memory_mib,gpu,model\na,64000,262144,8,T4\n")
    (tmp_path / "pods.csv").write_text("name,cpu_milli,memory_mib,num_gpu,gpu_milli\np,1000,1024,1,500\n")
    files = ["--nodes", str(tmp_path / "nodes.csv"), "--pods", str(tmp_path / "pods.csv")]
    return ["simulate", "openb", *files, "--policy", "fgd,bestfit", "--seeds", "1-2", "--processes", "1"]


@pytest.mark.parametrize(
    ("number", "code"),
    [
        pytest.param(signal.SIGINT, 130, id="Ctrl-C"),
        pytest.param(signal.SIGTERM, 143, id="SIGTERM"),
        pytest.param(signal.SIGHUP, 129, id="SIGHUP"),
    ],
)
def test_runs_over_a_trace_that_were_done_are_shown(
    trace: list[str], number: signal.Signals, code: int, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setattr(openb, "run", _cut(openb.run, 3, number))
    assert main(trace) == code
    out, err = capsys.readouterr()
    assert err == f"ended by {number.name}: 3 of 4 runs done\n"
    assert [line.split()[:2] for line in out.splitlines()[1:4]] == [["fgd", "1"], ["fgd", "2"], ["bestfit", "1"]]
    assert "Partial: not all runs were done." in out


def test_a_document_of_a_part_says_so(trace: list[str], monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    monkeypatch.setattr(openb, "run", _cut(openb.run, 1, signal.SIGTERM))
    assert main([*trace, "-o", "json"]) == 143
    document = json.loads(capsys.readouterr().out)
    assert (document["complete"], len(document["runs"])) == (False, 1)


def test_where_nothing_was_done_nothing_is_shown(
    trace: list[str], monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setattr(openb, "run", _cut(openb.run, 0, signal.SIGINT))
    assert main(trace) == 130
    assert capsys.readouterr() == ("", "ended by SIGINT: 0 of 4 runs done\n")


def test_a_comparison_is_of_the_seeds_that_were_done(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    monkeypatch.setattr(comparing, "under", _cut(comparing.under, 5, signal.SIGTERM))
    flags = ["--policy", "default,mostallocated", "--seeds", "3", "--processes", "1"]
    assert main(["simulate", "compare", "01-initial-placement", *flags]) == 143
    out, err = capsys.readouterr()
    assert "mostallocated against default: " in out
    assert out.endswith("Partial: of 2 of 3 seeds.\n")
    assert err == "ended by SIGTERM: 5 of 6 runs done\n"


@pytest.mark.parametrize(
    ("done", "expected"),
    [
        pytest.param([0, 1, 2, 3], {"a": [0, 2], "b": [1, 3]}, id="all of them"),
        pytest.param([0, 1, 3], {"a": [0], "b": [1]}, id="a seed that one policy lacks is left out"),
        pytest.param([1, 3], {}, id="runs of one policy are compared with nothing"),
        pytest.param([0, 3], {}, id="policies without a seed in common cannot be compared"),
        pytest.param([], {}, id="none"),
    ],
)
def test_runs_are_compared_by_pairs(done: list[int], expected: dict[str, list[int]]) -> None:
    found = by_policy({place: summary(seed=place) for place in done}, ["a", "b"])
    assert {policy: [run.seed for run in runs] for policy, runs in found.items()} == expected


@pytest.mark.parametrize(
    ("number", "code"),
    [pytest.param(signal.SIGTERM, 143, id="SIGTERM"), pytest.param(signal.SIGHUP, 129, id="the terminal goes")],
)
def test_a_run_that_was_cut_short_says_so_with_its_exit_code(number: signal.Signals, code: int, tmp_path: Path) -> None:
    log = tmp_path / "out" / "events.jsonl"
    command = [sys.executable, "-m", "bayplan", "simulate", "run", "day", "--for", "2000h", "--out", str(log.parent)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        while not log.exists() or log.stat().st_size < 100_000:  # the first moment has 40 kB
            assert process.poll() is None
            time.sleep(0.02)
        process.send_signal(number)
        _, told = process.communicate(timeout=120)
    assert process.returncode == code, told
    assert "interrupted at " in told
    last = [*eventlog.read(log)][-1]
    assert isinstance(last, eventlog.Ended)
    assert not last.complete
