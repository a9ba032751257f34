"""A campaign: load, faults in a seeded order, and the verdict.

The order of things: lab, oracle, witness, database, ledger, load; then faults one after the other, each with a moment
of rest; then the load ends, the ledger catches up, and the judge compares.
"""

from __future__ import annotations

import asyncio
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from bayplan.cluster.lab.lab import Lab, LabOptions
from bayplan.ledger.finalizers import FINALIZER
from bayplan.ledger.store.migrating import migrate
from tests.ledger.chaos import faults
from tests.ledger.chaos.load import Load
from tests.ledger.chaos.oracle import History, Oracle
from tests.ledger.chaos.process import Ledger
from tests.ledger.chaos.proxy import Proxy
from tests.ledger.chaos.recorded import follows_pods, highest, read_ledger
from tests.ledger.chaos.verdict import Unheard, Verdict, judge
from tests.ledger.chaos.witness import Hearing, Witness
from tests.ledger.databases import MariaDb, Postgres, Server

LAB = LabOptions(
    apiserver_flags=(
        "--storage-media-type=application/json",  # the oracle reads etcd's values
        "--etcd-compaction-interval=0",  # only the campaign compacts
    )
)
SERVERS: dict[str, type[Server]] = {"postgresql": Postgres, "mariadb": MariaDb}
_PATIENCE = 180.0
_POLL = 0.2
_PROMPT = 1.0
"""A ledger that is no further behind than this has caught up."""
_TRIES = 15.0
"""Seconds to wait for that; on a machine with much other work even asking takes longer."""
_SETTLE = 3.0
"""Owners, and what else comes after the last version of a pod."""
_LET_GO = 10.0
"""With finalizers: for the last pods to go."""
_LONG = 60.0
"""After an outage of more seconds no small disk holds what waits."""
_DISK = "spool's disk full"


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """How much of what."""

    times: dict[str, int]
    """How often each fault."""
    database: str = "sqlite"
    seed: int = 1
    outage: float = 5.0
    closing: float = 120.0
    """Seconds through which watches are closed."""
    rest: float = 1.0
    pace: float = 0.0
    workloads: int = 3
    """Replicas of each Deployment, StatefulSet and Job that real controllers move."""
    cold: int = 0
    """Pods that are there before the ledger is."""
    replicas: int = 1
    """Of the ledger; with more than one, what is killed is the leader."""
    finalizers: bool = False


class Made(msgspec.Struct, frozen=True):
    """A fault, and the revisions in whose time it was."""

    fault: str
    first: int
    last: int
    back: float | None = None
    """Seconds until the ledger had everything again."""


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a campaign."""

    verdict: Verdict
    made: tuple[Made, ...]
    starts: int
    """Of the ledger."""
    ended: int
    """How often it ended by itself."""
    seconds: float
    caught_up: float | None
    """Seconds that the ledger needed after the load's end; None: it never did."""
    log: str
    broken: tuple[str, ...] = ()
    """Promises that were not kept."""
    notes: tuple[str, ...] = ()

    @property
    def sound(self) -> bool:
        """Whether all is as it should be."""
        return self.verdict.sound and self.caught_up is not None and not self.broken


class LedgerStuckError(Exception):
    """The ledger does not get on, though nothing is in its way."""


