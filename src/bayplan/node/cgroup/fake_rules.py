"""The rules of the kernel for the files of control groups, on groups in memory. `fake` puts them behind the port.

Each writer changes the group's values, or raises the OSError that Linux raises; the contract suite holds the two
against each other. Values are kept as the kernel writes them.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from typing import NoReturn

from bayplan.node.cgroup.conversions import MAX_SHARES, MAX_WEIGHT, MIN_SHARES, MIN_WEIGHT
from bayplan.node.cgroup.port import Counters, Pressure
from bayplan.node.sets import format_list, parse_list

PAGE = 4096
NO_MEMORY_LIMIT = (1 << 63) - PAGE
V2_CONTROLLERS = ("cpuset", "cpu", "memory")

V1_DEFAULTS = {
    "cpu": {"cpu.shares": "1024", "cpu.cfs_quota_us": "-1", "cpu.cfs_period_us": "100000", "cpu.cfs_burst_us": "0"},
    "cpuacct": {},
    "cpuset": {"cpuset.cpus": "", "cpuset.mems": "", "cpuset.cpu_exclusive": "0"},
    "memory": {"memory.limit_in_bytes": str(NO_MEMORY_LIMIT)},
    "freezer": {"freezer.state": "THAWED"},
}
V2_DEFAULTS = {
    "": {"cgroup.subtree_control": "", "cgroup.freeze": "0"},
    "cpu": {"cpu.max": "max 100000", "cpu.max.burst": "0", "cpu.weight": "100"},
    "cpuset": {"cpuset.cpus": "", "cpuset.mems": "", "cpuset.cpus.partition": "member"},
    "memory": {"memory.max": "max"},
}


def fail(number: int) -> NoReturn:
    """Raise as the kernel does."""
    raise OSError(number, os.strerror(number))


class Node:
    """One group in one hierarchy, with what the kernel keeps of it."""

    def __init__(self, parent: Node | None, values: dict[str, str], cpus: int, mems: int) -> None:
        self.parent = parent
        self.values = values
        self.machine = (cpus, mems)
        self.children: dict[str, Node] = {}
        self.pids: set[int] = set()
        self.counters = Counters()
        self.pressure = Pressure()
        self.memory = 0

    def ancestry(self) -> Iterator[Node]:
        """The group and those above it."""
        node: Node | None = self
        while node is not None:
            yield node
            node = node.parent

    def siblings(self) -> list[Node]:
        """The other children of the parent."""
        return [] if self.parent is None else [each for each in self.parent.children.values() if each is not self]


Writer = Callable[[Node, str], None]
Reader = Callable[[Node], str]


def _number(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        fail(errno.EINVAL)


def _check_bandwidth(quota: int, period: int, burst: int) -> None:
    """`quota` -1: none."""
    if not 1000 <= period <= 1_000_000 or (quota != -1 and (quota < 1000 or burst > quota)) or burst < 0:
        fail(errno.EINVAL)


# Version 1


def _v1_ratio(node: Node) -> float:
    quota = int(node.values["cpu.cfs_quota_us"])
    return quota / int(node.values["cpu.cfs_period_us"]) if quota >= 0 else float("inf")


def _v1_within(node: Node, allowed: float) -> bool:
    """Whether no group below has more than the tightest limit above it; none of its own takes that one."""
    own = _v1_ratio(node)
    if own != float("inf") and own > allowed:
        return False
    return all(_v1_within(each, min(own, allowed)) for each in node.children.values())


def _v1_bandwidth(file: str) -> Writer:
    def write(node: Node, value: str) -> None:
        number = _number(value)
        if node.parent is None:
            fail(errno.EINVAL)
        before = node.values[file]
        node.values[file] = str(-1 if number < 0 else number)
        try:
            _check_bandwidth(*(int(node.values[f"cpu.cfs_{each}_us"]) for each in ("quota", "period", "burst")))
            if not _v1_within(list(node.ancestry())[-1], float("inf")):
                fail(errno.EINVAL)
        except OSError:
            node.values[file] = before
            raise

    return write


def _v1_shares(node: Node, value: str) -> None:
    if node.parent is None:
        fail(errno.EINVAL)
    node.values["cpu.shares"] = str(min(max(_number(value), MIN_SHARES), MAX_SHARES))


def _v1_is_subset(inner: Node, outer: Node) -> bool:
    return (
        all(not _set(inner, file) & ~_set(outer, file) for file in ("cpuset.cpus", "cpuset.mems"))
        and inner.values["cpuset.cpu_exclusive"] <= outer.values["cpuset.cpu_exclusive"]
    )


def _set(node: Node, file: str) -> int:
    return parse_list(node.values[file])


def _v1_check_cpuset(node: Node) -> None:
    """In the order of the kernel's validate_change."""
    if not all(_v1_is_subset(each, node) for each in node.children.values()):
        fail(errno.EBUSY)
    if node.parent is None:
        fail(errno.EACCES)
    if not _v1_is_subset(node, node.parent):
        fail(errno.EACCES)
    for other in node.siblings():
        exclusive = "1" in (node.values["cpuset.cpu_exclusive"], other.values["cpuset.cpu_exclusive"])
        if exclusive and _set(node, "cpuset.cpus") & _set(other, "cpuset.cpus"):
            fail(errno.EINVAL)
    if node.pids and not (node.values["cpuset.cpus"] and node.values["cpuset.mems"]):
        fail(errno.ENOSPC)


