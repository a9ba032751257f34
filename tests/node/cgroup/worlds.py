"""Where the contract is tried: two fakes, and whatever control groups this machine lets us write."""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Protocol

import pytest

from bayplan.node.cgroup.detect import NoTreeError, find_tree, survey
from bayplan.node.cgroup.fake import FakeTree
from bayplan.node.cgroup.port import UnsupportedError
from bayplan.node.cgroup.v1 import V1Group, V1Tree
from bayplan.node.cgroup.v2 import V2Group, V2Tree

FileTree = V1Tree | V2Tree | FakeTree
FileGroup = V1Group | V2Group


class World(Protocol):
    """A tree, a group of our own in it, and processes."""

    tree: FileTree
    base: str
    real: bool

    def sleeper(self) -> int:
        """A new process that does nothing."""
        ...


class FakeWorld:
    """Groups in memory."""

    real = False

    def __init__(self, version: int) -> None:
        self.tree: FileTree = FakeTree(version, cpus=0b1111, mems=0b11)
        self.base = "/t"
        self.tree.create(self.base)

    def sleeper(self) -> int:
        assert isinstance(self.tree, FakeTree)
        return self.tree.spawn()


class RealWorld:
    """Groups of this machine, below one of our own."""

    real = True

    def __init__(self) -> None:
        self.tree: FileTree = find_tree()
        self.base = f"/bayplan-test-{secrets.token_hex(4)}"
        self.started: list[subprocess.Popen[bytes]] = []
        self.tree.create(self.base)

    def start(self, code: str) -> subprocess.Popen[bytes]:
        """A Python process."""
        process = subprocess.Popen([sys.executable, "-S", "-E", "-c", code])
        self.started.append(process)
        return process

    def sleeper(self) -> int:
        return self.start("import time; time.sleep(600)").pid

    def spinner(self) -> int:
        """A process that takes all the CPU it gets."""
        return self.start("while True: pass").pid

    def close(self) -> None:
        """End the processes and remove the groups, deepest first."""
        sweep(self.tree, self.base, self.started)


def sweep(tree: FileTree, base: str, started: list[subprocess.Popen[bytes]]) -> None:
    """End processes and remove a group with all below it, deepest first."""
    for process in started:
        process.kill()
    for group in list(tree.walk(base)):
        with contextlib.suppress(UnsupportedError):  # a group that was only half made
            group.freeze(False)
        for pid in group.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    for process in started:
        process.wait()
    for group in reversed(list(tree.walk(base))):
        until(partial(_is_empty, group), "the processes of the test have ended")
        tree.remove(group.path)


def _is_empty(group: FileGroup) -> bool:
    return not group.processes()


def until(holds: Callable[[], bool], what: str) -> None:
    """Wait for what the kernel does in its own time; the bound only ends a test that hangs."""
    for _ in range(3000):
        if holds():
            return
        time.sleep(0.01)
    pytest.fail(f"never: {what}")


def real_version() -> int:
    """The version of the control groups that can be written here; 0: none."""
    try:
        seen = survey()
    except NoTreeError:
        return 0
    return seen.version if seen.writable and {"cpu", "cpuset", "memory"} <= set(seen.controllers) else 0


def open_real() -> Iterator[RealWorld]:
    """The real world, or a skip that says why."""
    if not real_version():
        pytest.skip("no writable cpu, cpuset and memory groups here: run as root, or make test-cgroup2")
    world = RealWorld()
    try:
        yield world
    finally:
        world.close()
