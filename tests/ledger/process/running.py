"""`bayplan ledger run` in a process of its own, on a served cluster that the test can change."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Self

import httpx2
import msgspec

from bayplan.cluster.embedded.engine import EmbeddedCluster
from bayplan.cluster.embedded.store import Change
from bayplan.cluster.kinds import JOB, POD
from bayplan.cluster.served.serve import serve
from bayplan.ledger.rows import Row, StreamPosition
from bayplan.ledger.store.reading import fetch, select_rows
from bayplan.ledger.store.sql import open_store
from bayplan.model.clock import SystemClock
from bayplan.model.errors import BayplanError
from tests.ledger.shell.scenes import gpu_cluster, gpu_job

_PATIENCE = 60.0
"""Seconds for what must come to be; a test that passes never waits so long."""

Version = tuple[str, int]
"""Uid and resourceVersion."""


class World:
    """A served cluster, and every version of a pod that it ever had."""

    def __init__(self, cluster: EmbeddedCluster, kubeconfig: Path) -> None:
        self.cluster = cluster
        self.kubeconfig = kubeconfig
        self.happened: list[Version] = []
        cluster.world.store.listeners.append(self._note)

    def _note(self, change: Change) -> None:
        if change.new.kind == POD:
            self.happened.append((change.new.uid, change.new.version))

    async def job(self, name: str, pods: int = 2, runs: str = "200ms") -> None:
        """A Job of GPU pods, from its beginning to its end."""
        await self.cluster.create(JOB, gpu_job(name, pods, runs=runs), "default")
        await soon(lambda: self._succeeded(name), f"the end of {name}")

    def _succeeded(self, name: str) -> bool:
        jobs = [each.doc() for each in self.cluster.world.store.objects(JOB) if each.name == name]
        return any(each.get("status", {}).get("completionTime") for each in jobs)


@asynccontextmanager
async def served(folder: Path) -> AsyncIterator[World]:
    """A cluster with GPU nodes, in real time, behind the Kubernetes API."""
    cluster = await gpu_cluster(clock=SystemClock())
    running = asyncio.create_task(cluster.run())
    async with serve(cluster, kubeconfig_out=folder / "kubeconfig") as api:
        yield World(cluster, api.kubeconfig)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


class Process:
    """A running `bayplan`; its log is a file, a JSON object a line."""

    def __init__(self, folder: Path, *words: str | Path, name: str = "ledger", **settings: str) -> None:
        """`settings` are of the section `ledger`."""
        given = {"health.port": "0", "log.format": "json"} | {f"ledger.{key}": it for key, it in settings.items()}
        sets = [word for key, value in given.items() for word in ("--set", f"{key}={value}")]
        self._command = [sys.executable, "-m", "bayplan", *sets, *(str(word) for word in words)]
        self._env = {**os.environ, "XDG_STATE_HOME": str(folder / "state"), "XDG_CONFIG_HOME": str(folder / "config")}
        self._log = folder / f"{name}.log"
        self._process: asyncio.subprocess.Process | None = None

    async def __aenter__(self) -> Self:
        with self._log.open("wb") as log:
            self._process = await asyncio.create_subprocess_exec(
                *self._command, env=self._env, stdin=asyncio.subprocess.DEVNULL, stdout=log, stderr=log
            )
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._process is not None and self._process.returncode is None:
            await self.end(signal.SIGKILL)

    async def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Send a signal; the exit code."""
        self.send(number)
        return await self.ended()

    def send(self, number: signal.Signals) -> None:
        """Send a signal."""
        assert self._process is not None
        self._process.send_signal(number)

    async def ended(self) -> int:
        """The exit code, once it has ended by itself."""
        assert self._process is not None
        return await asyncio.wait_for(self._process.wait(), _PATIENCE)

    def output(self) -> str:
        """All it said so far."""
        return self._log.read_text(errors="replace")

    def lines(self) -> list[dict[str, Any]]:
        """Its log."""
        return [msgspec.json.decode(line) for line in self.output().splitlines() if line.startswith("{")]

    def told(self, name: str) -> list[dict[str, Any]]:
        """The events of one name."""
        return [line for line in self.lines() if line["msg"] == name]

    async def tells(self, name: str) -> dict[str, Any]:
        """The first event of that name, as soon as it comes."""
        await soon(lambda: bool(self.told(name)) or self._dead(), f"{name!r} in the log", self.output)
        assert self.told(name), f"it ended: {self.output()}"
        return self.told(name)[0]

    def _dead(self) -> bool:
        return self._process is not None and self._process.returncode is not None

    async def get(self, path: str) -> tuple[int, str]:
        """Status and body of a page of its health endpoint."""
        url = (await self.tells("health endpoint listens"))["url"]
        async with httpx2.AsyncClient(trust_env=False) as client:
            answer = await client.get(url + path)
        return answer.status_code, answer.text

    async def metrics(self) -> dict[str, float]:
        """Its own metrics, by name and labels."""
        _, text = await self.get("/metrics")
        pairs = (line.rsplit(" ", 1) for line in text.splitlines() if line.startswith("bayplan_ledger_"))
        return {name: float(value) for name, value in pairs}


def ledger(folder: Path, world: World, database: str, *flags: str, name: str = "ledger", **settings: str) -> Process:
    """`bayplan ledger run`."""
    words: tuple[str | Path, ...] = ("ledger", "run", "--database", database, "--kubeconfig", world.kubeconfig, *flags)
    return Process(folder, *words, name=name, **{"spool": str(folder / f"spool-{name}"), **settings})


async def soon(true: Callable[[], bool], what: str, more: Callable[[], str] = str) -> None:
    """Until it is so."""
    until = asyncio.get_running_loop().time() + _PATIENCE
    while not true():
        assert asyncio.get_running_loop().time() < until, f"{what} did not come: {more()}"
        await asyncio.sleep(0.02)


async def happens(true: Callable[[], Awaitable[bool]]) -> None:
    """Until it is so; what cannot be asked yet is not so."""
    until = asyncio.get_running_loop().time() + _PATIENCE
    while True:
        with suppress(BayplanError):
            if await true():
                return
        assert asyncio.get_running_loop().time() < until, "it did not come to be"
        await asyncio.sleep(0.05)


async def listens(database: str) -> None:
    """Until a ledger has told how far it is: what happens from now on is told in full."""

    async def told() -> bool:
        return {"pods", "nodes"} <= {each.kind for each in await stored(database, StreamPosition)}

    await happens(told)


async def stored(database: str, kind: type[Row]) -> list[Any]:
    """All rows of a table."""
    store = await open_store(database)
    try:
        return await fetch(store, select_rows(kind))
    finally:
        await store.close()