def _v1_cpuset(file: str, machine: int | None = None) -> Writer:
    def write(node: Node, value: str) -> None:
        if machine is None:
            kept = str(int(bool(_number(value))))
        else:
            wanted = parse_list(value)
            if wanted & ~node.machine[machine]:
                fail(errno.ERANGE)
            kept = format_list(wanted)
        before, node.values[file] = node.values[file], kept
        try:
            _v1_check_cpuset(node)
        except OSError:
            node.values[file] = before
            raise

    return write


def _v1_memory(node: Node, value: str) -> None:
    number = _number(value)
    limit = NO_MEMORY_LIMIT if number < 0 else min(number // PAGE * PAGE, NO_MEMORY_LIMIT)
    if node.memory > limit:
        fail(errno.EBUSY)
    node.values["memory.limit_in_bytes"] = str(limit)


def _v1_freeze(node: Node, value: str) -> None:
    if value not in ("FROZEN", "THAWED") or node.parent is None:
        fail(errno.EINVAL)
    node.values["freezer.state"] = value


def _v1_frozen(node: Node) -> str:
    frozen = any(each.values["freezer.state"] == "FROZEN" for each in node.ancestry())
    return "FROZEN" if frozen else "THAWED"


def _v1_stat(node: Node) -> str:
    seen = node.counters
    rows = (seen.periods, seen.throttled_periods, seen.throttled_ns, seen.bursts, seen.burst_ns)
    names = ("nr_periods", "nr_throttled", "throttled_time", "nr_bursts", "burst_time")
    return "\n".join(f"{name} {value}" for name, value in zip(names, rows, strict=True))


V1_WRITERS: dict[str, Writer] = {
    "cpu.shares": _v1_shares,
    **{file: _v1_bandwidth(file) for file in ("cpu.cfs_quota_us", "cpu.cfs_period_us", "cpu.cfs_burst_us")},
    "cpuset.cpus": _v1_cpuset("cpuset.cpus", 0),
    "cpuset.mems": _v1_cpuset("cpuset.mems", 1),
    "cpuset.cpu_exclusive": _v1_cpuset("cpuset.cpu_exclusive"),
    "memory.limit_in_bytes": _v1_memory,
    "freezer.state": _v1_freeze,
}
V1_READERS: dict[str, dict[str, Reader]] = {
    "cpu": {"cpu.stat": _v1_stat},
    "cpuacct": {"cpuacct.usage": lambda node: str(node.counters.usage_ns)},
    "cpuset": {
        "cpuset.effective_cpus": lambda node: node.values["cpuset.cpus"],
        "cpuset.effective_mems": lambda node: node.values["cpuset.mems"],
    },
    "memory": {"memory.usage_in_bytes": lambda node: str(node.memory)},
    "freezer": {
        "freezer.state": _v1_frozen,
        "freezer.self_freezing": lambda node: str(int(node.values["freezer.state"] == "FROZEN")),
    },
}


# Version 2


def passed_on(node: Node) -> tuple[str, ...]:
    """The controllers of a group: those that its parent passes on."""
    return V2_CONTROLLERS if node.parent is None else tuple(node.parent.values["cgroup.subtree_control"].split())


def _v2_subtree(node: Node, value: str) -> None:
    on = set(node.values["cgroup.subtree_control"].split())
    for word in value.split():
        name, there = word[1:], passed_on(node)
        if word[0] == "+" and name not in there:
            fail(errno.ENOENT if name in V2_CONTROLLERS else errno.EINVAL)
        if word[0] == "-" and any(
            name in each.values["cgroup.subtree_control"].split() for each in node.children.values()
        ):
            fail(errno.EBUSY)
        on = on | {name} if word[0] == "+" else on - {name}
    if on and node.pids and node.parent is not None:
        fail(errno.EBUSY)
    for child in node.children.values():
        for name in V2_CONTROLLERS:
            for file, default in V2_DEFAULTS[name].items():
                if name not in on:
                    child.values.pop(file, None)
                else:
                    child.values.setdefault(file, default)
    node.values["cgroup.subtree_control"] = " ".join(each for each in V2_CONTROLLERS if each in on)


def _v2_max(node: Node, value: str) -> None:
    quota, _, period = value.partition(" ")
    number = -1 if quota == "max" else _number(quota)
    period = period or node.values["cpu.max"].split()[1]
    _check_bandwidth(number, _number(period), int(node.values["cpu.max.burst"]))
    node.values["cpu.max"] = f"{quota} {period}"


def _v2_burst(node: Node, value: str) -> None:
    quota, period = node.values["cpu.max"].split()
    _check_bandwidth(-1 if quota == "max" else int(quota), int(period), _number(value))
    node.values["cpu.max.burst"] = value


def _v2_weight(node: Node, value: str) -> None:
    if not MIN_WEIGHT <= _number(value) <= MAX_WEIGHT:
        fail(errno.ERANGE)
    node.values["cpu.weight"] = value


def _v2_set(file: str, machine: int) -> Writer:
    def write(node: Node, value: str) -> None:
        wanted = parse_list(value)
        if wanted & ~node.machine[machine]:
            fail(errno.ERANGE)
        if node.values[file] and not wanted and _populated(node):
            fail(errno.ENOSPC)
        node.values[file] = format_list(wanted)

    return write


def _v2_effective(node: Node, file: str, machine: int) -> int:
    if node.parent is None:
        base = node.machine[machine]
    else:
        partition = machine == 0 and _v2_is_partition(node)
        above = node.parent.machine[machine] if partition else _v2_effective(node.parent, file, machine)
        base = parse_list(node.values.get(file, "")) & above or above
    if machine == 0:
        for child in node.children.values():
            if _v2_is_partition(child):
                base &= ~_set(child, "cpuset.cpus")
    return base


def _v2_is_partition(node: Node) -> bool:
    return node.values.get("cpuset.cpus.partition", "member") != "member" and not _v2_invalid(node)


def _v2_invalid(node: Node) -> str:
    """Why a partition that was asked for does not stand, in the kernel's words."""
    cpus = _set(node, "cpuset.cpus")
    if not cpus:
        return "cpuset.cpus is empty"
    if node.parent is not None and node.parent.parent is not None and not _v2_is_partition(node.parent):
        asked = node.parent.values["cpuset.cpus.partition"] != "member"
        return "Parent is an invalid partition root" if asked else "Parent is not a partition root"
    if any(cpus & parse_list(each.values.get("cpuset.cpus", "")) for each in node.siblings()):
        return "Cpu list in cpuset.cpus not exclusive"
    return ""


def _v2_partition(node: Node, value: str) -> None:
    if value not in ("member", "root", "isolated"):
        fail(errno.EINVAL)
    node.values["cpuset.cpus.partition"] = value


def _v2_read_partition(node: Node) -> str:
    state = node.values["cpuset.cpus.partition"]
    reason = "" if state == "member" else _v2_invalid(node)
    return f"{state} invalid ({reason})" if reason else state


def _v2_memory(node: Node, value: str) -> None:
    node.values["memory.max"] = value if value == "max" else str(_number(value) // PAGE * PAGE)


def _v2_freeze(node: Node, value: str) -> None:
    if value not in ("0", "1"):
        fail(errno.ERANGE)
    node.values["cgroup.freeze"] = value


def _v2_events(node: Node) -> str:
    frozen = any(each.values.get("cgroup.freeze") == "1" for each in node.ancestry())
    return f"populated {int(_populated(node))}\nfrozen {int(frozen)}"


def _populated(node: Node) -> bool:
    return bool(node.pids) or any(_populated(each) for each in node.children.values())


def _v2_stat(node: Node) -> str:
    seen = node.counters
    rows = {"usage_usec": seen.usage_ns // 1000}
    if "cpu" in passed_on(node):
        rows |= {"nr_periods": seen.periods, "nr_throttled": seen.throttled_periods}
        rows |= {"throttled_usec": seen.throttled_ns // 1000}
        rows |= {"nr_bursts": seen.bursts, "burst_usec": seen.burst_ns // 1000}
    return "\n".join(f"{name} {value}" for name, value in rows.items())


def _v2_pressure(node: Node) -> str:
    row = "{} avg10={:.2f} avg60=0.00 avg300=0.00 total={}"
    seen = node.pressure
    some, full = (seen.some_avg10, seen.some_total_us), (seen.full_avg10, seen.full_total_us)
    return row.format("some", *some) + "\n" + row.format("full", *full)


V2_WRITERS: dict[str, Writer] = {
    "cgroup.subtree_control": _v2_subtree,
    "cgroup.freeze": _v2_freeze,
    "cpu.max": _v2_max,
    "cpu.max.burst": _v2_burst,
    "cpu.weight": _v2_weight,
    "cpuset.cpus": _v2_set("cpuset.cpus", 0),
    "cpuset.mems": _v2_set("cpuset.mems", 1),
    "cpuset.cpus.partition": _v2_partition,
    "memory.max": _v2_memory,
}
V2_READERS: dict[str, dict[str, Reader]] = {
    "": {
        "cgroup.controllers": lambda node: " ".join(passed_on(node)),
        "cgroup.events": _v2_events,
        "cpu.stat": _v2_stat,
        "cpu.pressure": _v2_pressure,
    },
    "cpuset": {
        "cpuset.cpus.effective": lambda node: format_list(_v2_effective(node, "cpuset.cpus", 0)),
        "cpuset.mems.effective": lambda node: format_list(_v2_effective(node, "cpuset.mems", 1)),
        "cpuset.cpus.partition": _v2_read_partition,
    },
    "memory": {"memory.current": lambda node: str(node.memory)},
}
