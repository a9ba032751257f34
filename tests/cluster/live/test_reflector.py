"""The reflector against a real API server with real faults: whatever breaks, the story is whole and told once."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator

import msgspec
import pytest

from bayplan.cluster.embedded.engine import EmbeddedCluster
from bayplan.cluster.kinds import CONFIG_MAP, NAMESPACE, SECRET
from bayplan.cluster.lab.lab import Lab
from bayplan.cluster.live import reflector
from bayplan.cluster.live.cluster import LiveCluster
from bayplan.cluster.live.config import Access, find_access
from bayplan.cluster.live.reflector import Reflector
from bayplan.cluster.live.reflector_core import Policy
from bayplan.cluster.port import Cluster
from bayplan.model.errors import Forbidden
from tests.cluster.live.following import Follower
from tests.cluster.live.proxy import Proxy, proxied

_NUMBERS = itertools.count()
QUICK = Policy(first_pause=0.05, longest_pause=0.5, refusals=100)


@pytest.fixture
async def cluster(lab: Lab) -> AsyncIterator[LiveCluster]:
    """The lab, straight."""
    async with LiveCluster.find(lab.kubeconfig) as cluster:
        yield cluster


@pytest.fixture
async def home(cluster: LiveCluster) -> str:
    return (await cluster.create(NAMESPACE, {"metadata": {"name": f"reflected-{next(_NUMBERS)}"}})).name


@pytest.fixture
async def proxy(lab: Lab) -> AsyncIterator[Proxy]:
    """The breakable way to the lab."""
    async with proxied(int(lab.url.rpartition(":")[2])) as proxy:
        yield proxy


@pytest.fixture
async def behind(lab: Lab, proxy: Proxy) -> AsyncIterator[LiveCluster]:
    """The lab, reached through the proxy."""
    async with LiveCluster(_through(find_access(lab.kubeconfig), proxy)) as cluster:
        yield cluster


def _through(access: Access, proxy: Proxy) -> Access:
    there = msgspec.structs.replace(access.cluster, server=f"https://127.0.0.1:{proxy.port}")
    return msgspec.structs.replace(access, cluster=there)


async def put(cluster: Cluster, home: str, name: str, value: str = "") -> None:
    await cluster.create(CONFIG_MAP, {"metadata": {"name": name, "labels": {"of": "test"}}, "data": {"v": value}}, home)


async def change(cluster: Cluster, home: str, name: str, value: str) -> None:
    await cluster.patch(CONFIG_MAP, {"data": {"v": value}}, name, home)


def follow(cluster: LiveCluster, home: str, policy: Policy = QUICK) -> Reflector:
    return Reflector(cluster, CONFIG_MAP, home, labels="of=test", policy=policy)


PRESENT = [("ADDED", "a"), ("ADDED", "b")]


@pytest.mark.slow
@pytest.mark.parametrize("streams", [True, False], ids=["streamed", "in pages"])
async def test_the_present_then_the_news(
    cluster: LiveCluster, home: str, streams: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reflector, "PAGE", 2)
    for name in "abc":
        await put(cluster, home, name)
    async with Reflector(cluster, CONFIG_MAP, home, labels="of=test", streams=streams) as batches:
        told = Follower(batches)
        await told.until(lambda: told.syncs == 1)
        assert told.story == [*PRESENT, ("ADDED", "c")]
        await change(cluster, home, "a", "2")
        await cluster.delete(CONFIG_MAP, "a", home)
        await told.until(lambda: len(told.story) == 5)
    assert told.story[3:] == [("MODIFIED", "a"), ("DELETED", "a")]
    assert told.data["a"] == {"v": "2"}


@pytest.mark.slow
async def test_a_cut_connection_is_taken_up_again(
    cluster: LiveCluster, behind: LiveCluster, proxy: Proxy, home: str
) -> None:
    async with follow(behind, home) as batches:
        told = Follower(batches)
        for number in range(5):
            await put(cluster, home, f"n{number}")
            await told.until(lambda: f"n{number}" in told.alive)  # noqa: B023 - awaited here
            proxy.cut()
        await put(cluster, home, "end")
        await told.until(lambda: "end" in told.alive)
    assert told.story == [("ADDED", name) for name in ("n0", "n1", "n2", "n3", "n4", "end")]
    assert told.syncs == 1


@pytest.mark.slow
async def test_what_happens_while_the_way_is_closed_is_heard_afterwards(
    cluster: LiveCluster, behind: LiveCluster, proxy: Proxy, home: str
) -> None:
    await put(cluster, home, "a")
    await put(cluster, home, "b")
    async with follow(behind, home) as batches:
        told = Follower(batches)
        await told.until(lambda: told.syncs == 1)
        await proxy.close()
        await cluster.delete(CONFIG_MAP, "a", home)
        await put(cluster, home, "a", "again")
        await cluster.delete(CONFIG_MAP, "b", home)
        await asyncio.sleep(0.3)  # let it try in vain
        await proxy.open()
        await told.until(lambda: len(told.story) == 5)
    assert told.story == [*PRESENT, ("DELETED", "a"), ("ADDED", "a"), ("DELETED", "b")]
    assert (told.inferred, told.syncs) == ([], 1)


@pytest.mark.slow
async def test_a_silent_connection_is_left(cluster: LiveCluster, behind: LiveCluster, proxy: Proxy, home: str) -> None:
    async with follow(behind, home, msgspec.structs.replace(QUICK, stall=1.5)) as batches:
        told = Follower(batches)
        await told.until(lambda: told.syncs == 1)
        proxy.freeze()
        await put(cluster, home, "a")
        await told.until(lambda: "a" in told.alive)
    assert told.story == [("ADDED", "a")]
    assert told.syncs == 1


@pytest.mark.slow
async def test_a_killed_and_restarted_server(lab: Lab, cluster: LiveCluster, home: str) -> None:
    await put(cluster, home, "a")
    async with follow(cluster, home) as batches:
        told = Follower(batches)
        await told.until(lambda: told.syncs == 1)
        await asyncio.to_thread(lab.restart_apiserver)
        await put(cluster, home, "b")
        await change(cluster, home, "a", "2")
        await cluster.delete(CONFIG_MAP, "b", home)
        await told.until(lambda: told.data.get("a") == {"v": "2"} and "b" not in told.alive)
        await put(cluster, home, "end")
        await told.until(lambda: "end" in told.alive)
    assert set(told.alive) == {"a", "end"}


@pytest.mark.slow
async def test_a_compacted_past_is_made_good_by_reading_the_present(
    lab: Lab, cluster: LiveCluster, behind: LiveCluster, proxy: Proxy, home: str
) -> None:
    """Gone, replaced under the same name, changed and new: all while the way was closed and history thrown away."""
    for name in ("changed", "gone", "kept", "replaced"):
        await put(cluster, home, name)
    async with follow(behind, home) as batches:
        told = Follower(batches)
        await told.until(lambda: told.syncs == 1)
        before = dict(told.alive)
        told.story.clear()
        await proxy.close()
        for name in ("gone", "replaced"):
            await cluster.delete(CONFIG_MAP, name, home)
        await put(cluster, home, "replaced", "again")
        await put(cluster, home, "new")
        await change(cluster, home, "changed", "2")
        await asyncio.to_thread(lab.compact)
        await proxy.open()
        await told.until(lambda: told.syncs == 2)
    assert sorted(told.story) == [
        ("ADDED", "new"),
        ("ADDED", "replaced"),
        ("DELETED", "gone"),
        ("DELETED", "replaced"),
        ("MODIFIED", "changed"),
    ]
    assert sorted(told.inferred) == ["gone", "replaced"]
    assert told.alive["replaced"] != before["replaced"]
    assert told.alive["kept"] == before["kept"]


@pytest.mark.slow
async def test_a_later_run_takes_up_where_an_earlier_one_ended(cluster: LiveCluster, home: str) -> None:
    for name in "ab":
        await put(cluster, home, name)
    async with follow(cluster, home) as batches:
        told = Follower(batches)
        await told.until(lambda: told.syncs == 1)
    known = {(home, name): (uid, "0") for name, uid in told.alive.items()}
    await cluster.delete(CONFIG_MAP, "a", home)
    async with Reflector(cluster, CONFIG_MAP, home, labels="of=test", since=told.revision, known=known) as batches:
        told = _heir(told, batches)
        await told.until(lambda: bool(told.story))
    assert (told.story, told.inferred) == ([("DELETED", "a")], [])
    async with Reflector(cluster, CONFIG_MAP, home, labels="of=test", known=known) as batches:
        told = _heir(told, batches)
        told.alive = {name: uid for (_, name), (uid, _) in known.items()}
        await told.until(lambda: told.syncs == 1)
    assert (told.story, told.inferred) == ([("MODIFIED", "b"), ("DELETED", "a")], ["a"])


def _heir(told: Follower, batches: AsyncIterator[reflector.Batch]) -> Follower:
    heir = Follower(batches)
    heir.alive = told.alive
    return heir


@pytest.mark.slow
async def test_a_slow_consumer_holds_the_server_back_and_loses_nothing(cluster: LiveCluster, home: str) -> None:
    reflecting = follow(cluster, home)
    async with reflecting as batches:
        told = Follower(batches)
        await told.until(lambda: told.syncs == 1)
        await put(cluster, home, "a")
        for number in range(40):
            await change(cluster, home, "a", f"{number} {'x' * 20_000}")
        assert reflecting._queue.qsize() <= 2
        await told.until(lambda: len(told.story) == 41)
    assert told.story == [("ADDED", "a"), *[("MODIFIED", "a")] * 40]


@pytest.mark.slow
async def test_a_missing_right_is_said_at_once(lab: Lab) -> None:
    async with (
        LiveCluster.find(lab.folder / "scheduler.kubeconfig") as cluster,
        Reflector(cluster, SECRET, "default") as batches,
    ):
        with pytest.raises(Forbidden) as refusal:
            await anext(batches)
    assert refusal.value.hint == "ask for a role that lets system:kube-scheduler watch secrets in namespace default"


async def test_every_engine_can_be_followed() -> None:
    cluster = EmbeddedCluster([])
    await put(cluster, "default", "a")
    async with Reflector(cluster, CONFIG_MAP, "default", labels="of=test", clock=cluster.clock) as batches:
        told = Follower(batches)
        await told.until(lambda: told.syncs == 1)
        await put(cluster, "default", "b")
        await told.until(lambda: "b" in told.alive)
        cluster.world.store.compact()
        await put(cluster, "default", "c")
        await told.until(lambda: "c" in told.alive)
    assert told.story == [("ADDED", "a"), ("ADDED", "b"), ("ADDED", "c")]


async def test_a_consumer_that_leaves_early_leaves_nothing_behind() -> None:
    before = asyncio.all_tasks()
    cluster = EmbeddedCluster([])
    async with Reflector(cluster, CONFIG_MAP, clock=cluster.clock) as batches:
        await anext(batches)
    assert asyncio.all_tasks() == before
