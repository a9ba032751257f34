"""Following 5,000 pods of 8 KB: CPU and memory of our reflector beside the official client's informer.

Each follower is a process of its own and reads from the served engine. `synced`: until every pod is known, ours kept in
a dict as an informer keeps its own; `handed on` is the reflector alone, which has an index only. `watched`: as many
events of a watch, from before the first pod, nothing kept.
"""

from __future__ import annotations

import asyncio
import gc
import importlib
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import msgspec

from bayplan.cluster.kinds import POD
from bayplan.cluster.live.cluster import LiveCluster
from bayplan.cluster.live.reflector import Reflector
from bayplan.cluster.objects import Object
from benchmarks.measure import Effort, cpu_time, forget_peak, installed, missing, peak, repeated, resident
from benchmarks.report import OURS, Line, Sort, Table
from benchmarks.serving import engine

NAME = "reflector"
_MB = 1_000_000
_HANDED_ON = f"{OURS} (handed on)"


class Figures(msgspec.Struct):
    """CPU seconds, and MB of growth: at the highest, and at the end."""

    seconds: float = 0.0
    peak: float = 0.0
    held: float = 0.0


@contextmanager
def _measured() -> Iterator[Figures]:
    figures = Figures()
    gc.collect()
    forget_peak()
    before = resident()
    with cpu_time() as span:
        yield figures
    figures.seconds, figures.peak = span.seconds, (peak() - before) / _MB
    gc.collect()
    figures.held = (resident() - before) / _MB


def ours(kubeconfig: str, since: str, count: int, keep: bool) -> Figures:
    """Our reflector, from the present or from `since`, until it has told so many changes."""
    kept: dict[tuple[str, str], Object] = {}

    async def follow(left: int, cluster: LiveCluster) -> None:
        async with Reflector(cluster, POD, since=since) as batches:
            async for batch in batches:
                left -= len(batch.changes)
                if keep:
                    kept.update(((each.object.namespace, each.object.name), each.object) for each in batch.changes)
                if left <= 0:
                    return

    async def measure() -> Figures:
        async with LiveCluster.find(kubeconfig) as cluster:
            await cluster.list(POD, limit=1)  # connects
            with _measured() as figures:
                await follow(count, cluster)
            return figures

    return asyncio.run(measure())


def official(kubeconfig: str, since: str, count: int, _keep: bool) -> Figures:
    """The official client: its SharedInformer for the present, its Watch from `since`."""
    client, config, informers, watch = (
        importlib.import_module(f"kubernetes.{part}") for part in ("client", "config", "informer", "watch")
    )
    config.load_kube_config(kubeconfig)
    api = client.CoreV1Api()
    api.list_pod_for_all_namespaces(limit=1)
    with _measured() as figures:
        if since:
            events = watch.Watch().stream(api.list_pod_for_all_namespaces, resource_version=since)
            for _, _event in zip(range(count), events, strict=False):
                pass
        else:
            informer = informers.SharedInformer(api.list_pod_for_all_namespaces)
            informer.start()
            while len(informer.cache.list()) < count:
                time.sleep(0.1)
    return figures


def _best(effort: Effort, follow: Callable[..., Figures], *arguments: object) -> Figures:
    found = repeated(effort, follow, *arguments)
    return Figures(*(min(getattr(each, name) for each in found) for name in Figures.__struct_fields__))


def run(effort: Effort) -> Table:
    """Measure."""
    sizes = effort.sizes(1_250, 2_500, 5_000)
    whos: dict[str, tuple[Callable[..., Figures], bool]] = {OURS: (ours, True), _HANDED_ON: (ours, False)}
    if installed("kubernetes"):
        whos["kubernetes"] = (official, True)
    synced: dict[str, list[Figures]] = {who: [] for who in whos}
    watched: dict[str, list[Figures]] = {who: [] for who in whos if who != _HANDED_ON}
    for size in sizes:
        with engine(size) as target:
            for who, (follow, keep) in whos.items():
                synced[who].append(_best(effort, follow, target.kubeconfig, "", size, keep))
                if who in watched:
                    watched[who].append(_best(effort, follow, target.kubeconfig, target.since, size, False))

    def lines(measure: str, found: dict[str, list[Figures]], name: str) -> Iterator[Line]:
        for who, figures in found.items():
            yield Line(measure, who, Sort.WHOLE, tuple(getattr(each, name) for each in figures))

    return Table(
        NAME,
        "following pods of 8 KB, by number of pods",
        tuple(f"{size:,}" for size in sizes),
        (
            *lines("CPU s until synced", synced, "seconds"),
            *lines("MB of growth, peak", synced, "peak"),
            *lines("MB of growth, synced", synced, "held"),
            *lines("CPU s, as many events watched", watched, "seconds"),
            *lines("MB of growth watching, peak", watched, "peak"),
        ),
        sizes,
        missing("kubernetes"),
    )
