"""Pod creations a second: from JSON bytes to validated, defaulted, stored and seen by one watcher.

The world has no controllers but those named, so that creation alone is measured. The creator gives way to the watcher
every hundred pods, as a server with one busy client does.
"""

from __future__ import annotations

import asyncio
import copy
import json
from collections.abc import Awaitable, Callable, Iterable, Sequence

import msgspec

from bayplan.cluster.embedded.controllers.contract import Controller
from bayplan.cluster.embedded.controllers.replica_set import ReplicaSetController
from bayplan.cluster.embedded.engine import EmbeddedCluster
from bayplan.cluster.kinds import POD, REPLICA_SET
from bayplan.cluster.objects import Section
from bayplan.model.meta import ObjectMeta
from benchmarks import manifests
from benchmarks.measure import Effort, cpu_time, installed, missing, most
from benchmarks.report import OURS, Line, Sort, Table

NAME = "creation"
_GIVE_WAY = 100
_REPLICAS = 1_000
"""Pods of one ReplicaSet: it looks at all its pods at every look, here as upstream."""
_OFFICIAL_MOST = 1_000
"""The official client takes milliseconds for a pod and keeps nothing: larger sizes tell nothing new."""


def from_json(count: int, own_spec: bool) -> float:
    """Pods a second, each from its own bytes."""
    bodies = _bodies(count, own_spec=own_spec)

    async def create(cluster: EmbeddedCluster) -> None:
        for number, body in enumerate(bodies):
            await cluster.create(POD, body, "default")
            if not number % _GIVE_WAY:
                await asyncio.sleep(0)

    return asyncio.run(_seen(count, create))


def stamped(count: int) -> float:
    """Pods a second, stamped from one template as controllers do."""
    spec, metas = template_of(count)

    async def create(cluster: EmbeddedCluster) -> None:
        for number in range(count):
            cluster.world.server.stamp(POD, metas[number // _REPLICAS], {"spec": spec})
            if not number % _GIVE_WAY:
                await asyncio.sleep(0)

    return asyncio.run(_seen(count, create))


def template_of(count: int) -> tuple[Section, list[ObjectMeta]]:
    """A template's spec, and metadata for every thousand of its pods, as if they were of different owners."""
    pod = json.loads(manifests.sent_pod(0))
    labels = pod["metadata"]["labels"]
    prefixes = (f"trainer-{number}-" for number in range(1 + count // _REPLICAS))
    metas = [ObjectMeta(generate_name=each, namespace="default", labels=labels) for each in prefixes]
    return Section(json.dumps(pod["spec"]).encode()), metas


def by_replica_sets(count: int) -> float:
    """Pods a second, by the ReplicaSet controller: counting, Events and status included."""
    sets = -(-count // _REPLICAS)

    async def create(cluster: EmbeddedCluster) -> None:
        for number in range(sets):
            await cluster.create(REPLICA_SET, manifests.replica_set(f"set-{number}", -(-count // sets)), "default")
            while cluster.world.busy:
                cluster.world.settle(1)  # a look makes 500 pods at most
                await asyncio.sleep(0)

    return asyncio.run(_seen(count, create, [ReplicaSetController()]))


async def _seen(
    count: int, create: Callable[[EmbeddedCluster], Awaitable[None]], controllers: Sequence[Controller] = ()
) -> float:
    """The rate at which `create` makes `count` pods, until a watcher has seen them all."""
    _warm_up()
    cluster = EmbeddedCluster(controllers)
    watcher = asyncio.create_task(_watch(cluster, count))
    await asyncio.sleep(0)
    with cpu_time() as span:
        await create(cluster)
        await watcher
    return count / span.seconds


def _warm_up() -> None:
    """What a process does once, such as making decoders, is no part of a rate."""
    server = EmbeddedCluster(()).world.server
    server.create(POD, "default", manifests.sent_pod(0))
    server.create(REPLICA_SET, "default", manifests.replica_set("warm-up", 0))


async def _watch(cluster: EmbeddedCluster, count: int) -> None:
    async for event in cluster.watch(POD):
        if event.type == "ADDED":
            count -= 1
        if count <= 0:
            return


def _bodies(count: int, *, own_spec: bool) -> Iterable[bytes]:
    return [manifests.sent_pod(number, own_spec=own_spec) for number in range(count)]


def into_a_dict(count: int) -> float:
    """Pods a second when nothing is checked: the standard library's JSON into a dict. A floor of cost."""
    bodies = _bodies(count, own_spec=True)
    store = {}
    with cpu_time() as span:
        for body in bodies:
            pod = json.loads(body)
            store[(pod["metadata"]["namespace"], pod["metadata"]["name"])] = pod
    return count / span.seconds


def deep_copies(count: int) -> float:
    """Pods a second when a template is copied into a dict and named, and nothing is checked."""
    template = json.loads(manifests.sent_pod(0))
    store = {}
    with cpu_time() as span:
        for number in range(count):
            pod = copy.deepcopy(template)
            pod["metadata"]["name"] = f"trainer-{number}"
            store[("default", pod["metadata"]["name"])] = pod
    return count / span.seconds


def by_official_client(count: int) -> float:
    """Pods a second that the official client turns into its models, and nothing more."""
    from kubernetes.client import ApiClient

    bodies = _bodies(count, own_spec=True)
    client = ApiClient()
    client.deserialize(manifests.sent_pod(0).decode(), "V1Pod", "application/json")
    with cpu_time() as span:
        for body in bodies:
            client.deserialize(body.decode(), "V1Pod", "application/json")
    return count / span.seconds


def run(effort: Effort) -> Table:
    """Measure."""
    sizes = effort.sizes(1_000, 10_000, 100_000)

    def line(measure: str, who: str, function: Callable[..., float], *how: bool, goal: float | None = None) -> Line:
        return Line(measure, who, Sort.RATE, tuple(most(effort, function, size, *how) for size in sizes), goal)

    own, shared, template = "JSON, each its own spec", "JSON, one spec", "stamped from a template"
    replicas = f"by ReplicaSets of {_REPLICAS:,}"
    measurable = [size <= _OFFICIAL_MOST and installed("kubernetes") for size in sizes]
    official = tuple(
        most(effort, by_official_client, size) if can else None for size, can in zip(sizes, measurable, strict=True)
    )
    peers = (
        line(own, "json.loads into a dict", into_a_dict),
        Line(own, "kubernetes (decode)", Sort.RATE, official),
    )
    copies = line(template, "copy.deepcopy into a dict", deep_copies)
    return Table(
        NAME,
        "pods/s (of CPU time) to validated, defaulted, stored and seen by one watcher",
        tuple(f"{size:,}" for size in sizes),
        (
            line(own, OURS, from_json, True, goal=5_000),
            *peers,
            line(shared, OURS, from_json, False, goal=5_000),
            *(msgspec.structs.replace(peer, measure=shared) for peer in peers),
            line(template, OURS, stamped, goal=20_000),
            copies,
            line(replicas, OURS, by_replica_sets, goal=20_000),
            msgspec.structs.replace(copies, measure=replicas),
        ),
        sizes,
        missing("kubernetes"),
    )
