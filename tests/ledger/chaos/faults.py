"""The faults, made for real, each undone before it returns. What cannot be heard then is noted for the judge."""

from __future__ import annotations

import asyncio
import random
import sqlite3
import subprocess
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

import msgspec

from bayplan.cluster.lab.lab import Lab
from tests.ledger.chaos.oracle import Oracle
from tests.ledger.chaos.process import Ledger
from tests.ledger.chaos.proxy import Proxy
from tests.ledger.databases import Server

_WELL_UP = 0.7
"""The share of kills that wait until the ledger has caught up; the others meet it as it starts, or behind."""


class Scene(msgspec.Struct, kw_only=True):
    """All that faults act on."""

    lab: Lab
    oracle: Oracle
    proxy: Proxy
    ledger: Ledger
    spool: Path
    database: Server | Path
    """A server, or SQLite's file."""
    random: random.Random
    outage: float
    """Seconds that things are away."""
    caught_up: Callable[[], Awaitable[int]]
    """Returns once the ledger is hardly behind; the instant until which it knows everything."""
    unheard: list[tuple[int, int]] = []
    """When the API server's past was out of reach."""

    async def pause(self, most: float) -> None:
        """A random moment."""
        await asyncio.sleep(self.random.uniform(0, most))


async def kill(scene: Scene) -> None:
    """kill -9 at a random point, and a new start a random moment later. Now and then before it is well up."""
    if scene.random.random() < _WELL_UP:
        await scene.caught_up()
    await scene.pause(2.0)
    scene.ledger.kill()
    await scene.pause(1.0)
    scene.ledger.start()


async def restart_api_server(scene: Scene) -> None:
    """The API server is killed and comes back at once."""
    await _api_server_away(scene, 0)


async def stop_api_server(scene: Scene) -> None:
    """The API server is away for a while."""
    await _api_server_away(scene, scene.outage)


async def _api_server_away(scene: Scene, seconds: float, *, compact: bool = False, deaf: bool = False) -> None:
    """`deaf`: the ledger is down, and does not hear what happens before either."""
    lab = scene.lab
    began = time.time_ns() // 1000 if deaf else await scene.caught_up()
    await asyncio.to_thread(lab.processes.stop, "kube-apiserver", kill=True)
    await asyncio.sleep(seconds)
    if compact:
        await asyncio.to_thread(_compact, scene)
    await asyncio.to_thread(lab.restart_apiserver)
    scene.unheard.append((began, time.time_ns() // 1000))
    if not deaf:
        await scene.caught_up()  # the next fault is to meet a ledger that hears


def _compact(scene: Scene) -> None:
    """Forget everything before now, once the oracle has it."""
    revision = scene.lab.revision()
    scene.oracle.history(revision)
    scene.lab.etcd("/v3/kv/compaction", {"revision": str(revision), "physical": True})


async def compact(scene: Scene) -> None:
    """etcd is compacted and the API server started anew: a real 410 for whoever watched."""
    await _api_server_away(scene, 0, compact=True)


async def compact_unwatched(scene: Scene) -> None:
    """The same while the ledger is down: what happened meanwhile can only be found by comparing."""
    began = await scene.caught_up()
    scene.ledger.kill()
    await asyncio.sleep(scene.outage)
    await _api_server_away(scene, 0, compact=True, deaf=True)
    await asyncio.sleep(scene.outage / 2)
    scene.ledger.start()
    scene.unheard.append((began, time.time_ns() // 1000))
    await scene.caught_up()


async def cut(scene: Scene) -> None:
    """All connections to the API server break."""
    await scene.pause(1.0)
    scene.proxy.cut()


async def stall(scene: Scene) -> None:
    """Nothing comes for a while, and then everything."""
    scene.proxy.stall()
    await asyncio.sleep(scene.outage)
    scene.proxy.flow()


async def stall_and_cut(scene: Scene) -> None:
    """Nothing comes for a while, and then the connections break."""
    scene.proxy.stall()
    await asyncio.sleep(scene.outage)
    scene.proxy.cut()
    scene.proxy.flow()


async def stop_database(scene: Scene) -> None:
    """The database is killed, or its file locked, and comes back."""
    async with _DatabaseAway(scene):
        await asyncio.sleep(scene.outage)


async def kill_without_database(scene: Scene) -> None:
    """kill -9 while states are in the spool only."""
    async with _DatabaseAway(scene):
        await asyncio.sleep(scene.outage / 2)
        scene.ledger.kill()
        await scene.pause(1.0)
        scene.ledger.start()
        await asyncio.sleep(scene.outage / 2)


async def fill_disk(scene: Scene) -> None:
    """The spool's disk is full while the database is away."""
    filler = scene.spool / "filler"
    async with _DatabaseAway(scene):
        await scene.pause(1.0)
        await asyncio.to_thread(_fill, filler)
        await asyncio.sleep(scene.outage)
        filler.unlink()


def _fill(path: Path) -> None:
    with suppress(OSError), path.open("wb", buffering=0) as file:
        while file.write(bytes(4096)):
            pass


class _DatabaseAway:
    """The time in which there is no database."""

    def __init__(self, scene: Scene) -> None:
        self._database = scene.database
        self._lock: sqlite3.Connection | None = None

    async def __aenter__(self) -> None:
        if isinstance(self._database, Path):
            self._lock = sqlite3.connect(self._database, isolation_level=None, check_same_thread=False, timeout=30)
            await asyncio.to_thread(self._lock.execute, "BEGIN IMMEDIATE")
        else:
            await asyncio.to_thread(self._database.stop)

    async def __aexit__(self, *_: object) -> None:
        if self._lock is not None:
            self._lock.execute("ROLLBACK")
            self._lock.close()
        else:
            assert isinstance(self._database, Server)
            await asyncio.to_thread(self._database.start)


Fault = Callable[[Scene], Awaitable[None]]
FAULTS: dict[str, Fault] = {
    "ledger killed": kill,
    "API server restarted": restart_api_server,
    "API server away": stop_api_server,
    "etcd compacted (410)": compact,
    "compacted, ledger down": compact_unwatched,
    "connections cut": cut,
    "connections stalled": stall,
    "stalled, then cut": stall_and_cut,
    "database away": stop_database,
    "database away, killed": kill_without_database,
    "spool's disk full": fill_disk,
}


def small_disk(folder: Path, size: str = "2m") -> bool:
    """Make a folder a disk of its own; False: only root may."""
    folder.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size},mode=700", "tmpfs", str(folder)], capture_output=True, check=False
    )
    return done.returncode == 0


def remove_disk(folder: Path) -> None:
    """Take it away again."""
    subprocess.run(["umount", "-l", str(folder)], capture_output=True, check=False)
