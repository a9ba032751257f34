"""The loss of an API is noticed by the watches, while nobody calls; and so is its return."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bayplan.cluster.embedded.assembly import embedded_cluster
from bayplan.cluster.live.cluster import LiveCluster
from bayplan.cluster.served.serve import serve
from bayplan.model.clock import SystemClock
from bayplan.simulate.vms import VM, Exporter, ExporterState, Node, PodManager
from tests.simulate.vms.conftest import Flaky


class Door:
    """A way to the embedded engine over HTTP that can be shut, and opened again at the same port."""

    def __init__(self, folder: Path) -> None:
        self.kubeconfig = folder / "kubeconfig"
        self._loop = asyncio.new_event_loop()
        self._ends: set[asyncio.StreamWriter] = set()
        self._ready, self._end = threading.Event(), asyncio.Event()
        self._thread = threading.Thread(target=self._loop.run_until_complete, args=(self._main(),))
        self._thread.start()
        assert self._ready.wait(60)

    async def _main(self) -> None:
        cluster = embedded_cluster(clock=SystemClock(), seed=1)
        running = asyncio.create_task(cluster.run())
        async with serve(cluster, kubeconfig_out=self.kubeconfig) as served:
            self._behind = int(served.url.rpartition(":")[2])
            self._server = await asyncio.start_server(self._pass, "127.0.0.1", 0)
            self._port = self._server.sockets[0].getsockname()[1]
            text = self.kubeconfig.read_text().replace(str(self._behind), str(self._port))
            self.kubeconfig.write_text(text)
            self._ready.set()
            await self._end.wait()
            await self._shut()
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection("127.0.0.1", self._behind)
        self._ends |= {writer, back}
        await asyncio.gather(self._pump(reader, back), self._pump(there, writer), return_exceptions=True)

    async def _pump(self, source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        while data := await source.read(1 << 16):
            target.write(data)
            await target.drain()
        target.close()

    async def _shut(self) -> None:
        self._server.close()
        for each in self._ends:
            each.transport.abort()
        self._ends.clear()

    async def _open(self) -> None:
        self._server = await asyncio.start_server(self._pass, "127.0.0.1", self._port)

    def shut(self) -> None:
        asyncio.run_coroutine_threadsafe(self._shut(), self._loop).result()

    def open(self) -> None:
        asyncio.run_coroutine_threadsafe(self._open(), self._loop).result()

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._end.set)
        self._thread.join()
        self._loop.close()


@pytest.fixture
def door(tmp_path: Path) -> Iterator[Door]:
    found = Door(tmp_path)
    yield found
    found.close()


def settled(holds: Callable[[], object]) -> bool:
    for _ in range(1500):
        if holds():
            return True
        time.sleep(0.02)
    return False


def test_the_loss_of_an_api_is_noticed_while_nobody_calls(door: Door) -> None:
    with PodManager("default", LiveCluster.find(door.kubeconfig), furnish=True, probe_every=0.05) as pods:
        state = ExporterState(pods)
        assert state.load_scenario([Node("n-1", [VM("vm-1", 0.1, 0.1)])])["scheduled"] == 1
        back = threading.Event()
        pods.on_return.append(back.set)
        health = asyncio.run(Exporter(state)._health(None))  # type: ignore[arg-type]  # it asks for nothing of it
        assert (health["status"], health["reachable"]) == ("ok", True)

        door.shut()
        assert settled(lambda: pods.away)
        health = asyncio.run(Exporter(state)._health(None))  # type: ignore[arg-type]  # as above
        assert (health["status"], health["reachable"]) == ("degraded", False)

        door.open()
        assert back.wait(60)
        assert not pods.away
        assert pods.get_pod_node_assignment("vm-1") == "n-1"


@pytest.mark.parametrize(
    "gone",
    [
        pytest.param(False, id="while the API answers it was the connection only"),
        pytest.param(True, id="while it does not the API is away"),
    ],
)
def test_of_a_watch_that_breaks_the_api_is_asked(flaky: Flaky, gone: bool) -> None:
    with PodManager(backend=flaky, probe_every=60) as pods:
        flaky.gone = gone

        async def broken() -> None:
            pods._placing.ground.on_break()
            pods._placing.ground.on_break()  # all watches break together
            assert pods._asking is not None
            await pods._asking

        pods._thread.call(broken())
        assert pods.away is gone
