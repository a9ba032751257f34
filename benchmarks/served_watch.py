"""Watches over HTTP: events a second to one, ten and fifty watchers of the served engine and of the real API server.

Replayed: the watchers begin before events that have happened, so nothing but the watches is measured, connecting
included. Live: the watchers wait while the same client patches pods, so writing is part of it. The client counts lines
and decodes nothing; it is one process, and at fifty watchers its own decryption takes a good share of the time.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import aclosing

from bayplan.cluster.live.client import Client
from bayplan.cluster.port import PatchType
from benchmarks.measure import Effort, alone, most
from benchmarks.report import Line, Sort, Table
from benchmarks.served import created
from benchmarks.serving import PODS, Target, both, connected, revision

NAME = "served_watch"
_AT_ONCE = 16
_PATIENCE = 300


class _Watchers:
    """Watches of pods, and how many events they have still to see in all."""

    def __init__(self, client: Client, count: int) -> None:
        self._client = client
        self._count = count
        self._left = 0

    async def see(self, since: str, events: int, write: Callable[[], Awaitable[object]] | None = None) -> float:
        """Seconds until all have seen so many events. With `write`, of those that it makes after one to begin with."""
        self._left = self._count * (events if write is None else 1)
        seen = asyncio.Event()
        start = time.perf_counter()
        tasks = [asyncio.create_task(self._watch(since, seen)) for _ in range(self._count)]
        async with asyncio.timeout(_PATIENCE):
            await seen.wait()
            if write is not None:
                self._left = self._count * events
                seen.clear()
                start = time.perf_counter()
                await write()
                await seen.wait()
        taken = time.perf_counter() - start
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        return taken

    async def _watch(self, since: str, seen: asyncio.Event) -> None:
        query = {"watch": "true", "resourceVersion": since}
        async with aclosing(self._client.stream(PODS, query=query)) as pieces:
            async for piece in pieces:
                self._left -= piece.count(b"\n")
                if self._left <= 0:
                    seen.set()


def replayed(kubeconfig: str, since: str, watchers: int, events: int) -> float:
    """Events a second, summed over the watchers, that happened before they came."""

    async def measure() -> float:
        async with connected(kubeconfig) as client:
            return watchers * events / await _Watchers(client, watchers).see(since, events)

    return asyncio.run(measure())


def live(kubeconfig: str, watchers: int, events: int) -> float:
    """Events a second, summed over the watchers, while they are written."""

    async def patch(client: Client, numbers: list[int]) -> None:
        mark = time.monotonic_ns()
        while numbers:
            body = f'{{"metadata":{{"annotations":{{"mark":"{mark}"}}}}}}'.encode()
            await client.call("PATCH", f"{PODS}/trainer-{numbers.pop()}", body=body, media=PatchType.MERGE.value)

    async def measure() -> float:
        async with connected(kubeconfig) as client:
            since = await revision(client)
            await patch(client, [0])  # the one to begin with
            numbers = [*range(events)]

            def write() -> Awaitable[object]:
                return asyncio.gather(*(patch(client, numbers) for _ in range(_AT_ONCE)))

            return watchers * events / await _Watchers(client, watchers).see(since, events, write)

    return asyncio.run(measure())


def run(effort: Effort) -> Table:
    """Measure."""
    sizes = (1, 10, 50)
    events, patches = effort.sizes(5_000, 1_000)
    rates: dict[tuple[str, str], list[float]] = {}
    with both() as (targets, notes):
        for target in targets:
            alone(created, target.kubeconfig, 0, events)
        told, meanwhile = f"{events:,} events replayed", f"{patches:,} events live"
        measures: dict[str, Callable[[Target, int], float]] = {
            told: lambda target, size: most(effort, replayed, target.kubeconfig, target.since, size, events),
            meanwhile: lambda target, size: most(Effort(1, 1), live, target.kubeconfig, size, patches),
        }
        for measure, rate in measures.items():
            for size in sizes:
                for target in targets:
                    rates.setdefault((measure, target.who), []).append(rate(target, size))
    return Table(
        NAME,
        "events/s over HTTP (wall time) delivered to all, by number of watchers",
        tuple(f"{size:,}" for size in sizes),
        tuple(Line(measure, who, Sort.RATE, tuple(values)) for (measure, who), values in rates.items()),
        sizes,
        notes,
    )
