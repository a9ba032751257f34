"""One selection of exclusive CPUs, and the hints of a pod: ours beside the kubelet's own functions, in the same run.

The rows are machine, function, CPUs asked and free set. Ours and upstream's take turns, on one core each, many times;
the median of the CPU time counts. Inputs stand before the clock starts, and both must choose the same CPUs.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from random import Random
from typing import Any, NamedTuple

from bayplan.cluster.lab.toolchain import LabUnavailableError
from bayplan.node.cpu.assignment import take_packed
from bayplan.node.cpu.distributed import take_distributed
from bayplan.node.cpu.hints import generate
from bayplan.node.machine import Cpu, Topology
from bayplan.node.sets import CpuSet, format_list, ids_of, mask_of
from benchmarks import cpu_peer
from benchmarks.cpu_peer import Answer, Peer, Question
from benchmarks.measure import Effort
from benchmarks.report import OURS, Line, Sort, Table

NAME = "cpu"
KUBELET = "kubelet"
_RUNS, _TURNS = 210, 7
"""How often a row is asked in all, and in how many turns: a noisy moment meets both."""
_CORES_PER_CACHE = 8
_SEED = 1
_HINTS_GOAL_MS = 1.0
_GROWTH = (64, 128, 256, 512)


class Row(NamedTuple):
    """A line of the table."""

    function: str
    """packed, uncore (packed by L3 groups), distributed-g2 (whole cores of two threads) or hints."""
    cpus: int
    nodes: int
    asked: int
    free: str

    def __str__(self) -> str:
        return f"{self.function} {self.cpus}cpu-2s-{self.nodes}numa {self.asked} {self.free}"

    def question(self) -> Question:
        """The row as both are asked it."""
        machine = topology(self.cpus, self.nodes)
        function, _, group = self.function.partition("-g")
        return Question(
            machine,
            available(machine, self.free),
            self.asked,
            "packed" if function == "uncore" else function,
            function == "uncore",
            int(group or 1),
        )


def topology(cpus: int, nodes: int) -> Topology:
    """Two sockets, two threads a core (i and i + half), NUMA nodes and L3 groups as runs of cores."""
    cores = cpus // 2
    return Topology(
        tuple(
            Cpu(cpu, core, core * 2 // cores, core * nodes // cores, core // _CORES_PER_CACHE)
            for cpu in range(cpus)
            for core in (cpu % cores,)
        )
    )


def available(machine: Topology, free: str) -> CpuSet:
    """All but the first core; `fragmented`: less a random quarter of the CPUs, too."""
    left = machine.all & ~next(iter(machine.cores.values()))
    if free == "clean":
        return left
    return left & ~mask_of(Random(_SEED).sample(list(ids_of(left)), len(machine.cpus) // 4))


def rows() -> Iterator[Row]:
    """Every row, and the hints."""
    functions = (("packed", ("clean", "fragmented")), ("uncore", ("clean",)), ("distributed-g2", ("clean",)))
    for function, states in functions:
        for cpus in (128, 256):
            for nodes in (2, 8):
                yield from (Row(function, cpus, nodes, asked, free) for asked in (16, 64) for free in states)
    yield from (Row("hints", cpus, 8, 16, "clean") for cpus in (128, 256))


def asking(question: Question) -> Callable[[], Any]:
    """The same question to ours, as a call without arguments."""
    machine, free, count = question.topology, question.available, question.count
    if question.function == "hints":
        return lambda: generate(machine, free, 0, count)
    if question.function == "distributed":
        return lambda: take_distributed(machine, free, count, group=question.group)
    return lambda: take_packed(machine, free, count, prefer_cache=question.prefer_cache)


def timed(ask: Callable[[], object], runs: int) -> list[int]:
    """Nanoseconds of CPU time of each run. The clock itself takes 700 or so; they are left in."""
    nanos = []
    for _ in range(runs):
        begin = time.process_time_ns()
        ask()
        nanos.append(time.process_time_ns() - begin)
    return nanos


def agrees(question: Question, answer: Answer) -> bool:
    """Whether the kubelet chose what ours chooses, its own defects aside."""
    if question.function == "hints":
        ours = [(each.nodes, each.preferred) for each in asking(question)()]
        return ours == [(mask_of(each.nodes), each.preferred) for each in answer.hints]
    chosen: list[Any] = [asking(question)()]
    if question.function == "distributed":
        machine, free, count = question.topology, question.available, question.count
        chosen.append(take_distributed(machine, free, count, group=question.group, as_upstream=True))
    return answer.chosen in [format_list(each.cpus) for each in chosen]


def measure(row: Row, runs: int, peer: Peer | None) -> tuple[float, float | None, bool]:
    """Our milliseconds, the kubelet's, and whether both chose the same."""
    question, ours, theirs = row.question(), list[int](), list[int]()
    ask, turn, same = asking(question), max(1, runs // _TURNS), True
    ask()  # what is known of a machine once and for all is part of the machine, as it is of upstream's
    for _ in range(_TURNS):
        ours += timed(ask, turn)
        if peer is not None:
            answer = peer.ask(question, turn)
            theirs += answer.nanos
            same = same and agrees(question, answer)
    return statistics.median(ours) / 1e6, statistics.median(theirs) / 1e6 if theirs else None, same


def run(effort: Effort) -> Table:
    """Measure."""
    runs = max(_TURNS, round(_RUNS * effort.scale))
    try:
        with cpu_peer.started() as peer:
            return table(runs, peer, [])
    except LabUnavailableError as error:
        return table(runs, None, [f"no figures of the kubelet: {str(error).splitlines()[0]}"])


def table(runs: int, peer: Peer | None, notes: list[str]) -> Table:
    """All rows. The goal of each is the kubelet's figure beside it; of the hints, a millisecond."""
    lines: list[Line] = []
    slower = []
    for row in rows():
        ours, theirs, same = measure(row, runs, peer)
        goal = _HINTS_GOAL_MS if row.function == "hints" else theirs
        lines.append(Line(str(row), OURS, Sort.EACH, (ours,), goal))
        if theirs is not None:
            lines.append(Line(str(row), KUBELET, Sort.EACH, (theirs,)))
            slower += [str(row)] if ours >= theirs else []
        notes += [] if same else [f"{row}: the kubelet chose otherwise"]
    if peer is not None:
        notes.append(f"slower than the kubelet: {', '.join(slower) or 'none'}")
    notes += [growth(nodes, runs, peer) for nodes in (2, 8)]
    title = "ms of CPU time for one selection, median; the goal is the kubelet's"
    return Table(NAME, title, ("ms",), tuple(lines), (), tuple(notes))


def growth(nodes: int, runs: int, peer: Peer | None) -> str:
    """A line on how the cost of a selection grows with the machine, an eighth of it asked."""
    found = [measure(Row("packed", cpus, nodes, cpus // 8, "fragmented"), runs, peer) for cpus in _GROWTH]
    figures = ", ".join(
        f"{cpus}: {ours:.3f}" + (f" ({theirs:.3f})" if theirs else "")
        for cpus, (ours, theirs, _) in zip(_GROWTH, found, strict=True)
    )
    return f"growth, packed, {nodes} NUMA nodes, fragmented, an eighth asked; CPUs: ms (the kubelet's): {figures}"
