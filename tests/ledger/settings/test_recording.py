"""Settings of what is recorded, how and where it waits: a ledger in this process, on a served cluster and SQLite."""

from __future__ import annotations

import asyncio
import secrets
import sqlite3
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from bayplan.cluster.kinds import LEASE, POD, SERVICE
from bayplan.ledger.finalizers import FINALIZER
from bayplan.ledger.kubelet_service import NAME, NAMESPACE
from bayplan.ledger.rows import Gap, GpuPod, PodSnapshot, Rows
from bayplan.ledger.store.sql import SqlStore
from bayplan.model.errors import NotFound
from tests.ledger.process.running import World, happens, listens, served, soon, stored
from tests.ledger.settings.effects import running, sees
from tests.ledger.shell.scenes import gpu_pod

pytestmark = pytest.mark.slow


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with served(tmp_path) as one:
        yield one


class Place:
    """A database file, and settings that name it."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "ledger.db"
        self.url = f"sqlite:///{self.file}"
        self.values = {"database": self.url, "spool": str(folder / "spool"), "election": "off"}

    async def pods(self) -> list[GpuPod]:
        return await stored(self.url, GpuPod)

    def spools(self) -> list[Path]:
        return list(self.file.parent.glob("spool/*.spool"))

    def hold(self) -> sqlite3.Connection:
        """Keep everybody else from writing, until it is closed."""
        other = sqlite3.connect(self.file, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        return other


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return Place(tmp_path)


async def test_by_default_all_is_in_the_state_folder(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: Place
) -> None:
    state = tmp_path / "state" / "bayplan"
    async with running(world, monkeypatch):
        await listens(f"sqlite:///{state}/ledger.db")
        await happens(lambda: exists(world, LEASE, "bayplan-ledger", "kube-system"))
    assert (len(Place(state).spools()), place.file.exists()) == (1, False)


@sees("ledger.database", "ledger.spool", "ledger.election")
async def test_database_spool_and_no_election(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: Place
) -> None:
    async with running(world, monkeypatch, **place.values):
        await listens(place.url)
    assert not (tmp_path / "state").exists()
    assert len(place.spools()) == 1
    assert not await exists(world, LEASE, "bayplan-ledger", "kube-system")


async def exists(world: World, kind: Any, name: str, namespace: str) -> bool:
    with suppress(NotFound):
        await world.cluster.get(kind, name, namespace)
        return True
    return False


@sees("ledger.lease_namespace", "ledger.lease_name")
async def test_the_lease_is_where_it_is_said(world: World, monkeypatch: pytest.MonkeyPatch, place: Place) -> None:
    values = {"database": place.url, "lease_namespace": "default", "lease_name": "mine"}
    async with running(world, monkeypatch, **values):
        await happens(lambda: exists(world, LEASE, "mine", "default"))
    assert not await exists(world, LEASE, "bayplan-ledger", "kube-system")


@sees("ledger.cluster")
async def test_the_clusters_name(world: World, monkeypatch: pytest.MonkeyPatch, place: Place) -> None:
    async with running(world, monkeypatch, **place.values, cluster="prod"):
        await world.cluster.create(POD, gpu_pod("p"), "default")
        await happens(lambda: any_pod(place))
    assert {pod.cluster for pod in await place.pods()} == {"prod"}


async def any_pod(place: Place) -> bool:
    return bool(await place.pods())


@sees("ledger.user_label", "ledger.user_annotation", "ledger.user_creator")
@pytest.mark.parametrize(
    ("values", "user"),
    [
        pytest.param({}, "unknown", id="by default nobody is named"),
        pytest.param({"user_label": "team"}, "vision", id="a label"),
        pytest.param({"user_annotation": "owner"}, "ann", id="an annotation"),
        pytest.param({"user_creator": "on"}, "notebooks", id="the creator"),
    ],
)
async def test_users(
    world: World, monkeypatch: pytest.MonkeyPatch, place: Place, values: dict[str, str], user: str
) -> None:
    pod = gpu_pod("p")
    pod["metadata"] |= {"labels": {"team": "vision"}, "annotations": {"owner": "ann"}}
    await world.cluster.create(POD, pod, "default", manager="notebooks")
    async with running(world, monkeypatch, **place.values, **values):
        await happens(lambda: any_pod(place))
    assert [pod.user for pod in await place.pods()] == [user]


@sees("ledger.finalizers")
@pytest.mark.parametrize("on", [True, False])
async def test_finalizers(world: World, monkeypatch: pytest.MonkeyPatch, place: Place, on: bool) -> None:
    made = await world.cluster.create(POD, gpu_pod("p"), "default")

    def marked() -> bool:
        (pod,) = world.cluster.world.store.objects(POD)
        return FINALIZER in pod.meta.finalizers

    async with running(world, monkeypatch, **place.values, **({"finalizers": "on"} if on else {})):
        await happens(lambda: any_pod(place))
        if on:
            await soon(marked, "the finalizer")
            await world.cluster.delete(POD, "p", "default", grace=0, uid=made.uid)
            await soon(lambda: not list(world.cluster.world.store.objects(POD)), "the pod's end")
        else:
            assert not marked()


@sees("ledger.kubelet_service", "ledger.kubelet_ports")
async def test_the_kubelets_service_and_its_ports(world: World, monkeypatch: pytest.MonkeyPatch, place: Place) -> None:
    async with running(world, monkeypatch, **place.values):
        await listens(place.url)
    assert not await exists(world, SERVICE, NAME, NAMESPACE)
    for values, ports in (({}, [10250]), ({"kubelet_ports": "10250,10255"}, [10250, 10255])):

        async def as_said(wanted: list[int] = ports) -> bool:
            found = (await world.cluster.list(SERVICE, NAMESPACE)).items
            return [[port["port"] for port in each.doc()["spec"]["ports"]] for each in found] == [wanted]

        async with running(world, monkeypatch, **place.values, kubelet_service="on", **values):
            await happens(as_said)


@sees("ledger.batch")
async def test_a_transaction_takes_in_so_many_changes(
    world: World, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    most = {size: await _largest(world, monkeypatch, tmp_path, size) for size in ("1", "5000")}
    assert most["1"] < most["5000"]


async def _largest(world: World, monkeypatch: pytest.MonkeyPatch, folder: Path, size: str) -> int:
    """The most versions in one transaction, of eight that came one by one while the database was slow."""
    place = Place(folder / size)
    place.file.parent.mkdir()
    sizes: list[int] = []
    ready, commit = asyncio.Event(), SqlStore.commit
    ready.set()

    async def slow(self: SqlStore, rows: Rows) -> None:
        await ready.wait()
        sizes.append(len(rows.by_type.get(PodSnapshot, ())))
        await commit(self, rows)

    with monkeypatch.context() as patched:
        patched.setattr(SqlStore, "commit", slow)
        async with running(world, patched, **place.values, batch=size):
            await listens(place.url)
            ready.clear()
            for number in range(8):
                pod = gpu_pod(f"p{size}-{number}")
                pod["spec"]["schedulingGates"] = [{"name": "held"}]  # one version each
                await world.cluster.create(POD, pod, "default")
                await asyncio.sleep(0.1)  # so that each is told on its own
            ready.set()
            await happens(lambda: so_many(place, world, f"p{size}-"))
    return max(sizes)


async def so_many(place: Place, world: World, prefix: str) -> bool:
    return len([pod for pod in await place.pods() if pod.name.startswith(prefix)]) == 8


@sees("ledger.spool_mib")
@pytest.mark.parametrize(
    ("values", "drops"),
    [
        pytest.param({"spool_mib": "1"}, True, id="a full spool lets versions between first and last go"),
        pytest.param({}, False, id="the default holds all"),
    ],
)
async def test_a_spool_of_so_many_mib(
    world: World, monkeypatch: pytest.MonkeyPatch, place: Place, values: dict[str, str], drops: bool
) -> None:
    pod = gpu_pod("p")
    pod["spec"]["schedulingGates"] = [{"name": "held"}]
    async with running(world, monkeypatch, **place.values, **values, statement_timeout="100ms"):
        await listens(place.url)
        other = place.hold()
        await world.cluster.create(POD, pod, "default")
        for _ in range(30):  # each is 50 kB that cannot be compressed further
            note = {"metadata": {"annotations": {"note": secrets.token_hex(50_000)}}}
            await world.cluster.patch(POD, note, "p", "default")
            await asyncio.sleep(0.05)
        (spool,) = place.spools()
        await soon(lambda: spool.stat().st_size > 500_000, "a spool with something in it")
        size = spool.stat().st_size
        other.close()
        await happens(lambda: last_stored(world, place))
    assert (size > 1 << 20) is not drops
    kept = sorted(each.resource_version for each in await stored(place.url, PodSnapshot))
    happened = sorted(version for _, version in world.happened)
    dropped = sum(gap.dropped for gap in await stored(place.url, Gap))
    assert (kept[0], kept[-1]) == (happened[0], happened[-1])
    assert (len(kept) + dropped, dropped > 0) == (len(happened), drops)


async def last_stored(world: World, place: Place) -> bool:
    last = max(version for _, version in world.happened)
    return last in {each.resource_version for each in await stored(place.url, PodSnapshot)}


@sees("ledger.retention")
async def test_versions_between_first_and_last_are_kept_for_so_long(
    world: World, monkeypatch: pytest.MonkeyPatch, place: Place
) -> None:
    async with running(world, monkeypatch, **place.values):
        await listens(place.url)
        await world.job("first", pods=1)
        await happens(lambda: last_stored(world, place))
    before = sorted(each.resource_version for each in await stored(place.url, PodSnapshot))
    assert len(before) > 2
    for retention, kept in (("1000h", before), ("1ms", [before[0], before[-1]])):

        async def are_kept(wanted: list[int] = kept) -> bool:
            return sorted(each.resource_version for each in await stored(place.url, PodSnapshot)) == wanted

        async with running(world, monkeypatch, **place.values, retention=retention):
            await happens(are_kept)
