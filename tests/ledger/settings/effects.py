"""Which test sees which setting at work, and a ledger in this process with settings given as people give them."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import TypeVar

import pytest

from bayplan.cluster.live.cluster import LiveCluster
from bayplan.cluster.live.config import find_access
from bayplan.ledger.process import run_ledger
from bayplan.service.lifecycle import Service
from bayplan.service.logging import LOGS
from bayplan.service.settings import SETTINGS, Settings, build
from tests.ledger.process.running import World

T = TypeVar("T", bound=Callable[..., object])

SEEN: dict[str, list[str]] = {}
"""By setting: the tests that change it from its default and see the effect."""


def sees(*names: str) -> Callable[[T], T]:
    """Mark a test as one that sees the effect of these settings."""

    def mark(test: T) -> T:
        for name in names:
            SEEN.setdefault(name, []).append(test.__name__)
        return test

    return mark


def given(**values: str) -> Settings:
    """Settings of the section `ledger`, as texts; each must differ from its default."""
    found = {f"ledger.{name}": SETTINGS[f"ledger.{name}"].read(text) for name, text in values.items()}
    assert not [key for key, value in found.items() if value == SETTINGS[key].default], "that is the default"
    return build(found)


@contextmanager
def silence() -> Iterator[int]:
    """The port of a server that takes connections and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as listener:  # the kernel takes them
        yield listener.getsockname()[1]


@asynccontextmanager
async def running(world: World, monkeypatch: pytest.MonkeyPatch, **values: str) -> AsyncIterator[None]:
    """`bayplan ledger run` in this process, until the block is left."""
    monkeypatch.setattr(LOGS, "configure", lambda *_: None)
    async with Service("ledger", given(**values), endpoint=False) as service:
        cluster = LiveCluster(find_access(world.kubeconfig), clock=service.clock)
        service.on_close("cluster", cluster.close)
        body = asyncio.create_task(run_ledger(service, cluster))
        try:
            yield
        finally:
            service.stop("done")
            await body
