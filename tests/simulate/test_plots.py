"""Pictures of a run: what they show, and files that anybody can look at."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from bayplan.simulate.eventlog import AnyLine, Began, Created, Gone, Phase, Placed, Sample
from bayplan.simulate.plots import PlotsMissingError, draw, figures

RUN: list[AnyLine] = [
    Began(t=0, scenario="week", digest="d", seed=7, policy="fgd", engine="embedded", duration=7200, start=""),
    Created(t=0, pod="a/p0", template=0),
    Created(t=0, pod="a/p1", template=0),
    Placed(t=0, pod="a/p0", node="n0", wished="n0"),
    Sample(t=0, pending=1, running=0, nodes=2, cpu=0.25, memory=0.1, gpu=0.5, fragmentation=0.2),
    Placed(t=1800, pod="a/p1", node="n1", wished="n0"),
    Sample(t=1800, pending=0, running=2, nodes=2, cpu=0.5, memory=0.2, gpu=1.0, fragmentation=0.0, used_cpu=0.4),
    Phase(t=3600, pod="a/p0", phase="Succeeded"),
    Gone(t=5400, pod="a/p0"),
    Gone(t=7200, pod="a/p1"),
]


def test_what_the_pictures_show() -> None:
    shown = {picture.name: {curve.name: curve for curve in picture.curves} for picture in figures(RUN)}
    assert list(shown) == ["placement", "utilisation", "fragmentation", "pending", "agreement"]
    came, ended = shown["placement"]["came"], shown["placement"]["ended"]
    assert [*came.hours, *came.values] == [0, 0, 1, 2]
    assert [*ended.hours, *ended.values] == [1, 2, 1, 2]  # one ended and then went: that counts once
    assert [*shown["utilisation"]["GPU requested"].values] == [50, 100]
    assert set(shown["utilisation"]) == {"CPU requested", "memory requested", "GPU requested", "CPU used"}
    assert [*shown["pending"]["pending"].values] == [1, 0]
    assert [*shown["agreement"]["as wished"].values] == [100, 50]


def test_what_there_is_nothing_of_is_not_drawn() -> None:
    assert [picture.name for picture in figures(RUN[:3])] == ["placement"]
    assert figures([]) == []


def test_pictures_are_files_and_the_same_every_time(tmp_path: Path) -> None:
    pictures = figures(RUN)[:2]
    once, again = draw(pictures, tmp_path / "once"), draw(pictures, tmp_path / "again")
    assert [path.name for path in once[:3]] == ["placement.svg", "placement.png", "utilisation.svg"]
    assert [path.read_bytes() for path in once] == [path.read_bytes() for path in again]
    assert "week, fgd, seed 7" in once[0].read_text()
    assert once[1].read_bytes().startswith(b"\x89PNG")


def test_without_matplotlib_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(PlotsMissingError) as caught:
        draw(figures(RUN), tmp_path)
    assert "bayplan[plots]" in (caught.value.hint or "")
