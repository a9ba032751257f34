"""Real processes that use CPU in a control group: spikes with rest between them, or one unit of work after another.

A process waits until it is in its group, then does units of so much CPU time each and says how long each took. The
demonstrations' groups are children of one with a large weight, so that whatever else runs here takes little from them.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import msgspec

from bayplan.model.errors import BayplanError
from bayplan.node.cgroup.detect import find_tree, survey
from bayplan.node.cgroup.port import Group, GroupGoneError, Tree

ROOT = f"/bayplan-demonstration-{os.getpid()}"
NO_GROUPS = "control groups are not writable here: nothing was measured"

# Nothing but the standard library, and no site: a start that costs little of the quota.
_WORKER = """
import json, sys, time
unit, every, lasts, cpu = json.loads(sys.argv[1])
if cpu is not None:
    import os
    os.sched_setaffinity(0, {cpu})
sys.stdin.readline()
begun = due = time.monotonic()
found = []
while due - begun < lasts and time.monotonic() - begun < lasts:
    start, enough = time.monotonic(), time.thread_time() + unit
    while time.thread_time() < enough:
        pass
    found.append((start - begun, time.monotonic() - max(begun, min(start, due if every else start))))
    due = due + every if every else time.monotonic()
    time.sleep(max(0, due - time.monotonic()))
print(json.dumps(found))
"""


class Work(msgspec.Struct, frozen=True):
    """What each process does: units of so many seconds of CPU, one every so often (0: at once), for so long."""

    unit: float
    every: float
    lasts: float
    processes: int = 1
    cpu: int | None = None
    """The one CPU to run on; None: any."""


class Unit(msgspec.Struct, frozen=True, array_like=True):
    """When a unit began, and how long after it was due it was done; in seconds."""

    at: float
    took: float


_UNITS = msgspec.json.Decoder(list[Unit])


class Running:
    """Processes at work in a group."""

    def __init__(self, group: Group, work: Work) -> None:
        told = msgspec.json.encode([work.unit, work.every, work.lasts, work.cpu]).decode()
        command = [sys.executable, "-I", "-S", "-c", _WORKER, told]
        self._processes = [
            subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) for _ in range(work.processes)
        ]
        for process in self._processes:
            group.add(process.pid)

    def go(self) -> None:
        """Begin, all at once."""
        for process in self._processes:
            assert process.stdin is not None
            process.stdin.write(b"\n")
            process.stdin.flush()

    def end(self) -> None:
        """End at once; what was done is lost."""
        for process in self._processes:
            process.kill()
            process.communicate()

    def units(self) -> list[Unit]:
        """Wait for the end; what was done, by when it began."""
        found = [unit for process in self._processes for unit in _UNITS.decode(process.communicate()[0])]
        return sorted(found, key=lambda unit: unit.at)


def are_groups_writable() -> bool:
    """Whether this machine lets us make groups."""
    try:
        return survey().writable
    except BayplanError:
        return False


@contextmanager
def real_groups(*names: str, weight: int = 10_000) -> Iterator[tuple[Tree, list[Group]]]:
    """A real tree and fresh groups in it, which are removed at the end."""
    tree = find_tree()
    tree.create(ROOT).set_weight(weight)
    paths = [f"{ROOT}/{name}" for name in names]
    try:
        yield tree, [tree.create(path) for path in paths]
    finally:
        for path in (*paths, ROOT):
            with suppress(GroupGoneError):
                tree.remove(path)


def percentile(values: list[float], share: float) -> float:
    """The value that so large a share does not exceed."""
    ranked = sorted(values)
    return ranked[min(len(ranked) - 1, int(len(ranked) * share))] if ranked else 0.0
