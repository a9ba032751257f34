"""What the agent costs: CPU time of one look at real control groups, of a thorough one, and of a scrape."""

from __future__ import annotations

import os

from prometheus_client import CollectorRegistry, generate_latest

from bayplan.agent.metrics import ThrottlingCollector
from bayplan.agent.process import new_observer
from bayplan.model.clock import SystemClock
from bayplan.model.errors import BayplanError
from bayplan.node.cgroup.detect import find_tree
from bayplan.node.cgroup.port import Bandwidth
from bayplan.service.settings import Settings
from benchmarks.measure import Effort, cpu_time, repeated
from benchmarks.report import OURS, Line, Sort, Table

NAME = "observing"

_MEASURES = ("a look, ms", "a thorough look, ms", "a scrape, ms")


def measured(size: int) -> tuple[float, ...]:
    """Milliseconds of each measure with so many containers, two a pod."""
    tree, root = find_tree(), f"/bayplan-observing-{os.getpid()}"
    try:
        for index in range(size):
            tree.create(f"{root}/pod{index // 2}/c{index}").set_bandwidth(Bandwidth(50_000))
        observer = new_observer(tree, SystemClock(), Settings(), root)
        registry = CollectorRegistry()
        registry.register(ThrottlingCollector(observer))
        observer.look()
        with cpu_time() as glance:
            observer.look(thorough=False)
        with cpu_time() as thorough:
            observer.look()
        with cpu_time() as scrape:
            generate_latest(registry)
        return tuple(1000 * each.seconds for each in (glance, thorough, scrape))
    finally:
        for group in reversed([*tree.walk(root)]):
            tree.remove(group.path)


def run(effort: Effort) -> Table:
    """The least of some repeats, by the number of containers."""
    sizes = effort.sizes(10, 50, 250)
    notes: tuple[str, ...] = ()
    rows: list[tuple[float | None, ...]] = []
    for size in sizes:
        try:
            rows.append(tuple(min(values) for values in zip(*repeated(effort, measured, size), strict=True)))
        except (BayplanError, OSError) as refused:
            rows.append((None,) * len(_MEASURES))
            notes = (f"not measured: {refused}",)
    lines = tuple(
        Line(measure, OURS, Sort.WHOLE, tuple(row[index] for row in rows)) for index, measure in enumerate(_MEASURES)
    )
    columns = tuple(f"{size} containers" for size in sizes)
    return Table(NAME, "CPU time of the agent, by containers, two a pod", columns, lines, sizes, notes)
