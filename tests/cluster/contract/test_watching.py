"""Contract of `watch`: each change once and in order, from any revision that is still known."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from bayplan.cluster.kinds import CONFIG_MAP, NAMESPACE, POD
from bayplan.cluster.port import Cluster, WatchEvent
from bayplan.model.errors import BadRequest, Expired, ServerError
from tests.cluster.contract.faces import Face
from tests.cluster.contract.manifests import config_map, pod

Told = list[tuple[str, str]]
_PATIENCE = 20  # seconds, so that a lost event fails a test instead of hanging it


def told(events: list[WatchEvent]) -> Told:
    return [(event.type, event.object.name if event.object else "") for event in events]


async def take(watch: AsyncIterator[WatchEvent], count: int) -> list[WatchEvent]:
    async with asyncio.timeout(_PATIENCE):
        return [await anext(watch) for _ in range(count)]


async def rest(watch: AsyncIterator[WatchEvent]) -> list[WatchEvent]:
    async with asyncio.timeout(_PATIENCE):
        return [event async for event in watch]


async def now(cluster: Cluster, home: str) -> str:
    return (await cluster.list(CONFIG_MAP, home)).revision


async def story(cluster: Cluster, home: str) -> None:
    """Five changes: a and b come, a changes, b goes, a goes."""
    await cluster.create(CONFIG_MAP, config_map("a"), home)
    await cluster.create(CONFIG_MAP, config_map("b"), home)
    await cluster.update(CONFIG_MAP, config_map("a", key="1"), "a", home)
    await cluster.delete(CONFIG_MAP, "b", home)
    await cluster.delete(CONFIG_MAP, "a", home)


STORY = [("ADDED", "a"), ("ADDED", "b"), ("MODIFIED", "a"), ("DELETED", "b"), ("DELETED", "a")]


async def test_the_present_comes_first_then_what_happens(cluster: Cluster, home: str) -> None:
    for name in ("b", "a"):
        await cluster.create(CONFIG_MAP, config_map(name), home)
    watch = cluster.watch(CONFIG_MAP, home)
    assert told(await take(watch, 2)) == [("ADDED", "a"), ("ADDED", "b")]
    await cluster.delete(CONFIG_MAP, "a", home)
    assert told(await take(watch, 1)) == [("DELETED", "a")]


async def test_what_happens_between_two_initial_events_is_not_lost(cluster: Cluster, home: str) -> None:
    for name in ("a", "b"):
        await cluster.create(CONFIG_MAP, config_map(name), home)
    watch = cluster.watch(CONFIG_MAP, home)
    await take(watch, 1)
    await cluster.update(CONFIG_MAP, config_map("a", key="1"), "a", home)
    await cluster.create(CONFIG_MAP, config_map("c"), home)
    assert told(await take(watch, 3)) == [("ADDED", "b"), ("MODIFIED", "a"), ("ADDED", "c")]


async def test_every_change_after_a_revision_once_and_in_order(cluster: Cluster, home: str) -> None:
    since = await now(cluster, home)
    await story(cluster, home)
    events = await take(cluster.watch(CONFIG_MAP, home, since=since), 5)
    assert told(events) == STORY
    versions = [int(event.revision) for event in events]
    assert versions == sorted(set(versions))
    assert all(event.object and event.object.meta.resource_version == event.revision for event in events)


@pytest.mark.parametrize("seen", range(5))
async def test_a_watch_resumes_where_another_ended(cluster: Cluster, home: str, seen: int) -> None:
    since = await now(cluster, home)
    await story(cluster, home)
    events = await take(cluster.watch(CONFIG_MAP, home, since=since), 5)
    resumed = cluster.watch(CONFIG_MAP, home, since=events[seen].revision)
    await cluster.create(CONFIG_MAP, config_map("end"), home)
    assert told(await take(resumed, 5 - seen)) == [*STORY[seen + 1 :], ("ADDED", "end")]


async def test_list_then_watch_misses_nothing(cluster: Cluster, home: str) -> None:
    await cluster.create(CONFIG_MAP, config_map("a"), home)
    page = await cluster.list(CONFIG_MAP, home)
    await cluster.create(CONFIG_MAP, config_map("b"), home)
    assert told(await take(cluster.watch(CONFIG_MAP, home, since=page.revision), 1)) == [("ADDED", "b")]


async def test_a_watch_is_of_its_namespace_and_kind(cluster: Cluster, home: str) -> None:
    await cluster.create(NAMESPACE, {"metadata": {"name": "elsewhere"}})
    since = await now(cluster, home)
    await cluster.create(CONFIG_MAP, config_map("not-here"), "elsewhere")
    await cluster.create(POD, pod("not-this"), home)
    await cluster.create(CONFIG_MAP, config_map("this"), home)
    assert told(await take(cluster.watch(CONFIG_MAP, home, since=since), 1)) == [("ADDED", "this")]
    assert told(await take(cluster.watch(CONFIG_MAP, since=since), 2)) == [("ADDED", "not-here"), ("ADDED", "this")]


async def test_a_deleted_object_is_told_as_it_last_was(cluster: Cluster, home: str) -> None:
    await cluster.create(CONFIG_MAP, config_map("a", key="last"), home)
    since = await now(cluster, home)
    await cluster.delete(CONFIG_MAP, "a", home)
    (event,) = await take(cluster.watch(CONFIG_MAP, home, since=since), 1)
    assert event.object is not None
    assert event.object.doc()["data"] == {"key": "last"}
    assert int(event.revision) > int(since)


async def test_an_object_that_comes_to_match_is_added_and_one_that_ceases_is_deleted(
    cluster: Cluster, home: str
) -> None:
    since = await now(cluster, home)
    for labels in (
        {},
        {"in": "yes"},
        {"in": "yes", "more": "1"},
        {"in": "no"},
        {"in": "no", "more": "1"},
        {"in": "yes"},
    ):
        body = config_map("a", labels)
        await (cluster.update(CONFIG_MAP, body, "a", home) if labels else cluster.create(CONFIG_MAP, body, home))
    await cluster.delete(CONFIG_MAP, "a", home)
    events = await take(cluster.watch(CONFIG_MAP, home, since=since, labels="in=yes"), 5)
    assert [event.type for event in events] == ["ADDED", "MODIFIED", "DELETED", "ADDED", "DELETED"]


async def test_an_object_that_ceases_to_match_is_told_as_it_last_matched(cluster: Cluster, home: str) -> None:
    await cluster.create(CONFIG_MAP, config_map("a", {"in": "yes"}, key="1"), home)
    since = await now(cluster, home)
    changed = await cluster.update(CONFIG_MAP, config_map("a", {"in": "no"}, key="2"), "a", home)
    (event,) = await take(cluster.watch(CONFIG_MAP, home, since=since, labels="in=yes"), 1)
    assert event.object is not None
    assert (event.object.meta.labels, event.object.doc()["data"]) == ({"in": "yes"}, {"key": "1"})
    assert event.object.meta.resource_version == event.revision == changed.meta.resource_version


async def test_fields_select_what_is_told(cluster: Cluster, home: str) -> None:
    since = await now(cluster, home)
    for name in ("a", "b"):
        await cluster.create(POD, pod(name), home)
    await cluster.bind("b", "nowhere", home)
    waiting = cluster.watch(POD, home, since=since, fields="spec.nodeName=")
    assert told(await take(waiting, 3)) == [("ADDED", "a"), ("ADDED", "b"), ("DELETED", "b")]
    assert told(await take(cluster.watch(POD, home, since=since, fields="spec.nodeName=nowhere"), 1)) == [
        ("ADDED", "b")
    ]


async def test_a_dry_run_and_a_refusal_are_not_told(cluster: Cluster, home: str) -> None:
    since = await now(cluster, home)
    await cluster.create(CONFIG_MAP, config_map("dry"), home, dry_run=True)
    with pytest.raises(BadRequest):
        await cluster.create(CONFIG_MAP, b"{", home)
    same = await cluster.create(CONFIG_MAP, config_map("a"), home)
    await cluster.update(CONFIG_MAP, same.doc(), "a", home)
    await cluster.create(CONFIG_MAP, config_map("end"), home)
    assert told(await take(cluster.watch(CONFIG_MAP, home, since=since), 2)) == [("ADDED", "a"), ("ADDED", "end")]


async def test_a_finalized_deletion_is_told_twice(cluster: Cluster, home: str) -> None:
    await cluster.create(CONFIG_MAP, {"metadata": {"name": "a", "finalizers": ["example.com/hold"]}}, home)
    since = await now(cluster, home)
    await cluster.delete(CONFIG_MAP, "a", home)
    await cluster.patch(CONFIG_MAP, {"metadata": {"finalizers": None}}, "a", home)
    events = await take(cluster.watch(CONFIG_MAP, home, since=since), 2)
    assert told(events) == [("MODIFIED", "a"), ("DELETED", "a")]


async def test_a_watcher_that_waits_is_woken(face: Face, cluster: Cluster, home: str) -> None:
    watch = cluster.watch(CONFIG_MAP, home, since=await now(cluster, home))
    waiting = asyncio.ensure_future(anext(watch))
    await face.settle()
    assert not waiting.done()
    await cluster.create(CONFIG_MAP, config_map("a"), home)
    async with asyncio.timeout(_PATIENCE):
        assert told([await waiting]) == [("ADDED", "a")]


async def test_a_watch_ends_after_its_timeout(face: Face, cluster: Cluster, home: str) -> None:
    watch = cluster.watch(CONFIG_MAP, home, since=await now(cluster, home), timeout=1)
    everything = asyncio.ensure_future(rest(watch))
    await face.settle()
    await cluster.create(CONFIG_MAP, config_map("a"), home)
    await face.settle()
    await face.pass_time(1)
    assert told(await everything) == [("ADDED", "a")]


async def test_a_bookmark_tells_how_far_the_stream_has_come(face: Face, cluster: Cluster, home: str) -> None:
    await cluster.create(NAMESPACE, {"metadata": {"name": "noisy"}})
    since = await now(cluster, home)
    watch = cluster.watch(CONFIG_MAP, home, since=since, bookmarks=True)
    waiting = asyncio.ensure_future(anext(watch))
    await face.settle()
    await cluster.create(CONFIG_MAP, config_map("elsewhere"), "noisy")
    await face.pass_time(70)
    async with asyncio.timeout(_PATIENCE):
        bookmark = await waiting
    assert (bookmark.type, bookmark.object) == ("BOOKMARK", None)
    assert int(bookmark.revision) > int(since)
    await face.compact()
    resumed = cluster.watch(CONFIG_MAP, home, since=await now(cluster, home))
    await cluster.create(CONFIG_MAP, config_map("a"), home)
    assert told(await take(resumed, 1)) == [("ADDED", "a")]


async def test_a_bookmark_never_passes_what_is_still_to_be_told(face: Face, cluster: Cluster, home: str) -> None:
    """A reader that is slow, or late for the end, resumes from the last bookmark and still hears everything."""
    seen: set[str] = set()
    since, count = await now(cluster, home), 700
    watch = cluster.watch(CONFIG_MAP, home, since=since, bookmarks=True, timeout=100)
    for number in range(count):
        await cluster.create(CONFIG_MAP, config_map(f"n{number}"), home)
        if number == 3:
            seen |= {event.object.name for event in await take(watch, 2) if event.object}
        if number == count // 2:
            await face.pass_time(70)
    await face.pass_time(70)
    for event in await rest(watch):
        since = event.revision
        if event.object:
            seen.add(event.object.name)
    if len(seen) < count:
        seen |= {
            event.object.name
            for event in await take(cluster.watch(CONFIG_MAP, home, since=since), count - len(seen))
            if event.object
        }
    assert len(seen) == count


async def test_a_compacted_revision_is_expired(face: Face, cluster: Cluster, home: str) -> None:
    since = await now(cluster, home)
    await story(cluster, home)
    await face.compact()
    with pytest.raises(Expired) as refusal:
        await take(cluster.watch(CONFIG_MAP, home, since=since), 1)
    assert (refusal.value.status, refusal.value.reason) == (410, "Expired")


async def test_after_compaction_a_new_list_leads_on(face: Face, cluster: Cluster, home: str) -> None:
    await story(cluster, home)
    await face.compact()
    watch = cluster.watch(CONFIG_MAP, home, since=await now(cluster, home))
    await cluster.create(CONFIG_MAP, config_map("z"), home)
    assert told(await take(watch, 1)) == [("ADDED", "z")]


@pytest.mark.parametrize("since", ["x", "-1", "1.5", "²", " 1", "9" * 5000])
async def test_a_revision_that_is_no_number_is_refused(cluster: Cluster, since: str) -> None:
    with pytest.raises(ServerError, match="resourceVersion: Invalid value"):
        await anext(cluster.watch(CONFIG_MAP, since=since))


async def test_many_watchers_hear_the_same(cluster: Cluster, home: str) -> None:
    since = await now(cluster, home)
    watchers = [asyncio.ensure_future(take(cluster.watch(CONFIG_MAP, home, since=since), 45)) for _ in range(50)]
    for number in range(9):
        await story(cluster, home)
        if number % 3 == 0:
            await asyncio.sleep(0)
    for events in await asyncio.gather(*watchers):
        assert told(events) == STORY * 9
