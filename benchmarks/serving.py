"""Who is asked over HTTP: the served engine in a process of its own, and the lab's API server, by the same client.

`python -m benchmarks.serving KUBECONFIG PODS` is that process. It ends when its standard input does, hence with us.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from pathlib import Path

import msgspec

from bayplan.cluster.embedded.engine import EmbeddedCluster
from bayplan.cluster.kinds import POD
from bayplan.cluster.lab.lab import Lab, LabOptions
from bayplan.cluster.lab.toolchain import LabUnavailableError
from bayplan.cluster.live.client import Client
from bayplan.cluster.live.config import find_access
from bayplan.cluster.live.wire import read_page
from bayplan.cluster.objects import Object
from bayplan.cluster.served.serve import serve
from bayplan.model.clock import SystemClock
from bayplan.model.errors import AlreadyExists
from benchmarks import manifests
from benchmarks.report import OURS

PODS = "/api/v1/namespaces/default/pods"
JSON = "application/json"
BARE = LabOptions(controllers=False, scheduler=False, kwok=False, service_accounts=False)
"""A real API server with nothing that moves by itself."""
_ROOT = Path(__file__).parent.parent


class Target(msgspec.Struct, frozen=True):
    """A running API."""

    who: str
    kubeconfig: str
    since: str
    """The revision before the first pod."""
    pids: tuple[int, ...]

    def cpu(self) -> float:
        """CPU seconds that the server's processes have used."""
        stats = [Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split() for pid in self.pids]
        return sum(int(stat[11]) + int(stat[12]) for stat in stats) / os.sysconf("SC_CLK_TCK")  # utime and stime


@contextmanager
def engine(pods: int = 0) -> Iterator[Target]:
    """The embedded engine, served; with pods of 8 KB."""
    with tempfile.TemporaryDirectory() as folder:
        kubeconfig = str(Path(folder, "kubeconfig"))
        command = (sys.executable, "-m", "benchmarks.serving", kubeconfig, str(pods))
        with subprocess.Popen(command, cwd=_ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            since = process.stdout.readline().strip()
            if not since:
                raise RuntimeError("the served engine did not start")
            yield Target(OURS, kubeconfig, since, (process.pid,))
            process.communicate()


@contextmanager
def real() -> Iterator[Target]:
    """The lab's kube-apiserver and etcd. Raises LabUnavailableError."""
    with Lab(BARE, name="bench") as lab:
        since = asyncio.run(_begin(str(lab.kubeconfig)))
        pids = tuple(lab.processes.pid(name) for name in lab.processes.names())
        yield Target("kube-apiserver", str(lab.kubeconfig), since, pids)


@contextmanager
def both() -> Iterator[tuple[list[Target], tuple[str, ...]]]:
    """The served engine and, where there is a lab, the real server; else a note that there is none."""
    with ExitStack() as stack:
        targets = [stack.enter_context(engine())]
        try:
            targets.append(stack.enter_context(real()))
        except LabUnavailableError as error:
            yield targets, (f"no lab here, so no figures of the real API server: {error.message}",)
            return
        yield targets, ()


@asynccontextmanager
async def connected(kubeconfig: str) -> AsyncIterator[Client]:
    """The live engine's HTTP client; the bytes of its answers are left to the caller."""
    client = Client(find_access(kubeconfig), clock=SystemClock())
    try:
        yield client
    finally:
        await client.close()


async def revision(client: Client) -> str:
    """Where a watch of pods begins now."""
    return read_page(POD, await client.call("GET", PODS, query={"limit": "1"}), []).revision


async def _begin(kubeconfig: str) -> str:
    async with connected(kubeconfig) as client:
        with suppress(AlreadyExists):  # the server makes it itself, a moment after it says that it is ready
            await client.call("POST", "/api/v1/namespaces", body=b'{"metadata":{"name":"default"}}', media=JSON)
        return await revision(client)


async def _serve(kubeconfig: str, pods: int) -> None:
    cluster = EmbeddedCluster((), clock=SystemClock())
    store = cluster.world.store
    since = store.revision
    for number in range(pods):
        pod = Object.from_raw(POD, manifests.stored_pod(number))
        store.put(POD, pod.meta, pod.sections)
    running = asyncio.create_task(cluster.run())
    async with serve(cluster, kubeconfig_out=Path(kubeconfig)):
        print(since, flush=True)
        await asyncio.to_thread(sys.stdin.read)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


if __name__ == "__main__":
    asyncio.run(_serve(sys.argv[1], int(sys.argv[2])))
