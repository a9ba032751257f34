"""Pods a second from creation to bound, as a watch sees it: the whole embedded engine beside a real control plane.

Ours is all of it: admission, store, every controller, Events, and kubelets that begin to start what is bound. In
process, in virtual time, it is one thread and timed by its CPU. Over HTTP it is wall time, by the same client for the
served engine, whose kubelets go on meanwhile, and for the lab: API server, etcd and kube-scheduler with its default
parallelism and sampling; of the controllers that for ReplicaSets alone, where they make the pods; no kubelets. So
binding is all it has to do.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import aclosing, contextmanager, suppress
from pathlib import Path
from random import Random
from typing import Any

import msgspec

from bayplan.cluster.embedded.assembly import embedded_cluster
from bayplan.cluster.embedded.engine import EmbeddedCluster
from bayplan.cluster.kinds import NAMESPACE, NODE, POD, REPLICA_SET
from bayplan.cluster.lab.lab import Lab, LabOptions
from bayplan.cluster.lab.processes import free_ports
from bayplan.cluster.lab.toolchain import LabUnavailableError, Toolchain
from bayplan.cluster.live.client import Client
from benchmarks import scheduling_load
from benchmarks.measure import Effort, alone, cpu_time, most
from benchmarks.report import OURS, Line, Sort, Table
from benchmarks.serving import JSON, Target, connected, revision

NAME = "binding"
_SPACE = scheduling_load.NAMESPACE
_NODES = "/api/v1/nodes"
_PODS = f"/api/v1/namespaces/{_SPACE}/pods"
_REPLICA_SETS = f"/apis/apps/v1/namespaces/{_SPACE}/replicasets"
_BOUND = "spec.nodeName!="
"""A watcher with this selector sees a pod added when it is bound."""
_SETS = 5
_AT_ONCE = 16
_GIVE_WAY = 100
_STEP = 200
"""Looks of controllers between two moments for the watcher, as the engine has it in real time."""
_PATIENCE = 300
_AT_REST = 60
"""Virtual seconds after which nothing goes on any more."""
_QUIET = 2.0
"""Seconds without news after which a cluster is at rest."""
_SERVED, _REAL = f"{OURS} (served)", "control plane"
_LAB = LabOptions(
    controllers=False,
    kwok=False,
    service_accounts=False,
    scheduler_config={"parallelism": 16, "percentageOfNodesToScore": 0},
    apiserver_flags=("--disable-admission-plugins=TaintNodesByCondition",),  # nobody is there to take the taint away
)


class Speed(msgspec.Struct, frozen=True):
    """How fast pods were bound by a server."""

    bound: float
    """Pods a second."""
    created: float
    """Objects a second that the client created: no more can be bound."""
    busy: float
    """The share of the time in which the client had work."""
    cost: float = 0.0
    """CPU milliseconds of the server's processes for a pod."""


class _Meta(msgspec.Struct, rename="camel"):
    resource_version: str


class _Body(msgspec.Struct):
    metadata: _Meta


class _Event(msgspec.Struct):
    """As much of a watch's line as is needed here."""

    type: str
    object: _Body


def nodes_of(before: int, count: int) -> list[bytes]:
    """The nodes of the scheduling benchmark, those after the first so many."""
    return [msgspec.json.encode(each) for each in scheduling_load.cluster(count, Random("nodes"))[before:]]


def pods_of(before: int, count: int) -> list[bytes]:
    """So many pods of some 300 shapes, those after the first so many."""
    return [msgspec.json.encode(each) for each in _placeable(before + count)[before:]]


def sets_of(count: int) -> list[bytes]:
    """A few ReplicaSets of so many pods in all, each of another shape. They are spread, as all that is selected is."""
    sets: list[bytes] = []
    for number, pod in enumerate(_placeable(_SETS)):
        labels = {"set": str(number)}
        spec = {
            "replicas": (count + number) // _SETS,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod["spec"]},
        }
        sets.append(msgspec.json.encode({"metadata": {"name": f"set-{number}"}, "spec": spec}))
    return sets


def _placeable(count: int) -> list[dict[str, Any]]:
    """The pods of the scheduling benchmark, but for those that name nodes: a small cluster may have none for them."""
    steps = scheduling_load.load("interleaved", 0, 0, 2 * count).steps
    pods = [step.create for step in steps if step.create and "nodeSelector" not in step.create["spec"]]
    return pods[:count]


def _first_pod(number: int) -> bytes:
    container = {"name": "main", "image": "registry.example/first:v1"}
    return msgspec.json.encode({"metadata": {"name": f"first-{number}"}, "spec": {"containers": [container]}})


# --- in process


def in_process(nodes: int, pods: int, by_sets: bool) -> float:
    """Pods a second of CPU time. A client's are bound one by one, each before the next comes."""
    bodies = sets_of(pods) if by_sets else pods_of(0, pods)
    kind = REPLICA_SET if by_sets else POD

    async def measure() -> float:
        cluster = await _warm_cluster(nodes)
        watcher = asyncio.create_task(_see_bound(cluster, pods))
        await asyncio.sleep(0)
        with cpu_time() as span:
            for number, body in enumerate(bodies):
                await cluster.create(kind, body, _SPACE)
                while cluster.world.busy:
                    cluster.world.settle(_STEP)
                    if by_sets or not number % _GIVE_WAY:
                        await asyncio.sleep(0)
            await watcher
        return pods / span.seconds

    return asyncio.run(measure())


