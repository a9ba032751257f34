"""`bayplan ledger idle --beside`: what is not named keeps its default, and the help says so."""

from __future__ import annotations

import click
import pytest
from click.testing import CliRunner

from bayplan.cli.ledger.idle import _beside, idle
from bayplan.ledger.questions.stranded import Beside


@pytest.mark.parametrize(
    ("value", "found"),
    [
        pytest.param("cpu=4", Beside(cpu=4000, memory=1 << 30), id="memory is not named"),
        pytest.param("memory=2Gi", Beside(cpu=1000, memory=2 << 30), id="cpu is not named"),
        pytest.param("cpu=4,memory=0", Beside(cpu=4000, memory=0), id="memory does not matter"),
    ],
)
def test_what_is_not_named_keeps_its_default(value: str, found: Beside) -> None:
    option = next(each for each in idle.params if each.name == "beside")
    assert _beside(click.Context(idle), option, value) == found


def test_the_help_says_so() -> None:
    words = " ".join(CliRunner().invoke(idle, ["--help"]).output.split())
    assert "One that is not named keeps its default. [default: cpu=1,memory=1Gi]" in words
