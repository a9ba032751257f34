"""A tree whose every write is journalled, and the undoing of what a journal holds.

with JournalledTree.open(find_tree(), Path("/run/bayplan/groups.journal")) as tree:   # undoes what a dead process left
    tree.group("/kubepods/pod1/c1").set_bandwidth(...)                                # undone at the end
"""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from bayplan.node.cgroup.files import PROCESSES, Files
from bayplan.node.cgroup.journal import Change, Enabled, Entry, Journal, Made, Moved, Removed, compact
from bayplan.node.cgroup.trees import FileGroup, FileTree

SUBTREE = "cgroup.subtree_control"
QUOTA = "cpu.cfs_quota_us"


class JournalledFiles:
    """Files that write down what they are about to do."""

    def __init__(self, files: Files, journal: Journal) -> None:
        self.files = files
        self.journal = journal

    def read(self, path: str) -> str:
        return self.files.read(path)

    def write(self, path: str, value: str) -> None:
        directory, _, file = path.rpartition("/")
        if file == PROCESSES:
            self._note_move(int(value), directory)
        else:
            before = _own_value(self.files, path)
            if file == SUBTREE:
                on = before.split()
                self.journal.append(Enabled(path, tuple(each[1:] for each in value.split() if each[1:] not in on)))
            elif before != value:
                self.journal.append(Change(path, before, before, value))
        self.files.write(path, value)

    def _note_move(self, pid: int, directory: str) -> None:
        with contextlib.suppress(FileNotFoundError):  # the process is gone: the write will say so
            home = self.files.home(pid, directory)
            if home is not None and home != directory:
                self.journal.append(Moved(pid, home, directory))

    def make(self, path: str) -> None:
        if self.files.is_group(path):
            raise FileExistsError(errno.EEXIST, path)  # not ours to undo
        self.journal.append(Made(path))
        try:
            self.files.make(path)
        except OSError:
            self.journal.append(Removed(path))
            raise

    def remove(self, path: str) -> None:
        self.files.remove(path)
        self.journal.append(Removed(path))

    def is_group(self, path: str) -> bool:
        return self.files.is_group(path)

    def children(self, path: str) -> tuple[str, ...]:
        return self.files.children(path)

    def home(self, pid: int, like: str) -> str | None:
        return self.files.home(pid, like)


class Foreign(msgspec.Struct, frozen=True):
    """A value that someone else has changed since: it was left as found."""

    path: str
    found: str
    ours: str
    before: str


class Undone(msgspec.Struct, frozen=True):
    """What became of a journal. `stuck` stays in it, with the kernel's word: undo again later.

    `widened` are sets that were empty, which version 2 does not let them be again while processes run there: they have
    the parent's now, which is what empty meant.
    """

    restored: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    foreign: tuple[Foreign, ...] = ()
    stuck: tuple[tuple[str, str], ...] = ()
    widened: tuple[str, ...] = ()


def undo(journal: Journal, files: Files) -> Undone:
    """Put everything back that the journal holds, and forget it. Doing it again does nothing."""
    undoing = _Undoing(journal, files)
    undoing.run()
    stuck = [(undoing.place_of(each), undoing.stuck[each]) for each in undoing.pending]
    journal.keep_only(reversed(undoing.pending))
    return Undone(
        tuple(undoing.restored), tuple(undoing.gone), tuple(undoing.foreign), tuple(stuck), tuple(undoing.widened)
    )


