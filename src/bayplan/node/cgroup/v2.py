"""Control groups of version 2: one hierarchy; a group has a controller's files when its parent passes it on.

A group that passes controllers on holds no processes itself (the root excepted). Limits above do not forbid wider ones
below: the tightest on the way up counts, so only burst and quota depend on order.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from bayplan.node.cgroup.conversions import runtime_weight
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

CONTROLLERS = ("cpu", "cpuset", "memory")
PAGE = 4096
QUOTA, BURST = frozenset({"quota_us", "period_us"}), frozenset({"burst_us"})
EXCLUSIVE = "cpuset.cpus.exclusive"
PARTITION_STATE = re.compile(r"(?P<state>\w+)(?: invalid(?: \((?P<reason>.*)\))?)?$")


class V2Group:
    """One group: one directory."""

    def __init__(self, tree: V2Tree, path: str) -> None:
        self._tree = tree
        self._path = path
        self._dir = tree.directory(path)

    @property
    def path(self) -> str:
        return self._path

    def bandwidth(self) -> Bandwidth:
        quota, period = self._dir.read("cpu.max").split()
        burst = self._dir.number("cpu.max.burst", 0)
        return Bandwidth(None if quota == "max" else int(quota), int(period), burst)

    def set_bandwidth(self, wanted: Bandwidth) -> None:
        quota = "max" if wanted.quota_us is None else wanted.quota_us
        writes = {QUOTA: ("cpu.max", f"{quota} {wanted.period_us}"), BURST: ("cpu.max.burst", str(wanted.burst_us))}
        steps = bandwidth_steps(self.bandwidth(), wanted, (QUOTA, BURST))
        self._dir.write_all([writes[each] for each in steps if each])

    def weight(self) -> int:
        return self._dir.number("cpu.weight")

    def set_weight(self, weight: int) -> None:
        self._dir.write("cpu.weight", weight)

    def set_shares(self, shares: int) -> None:
        """Set the soft share in version 1's unit, converted as kubelet and the runtimes do."""
        self.set_weight(runtime_weight(shares))

    def cpuset(self) -> Cpuset:
        partition, refusal = Partition.MEMBER, ""
        if self._dir.has("cpuset.cpus.partition"):
            partition, refusal = self._partition()
        top = not self._dir.has("cpuset.cpus")  # the root has only the effective ones
        return Cpuset(
            0 if top else parse_list(self._dir.read("cpuset.cpus")),
            0 if top else parse_list(self._dir.read("cpuset.mems")),
            parse_list(self._dir.read("cpuset.cpus.effective")),
            parse_list(self._dir.read("cpuset.mems.effective")),
            partition,
            refusal,
        )

    def _partition(self) -> tuple[Partition, str]:
        text = self._dir.read("cpuset.cpus.partition")
        found = PARTITION_STATE.match(text)
        if found is None:
            raise UnsupportedError(f'group {self._path}: cpuset.cpus.partition says "{text}"')
        refusal = (found["reason"] or "invalid") if " invalid" in text else ""
        return Partition(found["state"]), refusal

    def set_cpuset(self, cpus: CpuSet, mems: NodeSet) -> None:
        """Say where the group may run; a set that processes use cannot be emptied, and takes the parent's instead."""
        if not (cpus and mems) and self._dir.table("cgroup.events")["populated"]:
            now, above = self.cpuset(), self._tree.group(self._path.rpartition("/")[0] or "/").cpuset()
            cpus = cpus or (above.effective_cpus if now.cpus else 0)
            mems = mems or (above.effective_mems if now.mems else 0)
        wanted = (("cpuset.cpus", format_list(cpus)), ("cpuset.mems", format_list(mems)))
        self._dir.write_all([(file, value) for file, value in wanted if self._dir.read(file) != value])

    def set_partition(self, partition: Partition) -> None:
        """Ask for the CPUs to be exclusive; what the kernel would only call invalid is put back and refused.

        Since Linux 6.7 the groups above need not be partitions if the CPUs are set aside all the way down.
        """
        before, _ = self._partition()
        asked = partition is not Partition.MEMBER
        if asked:
            self._set_aside(True)
        self._dir.write("cpuset.cpus.partition", partition)
        _, refusal = self._partition()
        if refusal:
            self._dir.write("cpuset.cpus.partition", before)
        if refusal or not asked:
            self._set_aside(False)
        if refusal:
            raise WriteRefusedError(
                f'{self._dir.path}/cpuset.cpus.partition: the kernel refuses "{partition}": {refusal}',
                hint="a partition needs CPUs of its own; before Linux 6.7 every group above it must be a partition too",
            )

    def _set_aside(self, on: bool) -> None:
        """Add this group's CPUs to cpuset.cpus.exclusive from the top down, or take them out from the bottom up."""
        cpus = parse_list(self._dir.read("cpuset.cpus"))
        names = self._path.strip("/").split("/")
        line = [self._tree.directory("/" + "/".join(names[:depth])) for depth in range(1, len(names) + 1)]
        for each in line if on else reversed(line):
            if each.has(EXCLUSIVE):
                old = parse_list(each.read(EXCLUSIVE))
                new = old | cpus if on else old & ~cpus
                if new != old:
                    each.write(EXCLUSIVE, format_list(new))

    def memory_limit(self) -> int | None:
        limit = self._dir.read("memory.max")
        return None if limit == "max" else int(limit)

    def set_memory_limit(self, limit: int | None) -> None:
        """Set the hard limit, in whole pages. Less than is in use is not refused: the kernel reclaims, then kills."""
        self._dir.write("memory.max", "max" if limit is None else limit // PAGE * PAGE)

    def memory_usage(self) -> int:
        return self._dir.number("memory.current")

    def freeze(self, frozen: bool) -> None:
        self._dir.write("cgroup.freeze", int(frozen))

    def frozen(self) -> bool:
        """Whether every process has stopped."""
        return self._dir.table("cgroup.events")["frozen"] == 1

    def counters(self) -> Counters:
        stat = self._dir.table("cpu.stat")  # only the usage is there where the parent does not pass cpu on
        return Counters(
            periods=stat.get("nr_periods", 0),
            throttled_periods=stat.get("nr_throttled", 0),
            throttled_ns=stat.get("throttled_usec", 0) * 1000,
            bursts=stat.get("nr_bursts", 0),
            burst_ns=stat.get("burst_usec", 0) * 1000,
            usage_ns=stat["usage_usec"] * 1000,
        )

    def pressure(self) -> Pressure:
        try:
            text = self._dir.read("cpu.pressure")
        except WriteRefusedError as error:  # EOPNOTSUPP: the kernel was booted with psi=0
            raise UnsupportedError(f"group {self._path} has no cpu.pressure", hint="boot with psi=1") from error
        rows = {line.split()[0]: dict(pair.split("=") for pair in line.split()[1:]) for line in text.splitlines()}
        some, full = rows["some"], rows.get("full", {})
        return Pressure(
            some_avg10=float(some["avg10"]),
            some_total_us=int(some["total"]),
            full_avg10=float(full.get("avg10", 0)),
            full_total_us=int(full.get("total", 0)),
        )

    def processes(self) -> tuple[int, ...]:
        return tuple(sorted(int(pid) for pid in self._dir.read(PROCESSES).split()))

    def add(self, pid: int) -> None:
        self._dir.write(PROCESSES, pid)


class V2Tree:
    """The unified hierarchy from `root` down: /sys/fs/cgroup, or a group that was delegated."""

    version = 2

    def __init__(self, files: Files, root: str) -> None:
        self.files = files
        self.root = root

    def over(self, files: Files) -> V2Tree:
        """The same tree over other files."""
        return V2Tree(files, self.root)

    def directory(self, path: str) -> Directory:
        """A group's directory, whether it is there or not."""
        return Directory(self.files, join(self.root, path))

    def group(self, path: str) -> V2Group:
        path = clean(path)
        if not self.files.is_group(join(self.root, path)):
            raise GroupGoneError(f"group {path} is not there", hint="create it, or look for groups anew")
        return V2Group(self, path)

    def create(self, path: str) -> V2Group:
        path = clean(path)
        directory = self.directory(path)
        if not self.files.is_group(directory.path):
            above = self.create(path.rpartition("/")[0] or "/")
            self._pass_on(self.directory(above.path))
            try:
                self.files.make(directory.path)
            except FileExistsError:
                pass  # someone else made it meanwhile: as well
            except OSError as error:
                refuse(self.files, directory.path.rpartition("/")[0], "", f"make {directory.path}", error)
        return V2Group(self, path)

    def _pass_on(self, parent: Directory) -> None:
        there = parent.read("cgroup.controllers").split()
        on = parent.read("cgroup.subtree_control").split()
        missing = [each for each in CONTROLLERS if each in there and each not in on]
        if missing:
            parent.write("cgroup.subtree_control", " ".join(f"+{each}" for each in missing))

    def remove(self, path: str) -> None:
        directory = self.directory(clean(path))
        try:
            self.files.remove(directory.path)
        except FileNotFoundError:
            return
        except OSError as error:
            refuse(self.files, directory.path, "", "remove", error)

    def walk(self, path: str = "/") -> Iterator[V2Group]:
        path = clean(path)
        directory = self.directory(path)
        try:
            names = self.files.children(directory.path)
        except FileNotFoundError:
            return
        yield V2Group(self, path)
        for name in names:
            yield from self.walk(f"{path.rstrip('/')}/{name}")
