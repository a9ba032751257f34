"""What a verb would otherwise take in silence: a configuration that was not the run's, a comparison with nobody."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest

from bayplan.cli.main import main
from bayplan.simulate import comparing

Capture = pytest.CaptureFixture[str]


def test_a_run_under_a_policy_takes_no_configuration(tmp_path: Path, capsys: Capture) -> None:
    out = ["--out", str(tmp_path / "out")]
    assert main(["simulate", "run", "05-gpu-shares", "--policy", "fgd", "--for", "5m", *out]) == 0
    config = tmp_path / "scheduler.yaml"
    config.write_text("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n")
    capsys.readouterr()

    assert main(["simulate", "replay", str(tmp_path / "out"), "--scheduler-config", str(config)]) == 2
    told = "is the log of a run under the policy fgd, which is run again as it was: expected no --scheduler-config"
    assert told in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize(
    ("policies", "after"),
    [
        pytest.param("default,mostallocated", 1, id="one of two policies was done"),
        pytest.param("default,mostallocated,random", 2, id="two of three"),
    ],
)
@pytest.mark.parametrize("output", [pytest.param("table", id="a table"), pytest.param("json", id="a document")])
def test_without_a_seed_of_every_policy_only_how_far_it_came_is_said(
    output: str, policies: str, after: int, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    under, times = comparing.under, iter(range(after + 1))

    def cut(*arguments: Any) -> Any:
        if next(times) == after:
            os.kill(os.getpid(), signal.SIGTERM)
        return under(*arguments)

    monkeypatch.setattr(comparing, "under", cut)
    flags = ["--policy", policies, "--seeds", "2", "--for", "2m", "--processes", "1", "-o", output]
    assert main(["simulate", "compare", "01-initial-placement", *flags]) == 143
    asked = 2 * len(policies.split(","))
    assert capsys.readouterr() == ("", f"ended by SIGTERM: {after} of {asked} runs done\n")
