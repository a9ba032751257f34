"""A campaign: load, faults in a seeded order, and the verdict, as a table.

The order of things: lab, oracle, database, ledger, load; then faults one after the other, each with a moment of rest;
then the load ends, the ledger catches up, and the judge compares.
"""

from __future__ import annotations

import asyncio
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from bayplan.cluster.lab.lab import Lab, LabOptions
from bayplan.ledger.store.migrating import migrate
from tests.ledger.chaos import faults
from tests.ledger.chaos.load import Load
from tests.ledger.chaos.oracle import Oracle
from tests.ledger.chaos.process import Ledger
from tests.ledger.chaos.proxy import Proxy
from tests.ledger.chaos.recorded import follows_pods, highest, read_ledger
from tests.ledger.chaos.verdict import Unheard, Verdict, judge
from tests.ledger.databases import MariaDb, Postgres, Server

LAB = LabOptions(
    apiserver_flags=(
        "--storage-media-type=application/json",  # the oracle reads etcd's values
        "--etcd-compaction-interval=0",  # only the campaign compacts
    )
)
SERVERS: dict[str, type[Server]] = {"postgresql": Postgres, "mariadb": MariaDb}
_PATIENCE = 60.0
_PROMPT = 1.0
"""A ledger that is no further behind than this has caught up."""
_SETTLE = 3.0
"""Owners, and what else comes after the last version of a pod."""


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """How much of what."""

    times: dict[str, int]
    """How often each fault."""
    database: str = "sqlite"
    seed: int = 1
    outage: float = 5.0
    rest: float = 1.0
    pace: float = 0.0
    workloads: int = 3
    """Replicas of each Deployment and Job that real controllers move."""


class Made(msgspec.Struct, frozen=True):
    """A fault, and the revisions in whose time it was."""

    fault: str
    first: int
    last: int


class Result(msgspec.Struct, frozen=True):
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
    notes: tuple[str, ...] = ()


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
    disk = faults.small_disk(spool)
    try:
        server = SERVERS[plan.database]() if plan.database in SERVERS else None
        database = server or folder / "ledger.db"
        url = server.create("chaos") if server else f"sqlite:///{database}"
        with Lab(LAB, name="chaos", tell=tell) as lab:
            oracle = Oracle(lab.etcd_address, folder / "oracle.jsonl")
            try:
                return asyncio.run(_Campaign(plan, tell, disk).play(lab, oracle, folder, database, url))
            finally:
                oracle.close()
    finally:
        faults.remove_disk(spool)
        shutil.rmtree(folder, ignore_errors=True)


