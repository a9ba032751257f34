"""What the kernel itself runs on CPUs that someone wants for themselves: interrupts and kernel threads.

An interrupt disturbs the CPUs it is delivered to (its effective affinity); a kernel thread the CPU it ran on last, and
those it is bound to. A thread that may run anywhere and runs elsewhere is not listed.
Sources: Documentation/core-api/irq/irq-affinity.rst, proc(5), include/linux/sched.h.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Iterator
from pathlib import Path

import msgspec

from bayplan.node.discovery.files import CPUS, DiscoveryError, Files
from bayplan.node.sets import BadListError, CpuSet, format_list, parse_list

_KERNEL_THREAD = 0x00200000  # PF_KTHREAD
_BOUND = 0x04000000  # PF_NO_SETAFFINITY
_FLAGS, _LAST_CPU = 6, 36  # fields of /proc/<pid>/stat, counted after the name


class Kind(enum.Enum):
    """What disturbs."""

    INTERRUPT = "irq"
    THREAD = "thread"


class Disturbance(msgspec.Struct, frozen=True):
    """One interrupt or kernel thread."""

    kind: Kind
    id: int
    name: str
    allowed: CpuSet
    """Where it may run."""
    running: CpuSet
    """Where it is delivered, or ran last."""
    count: int = 0
    """Interrupts on the CPUs in question since boot."""
    movable: bool = True
    """False for kernel threads that belong to their CPU. Whether an interrupt can be moved shows when it is tried."""


def disturbances(cpus: CpuSet, root: Path = Path("/")) -> tuple[Disturbance, ...]:
    """What disturbs these CPUs: interrupts by number, then kernel threads by pid. Raises DiscoveryError."""
    files = Files(root)
    online = files.ids(f"{CPUS}/online")
    if beyond := cpus & ~online:
        what = f"CPU {format_list(beyond)} is not online; {format_list(online)} are"
        raise DiscoveryError(f"{files.place(CPUS)}/online: {what}", hint="")
    interrupts = (each for each in _interrupts(files, cpus) if each.running & cpus)
    bound = ((each, each.allowed if online & ~each.allowed else 0) for each in _threads(files))
    return (*interrupts, *(each for each, to in bound if cpus & (each.running | to)))


def _interrupts(files: Files, cpus: CpuSet) -> Iterator[Disturbance]:
    names, counts = _counted(files, cpus)
    for number in files.numbered("proc/irq", ""):
        folder = f"proc/irq/{number}"
        allowed = files.ids(f"{folder}/smp_affinity_list")
        effective = files.text_if_there(f"{folder}/effective_affinity_list")
        running = files.ids(f"{folder}/effective_affinity_list") if effective else allowed
        if number in names:  # the others have no handler: nothing is delivered
            yield Disturbance(Kind.INTERRUPT, number, names[number], allowed, running, counts[number])


def _counted(files: Files, cpus: CpuSet) -> tuple[dict[int, str], dict[int, int]]:
    """Names of the interrupts that have a handler, and how often each came to these CPUs."""
    head, *lines = files.text("proc/interrupts").split("\n")
    columns = [files.as_number(each.removeprefix("CPU"), "proc/interrupts") for each in head.split()]
    names: dict[int, str] = {}
    counts: dict[int, int] = {}
    for line in lines:
        number, _, rest = line.partition(":")
        if not number.strip().isdigit():
            continue  # NMI, LOC and their like belong to every CPU
        cells = rest.split(maxsplit=len(columns))
        came = [files.as_number(each, "proc/interrupts") for each in cells[: len(columns)]]
        counts[int(number)] = sum(many for cpu, many in zip(columns, came, strict=True) if cpus >> cpu & 1)
        names[int(number)] = re.sub(r"\s+", " ", cells[-1])
    return names, counts


def _threads(files: Files) -> Iterator[Disturbance]:
    for pid in files.numbered("proc", ""):
        try:
            stat, status = files.text(f"proc/{pid}/stat"), files.text(f"proc/{pid}/status")
        except DiscoveryError as error:
            if isinstance(error.__cause__, FileNotFoundError | ProcessLookupError):
                continue  # it ended while we looked
            raise
        name, _, rest = stat.partition("(")[2].rpartition(")")
        fields = rest.split()
        if len(fields) <= _LAST_CPU:
            raise files.wrong(f"proc/{pid}/stat", stat, "the fields that proc(5) lists")
        flags = files.as_number(fields[_FLAGS], f"proc/{pid}/stat")
        if flags & _KERNEL_THREAD:
            last = files.as_number(fields[_LAST_CPU], f"proc/{pid}/stat")
            allowed = _allowed(files, status, f"proc/{pid}/status")
            yield Disturbance(Kind.THREAD, pid, name, allowed, 1 << last, movable=not flags & _BOUND)


def _allowed(files: Files, status: str, path: str) -> CpuSet:
    found = re.search(r"^Cpus_allowed_list:\s*(\S*)$", status, re.MULTILINE)
    try:
        return parse_list(found[1] if found else "none")
    except BadListError as error:
        raise files.wrong(path, found[1] if found else "", "a line Cpus_allowed_list: 0-3,8") from error
