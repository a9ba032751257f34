"""The health endpoint, asked over a real socket."""

from __future__ import annotations

import asyncio
import json
import socket
import urllib.error
import urllib.request
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from prometheus_client import Counter

import bayplan
from bayplan.service.health import Health
from bayplan.service.http import AddressUnavailable
from bayplan.service.levels import Levels
from bayplan.service.logging import LOGS


class Endpoint:
    def __init__(self, health: Health, url: str) -> None:
        self.health, self.url = health, url

    async def ask(self, path: str, method: str = "GET", body: bytes | None = None, **headers: str) -> tuple[int, str]:
        request = urllib.request.Request(self.url + path, method=method, data=body, headers=headers)
        return await asyncio.to_thread(_answer, request)


def _answer(request: urllib.request.Request) -> tuple[int, str]:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=10) as response:
            return response.status, response.read().decode()
    except urllib.error.HTTPError as refused:
        with refused:
            return refused.code, refused.read().decode()


@pytest_asyncio.fixture
async def endpoint() -> AsyncIterator[Endpoint]:
    health = Health()
    url = await health.serve("127.0.0.1", 0)
    yield Endpoint(health, url)
    await health.close()


def fail() -> None:
    raise ConnectionError("cannot reach postgresql://ann:hunter2@db")


async def fail_later() -> None:
    raise TimeoutError


async def test_a_process_is_alive_before_it_is_ready_and_while_it_ends(endpoint: Endpoint) -> None:
    assert await endpoint.ask("/livez") == (200, "ok")
    assert await endpoint.ask("/readyz") == (503, "[-]state failed: starting\nreadyz check failed\n")
    endpoint.health.set_ready()
    assert await endpoint.ask("/readyz") == (200, "ok")
    endpoint.health.set_not_ready("shutting down")
    assert (await endpoint.ask("/readyz"))[0] == 503
    assert await endpoint.ask("/healthz") == (200, "ok")


async def test_each_check_is_told_by_name_and_no_reason_holds_a_secret(endpoint: Endpoint) -> None:
    endpoint.health.set_ready()
    endpoint.health.check("cache", lambda: None)
    endpoint.health.check("store", fail)
    endpoint.health.check("watch", fail_later)
    assert await endpoint.ask("/readyz") == (
        503,
        "[+]state ok\n[+]cache ok\n[-]store failed: cannot reach postgresql://ann:[redacted]@db\n"
        "[-]watch failed: TimeoutError\nreadyz check failed\n",
    )
    assert await endpoint.ask("/readyz/cache") == (200, "ok")
    assert (await endpoint.ask("/readyz/store"))[0] == 503
    assert await endpoint.ask("/readyz/nothing") == (
        404,
        "no check named nothing; known are state, cache, store, watch\n",
    )
    assert await endpoint.ask("/livez?verbose") == (200, "[+]state ok\nlivez check passed\n")


async def test_only_what_a_restart_cures_makes_a_process_dead(endpoint: Endpoint) -> None:
    endpoint.health.check("loop", fail, live=True)
    assert (await endpoint.ask("/livez"))[0] == 503


async def test_metrics_come_from_a_registry_of_our_own(endpoint: Endpoint) -> None:
    Counter("bayplan_things", "Things.", registry=endpoint.health.registry).inc()
    _, text = await endpoint.ask("/metrics")
    assert "bayplan_things_total 1.0" in text
    assert f'version="{bayplan.__version__}"' in text
    _, text = await endpoint.ask("/metrics", Accept="application/openmetrics-text; version=1.0.0")
    assert text.endswith("# EOF\n")


async def test_the_version(endpoint: Endpoint) -> None:
    assert json.loads((await endpoint.ask("/version"))[1])["version"] == bayplan.__version__


async def test_levels_are_changed_while_running_from_this_machine_only(endpoint: Endpoint) -> None:
    assert await endpoint.ask("/loglevel", "PUT", b"ledger=debug\n") == (200, "ledger=debug,info\n")
    assert LOGS.get("ledger").debugs
    assert await endpoint.ask("/loglevel") == (200, "ledger=debug,info\n")
    status, text = await endpoint.ask("/loglevel", "PUT", b"ledger=loud")
    assert (status, text.startswith("expected room=level")) == (400, True)
    assert (await endpoint.ask("/loglevel", "PUT", b"\xff"))[0] == 400
    assert (await endpoint.ask("/loglevel", "PUT", b"error", Host="evil.example"))[0] == 403
    assert LOGS.levels == Levels.parse("ledger=debug")


async def test_a_taken_address_is_an_error_with_a_way_out() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(AddressUnavailable, match=f"cannot listen on 127.0.0.1:{port}: Address already in use"):
            await Health().serve("127.0.0.1", port)


def test_a_check_has_a_name_of_its_own() -> None:
    health = Health()
    health.check("store", fail)
    for name in ("store", "state"):
        with pytest.raises(ValueError, match="there already"):
            health.check(name, fail)
