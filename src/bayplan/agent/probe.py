"""A close look at one group, several times a period, and a remedy tried on it for a moment.

What the try changes is undone on an error, on Ctrl-C and at the end; written by a keeper (`agent.keeper`) after a kill
as well, and at once. A limit above the group's is raised with it, as for a burst (`node.burst.holds`): under a lower
one it would show nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import msgspec

from bayplan.agent.keeper import Told
from bayplan.agent.keeping import Keeper
from bayplan.agent.procfs import Proc
from bayplan.model.clock import Clock, Instant
from bayplan.model.errors import PermanentError
from bayplan.node.burst.holds import Hold, Holds
from bayplan.node.cgroup.port import Bandwidth, Group, GroupGoneError, Tree, WriteRefusedError
from bayplan.node.throttling.causes import Explanation, explain
from bayplan.node.throttling.evidence import Evidence, Look
from bayplan.node.throttling.kernels import has_burst
from bayplan.node.throttling.remedies import Remedy

_LOOKS_A_PERIOD = 8
_SHORTEST_US = 2_000
"""Looking costs some 100 us with a few threads: at 2 ms it takes a twentieth of a CPU."""


class NothingToTryError(PermanentError):
    """A remedy was to be tried, and there is none: the group is not throttled, or nothing of its limit would help."""

    code = "BP-N062"


class Tried(msgspec.Struct, frozen=True):
    """What a remedy did."""

    before: Explanation
    remedy: Remedy
    after: Explanation


async def watch_closely(
    group: Group, clock: Clock, span_us: int, *, proc: Proc | None = None, kernel: str = ""
) -> Evidence:
    """Look at a group for a while. Raises GroupGoneError."""
    proc = Proc() if proc is None else proc
    kernel = kernel or os.uname().release
    bandwidth = group.bandwidth()
    pause = max(_SHORTEST_US, bandwidth.period_us // _LOOKS_A_PERIOD)
    looks: list[Look] = []
    threads = 0
    idle, start = proc.idle_us(), clock.now()
    while (now := clock.now()) < start + span_us or len(looks) < 2:
        counters, states = group.counters(), proc.states(group.processes())
        threads = max(threads, len(states))
        looks.append(
            Look(
                now,
                counters.usage_ns,
                counters.periods,
                counters.throttled_periods,
                counters.throttled_ns,
                sum(state == "R" for state in states.values()),
            )
        )
        await clock.sleep_until(Instant(now + pause))
    idle_cpus = (proc.idle_us() - idle) / max(1, clock.now() - start)
    return Evidence(
        bandwidth,
        tuple(looks),
        _cpus_of(group),
        kernel,
        threads=threads,
        node_idle_cpus=idle_cpus,
        has_burst=has_burst(kernel),
    )


def _cpus_of(group: Group) -> int:
    """CPUs that the group's processes may run on; this process's own where it has none."""
    found = [0]
    for process in group.processes():
        with contextlib.suppress(ProcessLookupError):
            found.append(len(os.sched_getaffinity(process)))
    return max(found) or len(os.sched_getaffinity(0))


ForAMoment = Callable[[str, Bandwidth], AbstractAsyncContextManager[None]]
"""Another limit inside the block, and room for it above; the old ones after it, but for what others wrote."""


def written_here(tree: Tree) -> ForAMoment:
    """By this very process."""

    @contextlib.asynccontextmanager
    async def moment(path: str, wanted: Bandwidth) -> AsyncIterator[None]:
        holds = Holds(tree)
        if left_alone := holds.hold(Hold(path, wanted)):
            raise GroupGoneError(f"group {path}: {left_alone}", hint="try again while its container runs")
        try:
            yield
        finally:
            holds.release(path)

    return moment


def written_by_a_keeper(journal: Path, clock: Clock, root: str) -> ForAMoment:
    """By a process that undoes it even where this one is killed. Raises KeeperLostError, WriteRefusedError."""

    @contextlib.asynccontextmanager
    async def moment(path: str, wanted: Bandwidth) -> AsyncIterator[None]:
        news: asyncio.Queue[Told] = asyncio.Queue()
        async with Keeper(journal, clock, news.put_nowait, root=root) as keeper:
            await news.get()  # that it is ready
            lost = asyncio.create_task(keeper.lost())
            answer = asyncio.create_task(news.get())
            try:
                keeper.hold(Hold(path, wanted))
                await asyncio.wait([answer, lost], return_when=asyncio.FIRST_COMPLETED)
                if answer.done() and answer.result().what == "refused":
                    raise WriteRefusedError(f"group {path}: {answer.result().why}", hint="nothing was changed")
                if answer.done():
                    yield
                if lost.done():
                    lost.result()
            finally:
                for task in (lost, answer):
                    task.cancel()
                await asyncio.wait([lost, answer])

    return moment


async def try_remedy(
    tree: Tree,
    path: str,
    clock: Clock,
    span_us: int,
    *,
    before: Explanation | None = None,
    proc: Proc | None = None,
    for_a_moment: ForAMoment | None = None,
) -> Tried:
    """Explain, apply the best remedy for as long, undo it. Raises NothingToTryError, WriteRefusedError."""
    group = tree.group(path)
    if before is None:
        before = explain(await watch_closely(group, clock, span_us, proc=proc))
    if not before.remedies:
        raise NothingToTryError(f"{group.path}: {before.summary}", hint="watch it while it is throttled: --for 1m")
    remedy = before.remedies[0]
    for_a_moment = written_here(tree) if for_a_moment is None else for_a_moment
    async with for_a_moment(group.path, remedy.bandwidth):
        # what was throttled when the limit changed is counted in the period that ends next
        await clock.sleep_until(Instant(clock.now() + 2 * remedy.bandwidth.period_us))
        after = explain(await watch_closely(group, clock, span_us, proc=proc))
    return Tried(before, remedy, after)
