"""Decoding a PodList of 8 KB pods: CPU time, and memory beyond the received bytes, beside other clients.

Each decoder in a process of its own. Memory is the peak of resident memory while decoding, so what a decoder needs for
a moment counts too. The garbage collector is on, as in a program that uses the client.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import msgspec

from bayplan.cluster.kinds import POD
from bayplan.cluster.objects import Object
from bayplan.model.meta import Wire
from bayplan.model.objects import decode
from bayplan.model.pods import Pod
from benchmarks import manifests
from benchmarks.measure import Effort, cpu_time, forget_peak, installed, missing, peak, repeated, resident
from benchmarks.report import OURS, Line, Sort, Table

NAME = "decode"
_MB = 1_000_000

Figures = tuple[float, float]
"""CPU seconds, MB."""
Decoder = Callable[[bytes], Any]


class PodList(Wire, frozen=True):
    """A list of pods, as structs."""

    items: tuple[Pod, ...] = ()


class RawList(msgspec.Struct, frozen=True):
    """A list, its items still bytes."""

    items: tuple[msgspec.Raw, ...] = ()


def _structs() -> Decoder:
    return lambda body: decode(body, PodList)


def _objects() -> Decoder:
    def read(body: bytes) -> list[Object]:
        objects = [Object.from_raw(POD, raw) for raw in msgspec.json.decode(body, type=RawList).items]
        for item in objects:
            item.view(Pod)
        return objects

    return read


def _lightkube() -> Decoder:
    from lightkube.core import decoders
    from lightkube.resources.core_v1 import Pod as LightkubePod

    def read(body: bytes) -> object:
        _, _, items = decoders.decode_list(body, LightkubePod)
        return [*items]

    return read


def _official() -> Decoder:
    from kubernetes.client import ApiClient

    client = ApiClient()
    return lambda body: client.deserialize(body.decode(), "V1PodList", "application/json")


_DECODERS: dict[str, tuple[Callable[[], Decoder], str]] = {
    OURS: (_structs, "bayplan"),
    "bayplan (raw kept)": (_objects, "bayplan"),
    "lightkube": (_lightkube, "lightkube"),
    "kubernetes": (_official, "kubernetes"),
}


def measure(who: str, count: int) -> Figures:
    """Decode a list of `count` pods once, after a list of one has warmed the decoder up."""
    read = _DECODERS[who][0]()
    read(manifests.pod_list(1))
    body = manifests.pod_list(count)
    gc.collect()
    forget_peak()
    before = resident()
    with cpu_time() as span:
        kept = read(body)
    grown = peak() - before
    del kept
    return span.seconds, grown / _MB


def run(effort: Effort) -> Table:
    """Measure."""
    sizes = effort.sizes(1_250, 2_500, 5_000)
    found: dict[str, list[Figures | None]] = {}
    for who, (_, package) in _DECODERS.items():
        found[who] = [_best(effort, who, size) if installed(package) else None for size in sizes]

    def line(who: str, which: int, measure: str, goal: float) -> Line:
        values = tuple(None if each is None else each[which] for each in found[who])
        return Line(measure, who, Sort.WHOLE, values, goal if who == OURS else None)

    return Table(
        NAME,
        f"a PodList of 8 KB pods ({len(manifests.pod_list(sizes[-1])) / _MB:.1f} MB at the largest)",
        tuple(f"{size:,}" for size in sizes),
        (
            *(line(who, 0, "CPU seconds", 0.3) for who in found),
            *(line(who, 1, "MB beyond the received bytes, at the peak", 60) for who in found),
        ),
        sizes,
        missing("lightkube", "kubernetes"),
    )


def _best(effort: Effort, who: str, count: int) -> Figures:
    figures = repeated(effort, measure, who, count)
    return min(cpu for cpu, _ in figures), min(memory for _, memory in figures)