async def _warm_cluster(nodes: int) -> EmbeddedCluster:
    """A cluster at rest in which everything has happened once: making decoders is no part of a rate."""
    cluster = embedded_cluster()
    await cluster.create(NAMESPACE, {"metadata": {"name": _SPACE}})
    for body in nodes_of(0, nodes):
        await cluster.create(NODE, body)
    await cluster.create(POD, _first_pod(0), "default")
    await cluster.create(REPLICA_SET, sets_of(_SETS)[0], "default")
    await cluster.advance(_AT_REST)
    return cluster


async def _see_bound(cluster: EmbeddedCluster, count: int) -> None:
    async for event in cluster.watch(POD, _SPACE, fields=_BOUND):
        count -= event.type == "ADDED"
        if not count:
            return


# --- over HTTP


def grow(kubeconfig: str, before: int, nodes: int) -> None:
    """Add nodes, and wait until a pod has been placed: then the scheduler works, and has heard of them nearly all."""

    async def make() -> None:
        async with connected(kubeconfig) as client:
            if not before:
                space = msgspec.json.encode({"metadata": {"name": _SPACE}})
                await client.call("POST", "/api/v1/namespaces", body=space, media=JSON)
            await _post(client, _NODES, nodes_of(before, nodes))
            await _bind(client, _PODS, [_first_pod(nodes)], 1)

    asyncio.run(make())


def of_client(kubeconfig: str, before: int, pods: int) -> Speed:
    """Pods that a client creates: by the wall clock, from the first creation to the last binding."""

    async def measure() -> Speed:
        async with connected(kubeconfig) as client:
            return await _bind(client, _PODS, pods_of(before, pods), pods)

    return asyncio.run(measure())


def of_sets(kubeconfig: str, pods: int) -> Speed:
    """Pods that ReplicaSets make, the same way."""

    async def measure() -> Speed:
        async with connected(kubeconfig) as client:
            return await _bind(client, _REPLICA_SETS, sets_of(pods), pods)

    return asyncio.run(measure())


async def _bind(client: Client, path: str, bodies: list[bytes], pods: int) -> Speed:
    since = await revision(client)
    async with asyncio.timeout(_PATIENCE), aclosing(_bound(client, since)) as bound:
        start = time.perf_counter()
        with cpu_time() as span:
            creating = asyncio.create_task(_post(client, path, bodies))
            for _ in range(pods):
                await anext(bound)
            taken = time.perf_counter() - start
            created = await creating - start
    return Speed(pods / taken, len(bodies) / created, span.seconds / taken)


async def _bound(client: Client, since: str) -> AsyncGenerator[None]:
    """Each binding. The real server ends the watch of one who is slow to read; it goes on from where it ended."""
    while True:
        query = {"watch": "true", "fieldSelector": _BOUND, "resourceVersion": since}
        async with aclosing(client.stream(_PODS, query=query)) as pieces:
            async for line in _lines(pieces):
                event = msgspec.json.decode(line, type=_Event)
                since = event.object.metadata.resource_version
                if event.type == "ADDED":
                    yield


