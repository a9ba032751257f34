"""The loop beside the recorder: what it asks for and when, how it fills holes, and that its failures stay its own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from bayplan.ledger.outlet import NotLeaderError, Outlet
from bayplan.ledger.rows import GpuUse, Row, Rows, StreamPosition
from bayplan.ledger.spool import Spool
from bayplan.ledger.store.port import StoreUnavailableError
from bayplan.ledger.store.reading import fetch, select_rows
from bayplan.ledger.store.sql import SqlStore
from bayplan.ledger.use.metering import Meter, Metering, Plan
from bayplan.ledger.use.prometheus import PrometheusAwayError, PrometheusRefusedError
from bayplan.ledger.use.reading import Reading, Series
from bayplan.model.clock import SECOND, Instant, VirtualClock
from bayplan.model.errors import BayplanError
from tests.conftest import Logged
from tests.ledger.books import CLUSTER, hour, pod, written
from tests.ledger.shell.scenes import until
from tests.ledger.use.test_reading import DCGM

MINUTE = 60 * SECOND
NOON = hour(12)


class FakeSource:
    """A monitor that measured 50 percent of every device, at every time; or fails."""

    def __init__(self, devices: int = 1) -> None:
        self.devices = devices
        self.prefix = "GPU-"
        self.asked: list[tuple[str, range]] = []
        self.fails: BayplanError | None = None

    async def values(self, query: str, times: range, oldest: int) -> list[Series]:
        self.asked.append((query, times))
        if self.fails is not None:
            raise self.fails
        memory = {"__name__": "DCGM_FI_DEV_FB_USED"} if query == "memory" else {}
        values = [(at / SECOND, "50") for at in times]
        return [Series(DCGM | {"UUID": f"{self.prefix}{i}"} | memory, values) for i in range(self.devices)]


class Scene:
    """A ledger with one pod that holds since the morning, and the loop on it."""

    def __init__(self, store: SqlStore, spool: Spool) -> None:
        self.clock = VirtualClock(Instant(NOON + 15 * SECOND))
        self.source = FakeSource()
        self.store = store
        self.outlet = Outlet(store, spool, self.clock)
        self.meter = Meter()
        self._version = 1

    def loop(self, **plan: Any) -> Metering:
        asked: dict[str, Any] = {
            "query": "use",
            "memory_query": "memory",
            "interval": MINUTE,
            "reach": 5 * MINUTE,
            **plan,
        }
        return Metering(
            self.source,
            self.store,
            self.outlet,
            reading=Reading(CLUSTER),
            plan=Plan(**asked),
            clock=self.clock,
            meter=self.meter,
        )

    async def told(self, until: Instant) -> None:
        """The story of pods is told until then."""
        self._version += 1
        await self.write(
            StreamPosition(
                cluster=CLUSTER, kind="pods", resource_version=self._version, revision=str(self._version), at=until
            )
        )

    async def write(self, *rows: Row) -> None:
        batch = Rows()
        batch.add(*rows)
        await self.store.commit(batch)

    async def minutes(self) -> list[float]:
        """The times that are stored, in minutes after noon."""
        rows: list[GpuUse] = await fetch(self.store, select_rows(GpuUse))
        return sorted({(row.at - NOON) / MINUTE for row in rows})


async def all_of(loop: Metering) -> None:
    while await loop.look():
        pass


@pytest.fixture
async def scene(tmp_path: Path) -> AsyncIterator[Scene]:
    notebook = pod("notebook", "lab", created_at=hour(8), bound_at=hour(8))
    store = await written(str(tmp_path / "ledger.db"), [notebook])
    spool = Spool(tmp_path / "spool", most_bytes=1 << 20)
    yield Scene(store, spool)
    spool.close()
    await store.close()


async def test_the_first_time_it_reaches_back_and_then_goes_on(scene: Scene) -> None:
    await scene.told(hour(13))
    loop = scene.loop()
    await all_of(loop)
    assert await scene.minutes() == [-5, -4, -3, -2, -1, 0]
    assert not await loop.look(), "nothing more is due"
    scene.clock.advance_to(Instant(NOON + 3 * MINUTE + 14 * SECOND))
    await all_of(loop)
    assert await scene.minutes() == [-5, -4, -3, -2, -1, 0, 1, 2], "the third minute has not settled"
    (row, *_) = await fetch(scene.store, select_rows(GpuUse))
    assert (row.pod_uid, row.device, row.utilisation, row.memory_used) == ("notebook", "GPU-0", 0.5, 50 << 20)
    assert scene.meter.rows == 8


async def test_a_hole_is_filled_from_what_is_stored_and_nothing_is_stored_twice(scene: Scene) -> None:
    await scene.told(hour(13))
    await all_of(scene.loop(reach=MINUTE))
    scene.clock.advance_to(Instant(NOON + 4 * MINUTE + 15 * SECOND))
    await all_of(scene.loop(reach=60 * MINUTE))
    assert await scene.minutes() == [-1, 0, 1, 2, 3, 4]
    assert next(iter(scene.source.asked[-1][1])) >= NOON
    scene.clock.advance_to(hour(13))
    await all_of(scene.loop(reach=2 * MINUTE))
    assert await scene.minutes() == [-1, 0, 1, 2, 3, 4, 57, 58, 59], "what is beyond its reach stays no data"


async def test_no_time_is_asked_for_before_the_story_of_pods_is_told_until_then(scene: Scene) -> None:
    loop = scene.loop(reach=0)
    assert not await loop.look()
    await scene.told(Instant(NOON - MINUTE // 2))
    await all_of(loop)
    assert await scene.minutes() == [-1]
    await scene.told(hour(13))
    await all_of(loop)
    assert await scene.minutes() == [-1, 0]


async def test_pods_that_are_gone_by_now_are_told_of_the_time_that_they_held(scene: Scene) -> None:
    ends = Instant(NOON - 2 * MINUTE)
    await scene.write(
        pod("notebook", "lab", resource_version=2, created_at=hour(8), bound_at=hour(8), end_at=ends, gone_at=ends)
    )
    await scene.told(hour(13))
    await all_of(scene.loop())
    assert await scene.minutes() == [-5, -4, -3]
    assert scene.meter.skipped == {"unknown-pod": 3}


async def test_one_question_asks_for_fewer_times_the_more_devices_there_are(scene: Scene) -> None:
    await scene.told(hour(13))
    await all_of(scene.loop(reach=60 * MINUTE))
    assert [len(times) for query, times in scene.source.asked if query == "use"] == [1, 60]
    scene.source = FakeSource(2500)
    scene.clock.advance_to(hour(13))
    await all_of(scene.loop(reach=20 * MINUTE, memory_query=""))
    assert [len(times) for _, times in scene.source.asked] == [1, 20]
    assert scene.meter.stored == 2500 * 20


async def test_failures_are_counted_told_once_and_end_nothing(scene: Scene, logged: Logged) -> None:
    await scene.told(hour(13))
    scene.source.fails = PrometheusAwayError("it is away")
    loop = asyncio.create_task(scene.loop(reach=0).run())

    async def another(count: int) -> None:
        scene.clock.advance_to(Instant(scene.clock.now() + MINUTE))
        await until(lambda: scene.meter.errors.total() == count or scene.meter.rows > 0)

    await until(lambda: scene.meter.errors.total() == 1)
    await another(2)
    scene.source.fails = PrometheusRefusedError("bad query", hint="mend it")
    await another(3)
    assert scene.meter.errors == {"BP-D050": 2, "BP-D051": 1}
    scene.source.fails = None
    await another(0)
    loop.cancel()
    lines = [line for line in logged() if line["level"] != "debug"]
    assert [line["msg"] for line in lines] == ["no measurements", "no measurements", "measurements come again"]
    assert [lines[1][field] for field in ("code", "why", "hint")] == ["BP-D051", "bad query", "mend it"]
    assert scene.meter.failing == ""


async def test_a_database_that_goes_away_meanwhile_leaves_nothing_in_the_spool_and_is_asked_again(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    await scene.told(hour(13))
    loop = scene.loop()

    async def away(_: Rows) -> None:
        raise StoreUnavailableError("the database is down")

    with monkeypatch.context() as broken:
        broken.setattr(scene.store, "commit", away)
        with pytest.raises(StoreUnavailableError):
            await loop.look()
    assert scene.outlet.spool is not None
    assert (len(scene.outlet.spool), scene.outlet.rows, scene.meter.rows) == (0, 0, 0)
    await all_of(loop)
    assert await scene.minutes() == [-5, -4, -3, -2, -1, 0]
    assert (scene.outlet.rows, scene.meter.rows) == (6, 6)


async def test_who_does_not_lead_measures_nothing(scene: Scene) -> None:
    await scene.told(hour(13))
    scene.outlet = Outlet(scene.store, scene.outlet.spool, scene.clock, may_write=lambda: False)
    with pytest.raises(NotLeaderError):
        await scene.loop().look()
    assert await scene.minutes() == []


async def test_a_device_whose_name_is_beyond_all_bounds_is_stored_by_its_beginning(scene: Scene) -> None:
    scene.source.prefix = "d" * 300
    await scene.told(hour(13))
    await all_of(scene.loop(reach=0))
    assert [row.device for row in await fetch(scene.store, select_rows(GpuUse))] == ["d" * 253]


async def test_while_batches_wait_in_the_spool_nothing_is_asked(scene: Scene) -> None:
    await scene.told(hour(13))
    assert scene.outlet.spool is not None
    waiting = Rows()
    waiting.add(pod("other"))
    scene.outlet.spool.append(waiting)
    loop = asyncio.create_task(scene.loop(reach=2 * MINUTE).run())
    for _ in range(20):
        await asyncio.sleep(0.001)
    assert scene.source.asked == []
    assert await scene.outlet.replay()
    scene.clock.advance_to(Instant(NOON + MINUTE + 15 * SECOND))
    await until(lambda: scene.meter.told_until == NOON + MINUTE)
    loop.cancel()
    assert await scene.minutes() == [-1, 0, 1], "what was measured meanwhile is fetched"


async def test_old_measurements_are_let_go(scene: Scene) -> None:
    await scene.told(hour(13))
    await all_of(scene.loop())
    loop = asyncio.create_task(scene.loop(retention=3 * MINUTE).run())
    for _ in range(5000):
        if min(await scene.minutes()) > -3:
            break
    loop.cancel()
    assert await scene.minutes() == [-2, -1, 0]


async def test_it_tells_of_itself_to_prometheus(scene: Scene) -> None:
    meter = scene.meter
    await scene.told(hour(13))
    await all_of(scene.loop(reach=0))
    meter.errors["BP-D050"] += 2
    meter.skipped["unknown-pod"] = 4
    told = {
        (sample.name.removeprefix("bayplan_ledger_use_"), *sample.labels.values()): sample.value
        for family in meter.collect()
        for sample in family.samples
    }
    assert told == {
        ("up",): 1,
        ("rows_total",): 1,
        ("errors_total", "BP-D050"): 2,
        ("values", "stored"): 1,
        ("values", "unknown-pod"): 4,
        ("told_until_seconds",): NOON / SECOND,
    }
