"""The single seam between control groups and the kernel: files that are read and written, directories made and removed.

`v1` and `v2` say which file means what; whatever is below them, the kernel (`OsFiles`), a journal or the fake, is a
`Files`. Here, too, an errno becomes an error that says what happened and what to do.
"""

from __future__ import annotations

import errno
import os
from typing import NoReturn, Protocol

from bayplan.node.cgroup.mounts import Mount, places_of, read_mounts
from bayplan.node.cgroup.port import GroupGoneError, UnsupportedError, WriteRefusedError

PROCESSES = "cgroup.procs"

HINTS = {
    "EACCES": "run as root, or in a group that was delegated to you",
    "EBUSY": "children or processes still need it: remove them, or narrow the children first",
    "EINVAL": "the value breaks a rule of the kernel: see docs/cgroups.md, What the kernel refuses",
    "ENOSPC": "give the group CPUs and memory nodes before processes, and take processes out before CPUs",
    "ENOENT": "the parent does not have this controller: enable it from the root down",
    "EOPNOTSUPP": "the group or an ancestor is threaded: domain controllers do not work there",
    "EPERM": "run as root, or in a group that was delegated to you",
    "ERANGE": "the number is outside what the kernel knows on this machine",
    "EROFS": "control groups are mounted read-only here: mount them writable, or observe only",
    "ESRCH": "the process is gone",
}
_PARENT_FIRST = "the parent must have these, or be exclusive, first: widen from the top, narrow from the bottom"
SPECIAL_HINTS = {
    ("cpuset.cpus", "EACCES"): _PARENT_FIRST,
    ("cpuset.mems", "EACCES"): _PARENT_FIRST,
    ("cpuset.cpu_exclusive", "EACCES"): _PARENT_FIRST,
    (
        "cpu.cfs_quota_us",
        "EINVAL",
    ): "a group's quota/period may not exceed its parent's, nor be below its children's, nor "
    "below its burst, nor below 1 ms; the period is 1 ms to 1 s",
    ("cpu.cfs_burst_us", "EINVAL"): "the burst may not exceed the quota",
    ("cpu.max.burst", "EINVAL"): "the burst may not exceed the quota",
    ("cpuset.cpu_exclusive", "EINVAL"): "a sibling has some of these CPUs: take them away from it first",
    ("cpuset.cpus", "EINVAL"): "a sibling has some of these CPUs for itself",
    ("cpuset.mems", "EINVAL"): "a memory node that does not exist here, or one that a sibling has for itself",
    ("memory.limit_in_bytes", "EBUSY"): "more is in use than the limit: end processes or choose a higher limit",
    ("memory.limit_in_bytes", "EINVAL"): "the limit may not exceed memory.memsw.limit_in_bytes",
    ("cgroup.subtree_control", "EBUSY"): "the group has processes of its own: move them into a leaf first",
    (PROCESSES, "EBUSY"): "groups that pass controllers on hold no processes: choose a leaf",
    (PROCESSES, "EINVAL"): "no such process can join: a kernel thread, or a realtime one without a realtime budget",
}


class Files(Protocol):
    """Files by absolute path. Every call raises OSError as the kernel does."""

    def read(self, path: str) -> str:
        """All of a file, without white space around it."""
        ...

    def write(self, path: str, value: str) -> None:
        """One write of the whole value."""
        ...

    def make(self, path: str) -> None:
        """Make a group: FileExistsError where it is."""
        ...

    def remove(self, path: str) -> None:
        """Remove an empty group."""
        ...

    def is_group(self, path: str) -> bool:
        """Whether the directory exists."""
        ...

    def children(self, path: str) -> tuple[str, ...]:
        """The names of the groups directly below, sorted."""
        ...

    def home(self, pid: int, like: str) -> str | None:
        """The directory of a process in the hierarchy that holds the directory `like`; None: unknown here."""
        ...


