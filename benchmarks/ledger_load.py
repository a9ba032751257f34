"""What the ledger is measured with: a served engine and a real API server whose pods have had many versions, and the
rows that a ledger full of snapshots grows from.

`python -m benchmarks.ledger_load KUBECONFIG PODS VERSIONS` is the engine; it ends when its standard input does.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from bayplan.cluster.embedded.engine import EmbeddedCluster
from bayplan.cluster.kinds import NODE, POD
from bayplan.cluster.objects import Object
from bayplan.cluster.port import PatchType
from bayplan.cluster.served.serve import serve
from bayplan.ledger.rows import GpuPod, PodSnapshot, Rows
from bayplan.ledger.snapshots import Packed, pack
from bayplan.model.clock import SECOND, Instant, SystemClock
from benchmarks import manifests, serving

CLUSTER = "bench"
START = Instant(1_770_000_000 * SECOND)
_ROOT = Path(__file__).parent.parent
_AT_ONCE = 16
_NODES = 500


class Source(msgspec.Struct, frozen=True):
    """A served engine: how to reach it, and the revisions before the first version and after the last."""

    kubeconfig: str
    since: int
    last: int


def version(number: int, step: int) -> bytes:
    """A pod's version: in each step readiness turns, and every second one brings a restart."""
    pod = json.loads(manifests.stored_pod(number))
    status = pod["status"]
    for condition in status["conditions"]:
        if condition["type"] == "Ready":
            condition["status"] = "False" if step % 2 else "True"
            condition["lastTransitionTime"] = f"2026-03-01T10:{step % 60:02d}:04Z"
    status["containerStatuses"][0]["restartCount"] = step // 2
    return json.dumps(pod, separators=(",", ":")).encode()


@contextmanager
def served(pods: int, versions: int) -> Iterator[Source]:
    """A served engine in which pods have had so many versions each."""
    with tempfile.TemporaryDirectory() as folder:
        kubeconfig = str(Path(folder, "kubeconfig"))
        command = (sys.executable, "-m", "benchmarks.ledger_load", kubeconfig, str(pods), str(versions))
        with subprocess.Popen(command, cwd=_ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            words = process.stdout.readline().split()
            if len(words) != 2:
                raise RuntimeError("the served engine did not start")
            yield Source(kubeconfig, int(words[0]), int(words[1]))
            process.communicate()


@contextmanager
def real(pods: int, versions: int) -> Iterator[Source]:
    """The lab's API server, in which pods have had about so many versions each. Raises LabUnavailableError."""
    with serving.real() as target:
        since, last = asyncio.run(_written(target.kubeconfig, pods, versions))
        yield Source(target.kubeconfig, since, last)


async def _written(kubeconfig: str, pods: int, versions: int) -> tuple[int, int]:
    """Create pods and patch their status, with some requests at a time."""
    async with serving.connected(kubeconfig) as client:
        since = int(await serving.revision(client))
        for step in range(versions):
            numbers = iter(range(pods))

            async def write(numbers: Iterator[int] = numbers, step: int = step) -> None:
                for number in numbers:
                    pod = json.loads(version(number, step))
                    name, status = pod["metadata"]["name"], {"status": pod["status"]}
                    if step == 0:
                        pod["metadata"] = {"name": name, "labels": pod["metadata"]["labels"]}
                        await client.call("POST", serving.PODS, body=msgspec.json.encode(pod), media=serving.JSON)
                    path = f"{serving.PODS}/{name}/status"
                    await client.call("PATCH", path, body=msgspec.json.encode(status), media=PatchType.MERGE.value)

            await asyncio.gather(*(write() for _ in range(_AT_ONCE)))
        return since, int(await serving.revision(client))


def seeds(pods: int) -> Rows:
    """A ledger's rows in which each pod has one version, numbered from 1."""
    rows = Rows()
    for number in range(pods):
        obj = Object.from_raw(POD, manifests.stored_pod(number))
        packed = pack(obj)
        rows.add(packed.blob(CLUSTER, START), _row(obj), snapshot_row(obj, number + 1, START, packed))
    return rows


def snapshot_row(obj: Object, version: int, at: Instant, packed: Packed) -> PodSnapshot:
    """A snapshot's row."""
    return PodSnapshot(
        cluster=CLUSTER,
        pod_uid=obj.uid,
        resource_version=version,
        namespace=obj.namespace,
        name=obj.name,
        observed_at=at,
        spec_hash=packed.spec_hash,
        state=packed.state,
        dictionary=packed.dictionary,
    )


def _row(obj: Object) -> GpuPod:
    return GpuPod(
        cluster=CLUSTER,
        uid=obj.uid,
        resource_version=1,
        namespace=obj.namespace,
        name=obj.name,
        created_at=START,
        updated_at=START,
    )


def _node(number: int) -> bytes:
    """A node that pods of `manifests.stored_pod` stand on."""
    metadata = {"name": f"gpu-{number:04d}", "uid": f"node-{number}", "labels": {"nvidia.com/gpu.product": "H100"}}
    amounts = {"cpu": "96", "memory": "1Ti", "nvidia.com/gpu": "16", "pods": "110"}
    return msgspec.json.encode({"metadata": metadata, "status": {"capacity": amounts, "allocatable": amounts}})


async def _serve(kubeconfig: str, pods: int, versions: int) -> None:
    cluster = EmbeddedCluster((), clock=SystemClock(), history=2 * pods * versions)
    store = cluster.world.store
    for number in range(_NODES):
        node = Object.from_raw(NODE, _node(number))
        store.put(NODE, node.meta, node.sections)
    since = store.revision
    for step in range(versions):
        for number in range(pods):
            pod = Object.from_raw(POD, version(number, step))
            store.put(POD, pod.meta, pod.sections)
    running = asyncio.create_task(cluster.run())
    last = store.revision
    async with serve(cluster, kubeconfig_out=Path(kubeconfig)):
        print(since, last, flush=True)
        await asyncio.to_thread(sys.stdin.read)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


if __name__ == "__main__":
    asyncio.run(_serve(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
