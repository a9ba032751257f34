"""What /proc tells of processes and of the machine; processes and threads that end meanwhile are left out."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from bayplan.node.cgroup.port import Pressure
from bayplan.node.throttling.run_queue import waited_ns

_GONE = (FileNotFoundError, ProcessLookupError, NotADirectoryError, PermissionError)
"""Ended, or hidden from us: /proc may be mounted so (hidepid)."""
_LONGEST = 4096


class Proc:
    """The process file system at `root`."""

    def __init__(self, root: Path = Path("/proc")) -> None:
        self.root = root
        self._base = str(root)

    def waited(self, processes: Iterable[int], most: int) -> dict[int, int] | None:
        """Nanoseconds that threads have waited for a CPU, by thread; None where there are more than `most` threads."""
        found: dict[int, int] = {}
        for thread, text in self._of_threads(processes, "schedstat"):
            if len(found) >= most:
                return None
            found[thread] = waited_ns(text)
        return found

    def states(self, processes: Iterable[int]) -> dict[int, str]:
        """The state letter of every thread: R runs or wants to, throttled or not; S and D sleep."""
        # the name in parentheses may hold anything, a parenthesis too: the state follows the last one
        return {thread: text.rpartition(")")[2].split()[0] for thread, text in self._of_threads(processes, "stat")}

    def _of_threads(self, processes: Iterable[int], file: str) -> Iterator[tuple[int, str]]:
        for process in processes:
            threads: list[str] = []
            with contextlib.suppress(*_GONE):
                threads = os.listdir(f"{self._base}/{process}/task")
            for thread in threads:
                with contextlib.suppress(*_GONE):
                    yield int(thread), _read(f"{self._base}/{process}/task/{thread}/{file}")

    def idle_us(self) -> int:
        """CPU time that all CPUs of the machine had nothing to do, since it started; idle and waiting for disks."""
        return self.cpu_us()[0]

    def cpu_us(self) -> tuple[int, int]:
        """CPU time of all CPUs of the machine since it started: idle, and altogether, with what a hypervisor took."""
        fields = _read(f"{self._base}/stat").split("\n", 1)[0].split()
        ticks = [int(each) for each in fields[1:9]]  # what follows, guests, is part of the first two
        tick = 1_000_000 // os.sysconf("SC_CLK_TCK")
        return (ticks[3] + ticks[4]) * tick, sum(ticks) * tick

    def pressure(self) -> Pressure | None:
        """CPU pressure of the whole machine; None where the kernel has no PSI."""
        try:
            text = _read(f"{self._base}/pressure/cpu")
        except OSError:  # EOPNOTSUPP: built in and switched off
            return None
        lines = {line.split()[0]: dict(part.split("=") for part in line.split()[1:]) for line in text.splitlines()}
        some, full = lines["some"], lines.get("full", {})
        return Pressure(
            float(some["avg10"]), int(some["total"]), float(full.get("avg10", 0)), int(full.get("total", 0))
        )


def _read(path: str) -> str:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        return os.read(descriptor, _LONGEST).decode(errors="replace")
    finally:
        os.close(descriptor)