class OsFiles:
    """The kernel's own files."""

    def __init__(self) -> None:
        self._mounts: tuple[Mount, ...] | None = None

    def read(self, path: str) -> str:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            pieces = []
            while piece := os.read(descriptor, 65_536):
                pieces.append(piece)
        finally:
            os.close(descriptor)
        return b"".join(pieces).decode().strip()

    def write(self, path: str, value: str) -> None:
        descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.write(descriptor, f"{value}\n".encode())  # a write of no bytes would not reach the kernel
        finally:
            os.close(descriptor)

    def make(self, path: str) -> None:
        os.mkdir(path)

    def remove(self, path: str) -> None:
        os.rmdir(path)

    def is_group(self, path: str) -> bool:
        return os.path.isdir(path)

    def children(self, path: str) -> tuple[str, ...]:
        with os.scandir(path) as entries:
            return tuple(sorted(each.name for each in entries if each.is_dir(follow_symlinks=False)))

    def home(self, pid: int, like: str) -> str | None:
        if self._mounts is None:
            self._mounts = read_mounts()
        around = [each for each in self._mounts if f"{like}/".startswith(f"{each.point}/")]
        if not around:
            return None
        mount = max(around, key=lambda each: len(each.point))
        places = places_of(pid)
        group = next((places[key] for key in mount.controllers or {""} if key in places), None)
        return None if group is None else mount.group_of(group)


def refuse(files: Files, directory: str, file: str, value: str, error: OSError) -> NoReturn:
    """Raise what a failed read (no value) or write means to the caller."""
    word = errno.errorcode.get(error.errno or 0, str(error.errno))
    if error.errno == errno.ENODEV or not files.is_group(directory):
        raise GroupGoneError(f"group {directory} is gone", hint="its container ended; look for groups anew") from error
    if error.errno == errno.ENOENT and file != "cgroup.subtree_control":
        raise UnsupportedError(
            f"group {directory} has no {file}",
            hint="the kernel does not know it, or the parent's cgroup.subtree_control does not pass the controller on",
        ) from error
    hint = SPECIAL_HINTS.get((file, word), HINTS.get(word, ""))
    what = f'{directory}/{file}: the kernel refuses "{value}": {word}' if file else f"{directory}: {value}: {word}"
    raise WriteRefusedError(what, hint=hint) from error


class Directory:
    """One group in one hierarchy: reads and writes with errors of the port."""

    __slots__ = ("files", "path")

    def __init__(self, files: Files, path: str) -> None:
        self.files = files
        self.path = path

    def read(self, file: str) -> str:
        """A file's text. Raises GroupGoneError, UnsupportedError."""
        try:
            return self.files.read(f"{self.path}/{file}")
        except OSError as error:
            refuse(self.files, self.path, file, "a read", error)

    def number(self, file: str, without: int | None = None) -> int:
        """A file with one number; `without` where this kernel does not have it, if that is given."""
        try:
            return int(self.read(file))
        except UnsupportedError:
            if without is None:
                raise
            return without

    def table(self, file: str) -> dict[str, int]:
        """A file with a name and a number on each line."""
        return {key: int(value) for key, value in (line.split() for line in self.read(file).splitlines())}

    def write(self, file: str, value: str | int) -> None:
        """Write a value. Raises GroupGoneError, UnsupportedError, WriteRefusedError."""
        try:
            self.files.write(f"{self.path}/{file}", str(value))
        except OSError as error:
            refuse(self.files, self.path, file, str(value), error)

    def write_all(self, steps: list[tuple[str, str]]) -> None:
        """Write values one after the other; where one is refused, put the earlier ones back and raise."""
        done: list[tuple[str, str]] = []
        try:
            for file, value in steps:
                before = self.read(file)
                self.write(file, value)
                done.append((file, before))
        except (WriteRefusedError, UnsupportedError):
            for file, before in reversed(done):
                self.write(file, before)
            raise

    def has(self, file: str) -> bool:
        """Whether this kernel has the file here."""
        try:
            self.files.read(f"{self.path}/{file}")
        except FileNotFoundError:
            return False
        except OSError:
            return True
        return True


def join(root: str, path: str) -> str:
    """The directory of a group: `path` from the tree's root."""
    return root + path if path != "/" else root


def clean(path: str) -> str:
    """A group's path as the port writes it: absolute, without . and .. and a slash at the end."""
    return os.path.normpath("/" + path.lstrip("/"))
