"""Inside one reign of `bayplan ledger run`: waiting for the database, and which clock retention goes by."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from bayplan.cluster.served.serve import serve
from bayplan.ledger import process
from bayplan.ledger.process import _patiently
from bayplan.ledger.store.port import StoreUnavailableError
from bayplan.ledger.store.retention import Pruned
from bayplan.ledger.store.sql import SqlStore
from bayplan.model.clock import SECOND, Instant, ScaledClock, SystemClock, VirtualClock
from bayplan.service.lifecycle import Service
from bayplan.service.logging import LOGS
from bayplan.service.settings import Settings
from tests.ledger.process.running import World, soon
from tests.ledger.settings.effects import running
from tests.ledger.shell.scenes import gpu_cluster

HOUR = 3600 * SECOND


@pytest.mark.parametrize("stops", [False, True])
async def test_who_loses_the_lease_while_waiting_for_the_database_is_ready_again(
    stops: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LOGS, "configure", lambda *_: None)

    async def away() -> None:
        raise StoreUnavailableError("no route")

    async with Service("ledger", Settings(), clock=VirtualClock(), endpoint=False) as service:
        waiting = asyncio.create_task(_patiently(service, away))
        await asyncio.sleep(0)
        assert await service.health.results(live=False) == {"state": "waiting for the database: no route"}
        if stops:
            service.stop("done")
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        expected = "shutting down: done" if stops else ""
        assert await service.health.results(live=False) == {"state": expected}


@pytest.mark.slow
async def test_retention_goes_by_the_servers_clock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = ScaledClock(Instant(SystemClock().now() - 48 * HOUR), 1)
    limits: list[Instant] = []

    async def pruned(_store: SqlStore, _cluster: str, before: Instant, **_how: object) -> Pruned:
        limits.append(before)
        return Pruned()

    monkeypatch.setattr(process, "prune", pruned)
    cluster = await gpu_cluster(clock=clock)
    values = {"database": f"sqlite:///{tmp_path}/ledger.db", "spool": str(tmp_path / "spool"), "election": "off"}
    async with (
        serve(cluster, kubeconfig_out=tmp_path / "kubeconfig") as api,
        running(World(cluster, api.kubeconfig), monkeypatch, **values, retention="24h"),
    ):
        await soon(lambda: bool(limits), "a look for what is old")
    assert abs(limits[0] - (clock.now() - 24 * HOUR)) < HOUR
