"""Every benchmark runs and prints its lines. How fast it was is nobody's business here."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from typing import Never

import pytest
from benchmarks.__main__ import BENCHMARKS, main
from benchmarks.report import OURS, Line, Sort, Table, growth, ratio, reached, render

from bayplan.cluster.lab.toolchain import LabUnavailableError
from benchmarks import manifests, measure, serving

_TINY = ["--scale", "0.002", "--repeats", "1"]


@pytest.fixture
def in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fresh processes and peers make figures fair, and a smoke test slow."""

    def call(function: Callable[..., object], *arguments: object) -> object:
        return function(*arguments)

    monkeypatch.setattr(measure, "alone", call)
    for peer in ("kubernetes", "lightkube"):
        monkeypatch.setitem(sys.modules, peer, None)


@pytest.mark.slow
@pytest.mark.usefixtures("in_this_process")
@pytest.mark.parametrize("name", BENCHMARKS)
def test_prints_its_table(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([name, *_TINY]) == 0
    printed = capsys.readouterr().out
    assert "load" in printed.splitlines()[0]
    table = printed.partition(f"\n{name}: ")[2].splitlines()
    assert table[1].split()[:2] == ["measure", "program"]
    assert any(OURS in line for line in table[2:])


@pytest.mark.slow
@pytest.mark.usefixtures("in_this_process")
@pytest.mark.parametrize("name", ["served", "served_watch"])
def test_without_a_lab_a_note_says_so(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def real() -> Never:
        raise LabUnavailableError("no Go")

    monkeypatch.setattr(serving, "real", real)
    assert main([name, *_TINY]) == 0
    printed = capsys.readouterr().out
    assert "kube-apiserver" not in printed
    assert "  no lab here, so no figures of the real API server: no Go\n" in printed


@pytest.mark.usefixtures("in_this_process")
def test_json_has_figures_ratio_and_growth(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["decode", *_TINY, "-o", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    (table,) = document["benchmarks"]
    ours = table["lines"][0]
    assert (ours["who"], ours["goal"], len(ours["values"])) == (OURS, 0.3, 3)
    assert ours["growth"] is not None
    assert table["notes"] == [
        f"{peer} is not installed: `make bench` installs it" for peer in ("lightkube", "kubernetes")
    ]


def test_an_unknown_name_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["speed"])
    assert "no benchmark 'speed': there are creation, " in capsys.readouterr().err


def test_a_measurement_has_a_process_of_its_own() -> None:
    assert measure.alone(os.getpid) != os.getpid()


@pytest.mark.parametrize(
    ("size", "low", "high"),
    [
        pytest.param(len(manifests.sent_pod(99_999)), 1_400, 1_600, id="a manifest that is sent has 1.5 KB"),
        pytest.param(len(manifests.stored_pod(99_999)), 8_000, 8_600, id="a pod that is stored has 8 KB"),
    ],
)
def test_sizes_of_pods(size: int, low: int, high: int) -> None:
    assert low <= size <= high


@pytest.mark.parametrize(
    ("line", "grown", "met"),
    [
        pytest.param(
            Line("", OURS, Sort.RATE, (200.0, 100.0), 150.0), 2.0, False, id="half the rate is twice the cost"
        ),
        pytest.param(Line("", OURS, Sort.EACH, (10.0, 10.0), 10.0), 1.0, True, id="the same cost each is flat"),
        pytest.param(
            Line("", OURS, Sort.WHOLE, (1.0, 4.0), 3.0), 1.0, False, id="four times the size costs four times"
        ),
        pytest.param(
            Line("", OURS, Sort.WHOLE, (1.0, None), 3.0), None, None, id="what was not measured has no growth"
        ),
    ],
)
def test_growth_and_goals(line: Line, grown: float | None, met: bool | None) -> None:
    assert growth(line, (25, 100)) == grown
    assert reached(line) is met


def test_a_ratio_above_one_means_better() -> None:
    rate, cost = (Line("", OURS, sort, (4.0, 8.0)) for sort in (Sort.RATE, Sort.EACH))
    assert ratio(rate, Line("", "peer", Sort.RATE, (2.0, None))) == 2.0
    assert ratio(cost, Line("", "peer", Sort.EACH, (2.0, 16.0))) == 2.0


def test_the_table_is_aligned_and_tells_a_missed_goal() -> None:
    lines = (
        Line("pods/s", OURS, Sort.RATE, (4_000.0, 2_000.0), 5_000),
        Line("pods/s", "peer", Sort.RATE, (1_000.0, None)),
    )
    assert render(Table("creation", "pods", ("1", "10"), lines, (1, 10), ("a note",))) == (
        "creation: pods\n"
        "measure  program      1     10  growth  ratio  goal\n"
        "pods/s   bayplan  4,000  2,000    2.00         >= 5,000 MISSED\n"
        "         peer     1,000      -             4x\n"
        "  a note\n"
    )
