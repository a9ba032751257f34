"""Throttling explained and ended: three real processes on real control groups, each throttled for another reason.

bayplan looks, names the cause, applies its own advice for as long, and undoes it. The two rates are the figures.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec

from bayplan.agent.probe import Tried, try_remedy
from bayplan.model.clock import SystemClock
from bayplan.model.errors import BayplanError
from bayplan.node.cgroup.detect import find_tree
from bayplan.node.cgroup.port import Bandwidth, Group
from bayplan.node.throttling.causes import Cause
from benchmarks import throttling_load
from benchmarks.measure import Effort
from benchmarks.report import OURS, Line, Sort, Table

NAME = "throttling"

_FULL_SECONDS = 6.0
_GOAL = 1.0
"""Per cent of periods that may be throttled with the advice."""


class Workload(msgspec.Struct, frozen=True):
    """What a process does, under which limit, and why that throttles it."""

    name: str
    threads: int
    work: float
    pause: float
    bandwidth: Bandwidth
    cause: Cause

    @contextlib.contextmanager
    def running(self) -> Iterator[Group]:
        """The process at work in a group of its own; both are gone afterwards."""
        tree = find_tree()
        path = f"/bayplan-throttling-{os.getpid()}-{self.cause}"
        group = tree.create(path)
        arguments = [str(each) for each in (self.threads, self.work, self.pause)]
        process = subprocess.Popen([sys.executable, str(Path(throttling_load.__file__)), *arguments])
        try:
            time.sleep(0.5)  # the interpreter's own start is no part of the load
            group.set_bandwidth(self.bandwidth)
            group.set_weight(10_000)  # the load of others must not stand in for the limit
            group.add(process.pid)
            yield group
        finally:
            process.kill()
            process.wait()
            time.sleep(0.05)
            tree.remove(path)


WORKLOADS = (
    Workload("one thread that never rests, limit 0.3", 1, 1.0, 0.0, Bandwidth(30_000), Cause.LIMIT_TOO_LOW),
    Workload("4 threads, 25 ms each, every 0.5 s, limit 0.7", 4, 0.025, 0.4, Bandwidth(70_000), Cause.THREADS_TOGETHER),
    Workload("one thread, 60 ms every 0.3 s, limit 0.4", 1, 0.06, 0.25, Bandwidth(40_000), Cause.PERIOD_TOO_SHORT),
)


def tried(workload: Workload, seconds: float) -> Tried:
    """The workload explained, and the advice tried on it."""
    with workload.running() as group:
        return asyncio.run(try_remedy(find_tree(), group.path, SystemClock(), round(seconds * 1_000_000)))


def run(effort: Effort) -> Table:
    """Throttled periods in per cent, before and with the advice."""
    seconds = max(2.0, _FULL_SECONDS * effort.scale)
    lines, notes = [], []
    for workload in WORKLOADS:
        values: tuple[float | None, float | None] = (None, None)
        try:
            found = tried(workload, seconds)
        except (BayplanError, OSError) as refused:
            notes.append(f"{workload.name}: not measured: {refused}")
        else:
            values = 100 * found.before.throttle_rate, 100 * found.after.throttle_rate
            notes.append(f"{workload.name}: {found.before.cause}: {found.before.summary}; {found.remedy.why}")
            notes += [f"  {reason}" for reason in found.before.reasons]
        lines.append(Line(workload.name, OURS, Sort.EACH, values, goal=_GOAL))
    title = f"periods throttled, per cent, over {seconds:.0f} s each"
    return Table(NAME, title, ("before", "with the advice"), tuple(lines), notes=tuple(notes))
