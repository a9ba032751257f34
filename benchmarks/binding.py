"""Pods a second from creation to bound, as a watch sees it: the whole embedded engine beside a real control plane.

Ours is all of it: admission, store, every controller, Events, and kubelets that begin to start what is bound. In
process, in virtual time, it is one thread and timed by its CPU. Over HTTP it is wall time, by the same client for the
served engine, whose kubelets go on meanwhile, and for the lab: API server, etcd and kube-scheduler with its default
parallelism and sampling; kube-controller-manager only where ReplicaSets make the pods; no kubelets, so that binding is
all it has to do.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import aclosing, suppress
from random import Random
from typing import Any

import msgspec

from bayplan.cluster.embedded.assembly import embedded_cluster
from bayplan.cluster.embedded.engine import EmbeddedCluster
from bayplan.cluster.kinds import NAMESPACE, NODE, POD, REPLICA_SET
from bayplan.cluster.lab.lab import Lab, LabOptions
from bayplan.cluster.lab.toolchain import LabUnavailableError
from bayplan.cluster.live.client import Client
from benchmarks import scheduling_load
from benchmarks.measure import Effort, alone, cpu_time, most
from benchmarks.report import OURS, Line, Sort, Table
from benchmarks.serving import JSON, Target, connected, engine, revision

NAME = "binding"
_SPACE = scheduling_load.NAMESPACE
_PODS = f"/api/v1/namespaces/{_SPACE}/pods"
_SETS = f"/apis/apps/v1/namespaces/{_SPACE}/replicasets"
_BOUND = "spec.nodeName!="
"""A watcher with this selector sees a pod added when it is bound."""
_SETS_AT_ONCE = 5
_AT_ONCE = 16
_GIVE_WAY = 100
_STEP = 200
"""Looks of controllers between two moments for the watcher, as the engine has it in real time."""
_PATIENCE = 300
_QUIET = 2.0
"""Seconds without news after which a cluster is at rest. After 50 s the nodes would count as lost: none tells of it."""
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


Pair = tuple[Speed, Speed]
"""A client's pods, and those of ReplicaSets."""


def nodes_of(count: int) -> list[bytes]:
    """The nodes of the scheduling benchmark."""
    return [msgspec.json.encode(each) for each in scheduling_load.cluster(count, Random("nodes"))]


def pods_of(count: int) -> list[bytes]:
    """Pods of many shapes in random order, but for those that name nodes: a small cluster may have none for them."""
    return [msgspec.json.encode(each) for each in _placeable(count)]


def sets_of(count: int) -> list[bytes]:
    """A few ReplicaSets of so many pods in all, each of another shape. They are spread, as all that is selected is."""
    sets: list[bytes] = []
    for number, pod in enumerate(_placeable(_SETS_AT_ONCE)):
        labels = {"set": str(number)}
        spec = {
            "replicas": (count + number) // _SETS_AT_ONCE,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod["spec"]},
        }
        sets.append(msgspec.json.encode({"metadata": {"name": f"set-{number}"}, "spec": spec}))
    return sets


def _placeable(count: int) -> list[dict[str, Any]]:
    steps = scheduling_load.load("interleaved", 0, 0, 2 * count).steps
    pods = [step.create for step in steps if step.create and "nodeSelector" not in step.create["spec"]]
    assert len(pods) >= count
    return pods[:count]


# --- in process


def in_process(nodes: int, pods: int, by_sets: bool) -> float:
    """Pods a second of CPU time. A client's are bound one by one, each before the next comes."""
    bodies = sets_of(pods) if by_sets else pods_of(pods)
    kind = REPLICA_SET if by_sets else POD

    async def measure() -> float:
        cluster = embedded_cluster()
        await cluster.create(NAMESPACE, {"metadata": {"name": _SPACE}})
        for body in nodes_of(nodes):
            await cluster.create(NODE, body)
        await cluster.advance(1)
        watcher = asyncio.create_task(_see_bound(cluster, pods))
        await asyncio.sleep(0)
        with cpu_time() as span:
            for number, body in enumerate(bodies):
                await cluster.create(kind, body, _SPACE)
                while cluster.world.settle(_STEP) == _STEP:
                    await asyncio.sleep(0)
                if not number % _GIVE_WAY:
                    await asyncio.sleep(0)
            await watcher
        return pods / span.seconds

    return asyncio.run(measure())


async def _see_bound(cluster: EmbeddedCluster, count: int) -> None:
    async for event in cluster.watch(POD, _SPACE, fields=_BOUND):
        count -= event.type == "ADDED"
        if not count:
            return


# --- over HTTP


def prepare(kubeconfig: str, nodes: int) -> None:
    """Make the cluster, and wait until its scheduler has placed a pod: that it knows the nodes."""

    async def make() -> None:
        async with connected(kubeconfig) as client:
            space = msgspec.json.encode({"metadata": {"name": _SPACE}})
            await client.call("POST", "/api/v1/namespaces", body=space, media=JSON)
            await _post(client, "/api/v1/nodes", nodes_of(nodes))
            await _bind(client, _PODS, [_first_pod()], 1)

    asyncio.run(make())


