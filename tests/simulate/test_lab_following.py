"""What a run on the lab does when the lab falters: a served engine stands in the lab's place."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from bayplan.cluster.embedded.assembly import embedded_cluster
from bayplan.cluster.kinds import NAMESPACE, NODE, POD, SERVICE_ACCOUNT, Kind
from bayplan.cluster.live.cluster import LiveCluster
from bayplan.cluster.port import WatchEvent
from bayplan.cluster.served.serve import serve
from bayplan.model.clock import SystemClock
from bayplan.model.errors import Expired, Forbidden, NotFound
from bayplan.simulate import lab_run
from bayplan.simulate.eventlog import Writer
from bayplan.simulate.lab_run import LabRunError, on_lab
from bayplan.simulate.run import Order
from bayplan.simulate.scenario_file import parse_scenario
from bayplan.simulate.summary import Summary

_TEXT = """\
duration: 1m
nodes: [{name: n, count: 2, capacity: {cpu: 8, memory: 64Gi}}]
teams: [{name: t}]
vms: [{name: v, namespace: t, count: 3, cpu: 1, memory: 1Gi}]
"""


class _Stand:
    """A lab that is there already."""

    def __init__(self, kubeconfig: Path) -> None:
        self.kubeconfig = kubeconfig

    def __enter__(self) -> _Stand:
        return self

    def close(self) -> None:
        """Somebody else's."""


@pytest.fixture(autouse=True)
async def stand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[None]:
    cluster = embedded_cluster(clock=SystemClock(), seed=1)
    await cluster.create(NAMESPACE, {"metadata": {"name": "t"}})
    await cluster.create(SERVICE_ACCOUNT, {"metadata": {"name": "default"}}, "t")  # nobody makes it here
    running = asyncio.create_task(cluster.run())
    async with serve(cluster, kubeconfig_out=tmp_path / "kubeconfig") as served:
        monkeypatch.setattr(lab_run, "Lab", lambda *_, **__: _Stand(served.kubeconfig))
        yield
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def _run() -> Summary:
    scenario = parse_scenario("x.yaml", _TEXT)
    order = Order(scenario=scenario, name="x", seed=0, engine="lab", duration=scenario.duration.micros)
    return await on_lab(order, Writer(), None, stopping=lambda: False)


@pytest.mark.parametrize("kind", [pytest.param(kind, id=f"the watch of {kind.plural}") for kind in (NODE, POD)])
async def test_a_watch_whose_history_is_lost_is_taken_up_again(kind: Kind, monkeypatch: pytest.MonkeyPatch) -> None:
    watch = LiveCluster.watch_batches
    told = 0

    async def lossy(self: LiveCluster, what: Kind, *given: Any, **how: Any) -> AsyncGenerator[list[WatchEvent]]:
        nonlocal told
        async for batch in watch(self, what, *given, **how):
            yield batch
            if what is kind and any(event.object is not None for event in batch):
                told += 1
                if told == 1:
                    raise Expired("too old resource version")

    monkeypatch.setattr(LiveCluster, "watch_batches", lossy)
    summary = await _run()
    assert told > 1
    assert (summary.complete, summary.nodes, summary.created, summary.placed) == (True, 2, 3, 3)


@pytest.mark.parametrize(
    ("hidden", "error", "words"),
    [
        pytest.param([SERVICE_ACCOUNT], LabRunError, "no service account in t after 1 seconds", id="a namespace alone"),
        pytest.param([NODE], LabRunError, "nodes are not ready after 1 seconds", id="nodes that do not come up"),
        pytest.param([SERVICE_ACCOUNT, POD], Forbidden, "pods are not to be seen", id="the cause, where there is one"),
    ],
)
async def test_what_never_comes_is_not_waited_for_without_end(
    hidden: list[Kind], error: type[Exception], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    get, listed, watch = LiveCluster.get, LiveCluster.list, LiveCluster.watch_batches

    async def without_account(self: LiveCluster, kind: Kind, *given: Any, **how: Any) -> Any:
        if kind in hidden:
            raise NotFound("not yet")
        return await get(self, kind, *given, **how)

    async def without_answer(self: LiveCluster, kind: Kind, *given: Any, **how: Any) -> Any:
        if kind in hidden:
            await asyncio.Event().wait()
        return await listed(self, kind, *given, **how)

    async def without_pods(self: LiveCluster, kind: Kind, *given: Any, **how: Any) -> AsyncGenerator[list[WatchEvent]]:
        if kind is POD and kind in hidden:
            raise Forbidden("pods are not to be seen")
        async for batch in watch(self, kind, *given, **how):
            yield batch

    monkeypatch.setattr(lab_run, "_PATIENCE", 1.0)
    monkeypatch.setattr(LiveCluster, "get", without_account)
    monkeypatch.setattr(LiveCluster, "list", without_answer)
    monkeypatch.setattr(LiveCluster, "watch_batches", without_pods)
    with pytest.raises(error, match=words):
        await _run()
