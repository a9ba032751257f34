"""Against a real Prometheus that scrapes metrics shaped as dcgm-exporter's: stored, lost and found again, as told."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from bayplan.cluster.kinds import POD
from bayplan.ledger.outlet import Outlet
from bayplan.ledger.questions.held import HeldRule, held_unused
from bayplan.ledger.rows import GpuUse, Row, Rows, StreamPosition
from bayplan.ledger.store.reading import fetch, select_rows
from bayplan.ledger.store.sql import SqlStore
from bayplan.ledger.use.prometheus import Prometheus, PrometheusRefusedError, Where
from bayplan.ledger.use.settings import Monitor
from bayplan.model.clock import SECOND, Instant, SystemClock
from bayplan.service.durations import Duration
from bayplan.service.settings import LedgerSettings
from tests.ledger.books import CLUSTER, held, hour, pod, written
from tests.ledger.databases import EMPTY, server
from tests.ledger.process.running import ledger, served, stored
from tests.ledger.shell.scenes import gpu_pod
from tests.ledger.use.real import RealPrometheus
from tests.ledger.use.web import serving

pytestmark = pytest.mark.slow

CLOCK = SystemClock()
STEP = 2 * SECOND


def exported(_: BaseHTTPRequestHandler) -> tuple[int, str]:
    """Four devices: one works, one idles, one holds memory alone and is not measured, one is nobody's."""
    lines = []
    for number, (name, use) in enumerate([("busy", "97"), ("lazy", "0"), ("blind", "NaN"), ("", "0")]):
        labels = f'gpu="{number}",UUID="GPU-{number}",device="nvidia{number}",modelName="H100",Hostname="n1"'
        labels += f',container="main",namespace="default",pod="{name}"' if name else ""
        lines += [f"DCGM_FI_DEV_GPU_UTIL{{{labels}}} {use}", f"DCGM_FI_DEV_FB_USED{{{labels}}} {1024 * (number + 1)}"]
    return 200, "\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def prometheus() -> Iterator[RealPrometheus]:
    found = server(RealPrometheus)
    assert isinstance(found, RealPrometheus)
    with serving(exported) as url:
        found.targets.write_text(json.dumps([{"targets": [url.removeprefix("http://")]}]))
        yield found
        found.targets.write_text("[]")


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqlStore]:
    rows: list[Row] = []
    for name in ("busy", "lazy", "blind"):
        rows += [pod(name, "default", bound_at=hour(0), gpu_allocated=1000), held(name, hour(0), gpus=1000)]
    found = await written(str(tmp_path / "ledger.db"), rows)
    yield found
    await found.close()


def settings(prometheus: RealPrometheus) -> LedgerSettings:
    return LedgerSettings(
        prometheus=prometheus.url,
        prometheus_authority=prometheus.authority,
        prometheus_interval=Duration(STEP),
        prometheus_reach=Duration(60 * SECOND),
    )


async def use(store: SqlStore, pod: str) -> list[GpuUse]:
    return [row for row in await fetch(store, select_rows(GpuUse)) if row.pod_uid == pod]


