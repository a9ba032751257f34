"""How to measure fairly on a machine that others use too.

Every measurement runs in a new process: no memory, cache or garbage of the one before. Work inside a process is timed
by the CPU it used, which others cannot take away; the best of some repeats stands, since whatever else happens only
adds. Memory is what the kernel says is resident (Linux only).
"""

from __future__ import annotations

import importlib.util
import multiprocessing
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import msgspec

T = TypeVar("T")

_KB = 1024
_PATIENCE = 20
"""Seconds after which a measurement is not repeated: a long one meets quiet and busy moments by itself."""


class Effort(msgspec.Struct, frozen=True):
    """How much to measure: a share of the full sizes, how often, and whether what takes many minutes too."""

    scale: float = 1.0
    repeats: int = 3
    cold: bool = False

    def sizes(self, *full: int) -> tuple[int, ...]:
        """The sizes to measure."""
        return tuple(max(1, round(size * self.scale)) for size in full)


class Span:
    """CPU seconds of this process."""

    seconds = 0.0


@contextmanager
def cpu_time() -> Iterator[Span]:
    """Time the body by the CPU it uses."""
    span = Span()
    start = time.process_time()
    yield span
    span.seconds = time.process_time() - start


def _status(field: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1]) * _KB
    raise OSError(f"the kernel does not tell {field}: memory can be measured on Linux only")


def resident() -> int:
    """Bytes of this process in memory now."""
    return _status("VmRSS")


def forget_peak() -> None:
    """Let `peak` begin anew."""
    Path("/proc/self/clear_refs").write_text("5")


def peak() -> int:
    """The most bytes in memory since `forget_peak`."""
    return _status("VmHWM")


def alone(function: Callable[..., T], *arguments: object) -> T:
    """The answer of a function of some module, called in a process of its own."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        return pool.submit(function, *arguments).result()


def repeated(effort: Effort, function: Callable[..., T], *arguments: object) -> list[T]:
    """The answers of some repeats, each alone; fewer, but one at least, when they take long."""
    end = time.monotonic() + _PATIENCE
    answers = [alone(function, *arguments)]
    while len(answers) < effort.repeats and time.monotonic() < end:
        answers.append(alone(function, *arguments))
    return answers


def least(effort: Effort, function: Callable[..., float], *arguments: object) -> float:
    """The least of some repeats."""
    return min(repeated(effort, function, *arguments))


def most(effort: Effort, function: Callable[..., float], *arguments: object) -> float:
    """The most of some repeats."""
    return max(repeated(effort, function, *arguments))


def installed(package: str) -> bool:
    """Whether a peer can be measured."""
    return importlib.util.find_spec(package) is not None


def missing(*packages: str) -> tuple[str, ...]:
    """A note for each peer that is not installed; its lines stay empty."""
    return tuple(f"{name} is not installed: `make bench` installs it" for name in packages if not installed(name))
