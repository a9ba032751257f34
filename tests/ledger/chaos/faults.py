"""The faults, made for real, each undone before it returns. What cannot be heard then is noted for the judge."""

from __future__ import annotations

import asyncio
import base64
import json
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
from tests.ledger.chaos.witness import Span
from tests.ledger.databases import Server

_CLOSED_EVERY = 10.0
_PATIENCE = 120.0
_SHRUNK = "spool shrunk"
KILLED = "ledger killed"
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
    closing: float
    """Seconds through which watches are closed."""
    caught_up: Callable[[], Awaitable[int]]
    """Returns once the ledger is hardly behind; the instant until which it knows everything."""
    recovered: Callable[[], Awaitable[float]]
    """The seconds until all that there is now is stored."""
    unheard: list[Span] = []
    """When the API server's past was out of reach."""
    stalled: list[Span] = []
    """When connections were held, and nobody was told."""
    broken: list[str] = []
    """Promises, other than of what is stored, that were not kept."""

    async def pause(self, most: float) -> None:
        """A random moment."""
        await asyncio.sleep(self.random.uniform(0, most))


def _now() -> int:
    return time.time_ns() // 1000


async def kill(scene: Scene) -> None:
    """kill -9 at a random point, and a new start a random moment later. Now and then before it is well up."""
    if scene.random.random() < _WELL_UP:
        await scene.caught_up()
    await scene.pause(2.0)
    scene.ledger.kill()
    await scene.pause(1.0)
    scene.ledger.start()


async def kill_leader(scene: Scene) -> float:
    """kill -9 of the replica that leads; the other takes over, and then the first is started again."""
    await scene.caught_up()
    await scene.pause(2.0)
    lease = b"/registry/leases/kube-system/bayplan-ledger"
    found = await asyncio.to_thread(scene.lab.etcd, "/v3/kv/range", {"key": base64.b64encode(lease).decode()})
    holder = json.loads(base64.b64decode(found["kvs"][0]["value"]))["spec"]["holderIdentity"]
    scene.ledger.kill_one(int(holder.split("_")[-2]))
    taken = await scene.recovered()
    scene.ledger.start()
    return taken


async def restart_api_server(scene: Scene) -> float:
    """The API server is killed and comes back at once."""
    return await _api_server_away(scene, 0)


async def stop_api_server(scene: Scene) -> float:
    """The API server is away for a while."""
    return await _api_server_away(scene, scene.outage)


async def _api_server_away(scene: Scene, seconds: float, *, compact: bool = False, deaf: bool = False) -> float:
    """`deaf`: the ledger is down, and does not hear what happens before either."""
    lab = scene.lab
    began = _now() if deaf else await scene.caught_up()
    await asyncio.to_thread(lab.processes.stop, "kube-apiserver", kill=True)
    await asyncio.sleep(seconds)
    if compact:
        await asyncio.to_thread(_compact, scene)
    await asyncio.to_thread(lab.processes.restart, "kube-apiserver", kill=True)
    await asyncio.to_thread(lab.processes.await_url, "kube-apiserver", f"{lab.url}/readyz")
    scene.unheard.append((began, _now()))
    back = asyncio.ensure_future(scene.recovered()) if not deaf else None
    await asyncio.to_thread(lab.restart_speakers)
    if back is None:
        return 0.0
    taken = await back
    await scene.caught_up()  # the next fault is to meet a ledger that hears
    return taken


def _compact(scene: Scene) -> None:
    """Forget everything before now, once the oracle has it."""
    revision = scene.lab.revision()
    scene.oracle.history(revision)
    scene.lab.etcd("/v3/kv/compaction", {"revision": str(revision), "physical": True})


async def compact(scene: Scene) -> float:
    """etcd is compacted and the API server started anew: a real 410 for whoever watched."""
    return await _api_server_away(scene, 0, compact=True)


async def compact_unwatched(scene: Scene) -> float:
    """The same while the ledger is down: what happened meanwhile can only be found by comparing."""
    began = await scene.caught_up()
    scene.ledger.kill()
    await asyncio.sleep(scene.outage)
    await _api_server_away(scene, 0, compact=True, deaf=True)
    await asyncio.sleep(scene.outage / 2)
    scene.ledger.start()
    scene.unheard.append((began, _now()))
    taken = await scene.recovered()
    await scene.caught_up()
    return taken


