"""The same work many times over, each in a process of its own, as many at a time as there are cores.

A signal that asks for the end (Ctrl-C, SIGTERM, SIGHUP) ends all of it at once, and what had come of the work by then
is handed back. The processes end with this one, however it ends. Ctrl-C reaches every process of a terminal, so from
their first instruction on they do not hear it: this one does.

Each process has a pipe of its own and shares nothing else, so that none can leave a lock behind when it is ended.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import pickle
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Generator, Iterator, Sequence
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from types import FrameType
from typing import Any, Generic, NoReturn, TypeVar

import msgspec

from bayplan.model.errors import TemporaryError
from bayplan.service.lifecycle import asked_to_stop, exit_code_of

T = TypeVar("T")
_CONTEXT = multiprocessing.get_context("spawn")  # a fork of a process with threads may hang
_STOPPING = frozenset({signal.SIGINT, signal.SIGTERM, signal.SIGHUP})


class WorkerLost(TemporaryError):
    """A process ended before its work did."""

    code = "BP-X016"


class Stopped(KeyboardInterrupt):
    """A signal asked for the end. It is no error, and comes between any two instructions.

    asyncio keeps to itself what its callbacks and tasks raise, but lets a KeyboardInterrupt through.
    """

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.signal = signal.Signals(number)


class Results(msgspec.Struct, Generic[T], frozen=True):
    """What came of the work."""

    found: dict[int, T]
    """By the place of its arguments among all, in that order."""
    asked: int
    stopped: signal.Signals | None = None
    """What ended it before all was done."""

    @property
    def complete(self) -> bool:
        """Whether all of it was done."""
        return self.stopped is None

    @property
    def exit_code(self) -> int:
        """Of the command that asked for it."""
        return 0 if self.stopped is None else exit_code_of(self.stopped)

    @property
    def how_far(self) -> str:
        """What ended it, and how much was done by then."""
        by = "" if self.stopped is None else f"ended by {self.stopped.name}: "
        return f"{by}{len(self.found)} of {self.asked} runs done"


def in_processes(
    work: Callable[..., T],
    each: Sequence[tuple[Any, ...]],
    processes: int,
    ended: Callable[[int], None] = lambda _: None,
) -> Results[T]:
    """What `work` returns for each of these arguments. `ended` is told of each.

    Work and arguments must be such that another process can be told of them. One process is this one. Raises what the
    work raises, and WorkerLost.
    """
    found: dict[int, T] = {}
    stopped: signal.Signals | None = None
    count = min(processes, len(each))
    try:
        with _raising(), contextlib.closing(_elsewhere(work, each, count) if count > 1 else _here(work, each)) as done:
            for number, result in done:
                found[number] = result
                ended(1)
    except Stopped as early:
        stopped = early.signal
    return Results(dict(sorted(found.items())), len(each), stopped)


@contextlib.contextmanager
def _raising() -> Iterator[None]:
    """A signal that asks for the end raises Stopped here; more of them do not disturb what is cleared away then.

    It may come to nothing, as in a `__del__`, which raises to nobody. Then the next signal raises anew.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, _: FrameType | None) -> None:
        if not _is_stopping(sys.exception()):
            raise Stopped(number)

    previous = {each: signal.signal(each, stop) for each in asked_to_stop()}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def _is_stopping(error: BaseException | None) -> bool:
    """Whether Stopped is on its way up: what is being handled is it, or came of it."""
    while error is not None and not isinstance(error, Stopped):
        error = error.__context__
    return error is not None


def _here(work: Callable[..., T], each: Sequence[tuple[Any, ...]]) -> Generator[tuple[int, T]]:
    for number, arguments in enumerate(each):
        yield number, work(*arguments)


def _elsewhere(work: Callable[..., T], each: Sequence[tuple[Any, ...]], count: int) -> Generator[tuple[int, T]]:
    waiting = iter(enumerate(each))
    with _workers(work, count) as running:
        for pipe in running:
            _send(pipe, running[pipe], next(waiting))
        busy = dict.fromkeys(running)
        while busy:
            ready = wait([*busy])
            for pipe in [each for each in busy if each in ready]:
                number, result, error = _receive(pipe, running[pipe])
                if error is not None:
                    raise error
                following = next(waiting, None)
                if following is None:
                    del busy[pipe]
                else:
                    _send(pipe, running[pipe], following)
                yield number, result


@contextlib.contextmanager
def _workers(work: Callable[..., Any], count: int) -> Iterator[dict[Connection, BaseProcess]]:
    running: dict[Connection, BaseProcess] = {}
    resource_tracker.ensure_running()  # else the first start would begin it, and it lets signals through
    try:
        for _ in range(count):
            ours, theirs = _CONTEXT.Pipe()
            with _held_back():  # what is held back here is held back in the new process, too
                process = _CONTEXT.Process(target=_serve, args=(theirs, work), daemon=True)
                process.start()
                running[ours] = process
            theirs.close()
        yield running
    finally:
        for each in running.values():
            each.kill()
        for pipe, each in running.items():
            each.join()
            pipe.close()


@contextlib.contextmanager
def _held_back() -> Iterator[None]:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _STOPPING)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _send(pipe: Connection, process: BaseProcess, what: tuple[int, tuple[Any, ...]]) -> None:
    try:
        pipe.send(what)
    except (BrokenPipeError, ConnectionResetError) as error:
        raise _lost(process) from error


def _receive(pipe: Connection, process: BaseProcess) -> tuple[int, Any, Exception | None]:
    try:
        told: tuple[int, Any, Exception | None] = pipe.recv()
    except (EOFError, ConnectionResetError) as error:
        raise _lost(process) from error
    return told


def _lost(process: BaseProcess) -> WorkerLost:
    process.join()
    code = process.exitcode or 0
    how = signal.Signals(-code).name if code < 0 else f"exit code {code}"
    hint = "memory may have run out: try again with fewer --processes"
    return WorkerLost(f"a process ended before its work did: {how}", hint=hint)


# --- in the other process


def _serve(pipe: Connection, work: Callable[..., Any]) -> None:
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
    threading.Thread(target=_end_with_parent, daemon=True).start()
    with contextlib.suppress(EOFError):
        while True:
            number, arguments = pipe.recv()
            told: tuple[int, Any, Exception | None]
            try:
                told = number, work(*arguments), None
            except Exception as error:
                told = number, None, _portable(error)
            pipe.send(told)


def _end_with_parent() -> NoReturn:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _portable(error: Exception) -> Exception:
    """An error that another process can be told of, with where it came from."""
    error.add_note("".join(traceback.format_exception(error)))
    try:
        pickle.loads(pickle.dumps(error))  # noqa: S301 - our own, of this moment
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error
