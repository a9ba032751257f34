"""The faces of the port: each way to a cluster that must keep the same contract, and the little a test needs beside it.

A new face is a class here and a line in FACES; the tests know only the port and `Face`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Protocol

import pytest

from bayplan.cluster.embedded.engine import EmbeddedCluster
from bayplan.cluster.kinds import CONFIG_MAP
from bayplan.cluster.lab.lab import Lab
from bayplan.cluster.live.cluster import LiveCluster
from bayplan.cluster.port import Cluster
from bayplan.cluster.served.serve import serve

_MOST_REAL_SECONDS = 5


class Face(Protocol):
    """One way to a cluster, with what the port does not offer: time, and a history that can be forgotten."""

    real: bool
    """Whether a real API server answers: what it does otherwise than ours is pinned in the tests and listed in
    docs/embedded-differences.md."""

    @property
    def cluster(self) -> Cluster:
        """The cluster as its users have it."""
        ...

    async def settle(self) -> None:
        """Return once everything that was written has reached whoever watches."""
        ...

    async def pass_time(self, seconds: float) -> None:
        """Let so many of the cluster's seconds pass."""
        ...

    async def compact(self) -> None:
        """Make the cluster forget its history up to now."""
        ...

    async def expire_pages(self) -> None:
        """Make the cluster give up the lists whose later pages nobody has asked for yet."""
        ...


class EmbeddedFace:
    """The engine in this process, in virtual time, with no controller: nothing moves but what the test moves."""

    real = False

    def __init__(self) -> None:
        self._engine = EmbeddedCluster([])

    @property
    def cluster(self) -> Cluster:
        return self._engine

    async def settle(self) -> None:
        for _ in range(20):
            await asyncio.sleep(0)

    async def pass_time(self, seconds: float) -> None:
        await self._engine.advance(seconds)
        await self.settle()

    async def compact(self) -> None:
        self._engine.world.store.compact()

    async def expire_pages(self) -> None:
        for name in ("page-1", "page-2"):
            await self._engine.create(CONFIG_MAP, {"metadata": {"name": name}}, "kube-public")
        for _ in range(100):
            await self._engine.list(CONFIG_MAP, "kube-public", limit=1)


class ServedFace(EmbeddedFace):
    """The same engine behind HTTP, reached by the live engine."""

    def __init__(self, engine: EmbeddedCluster, client: LiveCluster) -> None:
        self._engine = engine
        self._client = client

    @property
    def cluster(self) -> Cluster:
        return self._client

    async def settle(self) -> None:
        await asyncio.sleep(0.02)


class RealFace:
    """A real kube-apiserver without controllers, reached by the live engine."""

    real = True

    def __init__(self, lab: Lab, client: LiveCluster) -> None:
        self._lab = lab
        self._client = client

    @property
    def cluster(self) -> Cluster:
        return self._client

    async def settle(self) -> None:
        await asyncio.sleep(0.1)

    async def pass_time(self, seconds: float) -> None:
        if seconds > _MOST_REAL_SECONDS:
            pytest.skip(f"on a real server this would take {seconds:.0f} s")
        await asyncio.sleep(seconds + 0.1)

    async def compact(self) -> None:
        await asyncio.to_thread(self._lab.compact)

    async def expire_pages(self) -> None:
        await asyncio.to_thread(self._lab.compact)


@asynccontextmanager
async def embedded(_request: pytest.FixtureRequest) -> AsyncIterator[Face]:
    """In process."""
    yield EmbeddedFace()


@asynccontextmanager
async def served(request: pytest.FixtureRequest) -> AsyncIterator[Face]:
    """In process, over HTTP."""
    engine = EmbeddedCluster([])
    target: Path = request.getfixturevalue("tmp_path") / "kubeconfig"
    async with serve(engine, kubeconfig_out=target), LiveCluster.find(target) as client:
        yield ServedFace(engine, client)


@asynccontextmanager
async def real(request: pytest.FixtureRequest) -> AsyncIterator[Face]:
    """The real thing."""
    lab: Lab = request.getfixturevalue("bare_lab")
    async with LiveCluster.find(lab.kubeconfig) as client:
        yield RealFace(lab, client)


FACES: dict[str, Callable[[pytest.FixtureRequest], AbstractAsyncContextManager[Face]]] = {
    "embedded": embedded,
    "served": served,
    "real": real,
}
