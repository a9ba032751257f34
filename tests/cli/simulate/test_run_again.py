"""`bayplan simulate replay` of a run: the same bytes again, or the first line that differs."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bayplan.cli.main import main
from bayplan.simulate.run import Rehearsal
from bayplan.simulate.twin.snapshot import Snapshot, write_snapshot
from tests.simulate.twin.clusters import busy, snapshot_of

Capture = pytest.CaptureFixture[str]
Edit = Callable[[list[str]], list[str]]

_LOAD = """\
duration: 20m
teams: [{name: ops}]
vms:
  - {name: web, namespace: ops, arrivals: {perHour: 60}, lifetime: {median: 5m}, cpu: 1, memory: 1Gi}
"""
_SCENARIO = f"{_LOAD}nodes: [{{name: host, count: 2, capacity: {{cpu: 4, memory: 8Gi}}}}]\n"
_CUT = [
    '{"what":"sample","t":77.5,"pending":0,"running":0,"nodes":2,"cpu":0,"memory":0,"gpu":0,"fragmentation":0}\n',
    '{"what":"ended","t":77.5,"complete":false}\n',
]


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    (tmp_path / "tasks.yaml").write_text(_SCENARIO)
    return tmp_path / "tasks.yaml"


def _run(folder: Path, scenario: Path | str, *flags: str) -> Path:
    """The log of a run."""
    assert main(["simulate", "run", str(scenario), "--out", str(folder / "out"), *flags]) == 0
    return folder / "out" / "events.jsonl"


def _again(path: Path, *flags: str) -> int:
    return main(["simulate", "replay", str(path), *flags])


@pytest.mark.parametrize("of_the_folder", [pytest.param(True, id="the folder"), pytest.param(False, id="the log")])
def test_a_shipped_scenario_needs_nothing_but_its_log(of_the_folder: bool, tmp_path: Path, capsys: Capture) -> None:
    log = _run(tmp_path, "05-gpu-shares", "--policy", "fgd", "--seed", "9", "--for", "10m")
    capsys.readouterr()
    assert _again(log.parent if of_the_folder else log) == 0
    assert capsys.readouterr().out == f"the same {len(log.read_text().splitlines())} events\n"


def test_a_file_is_named_and_checked(scenario: Path, tmp_path: Path, capsys: Capture) -> None:
    log = _run(tmp_path, scenario)
    assert _again(log, "--scenario", str(scenario)) == 0
    capsys.readouterr()
    assert _again(log) == 1
    assert 'the log of a run of "tasks", whose scenario it does not hold' in capsys.readouterr().err
    scenario.write_text(_SCENARIO.replace("5m", "6m"))
    assert _again(log, "--scenario", str(scenario)) == 1
    assert 'the run was of another scenario "tasks" than this' in capsys.readouterr().err


@pytest.mark.parametrize(
    ("edit", "code", "told"),
    [
        pytest.param(lambda lines: [*lines[:9], *_CUT], 0, "the same 9 events, up to where", id="it was interrupted"),
        pytest.param(lambda lines: [*lines[:9], _CUT[1]], 0, "the same 9 events, up to where", id="without a sample"),
        pytest.param(lambda lines: [*lines[:9], lines[9][:5]], 0, "the same 9 events, up to where", id="it crashed"),
        pytest.param(
            lambda lines: [*lines[:7], lines[7].replace("\"t\":", "\"t\":9"), *lines[8:]], 1,
            "line 8 differs, after the same 7 events\nlogged: {", id="a line was changed",
        ),
        pytest.param(lambda lines: [*lines, lines[-1]], 1, "again:  -\n", id="a line too many"),
        pytest.param(lambda lines: [*lines[:-2], lines[-1]], 1, "again:  {\"what\":\"sample\"", id="a line is missing"),
    ],
)  # fmt: skip
def test_a_log_is_held_against_the_run(
    edit: Edit, code: int, told: str, scenario: Path, tmp_path: Path, capsys: Capture
) -> None:
    log = _run(tmp_path, scenario)
    log.write_text("".join(edit(log.read_text().splitlines(keepends=True))))
    capsys.readouterr()
    assert _again(log, "--scenario", str(scenario)) == code
    assert told in capsys.readouterr().out


def test_a_difference_as_a_document(scenario: Path, tmp_path: Path, capsys: Capture) -> None:
    log = _run(tmp_path, scenario)
    log.write_text(log.read_text().replace('"complete":true', '"complete" :true'))
    capsys.readouterr()
    assert _again(log, "--scenario", str(scenario), "-o", "json") == 1
    found = json.loads(capsys.readouterr().out)
    assert (found["same"], found["events"] + 1) == (False, found["difference"]["line"])


def test_a_run_on_a_twin_is_run_on_it_again(scenario: Path, tmp_path: Path, capsys: Capture) -> None:
    async def taken() -> Snapshot:
        return await snapshot_of(await busy())

    twin = tmp_path / "prod.twin"
    write_snapshot(twin, asyncio.run(taken()))
    scenario.write_text(_LOAD)
    log = _run(tmp_path, scenario, "--twin", str(twin))
    capsys.readouterr()
    assert _again(log, "--scenario", str(scenario), "--twin", str(twin)) == 0
    assert capsys.readouterr().out == f"the same {len(log.read_text().splitlines())} events\n"


def test_a_configuration_of_ones_own_is_read_again(scenario: Path, tmp_path: Path, capsys: Capture) -> None:
    config = tmp_path / "scheduler.yaml"
    config.write_text("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n")
    log = _run(tmp_path, scenario, "--scheduler-config", str(config))
    assert _again(log, "--scenario", str(scenario)) == 0
    moved = config.rename(tmp_path / "moved.yaml")
    capsys.readouterr()
    assert _again(log, "--scenario", str(scenario)) == 1
    assert f"placed by the configuration {config}, which is not there" in capsys.readouterr().err
    assert _again(log, "--scenario", str(scenario), "--scheduler-config", str(moved)) == 0


def test_ctrl_c_says_how_far_it_came(
    scenario: Path, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = _run(tmp_path, scenario)
    capsys.readouterr()
    rehearse = Rehearsal.rehearse

    async def interrupted(self: Rehearsal, *, stopping: Any, reached: Any) -> Any:
        os.kill(os.getpid(), signal.SIGTERM)
        return await rehearse(self, stopping=stopping, reached=reached)

    monkeypatch.setattr(Rehearsal, "rehearse", interrupted)
    assert _again(log, "--scenario", str(scenario)) == 143
    assert capsys.readouterr().out == "the same 1 events so far\n"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        pytest.param('{"what":"began"}\n', "not a line of a run's log", id="a first line that says nothing"),
        pytest.param('{"what":"began","t":0', "not the log of a run", id="a first line that was cut off"),
        pytest.param(
            '{"what":"began","t":0.0,"scenario":"02-migration","digest":"","seed":2,"policy":"default",'
            '"engine":"lab","duration":900.0,"start":"2026-01-01T00:00:00Z"}\n',
            "a run on the lab, in real time", id="a run on the lab",
        ),
    ],
)  # fmt: skip
def test_a_log_that_cannot_be_run_again_says_why(text: str, told: str, tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "events.jsonl").write_text(text)
    assert _again(tmp_path) == 1
    assert told in capsys.readouterr().err


def test_a_run_is_run_again_as_it_was(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "events.jsonl").write_text('{"what":"began"}\n')
    assert _again(tmp_path, "--keep-placed") == 2
    assert "expected no --keep-placed" in capsys.readouterr().err
    (tmp_path / "day.rec").write_bytes(b"\x1f\x8b")
    assert _again(tmp_path / "day.rec", "--scenario", "day") == 2
    assert "is no log of a run: expected neither --scenario nor --twin" in capsys.readouterr().err


def test_a_folder_without_a_log_is_said_to_have_none(tmp_path: Path, capsys: Capture) -> None:
    assert _again(tmp_path) == 1
    assert "no log of a run is there" in capsys.readouterr().err
