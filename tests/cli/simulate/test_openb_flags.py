"""`bayplan simulate openb` on small clusters, and what its flags take."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bayplan.cli.main import main
from bayplan.cli.simulate.openb import step_for

Capture = pytest.CaptureFixture[str]

NODES = "sn,cpu_milli,memory_mib,gpu,model\na,64000,262144,2,P100\nb,96000,262144,8,V100M32\n"
PODS = """name,cpu_milli,memory_mib,num_gpu,gpu_milli
p1,12000,16384,1,1000
p2,6000,12288,1,460
p3,6000,12288,2,1000
p4,6000,1228,0,0
"""


@pytest.fixture
def small(tmp_path: Path) -> list[str]:
    (tmp_path / "nodes.csv").write_text(NODES)
    (tmp_path / "pods.csv").write_text(PODS)
    files = ["--nodes", str(tmp_path / "nodes.csv"), "--pods", str(tmp_path / "pods.csv")]
    return ["simulate", "openb", *files, "--processes", "1"]


def _found(small: list[str], capsys: Capture, *flags: str) -> list[tuple[str, int]]:
    assert main([*small, *flags, "-o", "json"]) == 0
    return [(run["policy"], run["seed"]) for run in json.loads(capsys.readouterr().out)["runs"]]


def test_a_small_cluster_has_a_value_in_every_column(small: list[str], capsys: Capture) -> None:
    assert main([*small, "--policy", "all", "--seeds", "42"]) == 0
    heads, *rows = (line.split() for line in capsys.readouterr().out.partition("\n\n")[0].splitlines())
    assert heads[4:] == [str(asked) for asked in range(0, 131, 10)]
    assert [len(row) for row in rows] == [len(heads)] * 6


def test_no_more_is_in_use_than_was_asked_for_but_for_rounding(small: list[str], capsys: Capture) -> None:
    assert main([*small, "--policy", "fgd", "--seeds", "42", "-o", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    used = document["runs"][0]["allocated"]
    assert [*used] == [str(asked) for asked in range(131)]
    assert all(value <= int(asked) + 0.5 for asked, value in used.items())
    assert [*used.values()] == sorted(used.values())
    assert document["complete"] is True


@pytest.mark.parametrize(
    ("inflate", "step"),
    [
        pytest.param(0.05, 1, id="a little: every percent"),
        pytest.param(1.0, 10, id="all GPUs once"),
        pytest.param(1.3, 10, id="as in the paper"),
        pytest.param(2.5, 20, id="twice and a half"),
        pytest.param(100, 1000, id="a hundred times"),
    ],
)
def test_a_table_is_no_wider_than_a_screen(inflate: float, step: int) -> None:
    assert step_for(inflate) == step


def test_a_step_that_is_given_is_taken(small: list[str], capsys: Capture) -> None:
    assert main([*small, "--policy", "fgd", "--seeds", "42", "--step", "65"]) == 0
    assert capsys.readouterr().out.split()[4:7] == ["0", "65", "130"]


@pytest.mark.parametrize(
    ("flags", "runs"),
    [
        pytest.param(["--policy", "fgd,fgd,FGD"], [("fgd", 1)], id="a policy twice is there once"),
        pytest.param(["--policy", "fgd", "--policy", "bestfit"], [("fgd", 1), ("bestfit", 1)], id="a flag twice"),
        pytest.param(["--policy", "fgd, bestfit"], [("fgd", 1), ("bestfit", 1)], id="a space after a comma"),
        pytest.param(
            ["--policy", "fgd", "--seeds", "2, 1-3,2"], [("fgd", 2), ("fgd", 1), ("fgd", 3)], id="a seed twice"
        ),
    ],
)
def test_each_policy_and_seed_counts_once(
    small: list[str], flags: list[str], runs: list[tuple[str, int]], capsys: Capture
) -> None:
    assert _found(small, capsys, "--seeds", "1", *flags) == runs


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        pytest.param(["--inflate", "nan"], "expected a number above 0, and at most 100; got nan", id="not a number"),
        pytest.param(["--inflate", "inf"], "at most 100; got inf", id="without end"),
        pytest.param(["--inflate", "1e9"], "at most 100; got 1000000000.0", id="too often"),
        pytest.param(["--inflate", "-1"], "expected a number above 0", id="less than nothing"),
        pytest.param(["--seeds", "0-100000000000"], "at most 10000 seeds", id="a range that no machine holds"),
        pytest.param(["--seeds", "0-9999,20000"], "at most 10000 seeds", id="one seed too many"),
        pytest.param(["--seeds", "9" * 5000], "neither a seed nor a range", id="a seed without end"),
        pytest.param(["--seeds", ""], "neither a seed nor a range", id="no seed"),
        pytest.param(["--policy", "fgd,"], "a name is empty", id="nothing after a comma"),
    ],
)
def test_what_is_refused(small: list[str], flags: list[str], told: str, capsys: Capture) -> None:
    assert main([*small, *flags]) == 2
    assert told in capsys.readouterr().err