def over_http(kubeconfig: str, pods: int, by_sets: bool) -> Speed:
    """Pods a second by the wall clock, from the first creation to the last binding."""

    async def measure() -> Speed:
        async with connected(kubeconfig) as client:
            return await _bind(client, *((_SETS, sets_of(pods)) if by_sets else (_PODS, pods_of(pods))), pods)

    return asyncio.run(measure())


async def _bind(client: Client, path: str, bodies: list[bytes], pods: int) -> Speed:
    query = {"watch": "true", "fieldSelector": _BOUND, "resourceVersion": await revision(client)}
    async with asyncio.timeout(_PATIENCE), aclosing(client.stream(_PODS, query=query)) as pieces:
        start = time.perf_counter()
        with cpu_time() as span:
            creating = asyncio.create_task(_post(client, path, bodies))
            left = pods
            async for line in _lines(pieces):
                left -= line.startswith(b'{"type":"ADDED"')
                if not left:
                    break
            taken = time.perf_counter() - start
            created = await creating - start
    return Speed(pods / taken, len(bodies) / created, span.seconds / taken)


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


def _first_pod() -> bytes:
    container = {"name": "main", "image": "registry.example/first:v1"}
    return msgspec.json.encode({"metadata": {"name": "first"}, "spec": {"containers": [container]}})


async def _rest(client: Client, path: str) -> None:
    query = {"watch": "true", "resourceVersion": await revision(client)}
    async with aclosing(client.stream(path, query=query)) as pieces:
        with suppress(TimeoutError):
            while True:
                async with asyncio.timeout(_QUIET):
                    await anext(pieces)


def calm(kubeconfig: str) -> None:
    """Wait until nothing happens to nodes and pods any more."""

    async def wait() -> None:
        async with connected(kubeconfig) as client, asyncio.timeout(_PATIENCE):
            for path in ("/api/v1/nodes", _PODS):
                await _rest(client, path)

    asyncio.run(wait())


# --- whom it is asked of


def bound_by(target: Target, pods: int, by_sets: bool) -> Speed:
    """How fast a server is, and what it takes."""
    used = target.cpu()
    speed = alone(over_http, target.kubeconfig, pods, by_sets)
    return msgspec.structs.replace(speed, cost=1000 * (target.cpu() - used) / pods)


def served(nodes: int, pods: int) -> Pair:
    """The embedded engine in a process of its own: a client's pods, then those of ReplicaSets."""
    with engine(whole=True) as target:
        alone(prepare, target.kubeconfig, nodes)
        single = bound_by(target, pods, False)
        alone(calm, target.kubeconfig)
        return single, bound_by(target, pods, True)


def real(nodes: int, pods: int) -> Pair:
    """The same in the lab, where the controller manager comes in between. Raises LabUnavailableError."""
    with Lab(_LAB, name="bench") as lab:
        alone(prepare, str(lab.kubeconfig), nodes)
        single = bound_by(_target(lab), pods, False)
        lab.options = msgspec.structs.replace(lab.options, controllers=True, scheduler=False)
        lab.start_controllers()
        alone(calm, str(lab.kubeconfig))
        return single, bound_by(_target(lab), pods, True)


def _target(lab: Lab) -> Target:
    pids = tuple(lab.processes.pid(name) for name in lab.processes.names())
    return Target(_REAL, str(lab.kubeconfig), "", pids)


def run(effort: Effort) -> Table:
    """Measure."""
    *sizes, pods = effort.sizes(1_000, 5_000, 2_000)
    rates = [[most(effort, in_process, size, pods, by_sets) for size in sizes] for by_sets in (False, True)]
    found: dict[str, list[Pair]] = {_SERVED: [served(size, pods) for size in sizes]}
    notes = []
    try:
        found[_REAL] = [real(size, pods) for size in sizes]
    except LabUnavailableError as error:
        notes.append(f"no lab here, so no figures of the real control plane: {error.message}")
    lines: list[Line] = []
    for place, measure in enumerate((f"{pods:,} pods of a client", f"{pods:,} pods of {_SETS_AT_ONCE} ReplicaSets")):
        lines.append(Line(f"{measure}, bound/s", OURS, Sort.RATE, tuple(rates[place])))
        lines += _lines_of(f"{measure}, bound/s", Sort.RATE, found, lambda pair, place=place: pair[place].bound)
    lines += _lines_of("the client's creations/s", Sort.RATE, found, lambda pair: pair[0].created)
    lines += _lines_of("servers' CPU ms a client's pod", Sort.EACH, found, lambda pair: pair[0].cost)
    lines += _lines_of("servers' CPU ms a ReplicaSet's pod", Sort.EACH, found, lambda pair: pair[1].cost)
    busy = ", ".join(f"{100 * pairs[-1][0].busy:.0f}% with {who}" for who, pairs in found.items())
    notes.append(f"busy the client was, {_AT_ONCE} requests at a time: {busy}")
    columns = tuple(f"{size:,} nodes" for size in sizes)
    title = f"from creation to bound; {OURS} in process by CPU time, the others over HTTP by the wall clock"
    return Table(NAME, title, columns, tuple(lines), tuple(sizes), tuple(notes))


def _lines_of(measure: str, sort: Sort, found: dict[str, list[Pair]], of: Callable[[Pair], float]) -> list[Line]:
    return [Line(measure, who, sort, tuple(of(pair) for pair in pairs)) for who, pairs in found.items()]
