"""Two replicas on one database: the leader records, its death is bridged, and nothing is written twice."""

from __future__ import annotations

import asyncio

from bayplan.cluster.embedded.engine import EmbeddedCluster
from bayplan.cluster.embedded.store import Change
from bayplan.cluster.kinds import JOB, NODE, POD
from bayplan.cluster.leases import Election, Place
from bayplan.ledger.outlet import Outlet
from bayplan.ledger.recorder import Recorder
from bayplan.ledger.recording import Recording
from bayplan.ledger.rows import Gap, PodSnapshot, Rows
from bayplan.model.clock import SECOND
from bayplan.model.errors import ServerError
from tests.ledger.shell.memory import MemoryStore
from tests.ledger.shell.scenes import CLUSTER, gpu_cluster, gpu_job, kinds_of, until


class Replica:
    """A process with a store of its own view: who wrote when is noted."""

    def __init__(self, cluster: EmbeddedCluster, store: MemoryStore, name: str) -> None:
        self.cluster, self.store = cluster, store
        self.cut = False
        self.commits = 0
        self.recorder: Recorder | None = None
        place = Place("kube-system", "bayplan-ledger")
        self.election = Election(self, place, name, clock=cluster.clock)  # type: ignore[arg-type]  # what it needs
        self.task = asyncio.create_task(self.election.run(self._reign))

    def __getattr__(self, name: str) -> object:
        if self.cut:
            raise ServerError("no route")
        return getattr(self.cluster, name)

    async def commit(self, rows: Rows) -> None:
        assert self.election.holds()
        self.commits += 1
        await self.store.commit(rows)

    async def _reign(self) -> None:
        kept, clock = await self.store.remembered(CLUSTER), self.cluster.clock
        outlet = Outlet(self, None, clock, may_write=self.election.holds)  # type: ignore[arg-type]  # commits only
        recording = Recording(CLUSTER, kept)
        self.recorder = Recorder(self.cluster, recording, outlet, kept, clock=clock, find_kind=kinds_of(self.cluster))
        await self.recorder.run()


async def _steps(cluster: EmbeddedCluster, first: int, count: int, *replicas: Replica) -> None:
    for step in range(first, first + count):
        await cluster.create(JOB, gpu_job(f"job{step}", 2), "default")
        for _ in range(4):
            await cluster.advance(1)
            await asyncio.sleep(0.01)
            assert sum(each.election.holds() for each in replicas) <= 1


async def _told(cluster: EmbeddedCluster, recorder: Recorder) -> None:
    for kind in (POD, JOB):
        changes = cluster.world.store.log(kind)
        (last,) = changes.read(changes.end - 1, 1)
        version = last.new.version
        await until(lambda: recorder.told.get(kind.resource, 0) >= version)  # noqa: B023 - awaited here


async def test_a_killed_leader_is_followed_by_the_other_without_loss_or_double_writes() -> None:
    cluster, store = await gpu_cluster(), MemoryStore()
    happened: list[tuple[str, int]] = []

    def note(change: Change) -> None:
        if change.new.kind == POD:
            happened.append((change.new.uid, change.new.version))

    cluster.world.store.listeners.append(note)
    one = Replica(cluster, store, "one")
    await until(lambda: one.recorder is not None and {NODE.resource, POD.resource} <= one.recorder.told.keys())
    two = Replica(cluster, store, "two")
    await _steps(cluster, 0, 3, one, two)
    assert two.commits == 0
    one.cut = True  # its lease runs out; it must stop by itself
    died = cluster.clock.now()
    await _steps(cluster, 3, 5, one, two)
    assert two.election.holds()
    assert cluster.clock.now() - died <= 20 * SECOND
    before = one.commits
    await _steps(cluster, 8, 2, one, two)
    await cluster.advance(200)
    assert two.recorder is not None
    await _told(cluster, two.recorder)
    assert one.commits == before
    for each in (one, two):
        each.task.cancel()
    await asyncio.gather(one.task, two.task, return_exceptions=True)

    found = [(each.pod_uid, each.resource_version) for each in store.rows(PodSnapshot)]
    assert sorted(found) == sorted(happened)
    assert store.rows(Gap) == []
