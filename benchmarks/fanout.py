"""Watch fan-out: events a second delivered to 1, 10 and 50 watchers, and the memory that a watcher takes.

All watchers read the same log, so a watcher costs a position and no copy. The peer is the usual alternative: a queue
for each watcher, into which every event is put.
"""

from __future__ import annotations

import asyncio
import gc
import tracemalloc
from collections.abc import Sequence
from typing import Any

from bayplan.cluster.embedded.engine import EmbeddedCluster
from bayplan.cluster.kinds import CONFIG_MAP
from bayplan.cluster.objects import Section
from bayplan.cluster.port import WatchEvent
from bayplan.model.meta import ObjectMeta
from benchmarks.measure import Effort, cpu_time, least, most
from benchmarks.report import OURS, Line, Sort, Table

NAME = "fanout"
_EVENTS = 20_000
_BURST = 100
"""Events between two moments in which watchers get to run."""


class _Source:
    """Somewhere to write events and to read them: ours, or a queue a watcher."""

    def __init__(self, watchers: int) -> None:
        self.left = 0
        self.done = asyncio.Event()
        self.watchers = watchers

    def expect(self, events: int) -> None:
        self.left = events * self.watchers
        self.done.clear()

    def saw(self) -> None:
        self.left -= 1
        if not self.left:
            self.done.set()


class _Ours(_Source):
    def __init__(self, watchers: int) -> None:
        super().__init__(watchers)
        self.cluster = EmbeddedCluster(())
        self.sections = {"data": Section(b'{"key":"value"}')}

    def put(self, number: int) -> None:
        meta = ObjectMeta(name=f"settings-{number % 100}", namespace="default")
        self.cluster.world.store.put(CONFIG_MAP, meta, self.sections)

    async def watch(self) -> None:
        async for _ in self.cluster.watch(CONFIG_MAP):
            self.saw()


class _Queues(_Source):
    def __init__(self, watchers: int) -> None:
        super().__init__(watchers)
        self.cluster = _Ours(0)
        self.queues: list[asyncio.Queue[WatchEvent]] = []

    def put(self, number: int) -> None:
        self.cluster.put(number)
        event = WatchEvent("MODIFIED", str(number))
        for queue in self.queues:
            queue.put_nowait(event)

    async def watch(self) -> None:
        queue: asyncio.Queue[WatchEvent] = asyncio.Queue()
        self.queues.append(queue)
        try:
            while True:
                await queue.get()
                self.saw()
        finally:
            self.queues.remove(queue)


async def _rate(source: _Ours | _Queues, events: int) -> float:
    tasks = [asyncio.ensure_future(source.watch()) for _ in range(source.watchers)]
    await asyncio.sleep(0)
    source.expect(events)
    with cpu_time() as span:
        for number in range(events):
            source.put(number)
            if not number % _BURST:
                await asyncio.sleep(0)
        await source.done.wait()
    await _cancelled(tasks)
    return events * source.watchers / span.seconds


async def _cancelled(tasks: Sequence[asyncio.Future[Any]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def delivered(watchers: int, events: int, queues: bool) -> float:
    """Events a second, summed over the watchers; writing them is part of the time."""

    async def measure() -> float:
        return await _rate(_Queues(watchers) if queues else _Ours(watchers), events)

    return asyncio.run(measure())


def bytes_a_watcher(watchers: int, events: int, queues: bool) -> float:
    """Memory that a watcher takes which has read one event while `events` wait for it, as a slow client."""

    async def measure() -> float:
        source = _Ours(0)
        since = str(source.cluster.world.store.revision)
        for number in range(events):
            source.put(number)
        waiting = [WatchEvent("MODIFIED", str(number)) for number in range(events)]
        streams = [source.cluster.watch(CONFIG_MAP, since=since) for _ in range(watchers)]
        gc.collect()
        tracemalloc.start()
        held = [_full_queue(waiting) if queues else await anext(stream) for stream in streams]
        taken = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
        return taken / len(held)

    return asyncio.run(measure())


def _full_queue(events: Sequence[WatchEvent]) -> asyncio.Queue[WatchEvent]:
    queue: asyncio.Queue[WatchEvent] = asyncio.Queue()
    for event in events:
        queue.put_nowait(event)
    return queue


def run(effort: Effort) -> Table:
    """Measure."""
    sizes = (1, 10, 50)
    (events,) = effort.sizes(_EVENTS)
    waiting = min(events, 10_000)

    def rate(who: str, queues: bool) -> Line:
        values = tuple(most(effort, delivered, size, events, queues) for size in sizes)
        return Line("events/s delivered to all", who, Sort.RATE, values)

    def held(who: str, queues: bool) -> Line:
        values = tuple(least(Effort(1, 1), bytes_a_watcher, size, waiting, queues) for size in sizes)
        return Line(f"bytes a watcher, {waiting:,} events waiting", who, Sort.EACH, values)

    peer = "an asyncio.Queue each"
    return Table(
        NAME,
        "watch fan-out, by number of watchers",
        tuple(f"{size:,}" for size in sizes),
        (rate(OURS, False), rate(peer, True), held(OURS, False), held(peer, True)),
        sizes,
    )
