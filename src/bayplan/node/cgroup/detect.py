"""Which control groups this machine has, and which of them may be written."""

from __future__ import annotations

import os

import msgspec

from bayplan.model.errors import PermanentError
from bayplan.node.cgroup.files import OsFiles, clean, join
from bayplan.node.cgroup.mounts import Mount, places_of, read_mounts
from bayplan.node.cgroup.v1 import CONTROLLERS as V1_CONTROLLERS
from bayplan.node.cgroup.v1 import V1Tree
from bayplan.node.cgroup.v2 import V2Tree


class NoTreeError(PermanentError):
    """No control groups are mounted where they are looked for."""

    code = "BP-N033"


class Survey(msgspec.Struct, frozen=True):
    """What is mounted below a root.

    `hybrid`: controllers are in hierarchies of version 1, and one of version 2 stands beside them without those.
    `own`: the group of this very process, per controller of version 1, under the empty text in version 2.
    """

    version: int
    hybrid: bool
    mounts: dict[str, str]
    controllers: tuple[str, ...]
    writable: bool
    own: dict[str, str]


def survey(root: str = "/sys/fs/cgroup", proc: str = "/proc") -> Survey:
    """Look, and write nothing. Raises NoTreeError."""
    found = [each for each in read_mounts(proc) if f"{each.point}/".startswith(f"{root.rstrip('/')}/")]
    first = {controller: each for each in reversed(found) if each.version == 1 for controller in each.controllers}
    used = {each: first[each] for each in V1_CONTROLLERS if each in first}
    unified = [each for each in found if each.version == 2]
    own = places_of("self", proc)
    if used:
        mounts = {controller: each.point for controller, each in used.items()}
        return Survey(1, bool(unified), mounts, tuple(used), all(map(_writable, used.values())), own)
    if unified:
        mount = unified[0]
        there = tuple(OsFiles().read(f"{mount.point}/cgroup.controllers").split())
        return Survey(2, False, {"": mount.point}, there, _writable(mount), own)
    raise NoTreeError(f"no control groups are mounted below {root}", hint=f"mount -t cgroup2 none {root}")


def _writable(mount: Mount) -> bool:
    return mount.writable and os.access(mount.point, os.W_OK)


def find_tree(root: str = "/sys/fs/cgroup", *, within: str = "/", proc: str = "/proc") -> V1Tree | V2Tree:
    """The tree of control groups mounted below `root`, or only the part of it that starts at the group `within`."""
    seen = survey(root, proc)
    files, part = OsFiles(), clean(within)
    if seen.version == 1:
        return V1Tree(files, {controller: join(point, part) for controller, point in seen.mounts.items()})
    return V2Tree(files, join(seen.mounts[""], part))