class Beside:
    """The loop, with pods whose story is always told until now; as a recorder would be."""

    def __init__(self, prometheus: RealPrometheus, store: SqlStore) -> None:
        self.monitor = Monitor(settings(prometheus))
        self._store = store
        work = self.monitor.run(CLUSTER, store, Outlet(store, None, CLOCK), CLOCK)
        self._task = asyncio.create_task(work)

    async def until(self, true: Callable[[], Awaitable[bool]]) -> None:
        for _ in range(600):
            now = CLOCK.now()
            rows = Rows()
            rows.add(StreamPosition(cluster=CLUSTER, kind="pods", resource_version=now, revision=str(now), at=now))
            await self._store.commit(rows)
            if await true():
                return
            assert not self._task.done()
            await asyncio.sleep(0.1)
        raise AssertionError("it did not come to be")

    async def close(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        await self.monitor.close()


async def test_measurements_are_stored_beside_what_pods_hold(prometheus: RealPrometheus, store: SqlStore) -> None:
    beside = Beside(prometheus, store)

    async def measured() -> bool:
        return len(await use(store, "lazy")) > 2

    await beside.until(measured)
    await beside.close()
    rows = await use(store, "busy")
    assert {(row.device, row.utilisation, row.memory_used) for row in rows} == {("GPU-0", 0.97, 1024 << 20)}
    assert all(row.at % STEP == 0 for row in rows)
    assert {(row.utilisation, row.memory_used) for row in await use(store, "lazy")} == {(0.0, 2048 << 20)}
    assert await use(store, "blind") == [], "NaN is no data"
    assert beside.monitor.meter.skipped["unknown-pod"] > 0, "a device that nobody holds has the exporter's own pod"

    holders = await held_unused(store, CLOCK.now(), hour(0), HeldRule(lasting=STEP))
    assert [(each.name, each.unused, each.unmeasured) for each in holders] == [("lazy", 1000, 0), ("blind", 0, 1000)]


async def test_an_outage_is_told_and_what_was_measured_meanwhile_is_fetched(
    prometheus: RealPrometheus, store: SqlStore
) -> None:
    beside = Beside(prometheus, store)

    async def measured() -> bool:
        return bool(await use(store, "busy"))

    await beside.until(measured)
    await beside.close()
    last = max(row.at for row in await use(store, "busy"))

    await asyncio.sleep(6)  # nobody asks, Prometheus measures
    again = Beside(prometheus, store)

    async def caught_up() -> bool:
        return max(row.at for row in await use(store, "busy")) >= last + 4 * STEP

    await again.until(caught_up)
    times = {row.at for row in await use(store, "busy")}
    assert {Instant(last + i * STEP) for i in range(5)} <= times, "no hole"

    prometheus.stop()

    async def away() -> bool:
        return again.monitor.meter.failing == "BP-D050"

    await again.until(away)
    prometheus.start()
    back = max(row.at for row in await use(store, "busy"))

    async def goes_on() -> bool:
        return max(row.at for row in await use(store, "busy")) > back + STEP

    await again.until(goes_on)
    await again.close()
    assert again.monitor.meter.failing == ""


async def test_a_query_that_cannot_be_read_is_refused_in_prometheus_own_words(prometheus: RealPrometheus) -> None:
    way = Prometheus(Where(prometheus.url, authority=prometheus.authority))
    now = CLOCK.now() // SECOND * SECOND
    with pytest.raises(PrometheusRefusedError, match="parse error"):
        await way.values("up or", range(now, now + 1, SECOND), SECOND)
    await way.close()
    stranger = Prometheus(Where(prometheus.url))
    with pytest.raises(PrometheusRefusedError, match="certificate"):
        await stranger.values("up", range(now, now + 1, SECOND), SECOND)
    await stranger.close()


async def test_a_ledger_that_runs_records_how_pods_use_what_they_hold(
    prometheus: RealPrometheus, tmp_path: Path
) -> None:
    database = EMPTY["SQLite"]()
    named = {"prometheus": prometheus.url, "prometheus_authority": prometheus.authority, "prometheus_interval": "2s"}
    async with (
        served(tmp_path) as world,
        ledger(tmp_path, world, database, election="off", prometheus_reach="10s", **named) as process,
    ):
        await process.tells("recording started")
        await world.cluster.create(POD, gpu_pod("lazy"), "default")
        rows: list[GpuUse] = []
        for number in range(30):
            await world.job(f"job{number}", pods=1)  # so that the story of pods goes on
            rows = await stored(database, GpuUse)
            if rows:
                break
        metrics = await process.metrics()
        assert await process.end() == 0
    assert {(row.device, row.utilisation, row.memory_used) for row in rows} == {("GPU-1", 0.0, 2048 << 20)}
    assert metrics["bayplan_ledger_use_up"] == 1
    assert metrics["bayplan_ledger_use_rows_total"] >= 1