async def cut(scene: Scene) -> None:
    """All connections to the API server break."""
    await scene.pause(1.0)
    scene.proxy.cut()


async def close_watches(scene: Scene) -> None:
    """All connections are closed every ten seconds: news are taken up where they ended, nothing is read anew."""
    await scene.caught_up()
    before = scene.ledger.reads()
    end = time.monotonic() + scene.closing
    while time.monotonic() < end:
        scene.proxy.hang_up()
        await asyncio.sleep(_CLOSED_EVERY)
    if not before:
        scene.broken.append("the ledger's log does not tell its requests, so nobody knows what it read anew")
    if again := scene.ledger.reads() - before:
        scene.broken.append(f"all pods were read anew {again} times while watches were only closed")


async def stall(scene: Scene) -> None:
    """Nothing comes for a while, and then everything."""
    began = _now()
    scene.proxy.stall()
    await asyncio.sleep(scene.outage)
    scene.proxy.flow()
    scene.stalled.append((began, _now()))


async def stall_and_cut(scene: Scene) -> None:
    """Nothing comes for a while, and then the connections break."""
    scene.proxy.stall()
    await asyncio.sleep(scene.outage)
    scene.proxy.cut()
    scene.proxy.flow()


async def deaden(scene: Scene) -> float:
    """The connections die and nobody says so; new ones would be sound."""
    await scene.caught_up()  # a ledger that starts has none yet
    scene.proxy.deaden()
    await asyncio.sleep(1)  # something happens that they do not tell
    return 1 + await scene.recovered()


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


async def fill_spool(scene: Scene) -> None:
    """The database is away for longer than a small spool has room: states in between go, and are counted."""
    await _restart(scene, "1")
    before = scene.ledger.says(_SHRUNK)
    async with _DatabaseAway(scene):
        end = time.monotonic() + _PATIENCE
        while time.monotonic() < end:
            await asyncio.sleep(0.5)
            if scene.ledger.says(_SHRUNK) > before:
                break
    if scene.ledger.says(_SHRUNK) == before:
        scene.broken.append("the small spool never became full")
    await _restart(scene, None)


async def _restart(scene: Scene, spool_mib: str | None) -> None:
    await scene.caught_up()
    scene.ledger.kill()
    scene.ledger.settings.pop("ledger.spool_mib", None)
    if spool_mib:
        scene.ledger.settings["ledger.spool_mib"] = spool_mib
    scene.ledger.start()
    await scene.caught_up()


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


class Fault(msgspec.Struct, frozen=True):
    """A way to break things."""

    make: Callable[[Scene], Awaitable[float | None]]
    """Gives the seconds from its end until the ledger had all again, where that was measured."""
    within: float | None = None
    """It must have, by then."""
    once: bool = False
    """It takes long, so it is not repeated."""


FAULTS: dict[str, Fault] = {
    KILLED: Fault(kill),
    "API server restarted": Fault(restart_api_server, within=30),
    "API server away": Fault(stop_api_server, within=30),
    "etcd compacted (410)": Fault(compact, within=30),
    "compacted, ledger down": Fault(compact_unwatched, within=30),
    "connections cut": Fault(cut),
    "connections stalled": Fault(stall),
    "stalled, then cut": Fault(stall_and_cut),
    "connections dead": Fault(deaden, within=75, once=True),
    "watches closed": Fault(close_watches, once=True),
    "database away": Fault(stop_database),
    "database away, killed": Fault(kill_without_database),
    "spool full": Fault(fill_spool, once=True),
    "spool's disk full": Fault(fill_disk),
}
LEADER_KILLED = Fault(kill_leader, within=20)
"""Of several replicas."""


def small_disk(folder: Path, mib: int = 8) -> bool:
    """Make a folder a disk of its own; False: only root may."""
    folder.mkdir()
    options = f"size={mib}m,mode=700"
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)], capture_output=True, check=False
    )
    return done.returncode == 0


def remove_disk(folder: Path) -> None:
    """Take it away again."""
    subprocess.run(["umount", "-l", str(folder)], capture_output=True, check=False)
