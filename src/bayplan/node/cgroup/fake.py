"""Control groups in memory: the same trees as on a machine, over a kernel that is a dictionary and fails on demand.

`FakeTree(version=1)` and `FakeTree(version=2)` obey the kernel's rules (`fake_rules`) and are a `Tree` like any other:
what is tested here behaves the same on the machine, and one contract suite sees to that.
"""

from __future__ import annotations

import copy
import errno
from collections.abc import Iterator
from itertools import count

from bayplan.node.cgroup.fake_rules import (
    V1_DEFAULTS,
    V1_READERS,
    V1_WRITERS,
    V2_DEFAULTS,
    V2_READERS,
    V2_WRITERS,
    Node,
    Reader,
    fail,
    passed_on,
)
from bayplan.node.cgroup.files import PROCESSES, Files, clean
from bayplan.node.cgroup.port import Counters, Pressure
from bayplan.node.cgroup.v1 import V1Group, V1Tree
from bayplan.node.cgroup.v2 import V2Group, V2Tree
from bayplan.node.sets import CpuSet, NodeSet, format_list

UNIFIED = "/unified"


class FakeFiles:
    """The kernel's files in memory: hierarchies by mount point (/cpu, /cpuset ... or /unified)."""

    def __init__(self, version: int, cpus: CpuSet, mems: NodeSet) -> None:
        self.version = version
        self.machine = (cpus, mems)
        self.faults: dict[tuple[str, str, bool], int] = {}
        self.vanishing: dict[str, int] = {}
        self.roots: dict[str, Node] = {}
        for point in [UNIFIED] if version == 2 else [f"/{each}" for each in V1_DEFAULTS]:
            self.roots[point] = Node(None, self._defaults(point, None), cpus, mems)
        for root in self.roots.values():
            if "cpuset.cpus" in root.values and version == 1:
                top = {"cpuset.cpus": format_list(cpus), "cpuset.mems": format_list(mems), "cpuset.cpu_exclusive": "1"}
                root.values.update(top)

    def _defaults(self, point: str, parent: Node | None) -> dict[str, str]:
        if self.version == 1:
            return dict(V1_DEFAULTS[point.removeprefix("/")])
        controllers = () if parent is None else parent.values["cgroup.subtree_control"].split()
        return {file: value for each in ("", *controllers) for file, value in V2_DEFAULTS[each].items()}

    def _split(self, path: str) -> tuple[str, str]:
        point = "/" + path.split("/", 2)[1]
        if point not in self.roots:
            fail(errno.ENOENT)
        return point, path.removeprefix(point) or "/"

    def node(self, path: str) -> Node:
        """The group of a directory. Raises FileNotFoundError."""
        point, group = self._split(path)
        self._count_down(group)
        node = self.roots[point]
        for name in group.strip("/").split("/") if group != "/" else ():
            if name not in node.children:
                fail(errno.ENOENT)
            node = node.children[name]
        return node

    def _count_down(self, group: str) -> None:
        if group in self.vanishing:
            self.vanishing[group] -= 1
            if self.vanishing[group] < 0:
                del self.vanishing[group]
                self.cut(group)

    def cut(self, group: str) -> None:
        """Take a group and all below it away, with its processes."""
        above, _, name = group.rpartition("/")
        for point in self.roots:
            try:
                self.node(f"{point}{above}").children.pop(name, None)
            except FileNotFoundError:
                continue

    def _fault(self, path: str, file: str, *, writing: bool) -> None:
        number = self.faults.get((self._split(path)[1], file, writing))
        if number is not None:
            fail(number)

    def read(self, path: str) -> str:
        directory, _, file = path.rpartition("/")
        node = self.node(directory)
        self._fault(directory, file, writing=False)
        if file == PROCESSES:
            return "\n".join(map(str, sorted(node.pids)))
        reader = self._readers(directory, node).get(file)
        if reader is not None:
            return reader(node)
        if file not in node.values:
            fail(errno.ENOENT)
        return node.values[file]

    def _readers(self, directory: str, node: Node) -> dict[str, Reader]:
        if self.version == 1:
            return V1_READERS[self._split(directory)[0].removeprefix("/")]
        there = {file: reader for each in ("", *passed_on(node)) for file, reader in V2_READERS.get(each, {}).items()}
        if node.parent is None:
            there = {
                file: reader
                for file, reader in there.items()
                if file not in ("cpuset.cpus.partition", "memory.current")
            }
        return there

    def write(self, path: str, value: str) -> None:
        directory, _, file = path.rpartition("/")
        node = self.node(directory)
        self._fault(directory, file, writing=True)
        if file == PROCESSES:
            self._move(int(value), self._split(directory)[0], node)
        elif file in node.values:
            (V1_WRITERS if self.version == 1 else V2_WRITERS)[file](node, value)
        else:
            fail(errno.ENOENT)

    def _move(self, pid: int, point: str, node: Node) -> None:
        home = self._home(pid, self.roots[point])
        if home is None:
            fail(errno.ESRCH)
        if "cpuset.mems" in node.values and self.version == 1:
            if not (node.values["cpuset.cpus"] and node.values["cpuset.mems"]):
                fail(errno.ENOSPC)
        elif node.parent is not None and node.values.get("cgroup.subtree_control"):
            fail(errno.EBUSY)
        home.pids.discard(pid)
        node.pids.add(pid)

    def _home(self, pid: int, node: Node) -> Node | None:
        if pid in node.pids:
            return node
        return next((found for each in node.children.values() if (found := self._home(pid, each))), None)

    def make(self, path: str) -> None:
        above, _, name = path.rpartition("/")
        parent = self.node(above)
        self._fault(path, "", writing=True)
        if name in parent.children:
            fail(errno.EEXIST)
        parent.children[name] = Node(parent, self._defaults(self._split(path)[0], parent), *self.machine)

    def remove(self, path: str) -> None:
        node = self.node(path)
        self._fault(path, "", writing=True)
        if node.pids or node.children or node.parent is None:
            fail(errno.EBUSY)
        del node.parent.children[path.rpartition("/")[2]]

    def is_group(self, path: str) -> bool:
        try:
            self.node(path)
        except FileNotFoundError:
            return False
        return True

    def children(self, path: str) -> tuple[str, ...]:
        return tuple(sorted(self.node(path).children))

    def home(self, pid: int, like: str) -> str | None:
        point, _ = self._split(like)
        node = self._home(pid, self.roots[point])
        if node is None:
            fail(errno.ENOENT)  # as /proc has no such process
        names = [
            next(name for name, child in each.parent.children.items() if child is each)
            for each in node.ancestry()
            if each.parent is not None
        ]
        return "/".join([point, *reversed(names)])


