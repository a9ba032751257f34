"""The examples run, and print what they printed before."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

EXAMPLES = sorted((Path(__file__).parent.parent / "examples").glob("[0-9]*.py"))


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_an_example(example: Path, capsys: pytest.CaptureFixture[str], snapshot: SnapshotAssertion) -> None:
    runpy.run_path(str(example), run_name="__main__")

    assert capsys.readouterr().out == snapshot
