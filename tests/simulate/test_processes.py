"""Work in processes of its own: what comes back, and that nothing is left when somebody asks for the end."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from bayplan.simulate.processes import Results, WorkerLost, in_processes

_SCRIPT = """
import sys, time
if __name__ == "__mp_main__" and SLOWLY:
    print("importing", flush=True)
    time.sleep(600)
from bayplan.simulate.processes import in_processes
if __name__ == "__main__":
    each = [(float(text),) for text in sys.argv[2:]]
    results = in_processes(time.sleep, each, int(sys.argv[1]), lambda _: print("one", flush=True))
    print(results.how_far, flush=True)
    sys.exit(results.exit_code)
"""
_LONG = "600"


class _Odd(Exception):
    """Another process cannot be told of it."""

    def __init__(self, first: int, second: int) -> None:
        super().__init__(f"{first} and {second}")


def _fail(_: int) -> None:
    raise _Odd(1, 2)


@contextlib.contextmanager
def _running(folder: Path, *arguments: str, slowly: bool = False) -> Iterator[subprocess.Popen[str]]:
    """The script, as the leader of a group, as a shell starts a job."""
    script = folder / "script.py"
    script.write_text(f"SLOWLY = {slowly}\n{_SCRIPT}")
    pipe = subprocess.PIPE
    command = [sys.executable, str(script), *arguments]
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, start_new_session=True) as process:
        try:
            yield process
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def _alive(group: int) -> Iterator[int]:
    """The processes of a group but those that are dead already, and only not yet buried."""
    for file in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, _parent, of = file.read_text().rpartition(")")[2].split()[:3]
            if int(of) == group and state != "Z":
                yield int(file.parent.name)


def _nobody_is_left(group: int) -> bool:
    """Of a process group; the last of it may take a moment."""
    for _ in range(1000):
        if not [*_alive(group)]:
            return True
        time.sleep(0.02)
    return False


def test_results_are_in_the_order_of_what_was_asked_for() -> None:
    told: list[int] = []
    found = in_processes(int, [("1",), ("2",), ("3",)], 2, told.append)
    assert found == Results({0: 1, 1: 2, 2: 3}, 3)
    assert (found.complete, found.exit_code, told) == (True, 0, [1, 1, 1])


@pytest.mark.parametrize(
    ("number", "code", "processes", "whole_group"),
    [
        pytest.param(signal.SIGINT, 130, "2", True, id="Ctrl-C in a terminal"),
        pytest.param(signal.SIGINT, 130, "2", False, id="SIGINT to the first process alone"),
        pytest.param(signal.SIGTERM, 143, "2", False, id="SIGTERM to the first process alone"),
        pytest.param(signal.SIGTERM, 143, "2", True, id="SIGTERM to all, as a container gets it"),
        pytest.param(signal.SIGHUP, 129, "2", True, id="the terminal goes"),
        pytest.param(signal.SIGTERM, 143, "1", False, id="SIGTERM where all is done in one process"),
    ],
)
def test_a_signal_ends_all_at_once_and_what_was_done_is_kept(
    number: signal.Signals, code: int, processes: str, whole_group: bool, tmp_path: Path
) -> None:
    with _running(tmp_path, processes, "0", _LONG, _LONG) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "one\n"
        if whole_group:
            os.killpg(process.pid, number)
        else:
            process.send_signal(number)
        out, err = process.communicate(timeout=60)
        assert (process.returncode, out, err) == (code, f"ended by {number.name}: 1 of 3 runs done\n", "")
        assert _nobody_is_left(process.pid)


def test_ctrl_c_while_processes_start_shows_no_traceback(tmp_path: Path) -> None:
    with _running(tmp_path, "2", _LONG, _LONG, slowly=True) as process:
        assert process.stdout is not None
        assert [process.stdout.readline() for _ in range(2)] == ["importing\n"] * 2
        os.killpg(process.pid, signal.SIGINT)
        assert process.communicate(timeout=60) == ("ended by SIGINT: 0 of 2 runs done\n", "")
        assert process.returncode == 130


def test_processes_end_with_the_one_that_started_them(tmp_path: Path) -> None:
    with _running(tmp_path, "2", "0", _LONG, _LONG) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.kill()
        process.wait(60)
        assert _nobody_is_left(process.pid)


def test_a_hangup_that_was_to_be_ignored_is(tmp_path: Path) -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with _running(tmp_path, "2", "0", "0.3", "0") as process:
            assert process.stdout is not None
            process.stdout.readline()
            os.killpg(process.pid, signal.SIGHUP)
            assert process.wait(60) == 0
    finally:
        signal.signal(signal.SIGHUP, before)


def test_an_error_of_the_work_is_raised_and_says_where_it_was() -> None:
    with pytest.raises(ValueError, match="invalid literal") as raised:
        in_processes(int, [("1",), ("x",)], 2)
    assert "in _serve" in raised.value.__notes__[0]


def test_an_error_that_cannot_be_sent_is_told_in_words() -> None:
    with pytest.raises(RuntimeError, match="_Odd: 1 and 2"):
        in_processes(_fail, [(1,), (2,)], 2)


@pytest.mark.parametrize(
    ("work", "told"),
    [
        pytest.param((os._exit, 3), "exit code 3", id="it leaves"),
        pytest.param((signal.raise_signal, signal.SIGKILL), "SIGKILL", id="it is killed"),
    ],
)
def test_a_process_that_is_lost_is_an_error(work: tuple[object, int], told: str) -> None:
    call, argument = work
    assert callable(call)
    with pytest.raises(WorkerLost, match=told):
        in_processes(call, [(argument,), (argument,)], 2)
