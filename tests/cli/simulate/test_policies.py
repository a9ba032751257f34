"""`bayplan simulate openb`, `compare` and `plot`: what people read, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from bayplan.cli.main import main

NODES = "sn,cpu_milli,memory_mib,gpu,model\n" + "".join(f"n{at},64000,262144,4,T4\n" for at in range(6))
PODS = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\n" + "".join(
    f"p{at:02d},{1000 * (1 + at % 7)},1024,{gpus},{milli},\n"
    for at, (gpus, milli) in enumerate([(1, 300), (1, 1000), (1, 450), (2, 1000), (0, 0), (1, 700)] * 6)
)
TABLE = "sc_policy,seed,0,50,100\n06-FGD,1,0.1,50,99\n06-FGD,2,0.1,50,97\n"


@pytest.fixture
def trace(tmp_path: Path) -> list[str]:
    for name, text in (("nodes.csv", NODES), ("pods.csv", PODS), ("table.csv", TABLE)):
        (tmp_path / name).write_text(text)
    return ["simulate", "openb", "--nodes", str(tmp_path / "nodes.csv"), "--pods", str(tmp_path / "pods.csv")]


def test_the_table_of_a_trace(
    trace: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str], snapshot: SnapshotAssertion
) -> None:
    flags = ["--policy", "fgd,random", "--seeds", "1-2", "--inflate", "1", "--step", "50", "--processes", "1"]
    assert main([*trace, *flags, "--expected", str(tmp_path / "table.csv")]) == 0
    assert capsys.readouterr().out == snapshot


def test_the_table_as_a_document(trace: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flags = ["--policy", "fgd", "--seeds", "1,2", "--processes", "1", "-o", "json"]
    assert main([*trace, *flags, "--expected", str(tmp_path / "table.csv")]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [(run["policy"], run["seed"]) for run in found["runs"]] == [("fgd", 1), ("fgd", 2)]
    assert found["means"][0]["expected"]["100"] == {"mean": 98.0, "standardError": 1.0}
    assert set(found["means"][0]["allocated"]["100"]) == {"mean", "standardError"}


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        pytest.param(["--policy", "best"], 'no policy "best"', id="a policy that is none"),
        pytest.param(["--seeds", "9-1"], "neither a seed nor a range", id="a range the wrong way round"),
        pytest.param(["--seeds", "x"], "neither a seed nor a range", id="a seed that is no number"),
        pytest.param(["--inflate", "0"], "0", id="no load at all"),
    ],
)
def test_what_openb_refuses(trace: list[str], flags: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*trace, *flags]) == 2
    assert told in capsys.readouterr().err


@pytest.mark.parametrize(
    ("gpus", "code", "told"),
    [
        pytest.param("0", 1, "nodes.csv: no node has a GPU", id="no GPU to give away"),
        pytest.param("1", 0, "", id="GPUs that nobody asks for"),
    ],
)
def test_a_trace_without_gpus(
    trace: list[str], gpus: str, code: int, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "nodes.csv").write_text(f"sn,cpu_milli,memory_mib,gpu,model\nn0,64000,262144,{gpus},G2\n")
    (tmp_path / "pods.csv").write_text("name,cpu_milli,memory_mib,num_gpu,gpu_milli\np0,1000,1,0,0\n")
    assert main([*trace, "--policy", "fgd", "--seeds", "1", "--processes", "1"]) == code
    assert told in capsys.readouterr().err


def test_a_scenario_under_two_policies(capsys: pytest.CaptureFixture[str], snapshot: SnapshotAssertion) -> None:
    flags = ["--policy", "default", "--policy", "MostAllocated", "--seeds", "2", "--processes", "1"]
    assert main(["simulate", "compare", "01-initial-placement", *flags]) == 0
    assert capsys.readouterr().out == snapshot


@pytest.mark.parametrize(
    ("flags", "code", "told"),
    [
        pytest.param(["--policy", "fgd", "--policy", "FGD"], 2, "two different policies", id="twice the same"),
        pytest.param(["--policy", "fgd", "--policy", "best"], 1, 'no policy "best"', id="a policy that is none"),
    ],
)
def test_what_compare_refuses(flags: list[str], code: int, told: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", "compare", "01-initial-placement", *flags]) == code
    assert told in capsys.readouterr().err


def test_a_run_is_drawn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", "run", "01-initial-placement", "--out", str(tmp_path / "run")]) == 0
    capsys.readouterr()
    assert main(["simulate", "plot", str(tmp_path / "run"), "--format", "svg"]) == 0
    drawn = capsys.readouterr().out.split()
    assert drawn[0] == str(tmp_path / "run" / "placement.svg")
    assert all(Path(each).read_text().startswith("<?xml") for each in drawn)


def test_without_a_log_there_is_nothing_to_draw(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", "plot", str(tmp_path)]) == 1
    assert "no log of a run is there" in capsys.readouterr().err