async def _lines(pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    rest = b""
    async for piece in pieces:
        *whole, rest = (rest + piece).split(b"\n")
        for line in whole:
            yield line


async def _post(client: Client, path: str, bodies: Iterable[bytes]) -> float:
    """Create objects, some requests at a time; when the last was there."""
    waiting = iter(bodies)

    async def post() -> None:
        for body in waiting:
            await client.call("POST", path, body=body, media=JSON)

    await asyncio.gather(*(post() for _ in range(_AT_ONCE)))
    return time.perf_counter()


def calm(kubeconfig: str) -> None:
    """Wait until nothing happens to nodes and pods any more."""

    async def wait() -> None:
        async with connected(kubeconfig) as client, asyncio.timeout(_PATIENCE):
            for path in (_NODES, _PODS):
                await _rest(client, path)

    asyncio.run(wait())


async def _rest(client: Client, path: str) -> None:
    query = {"watch": "true", "resourceVersion": await revision(client)}
    async with aclosing(client.stream(path, query=query)) as pieces:
        with suppress(TimeoutError):
            while True:
                async with asyncio.timeout(_QUIET):
                    await anext(pieces)


# --- whom it is asked of


def _counted(target: Target, pods: int, measure: Callable[..., Speed], *arguments: object) -> Speed:
    """A measurement with what it took the server's processes."""
    used = target.cpu()
    speed = alone(measure, target.kubeconfig, *arguments, pods)
    return msgspec.structs.replace(speed, cost=1000 * (target.cpu() - used) / pods)


def _grown(target: Target, sizes: Sequence[int], pods: int) -> list[Speed]:
    """A client's pods, size after size."""
    speeds = []
    for place, (before, size) in enumerate(zip((0, *sizes), sizes, strict=False)):
        alone(grow, target.kubeconfig, before, size)
        speeds.append(_counted(target, pods, of_client, place * pods))
    return speeds


@contextmanager
def _up() -> Iterator[Target]:
    """`bayplan up` without nodes and load; it ends by itself should this process be killed."""
    with tempfile.TemporaryDirectory() as folder:
        kubeconfig = str(Path(folder, "kubeconfig"))
        options = (
            "--empty",
            "--nodes",
            "0",
            "--port",
            "0",
            "--for",
            f"{2 * _PATIENCE}s",
            "--kubeconfig-out",
            kubeconfig,
        )
        command = (sys.executable, "-m", "bayplan", "up", *options)
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
            assert process.stderr is not None
            if not any(line.startswith("serving ") for line in process.stderr):
                raise RuntimeError("bayplan up did not start")
            try:
                yield Target(_SERVED, kubeconfig, "", (process.pid,))
            finally:
                process.terminate()


def served(sizes: Sequence[int], pods: int) -> list[Speed]:
    """The embedded engine, served: a client's pods, size after size, and those of ReplicaSets."""
    with _up() as target:
        speeds = _grown(target, sizes, pods)
        alone(calm, target.kubeconfig)
        return [*speeds, _counted(target, pods, of_sets)]


def real(sizes: Sequence[int], pods: int) -> list[Speed]:
    """The same in the lab, with a ReplicaSet controller at last. Raises LabUnavailableError."""
    with Lab(_LAB, name="bench") as lab:
        speeds = _grown(_target(lab), sizes, pods)
        _add_replica_sets(lab)
        alone(calm, str(lab.kubeconfig))
        return [*speeds, _counted(_target(lab), pods, of_sets)]


def _add_replica_sets(lab: Lab) -> None:
    """The controller manager with nothing else in it: its others would annotate every node, then find them all lost."""
    name, (port,) = "kube-controller-manager", free_ports(1)
    flags = (
        "--controllers=replicaset-controller,serviceaccount-token-controller",
        "--kubeconfig=controller-manager.kubeconfig",
        "--service-account-private-key-file=sa.key",
        "--use-service-account-credentials=true",  # without it the controllers may do nothing
        "--leader-elect=false",
        "--bind-address=127.0.0.1",
        f"--secure-port={port}",
        "--cert-dir=kcm",
        "--kube-api-qps=5000",
        "--kube-api-burst=10000",
    )
    lab.processes.start(name, [str(Toolchain(lab.options.kubernetes).programs()[name]), *flags])
    lab.processes.await_url(name, f"https://127.0.0.1:{port}/healthz")


def _target(lab: Lab) -> Target:
    pids = tuple(lab.processes.pid(name) for name in lab.processes.names())
    return Target(_REAL, str(lab.kubeconfig), "", pids)


def run(effort: Effort) -> Table:
    """Measure. A server grows from size to size; ReplicaSets come at the largest only."""
    *sizes, pods = effort.sizes(1_000, 5_000, 2_000)
    ours, ours_by_sets = (
        tuple(most(effort, in_process, size, pods, by_sets) for size in sizes) for by_sets in (False, True)
    )
    found = {_SERVED: served(sizes, pods)}
    notes = []
    try:
        found[_REAL] = real(sizes, pods)
    except LabUnavailableError as error:
        notes.append(f"no lab here, so no figures of the real control plane: {error.message}")

    def lines(measure: str, sort: Sort, of: Callable[[Speed], float], *, by_sets: bool = False) -> list[Line]:
        known = {
            who: (*[None] * (len(sizes) - 1), of(speeds[-1])) if by_sets else tuple(map(of, speeds[:-1]))
            for who, speeds in found.items()
        }
        return [Line(measure, who, sort, values) for who, values in known.items()]

    single, sets = f"{pods:,} pods of a client", f"{pods:,} pods of {_SETS} ReplicaSets"
    busy = ", ".join(f"{100 * speeds[-2].busy:.0f}% with {who}" for who, speeds in found.items())
    return Table(
        NAME,
        f"pods/s from creation to bound; {OURS} in process by CPU time, the others over HTTP by the wall clock",
        tuple(f"{size:,} nodes" for size in sizes),
        (
            Line(single, OURS, Sort.RATE, ours),
            *lines(single, Sort.RATE, lambda speed: speed.bound),
            Line(sets, OURS, Sort.RATE, ours_by_sets),
            *lines(sets, Sort.RATE, lambda speed: speed.bound, by_sets=True),
            *lines("the client's creations/s", Sort.RATE, lambda speed: speed.created),
            *lines("servers' CPU ms a client's pod", Sort.EACH, lambda speed: speed.cost),
            *lines("servers' CPU ms a ReplicaSet's pod", Sort.EACH, lambda speed: speed.cost, by_sets=True),
        ),
        tuple(sizes),
        (*notes, f"busy the client was, creating {_AT_ONCE} pods at a time: {busy}"),
    )
