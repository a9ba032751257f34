"""The settings of measurements, on something in Prometheus's place: what it is asked, and what comes of its answers."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import msgspec
import pytest

from bayplan.cluster.credentials import Authority, write_private
from bayplan.ledger.rows import GpuUse
from bayplan.ledger.store.reading import fetch, select_rows
from bayplan.ledger.use.settings import Monitor, monitor_of
from bayplan.model.clock import SECOND, Instant
from bayplan.service.settings import LedgerSettings
from tests.conftest import Logged
from tests.ledger.books import CLUSTER, hour
from tests.ledger.settings.effects import given, sees
from tests.ledger.use.test_metering import NOON, Scene, scene

__all__ = ["scene"]

METRIC = {"pod": "notebook", "workload": "notebook", "namespace": "lab", "UUID": "GPU-0", "card": "card-0"}


class Monitored:
    """Something that speaks as Prometheus does: one device of the notebook, at every time that is asked for."""

    def __init__(self, metric: dict[str, str], value: str) -> None:
        self._metric, self._value = metric, value
        self.asked: list[dict[str, str]] = []
        self.tokens: set[str] = set()

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        lines = dict(line.split(": ", 1) for line in head.strip().splitlines()[1:])
        asked = {name: text for name, [text] in parse_qs(urlsplit(head.split()[1]).query).items()}
        self.asked.append(asked)
        self.tokens.add({key.lower(): value for key, value in lines.items()}.get("authorization", ""))
        start, end, step = (float(asked[name]) for name in ("start", "end", "step"))
        values = [(start + number * step, self._value) for number in range(int((end - start) / step) + 1)]
        result = [{"metric": self._metric, "values": values}]
        body = msgspec.json.encode({"status": "success", "data": {"resultType": "matrix", "result": result}})
        writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        await writer.drain()
        writer.close()

    @asynccontextmanager
    async def serving(self, context: ssl.SSLContext | None = None) -> AsyncIterator[str]:
        server = await asyncio.start_server(self, "127.0.0.1", 0, ssl=context)
        async with server:
            yield f"{'https' if context else 'http'}://127.0.0.1:{server.sockets[0].getsockname()[1]}"


async def stored(scene: Scene, settings: LedgerSettings) -> list[GpuUse]:
    """The measurements that are there once the loop is told until the present, or has failed."""
    await scene.told(hour(13))
    monitor = Monitor(settings)
    task = asyncio.create_task(monitor.run(CLUSTER, scene.store, scene.outlet, scene.clock))
    for _ in range(5000):
        if monitor.meter.errors or (monitor.meter.told_until or 0) >= NOON:
            break
        await asyncio.sleep(0.002)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await monitor.close()
    return await fetch(scene.store, select_rows(GpuUse))


SHORT = {"prometheus_interval": "1m", "prometheus_reach": "2m"}


@sees("ledger.prometheus")
async def test_a_prometheus_that_is_named_is_asked(scene: Scene) -> None:
    assert monitor_of(LedgerSettings()) is None
    monitored = Monitored(METRIC, "0.5")
    async with monitored.serving() as url:
        rows = await stored(scene, given(prometheus=url, **SHORT).ledger)
    assert [(row.pod_uid, row.device, row.utilisation) for row in rows] == [("notebook", "GPU-0", 0.5)] * 3
    assert monitored.tokens == {""}
    assert {float(asked["step"]) for asked in monitored.asked} == {60}


@sees("ledger.prometheus_bearer")
async def test_a_token_is_sent_along(scene: Scene, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("s3cret")
    monitored = Monitored(METRIC, "0.5")
    async with monitored.serving() as url:
        await stored(scene, given(prometheus=url, prometheus_bearer=str(tmp_path / "token"), **SHORT).ledger)
    assert monitored.tokens == {"Bearer s3cret"}


@sees("ledger.prometheus_authority")
@pytest.mark.parametrize("named", [True, False])
async def test_the_authority_that_signed_must_be_known(scene: Scene, tmp_path: Path, named: bool) -> None:
    authority = Authority("monitors", datetime.now(UTC))
    certificate, key = authority.serving("127.0.0.1")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(write_private(tmp_path / "crt", certificate), write_private(tmp_path / "key", key))
    known = str(write_private(tmp_path / "authority", authority.pem))
    async with Monitored(METRIC, "0.5").serving(context) as url:
        values = {"prometheus": url, **SHORT, **({"prometheus_authority": known} if named else {})}
        assert bool(await stored(scene, given(**values).ledger)) is named


@sees("ledger.prometheus_interval", "ledger.prometheus_reach")
async def test_how_often_and_how_far_back(scene: Scene) -> None:
    monitored = Monitored(METRIC, "0.5")
    async with monitored.serving() as url:
        settings = given(prometheus=url, prometheus_interval="30s", prometheus_reach="5m").ledger
        rows = await stored(scene, settings)
    assert sorted({(row.at - NOON) // SECOND for row in rows}) == list(range(-300, 1, 30))
    assert {float(asked["step"]) for asked in monitored.asked} == {30}


@sees("ledger.use_query", "ledger.use_memory_query", "ledger.use_unit", "ledger.use_labels")
@pytest.mark.parametrize(
    ("values", "metric", "queries", "utilisation", "device"),
    [
        pytest.param(
            {"use_query": "mine", "use_memory_query": "none", "use_unit": "percent"},
            METRIC,
            {"mine"},
            0.01,
            "GPU-0",
            id="a query of one's own, in percent",
        ),
        pytest.param(
            {"use_query": "mine", "use_memory_query": "bytes", "use_unit": "ratio"},
            METRIC,
            {"mine", "bytes"},
            1,
            "GPU-0",
            id="with one of memory, in shares",
        ),
        pytest.param(
            {"use_query": "mine", "use_memory_query": "none", "use_unit": "ratio", "use_labels": "device=card"},
            METRIC,
            {"mine"},
            1,
            "card-0",
            id="with labels of one's own",
        ),
    ],
)
async def test_what_is_asked_and_how_it_is_read(
    scene: Scene, values: dict[str, str], metric: Any, queries: set[str], utilisation: float, device: str
) -> None:
    monitored = Monitored(metric, "1")
    async with monitored.serving() as url:
        rows = await stored(scene, given(prometheus=url, **values, **SHORT).ledger)
    assert {asked["query"] for asked in monitored.asked} == queries
    assert {(row.utilisation, row.device) for row in rows} == {(utilisation, device)}


@sees("ledger.use_retention")
@pytest.mark.parametrize(
    ("values", "stays"),
    [
        pytest.param({}, True, id="by default for a month"),
        pytest.param({"use_retention": "1h"}, False, id="for an hour"),
    ],
)
async def test_measurements_are_kept_for_so_long(
    scene: Scene, logged: Logged, values: dict[str, str], stays: bool
) -> None:
    old = Instant(NOON - 2 * 3600 * SECOND)
    await scene.write(GpuUse(cluster=CLUSTER, pod_uid="notebook", device="GPU-0", at=old, utilisation=1))
    async with Monitored(METRIC, "0.5").serving() as url:
        rows = await stored(scene, given(prometheus=url, **values, **SHORT).ledger)
    assert "measurements pruned" in {line["msg"] for line in logged()}
    assert (old in {row.at for row in rows}) is stays