class FakeTree:
    """A `Tree` in memory, with faults on demand and counters to set."""

    def __init__(self, version: int = 2, *, cpus: CpuSet = 0b1111, mems: NodeSet = 0b1) -> None:
        self.kernel = FakeFiles(version, cpus, mems)
        self.pids = count(1000)
        self.files: Files = self.kernel
        points = {each.removeprefix("/"): each for each in self.kernel.roots}
        self.tree: V1Tree | V2Tree = V1Tree(self.files, points) if version == 1 else V2Tree(self.files, UNIFIED)

    def over(self, files: Files) -> FakeTree:
        """The same kernel and groups seen through other files."""
        other = copy.copy(self)
        other.files, other.tree = files, self.tree.over(files)
        return other

    @property
    def version(self) -> int:
        return self.tree.version

    def group(self, path: str) -> V1Group | V2Group:
        return self.tree.group(path)

    def create(self, path: str) -> V1Group | V2Group:
        return self.tree.create(path)

    def remove(self, path: str) -> None:
        self.tree.remove(path)

    def walk(self, path: str = "/") -> Iterator[V1Group | V2Group]:
        return iter(self.tree.walk(path))

    def fail(self, path: str, file: str, number: int, *, reading: bool = False) -> None:
        """From now on every write (or read) of a group's file ends with this errno; the file "" is the group itself."""
        self.kernel.faults[clean(path), file, not reading] = number

    def heal(self) -> None:
        """No more faults."""
        self.kernel.faults.clear()

    def vanish(self, path: str, *, after: int = 0) -> None:
        """Take a group away with its processes: now, or after so many accesses to its files."""
        if after:
            self.kernel.vanishing[clean(path)] = after
        else:
            self.kernel.cut(clean(path))

    def spawn(self, path: str = "/") -> int:
        """A new process in a group; its id."""
        pid = next(self.pids)
        for root in self.kernel.roots.values():
            root.pids.add(pid)
        if clean(path) != "/":
            self.group(path).add(pid)
        return pid

    def exit(self, pid: int) -> None:
        """End a process."""
        for node in self._nodes("/", deep=True):
            node.pids.discard(pid)

    def _nodes(self, path: str, *, deep: bool = False) -> Iterator[Node]:
        for point in self.kernel.roots:
            stack = [self.kernel.node(point + clean(path).rstrip("/"))]
            while stack:
                node = stack.pop()
                yield node
                stack += node.children.values() if deep else ()

    def set_counters(self, path: str, counters: Counters) -> None:
        """What the group's counters say from now on."""
        for node in self._nodes(path):
            node.counters = counters

    def set_pressure(self, path: str, pressure: Pressure) -> None:
        """What the group's pressure says from now on (version 2)."""
        for node in self._nodes(path):
            node.pressure = pressure

    def set_memory_usage(self, path: str, used: int) -> None:
        """How many bytes the group uses from now on."""
        for node in self._nodes(path):
            node.memory = used
