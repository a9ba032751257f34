"""Watches that end, break, fall silent or are away for long, in virtual time: nothing is lost, nothing is read anew,
and what happened while nobody listened is told as such."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import Any

import pytest

from bayplan.cluster.embedded.engine import EmbeddedCluster
from bayplan.cluster.kinds import CONFIG_MAP, Kind
from bayplan.cluster.live.faults import Unreachable
from bayplan.cluster.live.reflector import Batch, Events, Reflector
from bayplan.cluster.port import Page
from tests.cluster.live.following import Follower

HOME = "default"


class Breaking:
    """A cluster in virtual time whose watches end as the test says."""

    def __init__(self, *, lasts: float | None = None, cut: bool = False, tells: int | None = None) -> None:
        """Each watch `lasts` so many seconds; then it is closed, or cut. Bookmarks are left out.

        A watch that `tells` so many events is closed too, as a server does with whoever reads a backlog too slowly.
        """
        self.engine = EmbeddedCluster([])
        self._lasts, self._cut, self._tells = lasts, cut, tells
        self.away = False
        self.silent = False
        self.lists = self.watches = 0

    async def list(self, kind: Kind, namespace: str | None = None, **how: Any) -> Page:
        self._reach()
        self.lists += how["limit"] != 1
        return await self.engine.list(kind, namespace, **how)

    async def watch_batches(self, kind: Kind, namespace: str | None = None, **how: Any) -> Events:
        self._reach()
        self.watches += 1
        yield []
        async with aclosing(self.engine.watch_batches(kind, namespace, **how, timeout=self._lasts)) as batches:
            async for batch in batches:
                if self.silent:
                    self.silent = False
                    await asyncio.Event().wait()
                self._reach()
                if events := [event for event in batch if event.type != "BOOKMARK"]:
                    yield events[: self._tells]
                    if self._tells:
                        return
        if self._cut:
            raise Unreachable("cut")

    def _reach(self) -> None:
        if self.away:
            raise Unreachable("away")

    async def put(self, name: str) -> None:
        await self.engine.create(CONFIG_MAP, {"metadata": {"name": name}}, HOME)

    async def drop(self, name: str) -> None:
        await self.engine.delete(CONFIG_MAP, name, HOME)

    async def pass_time(self, span: float, step: float = 0.25) -> None:
        """Small steps, so that each timer finds the time it waited for."""
        for _ in range(round(span / step)):
            await self.engine.advance(step)
            await settle()


async def settle() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


class Kept(Follower):
    """Takes batches as they come."""

    def __init__(self, batches: AsyncIterator[Batch]) -> None:
        super().__init__(batches)
        self.batches: list[Batch] = []

    async def keep(self) -> None:
        async for batch in self._batches:
            self.batches.append(batch)
            self._take(batch)


@asynccontextmanager
async def followed(source: Breaking, alive: dict[str, str] | None = None, **how: Any) -> AsyncIterator[Kept]:
    reflector = Reflector(source, CONFIG_MAP, HOME, clock=source.engine.clock, random=lambda: 1.0, **how)
    async with reflector as batches:
        told = Kept(batches)
        told.alive |= alive or {}
        task = asyncio.create_task(told.keep())
        await settle()
        yield told
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@pytest.mark.parametrize("cut", [False, True], ids=["closed", "cut"])
@pytest.mark.parametrize("every", [4, 37], ids=["a busy kind", "a quiet kind"])
async def test_watches_that_end_every_ten_seconds_lose_nothing_and_read_nothing_anew(cut: bool, every: int) -> None:
    source = Breaking(lasts=10, cut=cut)
    expected = []
    async with followed(source) as told:
        for second in range(600):
            if second % every == 0:
                await source.put(f"n{second}")
                expected.append(("ADDED", f"n{second}"))
            if second % (2 * every) == every + 1:
                await source.drop(f"n{second - 1}")
                expected.append(("DELETED", f"n{second - 1}"))
            await source.pass_time(1, 0.5)
            assert told.story == expected  # none comes later than a pause takes
    assert (source.lists, told.syncs, told.inferred) == (1, 1, [])
    assert source.watches >= 55


async def test_a_silent_connection_is_noticed_within_75_seconds() -> None:
    source = Breaking()
    async with followed(source) as told:
        await source.put("a")
        await settle()
        source.silent = True
        await source.put("b")
        await source.pass_time(69)
        assert told.story == [("ADDED", "a")]
        await source.pass_time(6)
        assert told.story == [("ADDED", "a"), ("ADDED", "b")]
    assert source.lists == 1


async def test_what_happened_while_the_server_was_away_is_told_as_such() -> None:
    source = Breaking(lasts=30)
    for name in "abc":
        await source.put(name)
    async with followed(source) as told:
        assert [batch.behind for batch in told.batches] == [0]
        await source.drop("a")
        await source.pass_time(40)  # a watch that ended by itself is not an interruption
        assert [batch.behind for batch in told.batches] == [0, 0]
        source.away = True
        await source.drop("b")
        await source.pass_time(300)
        source.away = False
        await source.pass_time(31)
        late = told.batches[-1]
        assert [(each.object.name, each.object.version <= late.behind) for each in late.changes] == [("b", True)]
        await source.drop("c")
        await settle()
        last = told.batches[-1]
        assert [each.object.version > last.behind for each in last.changes] == [True]
    assert told.story[3:] == [("DELETED", name) for name in "abc"]
    assert (source.lists, told.syncs) == (1, 1)


@pytest.mark.parametrize("tells", [None, 1], ids=["by one watch", "by watches that the server closes in between"])
async def test_what_an_earlier_run_did_not_hear_is_told_as_such(tells: int | None) -> None:
    source = Breaking(tells=tells)
    await source.put("a")
    async with followed(source) as told:
        pass
    known = {(HOME, "a"): (told.alive["a"], "0")}
    await source.drop("a")
    await source.put("b")
    async with followed(source, told.alive, since=told.revision, known=known) as later:
        await source.put("c")
        await settle()
        changes = [
            (each.object.name, each.object.version <= batch.behind) for batch in later.batches for each in batch.changes
        ]
    assert changes == [("a", True), ("b", True), ("c", False)]
    assert source.lists == 1


async def test_reading_the_present_anew_is_told_by_the_sync_alone() -> None:
    source = Breaking(lasts=30)
    await source.put("a")
    async with followed(source) as told:
        source.away = True
        await source.drop("a")
        await source.pass_time(60)
        source.engine.world.store.compact()
        source.away = False
        await source.pass_time(31)
    assert [(batch.synced, batch.behind) for batch in told.batches] == [(True, 0), (True, 0)]
    assert told.inferred == ["a"]
