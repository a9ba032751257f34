"""The asyncio face: watches that lose nothing and leave nothing behind, and a world kept at a clock."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from bayplan.cluster.embedded.controllers.contract import Outcome, View
from bayplan.cluster.embedded.engine import EmbeddedCluster
from bayplan.cluster.embedded.store import Key
from bayplan.cluster.kinds import CONFIG_MAP, POD
from bayplan.cluster.port import WatchEvent
from bayplan.model.clock import SECOND, Instant, SystemClock, VirtualClock
from bayplan.model.errors import Expired
from tests.cluster.test_world import START, Scripted


class HandClock(VirtualClock):
    """Real time in the hand of a test: not the engine but the test moves it."""


def config_map(name: str, **data: str) -> dict[str, object]:
    return {"metadata": {"name": name}, "data": data}


async def settle() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


async def until_end(watch: AsyncIterator[WatchEvent], into: list[WatchEvent]) -> None:
    async for event in watch:
        into.append(event)  # noqa: PERF401 - a comprehension would lose what came before a cancellation


def others() -> set[asyncio.Task[object]]:
    return {task for task in asyncio.all_tasks() if task is not asyncio.current_task()}


async def test_a_hundred_watchers_of_many_sorts_miss_nothing() -> None:
    """Quick and slow readers, from the beginning and from later on; twelve hundred changes in bursts."""
    cluster = EmbeddedCluster([])
    heard: list[list[WatchEvent]] = [[] for _ in range(100)]
    start = cluster.world.store.revision
    tasks = []
    for number, events in enumerate(heard):
        watch = cluster.watch(CONFIG_MAP, since=str(start), labels="" if number % 3 else "half=yes")
        tasks.append(asyncio.ensure_future(until_end(watch, events)))
    for number in range(600):
        labels = {"half": "yes"} if number % 2 else {}
        await cluster.create(CONFIG_MAP, {"metadata": {"name": f"n{number}", "labels": labels}}, "default")
        if number % 7 == 0:
            await asyncio.sleep(0)
    for number in range(600):
        await cluster.delete(CONFIG_MAP, f"n{number}", "default")
    await settle()
    for number, events in enumerate(heard):
        mine = [each for each in range(600) if number % 3 or each % 2]
        assert [(event.type, event.object.name if event.object else "") for event in events] == [
            (kind, f"n{each}") for kind in ("ADDED", "DELETED") for each in mine
        ]
    assert heard[1][0].object is heard[2][0].object  # nobody gets a copy
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def test_a_watcher_whose_changes_are_gone_is_told_when_it_comes_back() -> None:
    cluster = EmbeddedCluster([], history=5)
    watch = cluster.watch(CONFIG_MAP, "default")
    await cluster.create(CONFIG_MAP, config_map("first"), "default")
    assert (await anext(watch)).type == "ADDED"
    for number in range(30):
        await cluster.create(CONFIG_MAP, config_map(f"n{number}"), "default")
    with pytest.raises(Expired):
        await anext(watch)


async def test_a_revision_from_before_a_restart_is_expired() -> None:
    """A cluster in memory counts anew; a client that goes on from before must not be left waiting."""
    cluster = EmbeddedCluster([])
    with pytest.raises(Expired, match="Too large resource version: 1000000, current:"):
        await anext(cluster.watch(CONFIG_MAP, since="1000000"))


async def test_a_closed_or_cancelled_watch_leaves_nothing_behind() -> None:
    cluster = EmbeddedCluster([])
    for _ in range(50):
        for bookmarks, timeout in ((False, None), (True, None), (True, 5.0)):
            waiting = asyncio.ensure_future(anext(cluster.watch(POD, bookmarks=bookmarks, timeout=timeout)))
            await settle()
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
    await settle()
    assert others() == set()
    assert not any(cluster._waiting.values())


async def test_a_quiet_watch_does_not_grow_with_its_bookmarks() -> None:
    cluster = EmbeddedCluster([])
    events: list[WatchEvent] = []
    task = asyncio.ensure_future(until_end(cluster.watch(POD, bookmarks=True), events))
    await settle()
    for _ in range(30):
        await cluster.advance(60)
        await settle()
    assert [event.type for event in events] == ["BOOKMARK"] * 30
    assert [len(waiting) for waiting in cluster._waiting.values()] == [1]
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_a_busy_watch_leaves_no_sleeper_behind_at_every_change() -> None:
    clock = VirtualClock()
    cluster = EmbeddedCluster([], clock=clock)
    events: list[WatchEvent] = []
    task = asyncio.ensure_future(until_end(cluster.watch(CONFIG_MAP, timeout=86_400), events))
    for number in range(40):
        await cluster.create(CONFIG_MAP, config_map(f"n{number}"), "default")
        await settle()
    assert (len(events), len(clock._sleepers)) == (40, 1)
    await cluster.advance(86_400)
    await task


async def test_virtual_time_moves_clock_and_world_together() -> None:
    cluster = EmbeddedCluster([])
    await cluster.advance(2.5)
    assert cluster.clock.now() == cluster.world.now == START + 2.5 * SECOND
    created = await cluster.create(CONFIG_MAP, config_map("a"), "default")
    assert created.meta.creation_timestamp == "2026-01-01T00:00:02Z"


async def test_real_time_cannot_be_advanced() -> None:
    with pytest.raises(TypeError, match="real time cannot be advanced"):
        await EmbeddedCluster([], clock=SystemClock()).advance(1)


async def test_warnings_reach_whoever_asked_for_them() -> None:
    told: list[str] = []
    cluster = EmbeddedCluster([], on_warning=told.append)
    await cluster.create(CONFIG_MAP, {**config_map("a"), "colour": "red"}, "default")
    await cluster.patch(CONFIG_MAP, {"shape": "round"}, "a", "default")
    assert told == ['unknown field "colour"', 'unknown field "shape"']


def every_ten_seconds(_key: Key, _view: View, now: Instant) -> Outcome:
    return Outcome(again=Instant(now + 10 * SECOND))


async def test_run_keeps_the_world_at_the_clock() -> None:
    clock, controller = HandClock(), Scripted(every_ten_seconds)
    cluster = EmbeddedCluster([controller], clock=clock)
    running = asyncio.ensure_future(cluster.run())
    await settle()
    await cluster.create(CONFIG_MAP, config_map("a"), "default")
    await settle()
    for at in (4, 10, 25, 36):
        clock.advance_to(Instant(START + at * SECOND))
        await settle()
    assert controller.looks == [("a", 0), ("a", 10 * SECOND), ("a", 25 * SECOND), ("a", 36 * SECOND)]
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    await settle()
    assert others() == set()


async def test_run_serves_clients_while_it_has_much_to_do() -> None:
    """A world with a thousand things to look at gives way now and then; a watcher reads between them."""
    clock, controller = HandClock(), Scripted()
    cluster = EmbeddedCluster([controller], clock=clock)
    for number in range(1000):
        await cluster.create(CONFIG_MAP, config_map(f"n{number}"), "default")
    running = asyncio.ensure_future(cluster.run())
    await asyncio.sleep(0)
    assert 0 < len(controller.looks) < 1000
    for _ in range(20):
        await asyncio.sleep(0)
    assert len(controller.looks) == 1000
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_run_ends_with_what_broke_a_controller() -> None:
    def breaks(_key: Key, _view: View, _now: Instant) -> Outcome:
        raise ZeroDivisionError

    cluster = EmbeddedCluster([Scripted(breaks)], clock=HandClock())
    running = asyncio.ensure_future(cluster.run())
    await cluster.create(CONFIG_MAP, config_map("a"), "default")
    with pytest.raises(ZeroDivisionError):
        await running


async def test_run_on_the_machines_own_clock_wakes_for_a_timer() -> None:
    clock = SystemClock()
    looked = asyncio.Event()
    began = clock.now()

    def once_more(_key: Key, _view: View, now: Instant) -> Outcome:
        if now >= began + 20_000:
            looked.set()
            return Outcome()
        return Outcome(again=Instant(began + 20_000))

    cluster = EmbeddedCluster([Scripted(once_more)], clock=clock)
    running = asyncio.ensure_future(cluster.run())
    await cluster.create(CONFIG_MAP, config_map("a"), "default")
    async with asyncio.timeout(20):
        await looked.wait()
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
