"""A machine drawn: sockets, in them NUMA nodes, in them L3 groups, in them cores; what stands in a core is its threads.

A CPU is drawn as its id, or as a mark that says who holds it, and then the ids stand behind. Sockets stand side by side
where the window is wide enough for it to cost no line. A drawing is lines of styled pieces; what shows them decides
about colour.
"""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import NamedTuple

import msgspec

from bayplan.cli.cpu.machine_words import amount, headline, pages_text, strided
from bayplan.node.machine import Device, Machine
from bayplan.node.sets import CpuSet, format_list, ids_of, mask_of

_GAP = "   "
_INDENT = 4
_EIGHT = 8  # after so many cores a wider gap, to count by
_DIM, _HEAD, _NODE, _WARN = "dim", "bold", "cyan", "yellow"


class Mark(NamedTuple):
    """A piece of text with a style of rich's; for a CPU, one character."""

    text: str
    style: str = ""


Line = list[Mark]


class Holdings(msgspec.Struct, frozen=True):
    """Who holds what: a mark for each CPU and for each device that has one, and what the marks mean."""

    cpus: Mapping[int, Mark]
    devices: Mapping[tuple[str, str], Mark] = msgspec.field(default_factory=dict)
    """By resource and id."""
    legend: Sequence[tuple[Mark, str]] = ()
    free: Mark = Mark("·", _DIM)
    """For CPUs without a mark."""


def draw(machine: Machine, *, width: int, holdings: Holdings | None = None) -> list[Line]:
    """The machine in lines no wider than `width`, as far as one core fits into it."""
    lines = [*_head(machine, width), []]
    if holdings and holdings.legend:
        lines += [*_legend(holdings, width), []]
    lines += _Map(machine, holdings).sockets(width)
    return [*lines, *_without_cpus(machine, holdings, width), *_notes(machine, width)]


def distance_lines(machine: Machine) -> list[Line]:
    """The distances between NUMA nodes as a matrix; nothing where there is one node or none is known."""
    ids = [node.id for node in machine.nodes]
    if len(ids) < 2 or not all(node.distances for node in machine.nodes):
        return []
    farthest = max(max(node.distances.values()) for node in machine.nodes)
    wide = max(len(str(each)) for each in (*ids, farthest)) + 2
    head = f"{'distances':<10}"
    lines: list[Line] = [[], [Mark(head, _HEAD), Mark("".join(f"{each:>{wide}}" for each in ids), _NODE)]]
    for node in machine.nodes:
        cells = [Mark(f"{far:>{wide}}", _far_style(far, farthest)) for _, far in sorted(node.distances.items())]
        lines.append([Mark(f"{node.id:>{len(head)}}", _NODE), *cells])
    return lines


def plain(lines: Sequence[Line]) -> str:
    """The drawing without colour."""
    return "".join("".join(piece.text for piece in line).rstrip() + "\n" for line in lines)


def show(lines: Sequence[Line]) -> None:
    """The drawing on standard output, in colour where colour is welcome."""
    from bayplan.cli.printers import coloured

    if not coloured(sys.stdout):
        sys.stdout.write(plain(lines))
        return
    from rich.console import Console
    from rich.text import Text

    console = Console(file=sys.stdout, highlight=False)
    for line in lines:
        console.print(Text.assemble(*line), soft_wrap=True)


def _far_style(far: int, farthest: int) -> str:
    return _DIM if far == 10 else _WARN if far == farthest else ""


def _head(machine: Machine, width: int) -> Iterator[Line]:
    yield [Mark(machine.name, _HEAD)]
    if machine.description:
        yield from ([Mark(line, _DIM)] for line in textwrap.wrap(machine.description.split("\n")[0], width))
    yield from ([Mark(line)] for line in headline(machine, width))


def _legend(holdings: Holdings, width: int) -> Iterator[Line]:
    return _flowed(([mark, Mark(f" {meaning}{_GAP}")] for mark, meaning in holdings.legend), width, "")


def _flowed(pieces: Iterable[Line], width: int, indent: str) -> Iterator[Line]:
    """Pieces one after the other, in new lines where they would go beyond the width; their end may, being space."""
    line: Line = []
    for piece in pieces:
        if line and _length(line) + _length(piece) - len(piece[-1].text) + len(piece[-1].text.rstrip()) > width:
            yield line
            line = [Mark(indent)]
        line = line + piece
    yield line


def _length(line: Line) -> int:
    return sum(len(piece.text) for piece in line)


