"""Recording a live API: the present, then changes; what cannot be read is left out; the file stands at any time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from bayplan.cluster.embedded.assembly import embedded_cluster
from bayplan.cluster.embedded.engine import EmbeddedCluster
from bayplan.cluster.kinds import NODE, POD, PRIORITY_CLASS, SERVICE, Kind
from bayplan.cluster.live.cluster import LiveCluster
from bayplan.cluster.live.config import find_access
from bayplan.cluster.live.reflector_core import Policy
from bayplan.cluster.port import Page
from bayplan.cluster.served.serve import serve
from bayplan.model.clock import SystemClock
from bayplan.model.errors import Forbidden, NotFound
from bayplan.simulate.recording.file import Recording, Writer
from bayplan.simulate.recording.recorder import Recorder
from bayplan.simulate.recording.story import story_of
from bayplan.simulate.twin.snapshot import read_snapshot
from bayplan.testing import pod
from tests.simulate.twin.clusters import gpu_node

CLOCK = SystemClock()


@pytest.fixture
async def engine() -> AsyncIterator[EmbeddedCluster]:
    cluster = embedded_cluster(clock=CLOCK, seed=1)
    await gpu_node("a").create(cluster)
    running = asyncio.create_task(cluster.run())
    yield cluster
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def _until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while True:
            if holds():
                return
            await asyncio.sleep(0.02)


async def _ended(work: asyncio.Task[None]) -> None:
    work.cancel()
    await asyncio.gather(work, return_exceptions=True)


def _pods(path: Path) -> list[tuple[str, str]]:
    entries = [each for each in Recording(path).entries() if each.object and each.object.kind is POD]
    return [(each.type, each.object.name) for each in entries if each.object and each.type != "MODIFIED"]


async def test_a_served_cluster_is_recorded(engine: EmbeddedCluster, tmp_path: Path) -> None:
    path = tmp_path / "day.rec"
    await pod("before").create(engine)
    async with (
        serve(engine, kubeconfig_out=tmp_path / "kubeconfig") as served,
        LiveCluster(find_access(served.kubeconfig)) as cluster,
    ):
        with Writer(path, served.url, CLOCK.now()) as writer:
            recorder = Recorder(cluster, writer, clock=CLOCK, stamp=CLOCK.now)
            work = asyncio.create_task(recorder.run())
            await _until(lambda: recorder.progress.synced)
            await pod("after").requests(gpu=1).create(engine)
            await _until(lambda: ("ADDED", "after") in _pods(path))
            await engine.delete(POD, "after", "default", grace=0)
            await _until(lambda: ("DELETED", "after") in _pods(path))
            await _ended(work)
            recorder.finish()
    assert _pods(path) == [("ADDED", "before"), ("ADDED", "after"), ("DELETED", "after")]
    assert not recorder.progress.lacking
    recording = Recording(path)
    story = story_of(recording.entries(), recording.began)
    assert not recording.cut
    assert {life.last.name: life.there_before for life in story.pods.values()} == {"before": True, "after": False}
    assert {item.name for item in read_snapshot(path).of(POD)} == {"before"}


class _Guarded:
    """An engine of which some kinds must not be read, and some are not there."""

    def __init__(
        self, engine: EmbeddedCluster, *, hidden: tuple[Kind, ...] = (), absent: tuple[Kind, ...] = ()
    ) -> None:
        self._engine, self._hidden, self._absent = engine, hidden, absent
        self.watch_batches = engine.watch_batches

    async def list(self, kind: Kind, namespace: str | None = None, **how: object) -> Page:
        if kind in self._hidden:
            raise Forbidden("no")
        if kind in self._absent:
            raise NotFound("no such kind")
        return await self._engine.list(kind, namespace, **how)  # type: ignore[arg-type]  # handed on as given


async def test_what_must_not_be_read_is_said_to_lack(engine: EmbeddedCluster, tmp_path: Path) -> None:
    path = tmp_path / "day.rec"
    source, kinds = _Guarded(engine, hidden=(SERVICE,), absent=(PRIORITY_CLASS,)), (NODE, POD, SERVICE, PRIORITY_CLASS)
    with Writer(path, "guarded", CLOCK.now()) as writer:
        recorder = Recorder(source, writer, clock=CLOCK, stamp=CLOCK.now, kinds=kinds, policy=Policy(refusals=1))
        work = asyncio.create_task(recorder.run())
        await _until(lambda: recorder.progress.synced)
        await _ended(work)
    assert recorder.progress.lacking == ("services",)
    (synced,) = [each for each in Recording(path).entries() if each.type == "SYNCED"]
    assert synced.lacking == ("services",)


async def test_without_pods_there_is_no_recording(engine: EmbeddedCluster, tmp_path: Path) -> None:
    with Writer(tmp_path / "day.rec", "guarded", CLOCK.now()) as writer:
        recorder = Recorder(
            _Guarded(engine, hidden=(POD,)), writer, clock=CLOCK, stamp=CLOCK.now, kinds=(NODE, POD), policy=Policy()
        )
        with pytest.raises(Forbidden):
            await recorder.run()


async def test_what_happened_while_history_was_lost_is_inferred_and_marked_as_late(
    engine: EmbeddedCluster, tmp_path: Path
) -> None:
    path = tmp_path / "day.rec"
    await pod("before").create(engine)
    quick = Policy(first_pause=0.01, longest_pause=0.05)
    with Writer(path, "engine", CLOCK.now()) as writer:
        recorder = Recorder(engine, writer, clock=CLOCK, stamp=CLOCK.now, kinds=(NODE, POD), policy=quick)
        work = asyncio.create_task(recorder.run())
        await _until(lambda: recorder.progress.synced)
        await engine.delete(POD, "before", "default", grace=0)
        for number in range(3):
            await pod(f"after-{number}").create(engine)
        engine.world.store.compact()  # before the watch could read: it gets 410 and lists anew
        await _until(lambda: len(_pods(path)) >= 5)
        await _ended(work)
        recorder.finish()
    late = {each.object.name: each.late for each in Recording(path).entries() if each.object and each.type == "ADDED"}
    assert late == {"a": False, "before": False} | {f"after-{number}": True for number in range(3)}
    assert [each.late for each in Recording(path).entries() if each.type == "DELETED"] == [True]
    found = _pods(path)
    assert found[0] == ("ADDED", "before")
    assert sorted(found[1:]) == [("ADDED", f"after-{number}") for number in range(3)] + [("DELETED", "before")]
