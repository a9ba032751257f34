"""`bayplan cpu explain`: what keeps a pod out and what would let it in, for people and programs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from bayplan.cli.cpu.broken_lines import broken
from bayplan.cli.main import main
from tests.cli.cpu.test_plan import PODS, pods

RESTRICTED = ["-f", PODS, "--machine=dgx-a100", "--topology-manager-policy=restricted"]


@pytest.fixture(autouse=True)
def pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)  # where tests run in parallel, it is set


def test_refused_pods_explained(capsys: pytest.CaptureFixture[str], snapshot: SnapshotAssertion) -> None:
    assert main(["cpu", "explain", *RESTRICTED]) == 0
    assert capsys.readouterr().out == snapshot


def test_fragments_explained(tmp_path: Path, capsys: pytest.CaptureFixture[str], snapshot: SnapshotAssertion) -> None:
    file = pods(tmp_path, **{f"x{n}": 20 for n in range(8)}, late=16, last=60)
    arguments = [
        "-f",
        file,
        "--machine=dgx-a100",
        "--topology-manager-policy=single-numa-node",
        "--reserved-cpus=0,128",
    ]
    assert main(["cpu", "explain", *arguments, "--suggestions", "9"]) == 0
    assert capsys.readouterr().out == snapshot


def test_an_explanation_for_programs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], snapshot: SnapshotAssertion
) -> None:
    file = pods(tmp_path, a=2, b=3)
    options = ["--cpu-manager-policy-options=full-pcpus-only=true", "--reserved-cpus=0,1"]
    assert main(["cpu", "explain", "-f", file, "--machine=vm-8", *options, "-o", "json"]) == 0
    text = capsys.readouterr().out
    assert text == snapshot
    assert [each["kind"] for each in json.loads(text)["pods"][0]["suggestions"]] == [
        "lower",
        "raise",
        "share",
        "setting",
    ]


@pytest.mark.parametrize("name", ["api-0", "vision/api-0"])
def test_a_pod_that_is_admitted_is_said_to_be(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cpu", "explain", name, *RESTRICTED]) == 0
    assert "vision/api-0 is admitted\n  api: " in capsys.readouterr().out


def test_nothing_to_explain(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cpu", "explain", "-f", pods(tmp_path, a=2), "--machine=vm-8"]) == 0
    assert "all pods are admitted (1)" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "told"),
    [
        pytest.param("traner-0", "did you mean trainer-0", id="a slip of the pen"),
        pytest.param("zzzzzz", "there is vision/trainer-0", id="nothing like it"),
    ],
)
def test_a_pod_that_is_not_there(name: str, told: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cpu", "explain", *RESTRICTED, name]) == 1
    assert told in capsys.readouterr().err


def test_a_name_in_two_namespaces(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = Path(pods(tmp_path, a=1)).read_text()
    both = tmp_path / "both.yaml"
    both.write_text(f"{first}---{first.replace('{name: a}', '{name: a, namespace: other}')}")
    assert main(["cpu", "explain", "-f", str(both), "--machine=vm-8", "a"]) == 1
    assert '"a" is the name of several pods: default/a, other/a' in capsys.readouterr().err


def test_throttling_is_a_question_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cpu", "explain", "throttling", "--help"]) == 0
    assert "Usage: bayplan cpu explain throttling [OPTIONS]" in capsys.readouterr().out
    assert main(["cpu", "explain", "--help"]) == 0
    assert "throttling" in capsys.readouterr().out
    assert main(["cpu", "explain", "throttling", "--debug"]) == 2
    assert "Missing option '--group'" in capsys.readouterr().err
    assert main(["cpu", "explain", "throtling"]) == 2
    assert "did you mean 'throttling' by 'throtling'?" in capsys.readouterr().err


def test_long_lines_are_broken_further_in() -> None:
    line = "  - " + "word " * 20
    assert [*broken([line.rstrip()], 0)] == [line.rstrip()]
    first, second, *_ = broken([line], 50)
    assert first.startswith("  - word")
    assert second.startswith("    word")
    assert len(first) <= 50
