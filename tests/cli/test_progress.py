"""Progress: shown when it takes long, on a terminal in place, elsewhere as a line now and then."""

from __future__ import annotations

import io

import pytest

from bayplan.cli.progress import amount, progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Watch:
    """A stopwatch that is set by hand."""

    def __init__(self) -> None:
        self.time = 100.0

    def __call__(self) -> float:
        return self.time


def run(stream: io.StringIO, seconds_a_step: float, steps: int = 100) -> str:
    watch = Watch()
    with progress("replaying", steps, stream=stream, seconds=watch) as step:
        for _ in range(steps):
            watch.time += seconds_a_step
            step(1)
    return stream.getvalue()


def test_elsewhere_than_on_a_terminal_a_line_comes_every_ten_seconds() -> None:
    assert run(io.StringIO(), 0.25).splitlines() == [
        "replaying: 40/100 (40%), 10s, about 15s left",
        "replaying: 80/100 (80%), 20s, about 5s left",
    ]


def test_a_terminal_shows_what_takes_longer_than_two_seconds() -> None:
    assert "replaying" in run(Terminal(), 0.25)


@pytest.mark.parametrize("stream", [io.StringIO(), Terminal()], ids=["a file", "a terminal"])
def test_what_is_quick_needs_no_progress(stream: io.StringIO) -> None:
    assert run(stream, 0.019) == ""


@pytest.mark.parametrize(
    ("done", "total", "text"),
    [
        (420, 1000, "420/1000 (42%), 12s, about 17s left"),
        (0, 1000, "0/1000 (0%), 12s"),
        (1000, 1000, "1000/1000 (100%), 12s"),
        (7, None, "7, 12s"),
    ],
)
def test_an_amount(done: int, total: int | None, text: str) -> None:
    assert amount(done, total, 12.0) == text


def test_the_display_is_cleared_when_the_work_fails() -> None:
    watch, terminal = Watch(), Terminal()

    def fail() -> None:
        with progress("replaying", 5, stream=terminal, seconds=watch) as step:
            watch.time += 5
            step(1)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert terminal.getvalue().rstrip().endswith("\x1b[2K")
