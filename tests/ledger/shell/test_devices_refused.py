"""Claims and slices that a server refuses for a while: what nodes offer and pods hold stays what it was."""

from __future__ import annotations

from typing import Any

from bayplan.cluster.embedded.engine import EmbeddedCluster
from bayplan.cluster.kinds import NODE, POD, RESOURCE_CLAIM, RESOURCE_SLICE, Kind
from bayplan.cluster.live.reflector_core import Policy
from bayplan.cluster.port import Page
from bayplan.ledger.rows import NodePeriod
from bayplan.model.errors import Forbidden
from tests.conftest import Logged
from tests.ledger.shell.memory import MemoryStore
from tests.ledger.shell.scenes import caught_up, gpu_cluster, recorded, until
from tests.ledger.shell.test_devices import DRIVER, NODE_NAME, Scene
from tests.ledger.shell.test_streams import Events

ALL = (NODE, POD, RESOURCE_CLAIM, RESOURCE_SLICE)


class Refusing:
    """A cluster that refuses some kinds for a while, from the next thing on that it would tell of them."""

    def __init__(self, cluster: EmbeddedCluster) -> None:
        self._cluster = cluster
        self.refused: tuple[Kind, ...] = ()
        self.times = 0

    def _look(self, kind: Kind) -> None:
        if kind in self.refused:
            self.times += 1
            raise Forbidden(f"{kind.plural} is forbidden")

    async def list(self, kind: Kind, namespace: str | None = None, **how: Any) -> Page:
        self._look(kind)
        return await self._cluster.list(kind, namespace, **how)

    async def watch_batches(self, kind: Kind, namespace: str | None = None, **how: Any) -> Events:
        stream = self._cluster.watch_batches(kind, namespace, **how)
        try:
            async for news in stream:
                self._look(kind)
                yield news
        finally:
            await stream.aclose()


def offers(store: MemoryStore) -> list[tuple[int, bool]]:
    """What the node offers by slices, and whether it still does."""
    return [(row.gpus, row.end_at is None) for row in store.rows(NodePeriod) if row.resource == DRIVER]


async def touched(cluster: EmbeddedCluster, number: int) -> None:
    await cluster.patch(NODE, {"metadata": {"labels": {"touched": str(number)}}}, NODE_NAME)


async def test_looks_that_fail_take_nothing_away_and_the_one_that_succeeds_tells_what_has_gone(logged: Logged) -> None:
    cluster, store = await gpu_cluster(nodes=1), MemoryStore()
    scene, source = Scene(cluster), Refusing(cluster)
    async with recorded(cluster, store, source=source, policy=Policy(refusals=0)) as recorder:
        await until(lambda: {NODE.resource, POD.resource} <= recorder.told.keys())
        for step in ("pods", "claims", "allocations", "slices"):
            await getattr(scene, step)()
        await caught_up(cluster, recorder, *ALL)
        assert offers(store) == [(2000, True)]
        devices, pod = recorder.recording.devices, scene.uids["three"]
        source.refused = (RESOURCE_CLAIM, RESOURCE_SLICE)
        await cluster.advance(61)  # a bookmark
        for look in range(1, 3):
            await until(lambda: source.times == 2 * look)  # noqa: B023 - awaited here
            await touched(cluster, look)
            await caught_up(cluster, recorder, NODE)
            assert (offers(store), devices.claimed(pod) is not None) == ([(2000, True)], True)
            await cluster.advance(601)
        await cluster.delete(RESOURCE_CLAIM, "half", "default")
        await cluster.delete(RESOURCE_SLICE, f"{NODE_NAME}-devices")
        source.refused = ()
        await cluster.advance(601)
        await caught_up(cluster, recorder, *ALL)
        await until(lambda: offers(store) == [(2000, False)])
        assert devices.claimed(pod) is None
    assert "listener failed" in {line["msg"] for line in logged()}


async def test_a_first_look_that_fails_leaves_what_an_earlier_run_knew() -> None:
    cluster, store = await gpu_cluster(nodes=1), MemoryStore()
    async with recorded(cluster, store) as recorder:
        await Scene(cluster).slices()
        await caught_up(cluster, recorder, NODE, RESOURCE_SLICE)
        await until(lambda: offers(store) == [(2000, True)])
    source = Refusing(cluster)
    source.refused = (RESOURCE_SLICE,)
    async with recorded(cluster, store, source=source) as recorder:
        await until(lambda: source.times == 1)
        for number in range(2):
            await touched(cluster, number)
            await caught_up(cluster, recorder, NODE)
        assert offers(store) == [(2000, True)]
