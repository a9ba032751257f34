"""Progress of what takes longer than two seconds, on standard error.

    with progress("replaying", total=len(events)) as step:
        for event in events:
            ...
            step()

A terminal gets one line in place, with the time left; anything else gets a plain line every ten seconds.
"""

from __future__ import annotations

import contextlib
import sys
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import TextIO

    from rich.progress import Progress

PATIENCE = 2.0  # seconds before anything is shown
EVERY = 10.0  # seconds between plain lines


class _Display(Protocol):
    def show(self, done: int, spent: float) -> None: ...

    def close(self) -> None: ...


@contextlib.contextmanager
def progress(
    what: str, total: int | None = None, *, stream: TextIO | None = None, seconds: Callable[[], float] | None = None
) -> Iterator[Callable[[int], None]]:
    """Yields `step(count)`. `seconds` is a monotonic clock, given by tests."""
    if seconds is None:
        from bayplan.model.clock import monotonic

        seconds = monotonic
    stream = stream or sys.stderr
    display: _Display = _Bar(what, total, stream) if stream.isatty() else _Lines(what, total, stream)
    clock, begin, done = seconds, seconds(), 0

    def step(count: int = 1) -> None:
        nonlocal done
        done += count
        display.show(done, clock() - begin)

    try:
        yield step
    finally:
        display.close()


class _Lines:
    def __init__(self, what: str, total: int | None, stream: TextIO) -> None:
        self._what, self._total, self._stream = what, total, stream
        self._next = EVERY

    def show(self, done: int, spent: float) -> None:
        if spent >= self._next:
            self._next = spent + EVERY
            self._stream.write(f"{self._what}: {amount(done, self._total, spent)}\n")
            self._stream.flush()

    def close(self) -> None:
        """Nothing is left on the screen."""


def amount(done: int, total: int | None, spent: float) -> str:
    """`420/1000 (42%), 12s, about 17s left`."""
    if not total:
        return f"{done}, {spent:.0f}s"
    left = f", about {spent * (total - done) / done:.0f}s left" if 0 < done < total else ""
    return f"{done}/{total} ({100 * done // total}%), {spent:.0f}s{left}"


class _Bar:
    def __init__(self, what: str, total: int | None, stream: TextIO) -> None:
        self._what, self._total, self._stream = what, total, stream
        self._bar: Progress | None = None

    def show(self, done: int, spent: float) -> None:
        if spent < PATIENCE:
            return
        if self._bar is None:
            self._bar = self._new_bar()
        self._bar.update(self._bar.task_ids[0], completed=done)

    def _new_bar(self) -> Progress:
        from rich.console import Console
        from rich.progress import Progress

        bar = Progress(console=Console(file=self._stream), transient=True)
        bar.add_task(self._what, total=self._total)
        bar.start()
        return bar

    def close(self) -> None:
        if self._bar is not None:
            self._bar.stop()
