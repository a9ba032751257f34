"""Which clock counts, and how fast it goes."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from bayplan.cluster.kinds import POD
from bayplan.cluster.served.serve import serve
from bayplan.ledger.rows import GpuPeriod, GpuPod
from bayplan.ledger.stamping import Stamps
from bayplan.model.clock import SECOND, Instant, ScaledClock, VirtualClock
from bayplan.model.errors import ServerError
from tests.ledger.process.running import Process, happens, stored
from tests.ledger.shell.scenes import gpu_cluster, gpu_pod

START = VirtualClock().now()


class Server:
    """A clock that is ahead, and as fast as one likes; it says whole seconds."""

    def __init__(self, clock: VirtualClock, ahead: int, speed: int) -> None:
        self.clock, self.ahead, self.speed = clock, ahead, speed
        self.down = False

    def now(self) -> Instant:
        return Instant(START + self.ahead * SECOND + (self.clock.now() - START) * self.speed)

    async def tell(self) -> Instant | None:
        if self.down:
            raise ServerError("no route")
        return Instant(self.now() // SECOND * SECOND)


@pytest.mark.parametrize(
    ("ahead", "speed", "error"),
    [
        pytest.param(0, 1, 0.0, id="a server that agrees: our own clock, exactly"),
        pytest.param(-3600, 1, 1.0, id="a server that is an hour behind"),
        pytest.param(120, 1, 1.0, id="a server that is two minutes ahead"),
        pytest.param(100, 60, 6.0, id="a minute a second"),
    ],
)
async def test_stamps_are_the_servers(ahead: int, speed: int, error: float) -> None:
    clock = VirtualClock()
    server = Server(clock, ahead, speed)
    stamps = Stamps(server.tell, clock)
    await stamps._compare()
    last = Instant(0)
    for second in range(1, 120):
        clock.advance_to(Instant(START + second * SECOND + second * 1000))
        if second % 10 == 2:
            await stamps._compare()
        if second > 12:
            assert abs(stamps() - server.now()) <= error * SECOND
            assert stamps() >= last
        last = stamps()


async def test_a_server_that_does_not_answer_keeps_its_time() -> None:
    clock = VirtualClock()
    server = Server(clock, 3600, 1)
    stamps = Stamps(server.tell, clock)
    await stamps._compare()
    server.down = True
    clock.advance_to(Instant(START + 100 * SECOND))
    await stamps._compare()
    assert abs(stamps() - server.now()) <= SECOND


@pytest.mark.slow
async def test_a_cluster_that_runs_a_minute_a_second_is_recorded_in_its_own_time(tmp_path: Path) -> None:
    clock, database = ScaledClock(START, 60), f"sqlite:///{tmp_path / 'ledger.db'}"
    cluster = await gpu_cluster(clock=clock)
    running = asyncio.create_task(cluster.run())

    async def gone() -> bool:
        return any(row.gone_at for row in await stored(database, GpuPod))

    async def held() -> bool:
        return bool(await stored(database, GpuPeriod))

    async with serve(cluster, kubeconfig_out=tmp_path / "kubeconfig") as served:
        words = ("ledger", "run", "--database", database, "--kubeconfig", served.kubeconfig)
        async with Process(tmp_path, *words, election="off", spool=str(tmp_path / "spool")) as process:
            await process.tells("recording started")
            await process.tells("clocks differ")
            began = clock.now()
            await cluster.create(POD, gpu_pod("p"), "default")
            await happens(held)
            seen = clock.now()
            await clock.sleep_until(Instant(seen + 300 * SECOND))
            went = clock.now()
            await cluster.delete(POD, "p", "default", grace=0)
            await happens(gone)
            seen_gone = clock.now()
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    (period,) = await stored(database, GpuPeriod)
    error = 60 * SECOND  # a second of ours, as servers tell whole seconds only
    assert began - error <= period.start_at <= seen + error
    assert went - error <= period.end_at <= seen_gone + error
