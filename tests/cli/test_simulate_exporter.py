"""`bayplan simulate exporter` serves until it is ended."""

from __future__ import annotations

import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from bayplan.cli.main import main

SCENARIO = "nodes: [{name: n-1, vms: [{id: a, cpu_consumption: 0.2, memory_consumption: 0.5}]}, {name: n-2}]"


def test_it_serves_and_ends_with_ctrl_c(tmp_path: Path) -> None:
    file = tmp_path / "vms.yaml"
    file.write_text(SCENARIO)
    command = [sys.executable, "-m", "bayplan", "simulate", "exporter", "--engine", "embedded", "--port", "0"]
    process = subprocess.Popen(
        [*command, "--scenario", str(file)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        with urllib.request.urlopen(url, timeout=60) as answer:
            text = answer.read().decode()
    finally:
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)

    assert 'node_memory_usage_ratio{node="n-1"} 0.5' in text or 'node_memory_usage_ratio{node="n-2"} 0.5' in text
    assert said == "2 nodes on embedded; VMs: 1 scheduled, 0 pending, 0 missing\n"
    assert process.returncode == 130


def test_a_scenario_that_cannot_be_read_is_refused_with_its_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "vms.yaml"
    file.write_text("nodes: [{name: n, nodes: 3}]")

    assert main(["simulate", "exporter", "--engine", "embedded", "--scenario", str(file)]) == 1
    assert f"{file}:1: nodes[0].nodes: unknown key" in capsys.readouterr().err
