"""A task is a container, which has a group already, or a process group, which gets one for as long as it is a task."""

from __future__ import annotations

import contextlib
from typing import Self

from bayplan.node.cgroup.port import Group, GroupGoneError, Tree, WriteRefusedError


class Task:
    """What a tier applies to."""

    def __init__(self, task_id: str, path: str, processes: tuple[int, ...] = ()) -> None:
        self.id, self.path = task_id, path
        self._processes = processes
        self._homes: dict[int, str] = {}

    @classmethod
    def container(cls, task_id: str, path: str) -> Self:
        """A container by its group."""
        return cls(task_id, path)

    @classmethod
    def process_group(cls, task_id: str, path: str, processes: tuple[int, ...]) -> Self:
        """Processes that are moved into a group of their own at `path`."""
        return cls(task_id, path, processes)

    def enter(self, tree: Tree) -> Group:
        """The task's group; a process group is moved into it. Raises GroupGoneError, WriteRefusedError."""
        if not self._processes:
            return tree.group(self.path)
        self._homes = {
            pid: group.path for group in tree.walk() for pid in group.processes() if pid in set(self._processes)
        }
        group = tree.create(self.path)
        for pid in self._processes:
            group.add(pid)
        return group

    def leave(self, tree: Tree) -> None:
        """Move a process group, and what it has started since, back home; its group is removed."""
        if not self._processes:
            return
        with contextlib.suppress(GroupGoneError):
            while processes := tree.group(self.path).processes():  # again: they may start others while they are moved
                for pid in processes:
                    self._send_home(tree, pid)
            tree.remove(self.path)

    def _send_home(self, tree: Tree, pid: int) -> None:
        """Back where it was, or where the task was, or to the root; nowhere, where it has ended meanwhile."""
        for home in (self._homes.get(pid), *self._homes.values(), "/"):
            try:
                if home is not None:
                    tree.group(home).add(pid)
                    return
            except GroupGoneError:
                continue
            except WriteRefusedError:
                if pid in tree.group(self.path).processes():
                    raise
                return