class _Campaign:
    def __init__(self, plan: Plan, tell: Callable[[str], None], disk: bool) -> None:
        self._plan, self._tell, self._disk = plan, tell, disk
        self._random = random.Random(plan.seed)
        self._made: list[Made] = []

    async def play(self, lab: Lab, oracle: Oracle, folder: Path, database: Server | Path, url: str) -> Result:
        began = time.monotonic()
        await migrate(url)
        proxy = Proxy(int(lab.url.rpartition(":")[2]))
        kubeconfig = folder / "kubeconfig"
        text = lab.kubeconfig.read_text().replace(lab.url, f"https://127.0.0.1:{await proxy.start()}")
        kubeconfig.write_text(text)
        ledger = Ledger(folder, url, kubeconfig, folder / "spool")
        scene = faults.Scene(
            lab=lab,
            oracle=oracle,
            proxy=proxy,
            ledger=ledger,
            spool=folder / "spool",
            database=database,
            random=self._random,
            outage=self._plan.outage,
            caught_up=lambda: self._must_catch_up(oracle, ledger, url),
        )
        watching: asyncio.Task[None] | None = None
        try:
            load = Load(lab.kubeconfig, self._plan.seed, pace=self._plan.pace)
            await load.prepare()
            ledger.start()
            watching = asyncio.create_task(ledger.watch_over())
            await self._synced(scene, url)
            running = asyncio.create_task(load.run())
            await load.run_workloads(self._plan.workloads)
            await self._make_faults(scene)
            load.stopping.set()
            await running
            caught_up = await self._caught_up(oracle, ledger, url)
            await asyncio.sleep(_SETTLE)
            history = await asyncio.to_thread(oracle.history, await asyncio.to_thread(lab.revision))
            recorded = await read_ledger(url)
        finally:
            if watching is not None:
                watching.cancel()
            ledger.kill()
            await proxy.close()
        verdict = judge(history, recorded, Unheard(tuple(scene.unheard), full_spool=self._disk))
        log = ledger.log.read_text(errors="replace")
        return Result(
            verdict,
            tuple(self._made),
            ledger.starts,
            ledger.ended,
            time.monotonic() - began,
            caught_up,
            log,
            self._notes(),
        )

    def _notes(self) -> tuple[str, ...]:
        return () if self._disk else ("not root: the spool has no disk of its own, so no disk was filled",)

    async def _make_faults(self, scene: faults.Scene) -> None:
        times = {name: count for name, count in self._plan.times.items() if self._disk or name != "spool's disk full"}
        order = [name for name, count in times.items() for _ in range(count)]
        self._random.shuffle(order)
        for number, name in enumerate(order):
            await asyncio.sleep(self._plan.rest)
            first = await asyncio.to_thread(scene.lab.revision)
            self._tell(f"{number + 1:3}/{len(order)}  {name}")
            await faults.FAULTS[name](scene)
            self._made.append(Made(name, first, await asyncio.to_thread(scene.lab.revision)))
        await asyncio.sleep(self._plan.rest)

    async def _synced(self, scene: faults.Scene, url: str) -> None:
        """Wait until the ledger follows pods: what was before, nobody can expect of it."""
        end = time.monotonic() + _PATIENCE
        while not await follows_pods(url):
            if time.monotonic() > end:
                raise LedgerStuckError(f"the ledger does not follow pods:\n{scene.ledger.tail()}")
            await asyncio.sleep(0.1)

    async def _must_catch_up(self, oracle: Oracle, ledger: Ledger, url: str) -> int:
        """Wait until the ledger is hardly behind; from when on it may not have heard everything."""
        end = time.monotonic() + _PATIENCE
        while time.monotonic() < end:
            asked = time.time_ns() // 1000
            waited = await self._caught_up(oracle, ledger, url)
            if waited is not None and waited < _PROMPT:
                return asked
        raise LedgerStuckError(f"the ledger does not catch up:\n{ledger.tail()}")

    async def _caught_up(self, oracle: Oracle, ledger: Ledger, url: str) -> float | None:
        """Wait until the newest version of a GPU pod, as the oracle knows it now, is in the database."""
        last = await asyncio.to_thread(oracle.newest)
        began = time.monotonic()
        while (waited := time.monotonic() - began) < _PATIENCE:
            if await highest(url) >= last:
                return waited
            await asyncio.sleep(0.1)
        return None


# --- the table


def _within(revisions: Sequence[int], spans: Sequence[Made]) -> int:
    return sum(any(span.first < each <= span.last for span in spans) for each in revisions)


def table(result: Result) -> str:
    """The campaign as people read it. States count for a fault when they were written in its time."""
    verdict = result.verdict
    sorts = ("states", "missing", "excused", "duplicated", "duplicated_events", "missing_events")
    rows = [["fault", "injected", "states", "missing", "told as gap", "duplicated", "events twice", "events missing"]]
    spans: dict[str, list[Made]] = {}
    for made in result.made:
        spans.setdefault(made.fault, []).append(made)
    for fault, times in spans.items():
        found = [_within(verdict.revisions.get(sort, ()), times) for sort in sorts]
        rows.append([fault, str(len(times)), *map(str, found)])
    calm = [_outside(verdict.revisions.get(sort, ()), result.made) for sort in sorts]
    rows.append(["(between)", "", *map(str, calm)])
    rows.append(["all", str(len(result.made)), *(str(getattr(verdict, sort)) for sort in sorts)])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join(
            f"{cell:<{w}}" if not i else f"{cell:>{w}}" for i, (cell, w) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]
    caught = "never" if result.caught_up is None else f"{result.caught_up:.1f} s after the load"
    lines += [
        "",
        f"pods {verdict.pods}  events {verdict.events}  the ledger started {result.starts} times, ended by itself "
        f"{result.ended} times, caught up {caught}",
        f"first states missing {verdict.missing_first}  last {verdict.missing_last}  pods {verdict.missing_pods}  "
        f"states altered {verdict.altered}  wrong ends {verdict.wrong_ends}  wrong roots {verdict.wrong_owners}",
        f"{'the database tells what etcd held' if verdict.sound else 'THE DATABASE DIFFERS'}  ({result.seconds:.0f} s)",
        *result.notes,
    ]
    return "\n".join(lines)


def _aligned(row: Sequence[str], widths: Sequence[int]) -> str:
    first, *others = (f"{cell:>{width}}" for cell, width in zip(row, widths, strict=True))
    return "  ".join([first.strip().ljust(widths[0]), *others])


def _outside(revisions: Sequence[int], spans: Sequence[Made]) -> int:
    return len(revisions) - _within(revisions, spans)
