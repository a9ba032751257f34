"""Tiers on real control groups: three processes compete for one CPU; the first is moved from tier to tier.

Throughput is units of 2 ms of CPU a second, latency how long a unit took. Weights take from the first task only what
the others want; the quota of tier 3 holds it back even when it is alone, which the same task without others shows.
"""

from __future__ import annotations

import time

import msgspec

from bayplan.model.clock import SystemClock
from bayplan.node.burst.holds import Holds
from bayplan.node.tiers.manager import TIERS, TierManager
from bayplan.node.tiers.task import Task
from benchmarks.cpu_work import NO_GROUPS, Running, Unit, Work, are_groups_writable, percentile, real_groups
from benchmarks.measure import Effort
from benchmarks.report import OURS, Line, Sort, Table

NAME = "tiers"
_TITLE = "three processes compete for one CPU; the task is in tier"
_WORK = Work(unit=0.002, every=0, lasts=4, cpu=0)
_TASKS = ("task", "other-1", "other-2")


class Seen(msgspec.Struct, frozen=True):
    """One task during one run."""

    units_a_second: float
    p99_ms: float
    usage_ns: int


def compete(tier: int, lasts: float, tasks: tuple[str, ...] = _TASKS) -> list[Seen]:
    """Have tasks compete for one CPU, the first of them in a tier and the others in tier 0."""
    work = msgspec.structs.replace(_WORK, lasts=lasts)
    with real_groups(*tasks) as (tree, groups):
        manager = TierManager(tree, SystemClock(), Holds(tree))
        for number, (name, group) in enumerate(zip(tasks, groups, strict=True)):
            manager.add(Task.container(name, group.path), 0 if number else tier)
        running = [Running(group, work) for group in groups]
        before = [group.counters() for group in groups]
        for each in running:
            each.go()
        time.sleep(lasts * 0.95)  # while all still compete
        usage = [group.counters().usage_ns - was.usage_ns for group, was in zip(groups, before, strict=True)]
        found = [_seen(each.units(), lasts, used) for each, used in zip(running, usage, strict=True)]
        manager.close()
    return found


def _seen(units: list[Unit], lasts: float, usage_ns: int) -> Seen:
    return Seen(len(units) / lasts, 1000 * percentile([unit.took for unit in units], 0.99), usage_ns)


def run(effort: Effort) -> Table:
    """Measure."""
    if not are_groups_writable():
        return Table(NAME, _TITLE, ("none",), (Line("throttled %", OURS, Sort.EACH, (None,)),), notes=(NO_GROUPS,))
    lasts = max(1.0, _WORK.lasts * effort.scale)
    runs = [compete(tier.number, lasts) for tier in TIERS]
    alone = [compete(tier.number, lasts, _TASKS[:1])[0] for tier in TIERS]
    lines = []
    for who, seen in (
        ("the task", [found[0] for found in runs]),
        ("each other", [found[1] for found in runs]),
        ("the task, alone", alone),
    ):
        lines.append(Line(f"{who}: units/s", OURS, Sort.RATE, tuple(each.units_a_second for each in seen)))
        lines.append(Line(f"{who}: p99 ms", OURS, Sort.EACH, tuple(each.p99_ms for each in seen)))
    shares = tuple(100 * found[0].usage_ns / sum(each.usage_ns for each in found) for found in runs)
    lines.append(Line("the task: share of CPU %", OURS, Sort.RATE, shares))
    return Table(
        NAME,
        _TITLE,
        tuple(str(tier.number) for tier in TIERS),
        tuple(lines),
        notes=tuple(f"tier {tier.number}: {tier.meaning}" for tier in TIERS),
    )