class _Map:
    """The CPUs of a machine. All rows share one grid, so that cores stand below cores."""

    def __init__(self, machine: Machine, holdings: Holdings | None) -> None:
        self._machine = machine
        self._holdings = holdings
        self._topology = machine.topology
        self._digits = len(str(self._topology.all.bit_length() - 1))
        self._label = max(len(f"L3 {cache}") for cache in self._topology.caches) + 2
        self._core = max(_length([*self._cell(core)]) for core in self._topology.cores.values())

    def sockets(self, width: int) -> list[Line]:
        """All sockets, side by side where that makes no row longer than it is alone."""
        blocks = [self._block(socket, width) for socket in self._topology.sockets]
        for beside in range(len(blocks), 1, -1):
            narrow = (width - len(_GAP) * (beside - 1)) // beside
            squeezed = [self._block(socket, narrow) for socket in self._topology.sockets]
            if all(_fits(new, narrow) and len(new) <= len(old) for new, old in zip(squeezed, blocks, strict=True)):
                return [*_beside(squeezed, beside)]
        return [*_beside(blocks, 1)]

    def _block(self, socket: int, width: int) -> list[Line]:
        members = self._topology.sockets[socket]
        lines: list[Line] = [[Mark(f"socket {socket}", _HEAD)]]
        for node, cpus in self._topology.nodes.items():
            if cpus & members:
                lines += _node_lines(self._machine, node, self._holdings, width)
                lines += self._rows(cpus & members, width)
        return lines

    def _rows(self, cpus: CpuSet, width: int) -> Iterator[Line]:
        """The rows of a node: an L3 group begins a new one, and is broken evenly where it is too long."""
        for cache, members in self._topology.caches.items():
            cores = [mine for mine in (core & members & cpus for core in self._topology.cores.values()) if mine]
            per_row = self._per_row(len(cores), width)
            for at in range(0, len(cores), per_row):
                label = f"L3 {cache}" if at == 0 else ""
                yield [
                    Mark(f"{'':{_INDENT}}{label:<{self._label}}", _DIM),
                    *self._cells(cores[at : at + per_row], per_row),
                ]

    def _per_row(self, cores: int, width: int) -> int:
        """All in one row where they fit; else as many eights as fit, or what fits."""
        fit = max((n for n in range(1, cores + 1) if self._row_width(n) <= width), default=1)
        return fit if fit in (cores, fit % _EIGHT) else fit // _EIGHT * _EIGHT

    def _row_width(self, cores: int) -> int:
        ids = 2 + 4 * self._digits + 3 if self._holdings else 0  # two runs, as of cores with two threads
        return _INDENT + self._label + cores * (self._core + 1) + (cores - 1) // _EIGHT - 1 + ids

    def _cells(self, cores: Sequence[CpuSet], per_row: int) -> Iterator[Mark]:
        for index, core in enumerate(cores):
            if index:
                yield Mark("  " if index % _EIGHT == 0 else " ")
            pieces = [*self._cell(core)]
            yield from pieces
            yield Mark(" " * (self._core - _length(pieces)))
        if self._holdings:
            missing = self._row_width(per_row) - self._row_width(len(cores)) + 2
            ids = mask_of(each for core in cores for each in ids_of(core))
            yield Mark(" " * missing + strided(ids), _DIM)

    def _cell(self, core: CpuSet) -> Iterator[Mark]:
        """`0/64`; a run of more than two is written `0-3`."""
        first, *others = ids_of(core)
        if self._holdings:
            yield from (self._holdings.cpus.get(cpu, self._holdings.free) for cpu in (first, *others))
            return
        yield Mark(f"{first:>{self._digits}}")
        is_run = len(others) > 1 and others[-1] - first == len(others)
        yield Mark(f"-{others[-1]}" if is_run else "".join(f"/{cpu}" for cpu in others), _DIM)


def _fits(block: Sequence[Line], width: int) -> bool:
    return all(_length(line) <= width for line in block)


def _beside(blocks: Sequence[list[Line]], many: int) -> Iterator[Line]:
    for at in range(0, len(blocks), many):
        if at:
            yield []
        group = blocks[at : at + many]
        widths = [max(map(_length, block)) for block in group]
        for row in zip_longest(*group, fillvalue=None):
            line: Line = []
            start = 0
            for part, width in zip(row, widths, strict=True):
                if part:
                    line += [Mark(" " * (start - _length(line))), *part]
                start += width + len(_GAP)
            yield line


def _node_lines(machine: Machine, node: int, holdings: Holdings | None, width: int) -> Iterator[Line]:
    """A NUMA node's memory, hugepages and devices."""
    found = next(each for each in machine.nodes if each.id == node)
    head = [Mark(f"  node {node}", _NODE), Mark(f"  {amount(found.memory)}")]
    if pages := pages_text(found.hugepages):
        head.append(Mark(f"  {pages}"))
    on_it = [each for each in machine.devices if each.nodes >> node & 1]
    return _flowed([head, *_devices(on_it, holdings)], width, " " * (_INDENT - 1))


def _devices(devices: Iterable[Device], holdings: Holdings | None) -> Iterator[Line]:
    """Ids of devices, before the first of a resource its name."""
    last = ""
    for device in devices:
        piece = [Mark(f" {device.id}") if device.healthy else Mark(f" {device.id} (unhealthy)", "red")]
        if device.resource != last:
            piece.insert(0, Mark(f"  {device.resource}", _DIM))
            last = device.resource
        if holdings and (mark := holdings.devices.get((device.resource, device.id))):
            piece += [Mark("="), mark]
        yield piece


def _without_cpus(machine: Machine, holdings: Holdings | None, width: int) -> Iterator[Line]:
    bare = [node.id for node in machine.nodes if node.id not in machine.topology.nodes]
    if bare:
        yield from ([], [Mark("no CPUs", _HEAD)])
    for node in bare:
        yield from _node_lines(machine, node, holdings, width)
    if nowhere := [each for each in machine.devices if not each.nodes]:
        yield []
        head = [Mark("on no known NUMA node", _HEAD)]
        yield from _flowed([head, *_devices(nowhere, holdings)], width, " " * (_INDENT - 1))


def _notes(machine: Machine, width: int) -> Iterator[Line]:
    spans = ((cache, machine.topology.nodes_of(cpus)) for cache, cpus in machine.topology.caches.items())
    wide = [f"L3 {cache} spans nodes {format_list(nodes)}" for cache, nodes in spans if nodes.bit_count() > 1]
    if wide:
        yield from ([], *([Mark(line, _DIM)] for line in textwrap.wrap("; ".join(wide), width)))
    if machine.offline:
        yield from ([], [Mark(f"offline  {format_list(machine.offline)}", "red")])
