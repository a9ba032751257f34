"""The protocol of control groups: one group is one path, whatever the version spreads over hierarchies.

    Tree  ── group(path), create, remove, walk ──▶  Group  ── read and set limits, CPUs, members, counters

Units are the kernel's: microseconds of quota and burst per period, weights of version 2 (1 to 10000, by default 100;
version 1 counts the same in shares, by default 1024), nanoseconds of usage. Calls are plain file reads and writes of
some microseconds each: nothing here waits. `v1`, `v2` and `fake` implement it; one contract suite judges all three.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from typing import Protocol

import msgspec

from bayplan.model.errors import PermanentError, TemporaryError
from bayplan.node.sets import CpuSet, NodeSet


class GroupGoneError(TemporaryError):
    """The group vanished: its container ended. What was read before stands."""

    code = "BP-N030"


class WriteRefusedError(PermanentError):
    """The kernel refused a value: the message has the file, the value and the kernel's word (EINVAL, EBUSY, EACCES)."""

    code = "BP-N031"


class UnsupportedError(PermanentError):
    """This kernel or version has no such file (burst before Linux 5.14, pressure without PSI)."""

    code = "BP-N032"


class Bandwidth(msgspec.Struct, frozen=True):
    """The hard limit. `quota_us` None: no limit."""

    quota_us: int | None = None
    period_us: int = 100_000
    burst_us: int = 0

    @property
    def cpus(self) -> float | None:
        """The limit in CPUs."""
        return None if self.quota_us is None else self.quota_us / self.period_us


class Partition(enum.StrEnum):
    """How exclusive a group's CPUs are, in the words of cpuset.cpus.partition; version 1 knows member and root only."""

    MEMBER = "member"
    ROOT = "root"
    ISOLATED = "isolated"


class Cpuset(msgspec.Struct, frozen=True):
    """Where a group may run. Empty `cpus` or `mems`: as its parent (version 2)."""

    cpus: CpuSet = 0
    mems: NodeSet = 0
    effective_cpus: CpuSet = 0
    effective_mems: NodeSet = 0
    partition: Partition = Partition.MEMBER
    partition_refusal: str = ""
    """Why the kernel does not keep a partition that was asked for, in its words."""


class Counters(msgspec.Struct, frozen=True):
    """What a group has used and how often it was held back since it exists."""

    periods: int = 0
    throttled_periods: int = 0
    throttled_ns: int = 0
    bursts: int = 0
    burst_ns: int = 0
    usage_ns: int = 0


class Pressure(msgspec.Struct, frozen=True):
    """PSI of one resource: some task waited, all tasks waited; shares over 10 s and total microseconds."""

    some_avg10: float = 0.0
    some_total_us: int = 0
    full_avg10: float = 0.0
    full_total_us: int = 0


class Group(Protocol):
    """One control group. Every call raises GroupGoneError when it is gone."""

    @property
    def path(self) -> str:
        """From the tree's root: `/kubepods/burstable/pod1/c1`; the root is `/`."""
        ...

    def bandwidth(self) -> Bandwidth:
        """The quota, period and burst in force."""
        ...

    def set_bandwidth(self, wanted: Bandwidth) -> None:
        """Set all three, in the order that keeps each step valid. Raises WriteRefusedError, UnsupportedError."""
        ...

    def weight(self) -> int:
        """The soft share."""
        ...

    def set_weight(self, weight: int) -> None:
        """Set the soft share. Raises WriteRefusedError."""
        ...

    def cpuset(self) -> Cpuset:
        """Where the group may run."""
        ...

    def set_cpuset(self, cpus: CpuSet, mems: NodeSet) -> None:
        """Say where the group may run. Raises WriteRefusedError."""
        ...

    def set_partition(self, partition: Partition) -> None:
        """Ask for the CPUs to be exclusive. Raises WriteRefusedError with the kernel's reason where it refuses."""
        ...

    def memory_limit(self) -> int | None:
        """The hard limit in bytes; None: none."""
        ...

    def set_memory_limit(self, limit: int | None) -> None:
        """Set the hard limit in bytes. Raises WriteRefusedError."""
        ...

    def memory_usage(self) -> int:
        """Bytes in use."""
        ...

    def freeze(self, frozen: bool) -> None:
        """Stop every process of the group, or let them go on."""
        ...

    def counters(self) -> Counters:
        """CPU use and throttling so far."""
        ...

    def pressure(self) -> Pressure:
        """CPU pressure. Raises UnsupportedError where the kernel has none for groups (version 1)."""
        ...

    def processes(self) -> tuple[int, ...]:
        """The processes in this very group."""
        ...

    def add(self, pid: int) -> None:
        """Move a process here. Raises WriteRefusedError (the process is gone, the CPU set is empty)."""
        ...


class Tree(Protocol):
    """All groups of a machine, or of a part that was delegated."""

    @property
    def version(self) -> int:
        """1 or 2."""
        ...

    def group(self, path: str) -> Group:
        """A group that exists. Raises GroupGoneError."""
        ...

    def create(self, path: str) -> Group:
        """Make a group, its ancestors and their controllers; one that exists is returned as it is."""
        ...

    def remove(self, path: str) -> None:
        """Remove an empty group. Raises WriteRefusedError (EBUSY) while it has processes or children; gone is done."""
        ...

    def walk(self, path: str = "/") -> Iterator[Group]:
        """The group and all below it, parents first; groups that vanish meanwhile are left out."""
        ...
