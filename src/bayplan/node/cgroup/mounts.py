"""Where control groups are mounted, from /proc/self/mountinfo, and where a process is, from /proc/PID/cgroup."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

import msgspec


class Mount(msgspec.Struct, frozen=True):
    """One mounted hierarchy. `root` is the group that shows at `point`: a part of all in a container."""

    point: str
    root: str
    version: int
    controllers: frozenset[str]
    writable: bool

    def group_of(self, path: str) -> str | None:
        """The directory here of a group named from the hierarchy's root; None: it is not in the part mounted here."""
        inside = os.path.relpath(path, self.root)
        return None if path.startswith("/..") or inside.startswith("..") else os.path.normpath(f"{self.point}/{inside}")


def read_mounts(proc: str = "/proc") -> tuple[Mount, ...]:
    """The control group hierarchies that this process sees."""
    return tuple(parse_mounts(Path(f"{proc}/self/mountinfo").read_text().splitlines()))


def parse_mounts(lines: Iterable[str]) -> Iterable[Mount]:
    """Read mountinfo (proc_pid_mountinfo(5)): fields, a dash, type, source, the file system's options."""
    for line in lines:
        left, _, right = line.partition(" - ")
        _, _, _, root, point, options, *_ = left.split(" ")
        kind, _, super_options = right.split(" ", 2)
        if kind not in ("cgroup", "cgroup2"):
            continue
        words = frozenset(super_options.split(","))
        yield Mount(
            point=_unescape(point),
            root=_unescape(root),
            version=1 if kind == "cgroup" else 2,
            controllers=words - {"rw", "ro"} if kind == "cgroup" else frozenset(),
            writable="rw" in options.split(",") and "rw" in words,
        )


def _unescape(text: str) -> str:
    for code, character in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        text = text.replace(code, character)
    return text


def places_of(pid: int | str, proc: str = "/proc") -> dict[str, str]:
    """Controller -> group of a process; the key of version 2 is the empty text. Raises OSError when it is gone."""
    places = {}
    for line in Path(f"{proc}/{pid}/cgroup").read_text().splitlines():
        _, controllers, group = line.split(":", 2)
        places.update(dict.fromkeys(controllers.split(","), group))
    return places