class _Undoing:
    """Latest first; what the kernel refuses is tried again after the rest, since one value may wait for another."""

    def __init__(self, journal: Journal, files: Files) -> None:
        self.journal = journal
        self.files = files
        self.pending = list(reversed(compact(journal.entries)))
        self.made = {each.path for each in self.pending if isinstance(each, Made)}
        self.stuck: dict[Entry, str] = {}
        self.restored: list[str] = []
        self.gone: list[str] = []
        self.foreign: list[Foreign] = []
        self.widened: list[str] = []

    def run(self) -> None:
        lifted = False
        while self.pending:
            left = [each for each in self.pending if not self._attempt(each)]
            if len(left) == len(self.pending):
                if lifted:
                    return
                left, lifted = self._lift_quotas(left), True
            self.pending = left

    @staticmethod
    def place_of(entry: Entry) -> str:
        """The file or group that an entry is about."""
        return f"{entry.new}/{PROCESSES}" if isinstance(entry, Moved) else entry.path

    def _attempt(self, entry: Entry) -> bool:
        """Undo one entry; False: the kernel refuses now."""
        try:
            match entry:
                case Change():
                    self._write_back(entry)
                case Made(path):
                    self.files.remove(path)
                    self.restored.append(path)
                case Enabled():
                    self._disable(entry)
                case Moved(pid, old, new) if self.files.home(pid, new) == new:
                    self.files.write(f"{old}/{PROCESSES}", str(pid))
                    self.restored.append(f"{new}/{PROCESSES}")
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.ENODEV, errno.ESRCH):
                self.gone.append(self.place_of(entry))
            else:
                self.stuck[entry] = errno.errorcode.get(error.errno or 0, str(error))
                return False
        self.stuck.pop(entry, None)
        return True

    def _write_back(self, entry: Change) -> None:
        if entry.path.rpartition("/")[0] in self.made:
            return  # it goes with its group
        found = _own_value(self.files, entry.path)
        if found == entry.old:
            return
        if found not in (entry.last, entry.new):
            self.foreign.append(Foreign(entry.path, found, entry.new, entry.old))
            return
        try:
            self.files.write(entry.path, entry.old)
        except OSError as error:
            if error.errno != errno.ENOSPC or entry.old:
                raise
            directory, _, file = entry.path.rpartition("/")
            self.files.write(entry.path, self.files.read(f"{directory.rpartition('/')[0]}/{file}.effective"))
            self.widened.append(entry.path)
        else:
            self.restored.append(entry.path)

    def _disable(self, entry: Enabled) -> None:
        directory = entry.path.rpartition("/")[0]
        others = [each for each in self.files.children(directory) if f"{directory}/{each}" not in self.made]
        found = self.files.read(entry.path)
        on = [each for each in entry.controllers if each in found.split()]
        if others and on:
            self.foreign.append(Foreign(entry.path, found, " ".join(entry.controllers), "not passed on"))
        elif on:
            self.files.write(entry.path, " ".join(f"-{each}" for each in on))
            self.restored.append(entry.path)

    def _lift_quotas(self, stuck: list[Entry]) -> list[Entry]:
        """Quota and period of one group can block each other: without a quota every period is valid."""
        journalled = JournalledFiles(self.files, self.journal)
        result: list[Entry] = []
        for entry in stuck:
            if isinstance(entry, Change) and entry.path.endswith(f"/{QUOTA}"):
                journalled.write(entry.path, "-1")
                result.append(Change(entry.path, entry.old, "-1", "-1"))
            else:
                result.append(entry)
        return result


def _own_value(files: Files, path: str) -> str:
    """What was last written to a file, without what the kernel makes of it.

    The state of a freezer is also that of those above it, and on its way for a while; a partition may be invalid.
    """
    if path.endswith("/freezer.state"):
        own = files.read(path.replace("/freezer.state", "/freezer.self_freezing"))
        return "FROZEN" if own == "1" else "THAWED"
    value = files.read(path)
    return value.partition(" ")[0] if path.endswith("/cpuset.cpus.partition") else value


class JournalledTree:
    """A tree whose writes are journalled, and undone when it is closed."""

    def __init__(self, tree: FileTree, journal: Journal) -> None:
        self._bare = tree
        self._tree = tree.over(JournalledFiles(tree.files, journal))
        self.journal = journal
        self.recovered = undo(journal, tree.files)
        """What an earlier process had left, undone at the start."""

    @classmethod
    def open(cls, tree: FileTree, path: Path) -> Self:
        """Undo what an earlier process left, and begin. Raises BusyJournalError, CorruptJournalError."""
        journal = Journal(path)
        try:
            return cls(tree, journal)
        except BaseException:
            journal.close()
            raise

    @property
    def version(self) -> int:
        return self._tree.version

    def group(self, path: str) -> FileGroup:
        return self._tree.group(path)

    def create(self, path: str) -> FileGroup:
        return self._tree.create(path)

    def remove(self, path: str) -> None:
        self._tree.remove(path)

    def walk(self, path: str = "/") -> Iterator[FileGroup]:
        return self._tree.walk(path)

    def undo(self) -> Undone:
        """Put everything back, and go on with an empty journal."""
        return undo(self.journal, self._bare.files)

    def close(self) -> Undone:
        """Put everything back and let go of the journal."""
        try:
            return self.undo()
        finally:
            self.journal.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
