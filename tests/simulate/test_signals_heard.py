"""A signal during the work: it is heard wherever it comes, and again where nobody heard the first."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Callable, Generator

import pytest

from bayplan.simulate.processes import Results, Stopped, in_processes

_FIRST, _SECOND = signal.SIGTERM, signal.SIGINT


def _in_a_callback() -> None:
    async def main() -> None:
        asyncio.get_running_loop().call_soon(signal.raise_signal, _FIRST)
        await asyncio.sleep(0)
        await asyncio.sleep(0)

    asyncio.run(main())


def _in_a_task() -> None:
    async def hears() -> None:
        signal.raise_signal(_FIRST)

    async def main() -> None:
        task = asyncio.create_task(hears())
        try:
            await asyncio.wait([task])
        finally:
            task.exception()  # else it would be complained of

    asyncio.run(main())


def _swallowed() -> None:
    with contextlib.suppress(Stopped):  # as a __del__ does
        signal.raise_signal(_FIRST)
    signal.raise_signal(_SECOND)


def _swallowed_while_another_error_is_handled() -> None:
    try:
        raise ValueError
    except ValueError:
        _swallowed()


@pytest.mark.parametrize(
    ("work", "by"),
    [
        pytest.param(_in_a_callback, _FIRST, id="in a callback of a loop"),
        pytest.param(_in_a_task, _FIRST, id="in a task that nobody asks for its result"),
        pytest.param(_swallowed, _SECOND, id="the second, where the first came to nothing"),
        pytest.param(_swallowed_while_another_error_is_handled, _SECOND, id="the second, while an error is handled"),
    ],
)
def test_a_signal_is_heard(work: Callable[[], None], by: signal.Signals) -> None:
    assert in_processes(work, [()], 1) == Results({}, 1, by)


def test_a_second_signal_does_not_disturb_what_is_cleared_away() -> None:
    cleared: list[str] = []

    def generated() -> Generator[int]:
        try:
            yield 1
        finally:
            signal.raise_signal(_SECOND)
            cleared.append("generator")

    def work() -> None:
        with contextlib.closing(generated()) as each:
            next(each)
            try:
                signal.raise_signal(_FIRST)
            finally:
                signal.raise_signal(_SECOND)
                with contextlib.suppress(ValueError):
                    int("another error meanwhile")
                signal.raise_signal(_SECOND)
                cleared.append("work")

    assert in_processes(work, [()], 1) == Results({}, 1, _FIRST)
    assert cleared == ["work", "generator"]
