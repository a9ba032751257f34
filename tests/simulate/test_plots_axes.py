"""Every curve of a picture can be seen: where all happens at once, where all is lost, where there is nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from bayplan.cli.main import main
from bayplan.simulate.eventlog import AnyLine, Began, Created, Ended, Placed, Sample, Writer
from bayplan.simulate.plots import Curve, Picture, _heights, _to_the_end, figures

_BEGAN = Began(t=0, scenario="x", digest="", seed=1, policy="default", engine="embedded", duration=7200, start="")


def _placed(*wished: bool) -> list[AnyLine]:
    return [
        Placed(t=0, pod=f"t/{number}", node="a", wished="a" if followed else "b")
        for number, followed in enumerate(wished)
    ]


@pytest.mark.parametrize(
    ("end", "until"),
    [
        pytest.param([Ended(t=3600.0, complete=True)], 1.0, id="its end"),
        pytest.param([], 2.0, id="what it was to take, where nothing else is known"),
    ],
)
def test_a_run_in_which_all_happens_at_once_is_drawn_over_its_time(end: list[AnyLine], until: float) -> None:
    (agreement,) = (each for each in figures([_BEGAN, *_placed(True, False, True), *end]) if each.name == "agreement")
    assert agreement.curves == (Curve("as wished", (0.0,), (100 * 2 / 3,)),)
    assert agreement.until == until
    assert _to_the_end(agreement.curves[0], until)[0] == (0.0, until)


@pytest.mark.parametrize(
    ("values", "most"),
    [
        pytest.param((100.0, 100.0), 100.0, id="all of it"),
        pytest.param((0.0, 0.0), 100.0, id="nothing of it"),
        pytest.param((7.0, 2.0), None, id="as high as it comes"),
        pytest.param((0.0, 0.0), None, id="never anything"),
    ],
)
def test_no_curve_lies_on_the_frame(values: tuple[float, ...], most: float | None) -> None:
    bottom, top = _heights(Picture("p", "", "%", (Curve("c", (0.0, 1.0), values),), most))
    assert bottom < min(values) <= max(values) < top


def test_a_log_of_nothing_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "events.jsonl").write_text("")
    assert main(["simulate", "plot", str(tmp_path)]) == 1
    assert "nothing to draw" in capsys.readouterr().err
    assert [*tmp_path.iterdir()] == [tmp_path / "events.jsonl"]


def test_a_run_that_was_cut_off_at_once_is_drawn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with Writer(tmp_path / "events.jsonl") as log:
        log.write(Created(t=0, pod="t/a", template=1))
        log.write(Sample(t=0, pending=1, running=0, nodes=0, cpu=0, memory=0, gpu=0, fragmentation=0))
    assert main(["simulate", "plot", str(tmp_path), "--format", "svg"]) == 0
    assert "placement.svg" in capsys.readouterr().out
