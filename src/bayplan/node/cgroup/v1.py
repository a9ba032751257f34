"""Control groups of version 1: one group is a directory in each of several hierarchies.

A new group has no CPUs and no memory nodes, and nothing may join it until it has: `create` gives it its parent's. A
child's quota may not exceed its parent's and its CPUs must be its parent's, so order matters (see `ordering`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from bayplan.node.cgroup.conversions import shares_to_weight, weight_to_shares
from bayplan.node.cgroup.files import PROCESSES, Directory, Files, clean, join, refuse
from bayplan.node.cgroup.ordering import bandwidth_steps
from bayplan.node.cgroup.port import (
    Bandwidth,
    Counters,
    Cpuset,
    GroupGoneError,
    Partition,
    Pressure,
    UnsupportedError,
    WriteRefusedError,
)
from bayplan.node.sets import CpuSet, NodeSet, format_list, parse_list

CONTROLLERS = ("cpuset", "cpu", "cpuacct", "memory", "freezer")
"""Those in use, in the order in which a process joins: the one that may refuse first."""

PAGE = 4096
NO_MEMORY_LIMIT = (1 << 63) - PAGE
"""What the kernel writes for none: the largest whole number of pages."""

BANDWIDTH_FILES = {
    "period_us": "cpu.cfs_period_us",
    "quota_us": "cpu.cfs_quota_us",
    "burst_us": "cpu.cfs_burst_us",
}


class V1Group:
    """One group over the hierarchies of its tree."""

    def __init__(self, tree: V1Tree, path: str) -> None:
        self._tree = tree
        self._path = path

    @property
    def path(self) -> str:
        return self._path

    def _in(self, controller: str) -> Directory:
        directory = self._tree.directory(controller, self._path)
        if not directory.files.is_group(directory.path):
            if self._tree.exists(self._path):
                raise UnsupportedError(f"group {self._path} is not in the hierarchy of {controller}")
            raise GroupGoneError(f"group {self._path} is gone", hint="its container ended; look for groups anew")
        return directory

    def bandwidth(self) -> Bandwidth:
        cpu = self._in("cpu")
        quota = cpu.number("cpu.cfs_quota_us")
        burst = cpu.number("cpu.cfs_burst_us", 0)
        return Bandwidth(None if quota < 0 else quota, cpu.number("cpu.cfs_period_us"), burst)

    def set_bandwidth(self, wanted: Bandwidth) -> None:
        fields = [frozenset({each}) for each in BANDWIDTH_FILES]
        steps = []
        for step in bandwidth_steps(self.bandwidth(), wanted, fields):
            field = next(iter(step), "quota_us")
            value = getattr(wanted, field) if step else None
            steps.append((BANDWIDTH_FILES[field], str(-1 if value is None else value)))
        self._in("cpu").write_all(steps)

    def weight(self) -> int:
        return shares_to_weight(self.shares())

    def set_weight(self, weight: int) -> None:
        if not 1 <= weight <= 10_000:
            raise WriteRefusedError(f"{self._path}: weight {weight}: ERANGE", hint="a weight is 1 to 10000")
        self.set_shares(weight_to_shares(weight))

    def shares(self) -> int:
        """The soft share in version 1's own unit."""
        return self._in("cpu").number("cpu.shares")

    def set_shares(self, shares: int) -> None:
        """Set the soft share in version 1's own unit, exactly."""
        self._in("cpu").write("cpu.shares", shares)

    def cpuset(self) -> Cpuset:
        cpuset = self._in("cpuset")
        return Cpuset(
            parse_list(cpuset.read("cpuset.cpus")),
            parse_list(cpuset.read("cpuset.mems")),
            parse_list(cpuset.read("cpuset.effective_cpus")),
            parse_list(cpuset.read("cpuset.effective_mems")),
            Partition.ROOT if cpuset.number("cpuset.cpu_exclusive") else Partition.MEMBER,
        )

    def set_cpuset(self, cpus: CpuSet, mems: NodeSet) -> None:
        """Say where the group may run; an empty set takes the parent's, which version 2 does by itself."""
        cpuset = self._in("cpuset")
        if not (cpus and mems):
            parent = self._tree.group(self._path.rpartition("/")[0] or "/").cpuset()
            cpus, mems = cpus or parent.cpus, mems or parent.mems
        wanted = (("cpuset.cpus", format_list(cpus)), ("cpuset.mems", format_list(mems)))
        cpuset.write_all([(file, value) for file, value in wanted if cpuset.read(file) != value])

    def set_partition(self, partition: Partition) -> None:
        if partition is Partition.ISOLATED:
            raise UnsupportedError(f"group {self._path}: version 1 has no isolated partitions", hint="ask for root")
        self._in("cpuset").write("cpuset.cpu_exclusive", 1 if partition is Partition.ROOT else 0)

    def memory_limit(self) -> int | None:
        limit = self._in("memory").number("memory.limit_in_bytes")
        return None if limit >= NO_MEMORY_LIMIT else limit

    def set_memory_limit(self, limit: int | None) -> None:
        """Set the hard limit, in whole pages as the kernel keeps it."""
        self._in("memory").write("memory.limit_in_bytes", NO_MEMORY_LIMIT if limit is None else limit // PAGE * PAGE)

    def memory_usage(self) -> int:
        return self._in("memory").number("memory.usage_in_bytes")

    def freeze(self, frozen: bool) -> None:
        self._in("freezer").write("freezer.state", "FROZEN" if frozen else "THAWED")

    def frozen(self) -> bool:
        """Whether every process has stopped."""
        return self._in("freezer").read("freezer.state") == "FROZEN"

    def counters(self) -> Counters:
        stat = self._in("cpu").table("cpu.stat")
        return Counters(
            periods=stat["nr_periods"],
            throttled_periods=stat["nr_throttled"],
            throttled_ns=stat["throttled_time"],
            bursts=stat.get("nr_bursts", 0),
            burst_ns=stat.get("burst_time", 0),
            usage_ns=self._in("cpuacct").number("cpuacct.usage"),
        )

    def pressure(self) -> Pressure:
        raise UnsupportedError(
            f"group {self._path}: version 1 has no pressure of groups", hint="boot with control groups of version 2"
        )

    def processes(self) -> tuple[int, ...]:
        members = {int(pid) for each in self._tree.parts(self._path) for pid in each.read(PROCESSES).split()}
        if not members and not self._tree.exists(self._path):
            raise GroupGoneError(f"group {self._path} is gone", hint="its container ended; look for groups anew")
        return tuple(sorted(members))

    def add(self, pid: int) -> None:
        for controller in self._tree.controllers:
            self._in(controller).write(PROCESSES, pid)


class V1Tree:
    """Hierarchies of version 1, by controller: `{"cpu": "/sys/fs/cgroup/cpu", ...}`."""

    version = 1

    def __init__(self, files: Files, mounts: Mapping[str, str]) -> None:
        self.files = files
        self.mounts = {each: mounts[each] for each in CONTROLLERS if each in mounts}
        self.controllers = tuple(self.mounts)

    def over(self, files: Files) -> V1Tree:
        """The same tree over other files."""
        return V1Tree(files, self.mounts)

    def directory(self, controller: str, path: str) -> Directory:
        """A group's part in one hierarchy, whether it is there or not."""
        if controller not in self.mounts:
            raise UnsupportedError(f"no hierarchy of {controller} is mounted here")
        return Directory(self.files, join(self.mounts[controller], path))

    def parts(self, path: str) -> list[Directory]:
        """The directories of a group that exist, each once: cpu and cpuacct are often mounted together."""
        places = dict.fromkeys(join(each, path) for each in self.mounts.values())
        return [Directory(self.files, each) for each in places if self.files.is_group(each)]

    def exists(self, path: str) -> bool:
        """Whether any hierarchy has the group."""
        return bool(self.parts(path))

    def group(self, path: str) -> V1Group:
        path = clean(path)
        if not self.exists(path):
            raise GroupGoneError(f"group {path} is not there", hint="create it, or look for groups anew")
        return V1Group(self, path)

    def create(self, path: str) -> V1Group:
        path = clean(path)
        above = path.rpartition("/")[0]
        if above and path != "/":
            self.create(above)
        for controller in self.controllers:
            directory = self.directory(controller, path)
            if not self.files.is_group(directory.path):
                try:
                    self.files.make(directory.path)
                except FileExistsError:
                    continue
                except OSError as error:
                    refuse(self.files, directory.path.rpartition("/")[0], "", f"make {directory.path}", error)
            if controller == "cpuset" and path != "/":
                self._inherit(directory, self.directory(controller, above or "/"))
        return V1Group(self, path)

    def _inherit(self, child: Directory, parent: Directory) -> None:
        """Give a new group its parent's CPUs, without those that a sibling has for itself, and memory nodes."""
        cpus = parse_list(parent.read("cpuset.cpus"))
        for name in self.files.children(parent.path):
            sibling = Directory(self.files, f"{parent.path}/{name}")
            if sibling.path != child.path and sibling.number("cpuset.cpu_exclusive"):
                cpus &= ~parse_list(sibling.read("cpuset.cpus"))
        for file, value in (("cpuset.cpus", format_list(cpus)), ("cpuset.mems", parent.read("cpuset.mems"))):
            if not child.read(file):
                child.write(file, value)

    def remove(self, path: str) -> None:
        path = clean(path)
        parts = self.parts(path)
        for each in parts:
            if each.read(PROCESSES) or self.files.children(each.path):
                raise WriteRefusedError(
                    f"group {path} is not removed: EBUSY", hint="remove its children and end its processes first"
                )
        for each in parts:
            try:
                self.files.remove(each.path)
            except FileNotFoundError:
                continue
            except OSError as error:
                refuse(self.files, each.path, "", "remove", error)

    def walk(self, path: str = "/") -> Iterator[V1Group]:
        path = clean(path)
        parts = self.parts(path)
        if not parts:
            return
        yield V1Group(self, path)
        names: set[str] = set()
        for each in parts:
            try:
                names.update(self.files.children(each.path))
            except FileNotFoundError:
                continue
        for name in sorted(names):
            yield from self.walk(f"{path.rstrip('/')}/{name}")
