"""The served engine beside the real API server: pods created over HTTP, and all of them listed.

Wall time, since the servers are other processes and one of them has many threads. The client is the same Python process
and may itself be what limits a rate; a note says how busy it was.
"""

from __future__ import annotations

import asyncio
import time

import msgspec

from bayplan.cluster.kinds import POD
from bayplan.cluster.live.client import Client
from bayplan.cluster.live.wire import read_page
from benchmarks import manifests
from benchmarks.measure import Effort, alone, cpu_time, least
from benchmarks.report import Line, Sort, Table
from benchmarks.serving import JSON, PODS, both, connected, revision

NAME = "served"
_AT_ONCE = 16


class Created(msgspec.Struct, frozen=True):
    """How fast pods were created, and the share of the time in which the client had work."""

    rate: float
    busy: float


def created(kubeconfig: str, first: int, count: int) -> Created:
    """Create pods of 1.5 KB, each its own spec, with some requests at a time."""
    bodies = iter([manifests.sent_pod(number) for number in range(first, first + count)])

    async def post(client: Client) -> None:
        for body in bodies:
            await client.call("POST", PODS, body=body, media=JSON)

    async def measure() -> Created:
        async with connected(kubeconfig) as client:
            await revision(client)
            start = time.perf_counter()
            with cpu_time() as span:
                await asyncio.gather(*(post(client) for _ in range(_AT_ONCE)))
            taken = time.perf_counter() - start
        return Created(count / taken, span.seconds / taken)

    return asyncio.run(measure())


def listed(kubeconfig: str, count: int) -> float:
    """Seconds until the bytes of a whole list are here."""

    async def measure() -> float:
        async with connected(kubeconfig) as client:
            await revision(client)
            start = time.perf_counter()
            body = await client.call("GET", PODS)
            taken = time.perf_counter() - start
        assert len(read_page(POD, body, []).items) == count
        return taken

    return asyncio.run(measure())


def run(effort: Effort) -> Table:
    """Measure. A server grows from size to size, so that pods are created once only."""
    sizes = effort.sizes(1_250, 2_500, 5_000)
    with both() as (targets, notes):
        making: dict[str, list[Created]] = {target.who: [] for target in targets}
        costs: dict[str, list[float]] = {target.who: [] for target in targets}
        listing: dict[str, list[float]] = {target.who: [] for target in targets}
        for before, size in zip((0, *sizes), sizes, strict=False):
            for target in targets:
                used = target.cpu()
                making[target.who].append(alone(created, target.kubeconfig, before, size - before))
                costs[target.who].append(1000 * (target.cpu() - used) / (size - before))
            for target in targets:
                listing[target.who].append(1000 * least(effort, listed, target.kubeconfig, size))
    busy = ", ".join(f"{100 * each[-1].busy:.0f}% with {who}" for who, each in making.items())
    return Table(
        NAME,
        f"pods over HTTP (wall time), {_AT_ONCE} requests at a time when creating",
        tuple(f"{size:,}" for size in sizes),
        (
            *(Line("ms of a whole list", who, Sort.WHOLE, tuple(each)) for who, each in listing.items()),
            *(
                Line("creations/s up to there", who, Sort.RATE, tuple(one.rate for one in each))
                for who, each in making.items()
            ),
            *(Line("server's CPU ms a creation", who, Sort.EACH, tuple(each)) for who, each in costs.items()),
        ),
        sizes,
        (*notes, f"busy the client was, creating: {busy}"),
    )
