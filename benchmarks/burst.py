"""CPU burst on real control groups: a spiky process under 0.7 CPU, without a burst and with each; and punctuality.

Two shapes of load, both well below the limit on average: a spike (110 ms of CPU by two processes at once, every 500 ms)
that a standing burst covers, and a surge (300 ms of CPU, every 1.5 s) that lasts several periods. The second half of
each run is counted, when the adaptive quota has settled. `machine idle` beside the throttle rate is the paradox: a
container is held back while CPUs have nothing to do.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
from pathlib import Path

import msgspec

from bayplan.agent.burst import BurstAgent
from bayplan.agent.burst_modes import KoordinatorMode, Mode, ShortMode
from bayplan.agent.keeper import Told
from bayplan.agent.keeping import Keeper
from bayplan.agent.procfs import Proc
from bayplan.model.clock import MILLISECOND, Instant, SystemClock
from bayplan.node.burst.holds import Hold
from bayplan.node.burst.koordinator import BurstConfig, Policy
from bayplan.node.burst.short import ShortBurst
from bayplan.node.cgroup.port import Bandwidth, Counters, Group, Tree
from benchmarks.cpu_work import NO_GROUPS, Running, Work, are_groups_writable, percentile, real_groups
from benchmarks.measure import Effort
from benchmarks.report import OURS, Line, Sort, Table

NAME = "burst"
_TITLE = "a spiky process under 0.7 CPU without a burst and with each, second half of each run"
_LIMIT = Bandwidth(70_000)
"""Three times that is more than the load's two processes can use."""
SPIKE = Work(unit=0.055, every=0.5, lasts=12, processes=2)
SURGE = Work(unit=0.150, every=1.5, lasts=12, processes=2)
_MANY_CPUS = 64
"""The node's use is counted against so many CPUs: other load on this machine must not stop the adaptive quota here."""
_PUNCTUAL_US = 20 * MILLISECOND
_BINS_MS = (1, 2, 5, 10, 20, 50)
_MEMORY = "/dev/shm" if os.path.isdir("/dev/shm") else None
"""Where journals are as fast as in /run on most machines."""


def modes() -> dict[str, Mode | None]:
    """What is compared, each fresh."""
    return {
        "none": None,
        "static": KoordinatorMode(BurstConfig(policy=Policy.CPU_BURST_ONLY)),
        "adaptive": KoordinatorMode(BurstConfig(policy=Policy.CFS_QUOTA_BURST_ONLY)),
        "auto": KoordinatorMode(BurstConfig(policy=Policy.AUTO)),
        "short": ShortMode(ShortBurst(cooldown=200 * MILLISECOND, look=20 * MILLISECOND)),
    }


class Seen(msgspec.Struct, frozen=True):
    """The second half of a run."""

    periods: int
    throttled: int
    throttled_ms: float
    p99_ms: float
    machine_idle: float

    @property
    def rate(self) -> float:
        """Throttled periods of a hundred."""
        return 100 * self.throttled / self.periods if self.periods else 0.0


async def spiky(tree: Tree, group: Group, mode: Mode | None, work: Work) -> Seen:
    """Run the load under a mode."""
    group.set_bandwidth(_LIMIT)
    running = Running(group, work)
    clock = SystemClock()
    if mode is None:
        running.go()
        return await _halves(group, running, work)
    agent = BurstAgent(tree, mode, clock, lambda _: None, below=[group.path], cpus=_MANY_CPUS)
    with tempfile.TemporaryDirectory(dir=_MEMORY) as folder:
        async with Keeper(Path(folder) / "journal", clock, agent.hear) as agent.keeping:
            going = asyncio.create_task(agent.run())
            running.go()
            seen = await _halves(group, running, work)
            going.cancel()
            await asyncio.wait([going])
    return seen


