"""Contract of `metadata_only`: lists, watches and reflectors show metadata, all of it, and nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing, suppress
from typing import Any

import pytest

from bayplan.cluster.embedded.engine import EmbeddedCluster
from bayplan.cluster.kinds import CONFIG_MAP, CUSTOM_RESOURCE_DEFINITION, Kind
from bayplan.cluster.live.cluster import LiveCluster
from bayplan.cluster.live.reflector import Reflector
from bayplan.cluster.objects import Object
from bayplan.cluster.port import Cluster, WatchEvent
from bayplan.model.errors import AlreadyExists, NotFound, TooManyRequests
from tests.cluster.custom.definitions import definition

WIDGET = Kind("example.com", "v1", "Widget", "widgets", True, ("wd",), ("status", "scale"))
_PATIENCE = 30


@pytest.fixture
def source(cluster: Cluster) -> EmbeddedCluster | LiveCluster:
    assert isinstance(cluster, EmbeddedCluster | LiveCluster)
    return cluster


@pytest.fixture(params=[CONFIG_MAP, WIDGET], ids=["a built-in kind", "a custom kind"])
async def kind(request: pytest.FixtureRequest, cluster: Cluster) -> Kind:
    kind: Kind = request.param
    if kind is WIDGET:
        with suppress(AlreadyExists):
            await cluster.create(CUSTOM_RESOURCE_DEFINITION, definition())
        await _served(cluster, kind)
    return kind


async def _served(cluster: Cluster, kind: Kind) -> None:
    async with asyncio.timeout(_PATIENCE):
        while True:
            with suppress(NotFound, TooManyRequests):  # it is being set up
                await cluster.list(kind)
                return
            await asyncio.sleep(0.1)


async def put(cluster: Cluster, kind: Kind, home: str, name: str) -> Object:
    meta = {"name": name, "labels": {"of": "test"}, "annotations": {"a": "b"}}
    content: dict[str, Any] = {"spec": {"size": 3}} if kind is WIDGET else {"data": {"v": "1"}}
    body = {"apiVersion": kind.api_version, "kind": kind.name, "metadata": meta, **content}
    return await cluster.create(kind, body, home, manager="me")


async def change(cluster: Cluster, kind: Kind, home: str, name: str) -> Object:
    return await cluster.patch(kind, {"metadata": {"labels": {"new": "yes"}}}, name, home)


def same(shown: Object | None, whole: Object) -> None:
    assert shown is not None
    assert (shown.kind, shown.version, shown.sections) == (whole.kind, whole.version, {})
    assert shown.doc()["metadata"] == whole.doc()["metadata"]
    assert whole.sections


async def test_a_list(source: EmbeddedCluster | LiveCluster, home: str, kind: Kind) -> None:
    whole = [await put(source, kind, home, name) for name in "abc"]
    first = await source.list(kind, home, labels="of=test", limit=2, metadata_only=True)
    last = await source.list(kind, home, labels="of=test", limit=2, after=first.next, metadata_only=True)
    for shown, each in zip((*first.items, *last.items), whole, strict=True):
        same(shown, each)


async def test_a_watch(source: EmbeddedCluster | LiveCluster, home: str, kind: Kind) -> None:
    whole = [await put(source, kind, home, "a")]
    async with (
        asyncio.timeout(_PATIENCE),
        aclosing(source.watch_batches(kind, home, labels="of=test", metadata_only=True)) as batches,
    ):
        events = await _news(batches)
        whole.append(await change(source, kind, home, "a"))
        events += await _news(batches)
        await source.delete(kind, "a", home)
        events += await _news(batches)
    assert [event.type for event in events] == ["ADDED", "MODIFIED", "DELETED"]
    for event, each in zip(events, whole, strict=False):
        same(event.object, each)
    assert events[2].object is not None
    assert events[2].object.sections == {}


@pytest.mark.parametrize("streams", [True, False], ids=["streamed", "in pages"])
async def test_a_reflector(source: EmbeddedCluster | LiveCluster, home: str, kind: Kind, streams: bool) -> None:
    whole = [await put(source, kind, home, "a")]
    reflector = Reflector(source, kind, home, labels="of=test", streams=streams, metadata_only=True)
    async with asyncio.timeout(_PATIENCE), reflector as batches:
        told = _objects(batches)
        same(await anext(told), whole[0])
        whole.append(await change(source, kind, home, "a"))
        same(await anext(told), whole[1])


async def _news(batches: AsyncIterator[list[WatchEvent]]) -> list[WatchEvent]:
    while not (events := await anext(batches)):
        pass
    return events


async def _objects(batches: AsyncIterator[Any]) -> AsyncIterator[Object]:
    async for batch in batches:
        for each in batch.changes:
            yield each.object
