"""A replica that led, spooled and lost its lease leads again: what another found gone meanwhile stays gone."""

from __future__ import annotations

from pathlib import Path

import pytest

from bayplan.cluster.live.reflector_core import Change
from bayplan.cluster.objects import Object
from bayplan.ledger.outlet import Outlet
from bayplan.ledger.overtaken import closed_again, follows
from bayplan.ledger.recording import Recording, When
from bayplan.ledger.rows import GpuNode, GpuPeriod, GpuPod, GpuPodsEvent, PodRoomPeriod, Rows, StreamPosition
from bayplan.ledger.spool import Spool
from bayplan.model.clock import VirtualClock
from tests.ledger.differ.lives import at, condition, container, node, pod, running
from tests.ledger.shell.memory import MemoryStore

CLUSTER = "c1"
OFFERED = {"nvidia.com/gpu": "8", "cpu": "64", "memory": "512Gi", "pods": "110"}


def told(kind: str, revision: int, second: float) -> StreamPosition:
    """How far a kind's story is told."""
    return StreamPosition(cluster=CLUSTER, kind=kind, resource_version=revision, revision=str(revision), at=at(second))


def bound(version: int, uid: str = "u1", gpus: int = 8) -> Object:
    """A pod that runs on the node."""
    ready = condition("Ready", "True", version)
    return pod(version, "Running", ready, node="a", gpus=gpus, uid=uid, containers=(container(running(1)),))


async def batch(
    recording: Recording, second: float, revision: int, *changes: Change, unseen: float | None = None
) -> Rows:
    """What changes of pods and nodes bring, with how far they tell the story."""
    rows, when = Rows(), When(at(second), None if unseen is None else at(unseen))
    for change in changes:
        recording.take(change.object.kind, [change], when, rows)
    recording.settle(at(second), rows)
    rows.add(told("pods", revision, second), told("nodes", revision, second))
    return rows


def gone(obj: Object) -> Change:
    """Nobody saw it go."""
    return Change("DELETED", obj.bare(), synthetic=True)


class Replicas:
    """A spool of one replica, and the database of both."""

    def __init__(self, folder: Path) -> None:
        self.store = MemoryStore()
        self.spool = Spool(folder / "spool", most_bytes=1 << 20)

    async def lead(self) -> Recording:
        """Go on from what the database holds."""
        return Recording(CLUSTER, await self.store.remembered(CLUSTER))

    async def replay(self) -> Rows:
        """As whoever begins a reign with a spool does."""
        outlet = Outlet(self.store, self.spool, VirtualClock())
        before = await self.store.remembered(CLUSTER)
        assert await outlet.replay()
        after = await self.store.remembered(CLUSTER)
        rows = closed_again(Recording(CLUSTER, after), before, after, outlet.told)
        await self.store.commit(rows)
        return rows


@pytest.fixture
async def replicas(tmp_path: Path) -> Replicas:
    """The first has stored a pod of version 3 on a node, and spooled version 5 of both and another pod of version 6."""
    both = Replicas(tmp_path)
    first = await both.lead()
    stored = (Change("ADDED", node(1, OFFERED)), Change("ADDED", bound(3)))
    await both.store.commit(await batch(first, 10, 10, *stored))
    later = (Change("MODIFIED", bound(5)), Change("ADDED", bound(6, "u2")), Change("ADDED", bound(7, "u3", gpus=0)))
    both.spool.append(await batch(first, 20, 20, *later))
    return both


async def test_pods_that_another_found_gone_stay_gone_with_bounds_that_hold_the_truth(replicas: Replicas) -> None:
    second = await replicas.lead()
    await replicas.store.commit(await batch(second, 60, 100, gone(bound(3)), unseen=10))
    await replicas.replay()
    guests = [row for row in replicas.store.rows(PodRoomPeriod) if row.pod_uid == "u3"]
    assert [(row.end_after, row.end_at) for row in guests] == [(at(20), at(60))]
    ends = {row.uid: (row.gone_at, row.end_after, row.end_at) for row in replicas.store.rows(GpuPod)}
    assert ends == {uid: (at(60), at(20), at(60)) for uid in ("u1", "u2")}
    kept = await replicas.store.remembered(CLUSTER)
    assert [each for each in kept.periods if isinstance(each, GpuPeriod | PodRoomPeriod)] == []
    versions = {row.resource_version for row in replicas.store.rows(GpuPodsEvent) if row.pod_uid == "u2"}
    assert 6 in versions, "what the spool saw happen is kept"


async def test_a_node_that_another_found_gone_stays_gone(replicas: Replicas) -> None:
    second = await replicas.lead()
    await replicas.store.commit(await batch(second, 60, 100, gone(bound(3)), gone(node(1, OFFERED)), unseen=10))
    first = Recording(CLUSTER, await replicas.store.remembered(CLUSTER))
    replicas.spool.append(await batch(first, 21, 21, Change("MODIFIED", node(8, OFFERED))))
    await replicas.replay()
    (found,) = replicas.store.rows(GpuNode)
    assert found.end_at == at(60)
    assert (await replicas.store.remembered(CLUSTER)).periods == ()


async def test_what_another_followed_all_the_way_needs_nothing(replicas: Replicas) -> None:
    second = await replicas.lead()
    alive = [Change("MODIFIED", bound(5)), Change("ADDED", bound(6, "u2")), Change("ADDED", bound(7, "u3", gpus=0))]
    seen_to_go = Change("DELETED", bound(30, "u2"))
    await replicas.store.commit(await batch(second, 60, 100, *alive, seen_to_go))
    assert len(await replicas.replay()) == 0
    assert [row.gone_at for row in replicas.store.rows(GpuPod)] == [None, at(60)]


async def test_a_spool_that_nobody_has_overtaken_goes_on_as_it_is(replicas: Replicas) -> None:
    assert len(await replicas.replay()) == 0
    assert [row.gone_at for row in replicas.store.rows(GpuPod)] == [None, None]


@pytest.mark.parametrize("stored", [0, 1])
async def test_a_database_that_was_set_back_says_so_until_it_is_told_what_lies_between(
    replicas: Replicas, stored: int
) -> None:
    base = {"pods": told("pods", 15, 15)}
    replicas.spool.drop(replicas.spool.size)
    for number in range(2):
        first = Recording(CLUSTER, await replicas.store.remembered(CLUSTER))
        change = Change("MODIFIED", bound(16 + number))
        replicas.spool.append(await batch(first, 20 + number, 20 + number, change), base)
    outlet = Outlet(replicas.store, replicas.spool, VirtualClock())
    before = await replicas.store.remembered(CLUSTER)
    assert not follows(before, replicas.spool.base)
    if stored:  # and then it was killed
        waiting = replicas.spool.first()
        assert waiting is not None
        waiting[0].by_type.pop(StreamPosition)
        await replicas.store.commit(waiting[0])
        assert not follows(await replicas.store.remembered(CLUSTER), replicas.spool.base)
    assert await outlet.replay(positions=False)
    after = await replicas.store.remembered(CLUSTER)
    assert after.streams == before.streams
    assert {row.resource_version for row in replicas.store.rows(GpuPod)} == {17}