def say(text: str) -> None:
    """To whoever watches."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def run(plan: Plan, tell: Callable[[str], None] = say) -> Result:
    """Make a campaign. Raises OracleGapError when it is void, LabUnavailableError, CannotHaveError."""
    folder = Path(tempfile.mkdtemp(prefix="bayplan-chaos-"))
    spool = folder / "spool"
    disk = plan.outage <= _LONG and faults.small_disk(spool)
    try:
        server = SERVERS[plan.database]() if plan.database in SERVERS else None
        database = server or folder / "ledger.db"
        url = server.create("chaos") if server else f"sqlite:///{database}"
        with Lab(LAB, name="chaos", tell=tell) as lab:
            oracle = Oracle(lab.etcd_address, folder / "oracle.jsonl")
            witness = Witness(lab.kubeconfig, folder / "witness.txt")
            try:
                return asyncio.run(_Campaign(plan, tell, disk, folder, url).play(lab, oracle, witness, database))
            finally:
                oracle.close()
                witness.close()
    finally:
        faults.remove_disk(spool)
        shutil.rmtree(folder, ignore_errors=True)


class _Campaign:
    def __init__(self, plan: Plan, tell: Callable[[str], None], disk: bool, folder: Path, url: str) -> None:
        self._plan, self._tell, self._disk, self._folder, self._url = plan, tell, disk, folder, url
        self._random = random.Random(plan.seed)
        self._made: list[Made] = []
        self._notes = [] if disk else ["the spool has no small disk of its own, so no disk was filled"]

    async def play(self, lab: Lab, oracle: Oracle, witness: Witness, database: Server | Path) -> Result:
        began, plan = time.monotonic(), self._plan
        await migrate(self._url)
        proxy = Proxy(int(lab.url.rpartition(":")[2]))
        scene = self._scene(lab, oracle, proxy, await proxy.start(), database)
        ledger = scene.ledger
        beside: list[asyncio.Task[None]] = []
        try:
            load = Load(lab.kubeconfig, plan.seed, pace=plan.pace)
            await load.prepare()
            await load.have(plan.cold)
            before = await asyncio.to_thread(lab.revision)
            ledger.start()
            beside += [asyncio.create_task(work) for work in (ledger.watch_over(), ledger.weigh())]
            await self._synced(ledger)
            running = asyncio.create_task(load.run())
            await load.run_workloads(plan.workloads)
            await self._make_faults(scene)
            load.stopping.set()
            await running
            caught_up = await self._caught_up(oracle)
            await asyncio.sleep(_SETTLE + (_LET_GO if plan.finalizers else 0))
            history = await asyncio.to_thread(oracle.history, await asyncio.to_thread(lab.revision))
            recorded = await read_ledger(self._url)
        finally:
            for task in beside:
                task.cancel()
            ledger.kill()
            await proxy.close()
        scene.broken.extend(_held(history))
        seen = {version.revision: version.at for versions in history.pods.values() for version in versions}
        hearing = Hearing(witness.heard(), seen, scene.stalled, ledger.starved)
        unheard = Unheard(tuple(scene.unheard), full_spool=True, before=before)
        return Result(
            verdict=judge(history, recorded, unheard, hearing),
            made=tuple(self._made),
            starts=ledger.starts,
            ended=ledger.ended,
            seconds=time.monotonic() - began,
            caught_up=caught_up,
            log=ledger.log(),
            broken=tuple(scene.broken),
            notes=tuple(self._notes),
        )

    def _scene(self, lab: Lab, oracle: Oracle, proxy: Proxy, port: int, database: Server | Path) -> faults.Scene:
        kubeconfig, spool = self._folder / "kubeconfig", self._folder / "spool"
        kubeconfig.write_text(lab.kubeconfig.read_text().replace(lab.url, f"https://127.0.0.1:{port}"))
        ledger = Ledger(self._folder, self._url, kubeconfig, spool, replicas=self._plan.replicas)
        ledger.settings["ledger.finalizers"] = "on" if self._plan.finalizers else "off"
        return faults.Scene(
            lab=lab,
            oracle=oracle,
            proxy=proxy,
            ledger=ledger,
            spool=spool,
            database=database,
            random=self._random,
            outage=self._plan.outage,
            closing=self._plan.closing,
            caught_up=lambda: self._must_catch_up(oracle, ledger),
            recovered=lambda: self._recovered(oracle, ledger),
        )

    async def _make_faults(self, scene: faults.Scene) -> None:
        times = {name: count for name, count in self._plan.times.items() if self._disk or name != _DISK}
        order = [name for name, count in times.items() for _ in range(count)]
        self._random.shuffle(order)
        for number, name in enumerate(order):
            await asyncio.sleep(self._plan.rest)
            first = await asyncio.to_thread(scene.lab.revision)
            self._tell(f"{number + 1:3}/{len(order)}  {name}")
            fault = faults.LEADER_KILLED if name == faults.KILLED and self._plan.replicas > 1 else faults.FAULTS[name]
            back = await fault.make(scene)
            self._made.append(Made(name, first, await asyncio.to_thread(scene.lab.revision), back))
            if back is not None and fault.within is not None and back > fault.within:
                scene.broken.append(f"{name}: the ledger needed {back:.1f} s, not {fault.within:.0f}")
        await asyncio.sleep(self._plan.rest)

    async def _synced(self, ledger: Ledger) -> None:
        """Wait until the ledger follows pods."""
        began = time.monotonic()
        while not await follows_pods(self._url):
            if time.monotonic() > began + _PATIENCE:
                raise LedgerStuckError(f"the ledger does not follow pods:\n{ledger.tail()}")
            await asyncio.sleep(_POLL)
        if self._plan.cold:
            taken = time.monotonic() - began
            self._notes.append(f"{self._plan.cold} pods were there before: {taken:.1f} s from the start, all stored")

    async def _must_catch_up(self, oracle: Oracle, ledger: Ledger) -> int:
        """Wait until the ledger is hardly behind, or as little as this machine lets it; from when on it may not have
        heard everything."""
        began = time.monotonic()
        while True:
            asked = time.time_ns() // 1000
            waited = await self._recovered(oracle, ledger)
            if waited < _PROMPT or time.monotonic() > began + _TRIES:
                return asked

    async def _recovered(self, oracle: Oracle, ledger: Ledger) -> float:
        waited = await self._caught_up(oracle)
        if waited is None:
            raise LedgerStuckError(f"the ledger does not catch up:\n{ledger.tail()}")
        return waited

    async def _caught_up(self, oracle: Oracle) -> float | None:
        """Wait until the newest version of a GPU pod, as the oracle knows it now, is in the database."""
        began = time.monotonic()
        last = await asyncio.to_thread(oracle.newest)
        while (waited := time.monotonic() - began) < _PATIENCE:
            if await highest(self._url) >= last:
                return waited
            await asyncio.sleep(_POLL)
        return None


def _held(history: History) -> list[str]:
    """Pods that should have gone and still have the ledger's finalizer."""
    last = [versions[-1] for versions in history.pods.values() if not versions[-1].gone]
    metas = [version.object["metadata"] for version in last]
    held = [meta for meta in metas if meta.get("deletionTimestamp") and FINALIZER in meta.get("finalizers", ())]
    return [f"{len(held)} pods are kept by their finalizer"] if held else []