async def _halves(group: Group, running: Running, work: Work) -> Seen:
    await asyncio.sleep(work.lasts / 2)
    before, (idle, total) = group.counters(), Proc().cpu_us()
    await asyncio.sleep(work.lasts / 2)
    after, (idle_after, total_after) = group.counters(), Proc().cpu_us()
    idle_share = (idle_after - idle) / max(1, total_after - total)
    units = await asyncio.to_thread(running.units)
    return _seen(before, after, [unit.took for unit in units if unit.at >= work.lasts / 2], idle_share)


def _seen(before: Counters, after: Counters, took: list[float], idle_share: float) -> Seen:
    return Seen(
        periods=after.periods - before.periods,
        throttled=after.throttled_periods - before.throttled_periods,
        throttled_ms=(after.throttled_ns - before.throttled_ns) / 1e6,
        p99_ms=1000 * percentile(took, 0.99),
        machine_idle=100 * idle_share,
    )


async def lateness(holds: int) -> list[int]:
    """Microseconds by which holds of 100 to 500 ms on eight groups came back late, measured after the write."""
    clock, late = SystemClock(), []

    def hear(told: Told) -> None:
        if told.late_us is not None:
            late.append(told.late_us)

    with (
        real_groups(*(f"late{i}" for i in range(8))) as (_, groups),
        tempfile.TemporaryDirectory(dir=_MEMORY) as folder,
    ):
        for group in groups:
            group.set_bandwidth(_LIMIT)
        async with Keeper(Path(folder) / "journal", clock, hear) as keeper:
            for number in range(holds):
                until = Instant(clock.now() + (100 + number * 37 % 400) * MILLISECOND)
                keeper.hold(Hold(groups[number % 8].path, Bandwidth(150_000), until))
                await asyncio.sleep(0.07)
            await asyncio.sleep(0.6)
    return late


def histogram(late: list[int]) -> str:
    """How many came how late."""
    bins, low = [], 0
    for high in _BINS_MS:
        bins.append(f"<{high} ms {sum(low <= each < high * MILLISECOND for each in late)}")
        low = high * MILLISECOND
    bins.append(f"more {sum(each >= low for each in late)}")
    ranked = [each / MILLISECOND for each in late]
    head = f"{len(late)} resets: p50 {percentile(ranked, 0.5):.2f} ms, p99 {percentile(ranked, 0.99):.2f} ms, "
    return f"{head}worst {max(ranked):.2f} ms; {', '.join(bins)}"


def run(effort: Effort) -> Table:
    """Measure."""
    if not are_groups_writable():
        return Table(NAME, _TITLE, ("none",), (Line("throttled %", OURS, Sort.EACH, (None,)),), notes=(NO_GROUPS,))
    found: dict[str, list[Seen]] = {}
    for shape, work in (("spike", SPIKE), ("surge", SURGE)):
        work = msgspec.structs.replace(work, lasts=max(2.0, work.lasts * effort.scale))
        for name, mode in modes().items():
            with real_groups(f"{shape}-{name}") as (tree, (group,)):
                found.setdefault(shape, []).append(asyncio.run(spiky(tree, group, mode, work)))
    late = asyncio.run(lateness(max(20, round(300 * effort.scale))))
    punctual = 100 * sum(each <= _PUNCTUAL_US for each in late) / len(late)
    columns = tuple(modes())
    lines = [
        Line(f"{shape}: {measure}", OURS, Sort.EACH, tuple(float(getattr(each, field)) for each in seen))
        for shape, seen in found.items()
        for measure, field in (
            ("nr_periods", "periods"),
            ("nr_throttled", "throttled"),
            ("throttled %", "rate"),
            ("throttled ms", "throttled_ms"),
            ("p99 ms a unit", "p99_ms"),
            ("machine idle %", "machine_idle"),
        )
    ]
    lines.append(Line("resets within 20 ms, %", OURS, Sort.RATE, (None,) * (len(columns) - 1) + (punctual,), goal=99.0))
    plain = found["spike"][0]
    return Table(
        NAME,
        _TITLE,
        columns,
        tuple(lines),
        notes=(
            f"the paradox: {plain.rate:.0f}% of periods throttled while {plain.machine_idle:.0f}% of the machine idled",
            histogram(late),
        ),
    )
