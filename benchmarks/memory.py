"""Bytes a pod in the store, raw bytes apart: what the engine adds to what a pod's own JSON takes.

Resident memory of a new process before and after storing the pods, divided by their number. The raw bytes that the
store holds (every distinct section once, managedFields) are taken off, since no store of whole objects can do without
them.
"""

from __future__ import annotations

import gc
import json
from collections.abc import Callable

from bayplan.cluster.embedded.engine import EmbeddedCluster
from bayplan.cluster.embedded.store import Store
from bayplan.cluster.kinds import POD
from bayplan.cluster.objects import Object
from benchmarks import manifests
from benchmarks.creation import template_of
from benchmarks.measure import Effort, installed, least, missing, resident
from benchmarks.report import OURS, Line, Sort, Table

NAME = "memory"
_PEER_MOST = 10_000
"""The peers take 50 KB a pod and more: at 100,000 that is more than many a machine has."""


def stored(count: int) -> float:
    """Pods of 8 KB with status and managedFields, as a copy of a real cluster holds them."""
    cluster = EmbeddedCluster(())
    store = cluster.world.store
    before = _settled()
    for number in range(count):
        pod = Object.from_raw(POD, manifests.stored_pod(number))
        store.put(POD, pod.meta, pod.sections)
    return (_settled() - before - _raw_bytes(store)) / count


def created(count: int) -> float:
    """Pods of 1.5 KB from JSON, each its own spec."""
    cluster = EmbeddedCluster(())
    server = cluster.world.server
    server.create(POD, "default", manifests.sent_pod(count))
    before = _settled() - _raw_bytes(server.store)
    for number in range(count):
        server.create(POD, "default", manifests.sent_pod(number))
    return (_settled() - before - _raw_bytes(server.store)) / count


def stamped(count: int) -> float:
    """Pods stamped from one template."""
    cluster = EmbeddedCluster(())
    server = cluster.world.server
    spec, metas = template_of(count)
    server.stamp(POD, metas[-1], {"spec": spec})
    before = _settled()
    for number in range(count):
        server.stamp(POD, metas[number // 1_000], {"spec": spec})
    return (_settled() - before) / count


def as_dicts(count: int) -> float:
    """The pods of `stored` as json.loads gives them."""
    before = _settled()
    pods = [json.loads(manifests.stored_pod(number)) for number in range(count)]
    return (_settled() - before) / len(pods)


def as_official_models(count: int) -> float:
    """The pods of `stored` as the official client's models."""
    from kubernetes.client import ApiClient

    client = ApiClient()
    client.deserialize(manifests.stored_pod(count).decode(), "V1Pod", "application/json")
    before = _settled()
    pods = [
        client.deserialize(manifests.stored_pod(number).decode(), "V1Pod", "application/json")
        for number in range(count)
    ]
    return (_settled() - before) / len(pods)


def _settled() -> int:
    gc.collect()
    return resident()


def _raw_bytes(store: Store) -> int:
    """Every section's bytes once, however many pods share it, and managedFields."""
    pods = [*store.objects(POD)]
    sections = {id(section): len(section.raw) for pod in pods for section in pod.sections.values()}
    return sum(sections.values()) + sum(len(bytes(pod.meta.managed_fields)) for pod in pods)


def run(effort: Effort) -> Table:
    """Measure. Memory does not vary with the machine's load: once is enough."""
    once = Effort(effort.scale, 1)
    sizes = once.sizes(1_000, 10_000, 100_000)

    def line(measure: str, who: str, function: Callable[[int], float], goal: float | None = None) -> Line:
        return Line(measure, who, Sort.EACH, tuple(least(once, function, size) for size in sizes), goal)

    def peer(who: str, function: Callable[[int], float], *, there: bool = True) -> Line:
        values = (least(once, function, size) if size <= _PEER_MOST and there else None for size in sizes)
        return Line(big, who, Sort.EACH, tuple(values))

    big = "8 KB pods, raw bytes apart"
    return Table(
        NAME,
        "bytes a pod",
        tuple(f"{size:,}" for size in sizes),
        (
            line(big, OURS, stored, goal=4096),
            peer("json.loads", as_dicts),
            peer("kubernetes", as_official_models, there=installed("kubernetes")),
            line("1.5 KB pods created, raw bytes apart", OURS, created),
            line("pods of one template, all in all", OURS, stamped),
        ),
        sizes,
        missing("kubernetes"),
    )
