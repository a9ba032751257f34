"""A server that does not say how far it is: the stream goes on, what it tells is late, and it is asked again."""

from __future__ import annotations

from typing import Any

import pytest

from bayplan.cluster.embedded.engine import EmbeddedCluster
from bayplan.cluster.kinds import POD, Kind
from bayplan.cluster.live.reflector import Batch
from bayplan.cluster.port import Page
from bayplan.ledger.lateness import Lateness
from bayplan.ledger.rows import GpuPod
from bayplan.model.clock import Instant, seconds
from bayplan.model.errors import BayplanError, Forbidden, NotFound
from tests.ledger.shell.memory import MemoryStore
from tests.ledger.shell.scenes import caught_up, gpu_cluster, gpu_pod, recorded
from tests.ledger.shell.test_streams import Events


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        pytest.param([100], [(0, True), (100, False), (100, False)], id="who is told is late until then"),
        pytest.param(
            [None, 100], [(0, True), (51, True), (100, False)], id="who is not told is late, and asks once more"
        ),
        pytest.param([None, None, None], [(0, True), (51, True), (121, True)], id="and so on"),
    ],
)
def test_what_is_told_late(answers: list[int | None], expected: list[tuple[int, bool]]) -> None:
    lateness, now, found, told = Lateness(), Instant(seconds(10)), [], iter(answers)
    for revision, hold in ((5, 1.5), (50, 0), (120, 0)):
        batch = Batch((), str(revision))
        marked = lateness.marked(batch, now)
        now = Instant(now + seconds(hold))
        asks = lateness.handed_on(batch, now)
        if asks:
            lateness.is_behind(next(told), now)
        found.append((marked.behind, asks))
    assert found == expected


class Silent:
    """A cluster that does not say how far it is."""

    def __init__(self, cluster: EmbeddedCluster, error: BayplanError) -> None:
        self._cluster, self._error = cluster, error
        self.asked = 0

    async def list(self, kind: Kind, namespace: str | None = None, **how: Any) -> Page:
        if how.get("limit") == 1:
            self.asked += 1
            raise self._error
        return await self._cluster.list(kind, namespace, **how)

    def watch_batches(self, kind: Kind, namespace: str | None = None, **how: Any) -> Events:
        return self._cluster.watch_batches(kind, namespace, **how)


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(Forbidden("pods is forbidden"), id="it knows no roles yet"),
        pytest.param(NotFound("the server could not find the requested resource"), id="it knows no kinds yet"),
    ],
)
async def test_the_stream_goes_on(error: BayplanError, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Lateness, "handed_on", lambda *_: True)
    cluster, store = await gpu_cluster(), MemoryStore()
    source = Silent(cluster, error)
    async with recorded(cluster, store, source=source) as recorder:
        for name in ("one", "two"):
            await cluster.create(POD, gpu_pod(name), "default")
            await cluster.advance(5)
            await caught_up(cluster, recorder, POD)
    assert [row.phase for row in store.rows(GpuPod)] == ["Running", "Running"]
    assert source.asked > 1
