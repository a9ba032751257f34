"""A machine in words: how much memory, how many of what."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from bayplan.node.machine import Machine
from bayplan.node.sets import CpuSet, ids_of

_UNITS = ("", "Ki", "Mi", "Gi", "Ti", "Pi")


def amount(size: int) -> str:
    """`64Gi`, `9.96Gi`: three digits that a person reads, not the exact number."""
    value, unit = float(size), 0
    while value >= 1024 and unit < len(_UNITS) - 1:
        value, unit = value / 1024, unit + 1
    text = f"{value:.2f}" if value < 10 else f"{value:.1f}" if value < 100 else f"{value:.0f}"
    return (text.rstrip("0").rstrip(".") if "." in text else text) + _UNITS[unit]


def pages_text(pages: Mapping[int, int]) -> str:
    """`2Mi×512 1Gi×4`; nothing where there are no hugepages."""
    return " ".join(f"{amount(size * 1024)}×{count}" for size, count in pages.items() if count)


def strided(cpus: CpuSet) -> str:
    """A list as taskset reads it: `0-3,8`, and `0-30:2` for every second one."""
    parts: list[str] = []
    ids = [*ids_of(cpus)]
    while ids:
        step = ids[1] - ids[0] if len(ids) > 1 else 1
        run = 1
        while run < len(ids) and ids[run] - ids[run - 1] == step:
            run += 1
        if run == 2 and step > 1:
            run = 1
        first, last = ids[0], ids[run - 1]
        parts.append(str(first) if run == 1 else f"{first}-{last}" if step == 1 else f"{first}-{last}:{step}")
        ids = ids[run:]
    return ",".join(parts)


def headline(machine: Machine, width: int) -> list[str]:
    """How many of what, in as few lines as fit."""
    topology = machine.topology
    memory = sum(node.memory for node in machine.nodes)
    parts = [
        _many(len(topology.cpus), "CPU"),
        f"{_many(len(topology.cores), 'core')} {_threads(machine)}",
        _many(len(topology.sockets), "socket"),
        _many(len(machine.nodes), "NUMA node"),
        _many(len(topology.caches), "L3 group"),
        *([amount(memory)] if memory else []),
        *(f"{count} {resource}" for resource, count in Counter(each.resource for each in machine.devices).items()),
    ]
    lines = [parts[0]]
    for part in parts[1:]:
        longer = f"{lines[-1]}, {part}"
        lines = [*lines[:-1], longer] if len(longer) <= width else [*lines, part]
    return lines


def _threads(machine: Machine) -> str:
    sizes = Counter(cpus.bit_count() for cpus in machine.topology.cores.values())
    if len(sizes) == 1:
        return f"of {_many(next(iter(sizes)), 'thread')}"
    return "(" + ", ".join(f"{count} of {_many(size, 'thread')}" for size, count in sorted(sizes.items())[::-1]) + ")"


def _many(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"
