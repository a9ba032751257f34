"""The life of a workload's pods side by side: waiting, starting, running, and what happened when.

Before its pods, and between them, a quota may have kept it from making any: that is its own to wait (`refused`).
"""

from __future__ import annotations

import enum
import itertools
from collections.abc import Iterable
from typing import Any

import msgspec

from bayplan.ledger.questions.asking import Scope, read_each
from bayplan.ledger.questions.below import pods_below
from bayplan.ledger.questions.present import EventAt
from bayplan.ledger.questions.refusals import refusals
from bayplan.ledger.rows import (
    GpuPeriod,
    GpuPod,
    GpuPodsEvent,
    GpuWorkload,
    PendingPeriod,
    Period,
    RunningPeriod,
)
from bayplan.ledger.store.reading import Readable
from bayplan.model.clock import Instant


class Doing(enum.Enum):
    """What a pod did for a while."""

    WAITING = "waiting"
    """It had no place."""
    HOLDING = "holding"
    """It held its GPUs and did not run: images, init containers, its last seconds."""
    RUNNING = "running"


class Segment(msgspec.Struct, frozen=True):
    """A while."""

    doing: Doing
    start: Instant
    end: Instant


class Lane(msgspec.Struct, frozen=True):
    """A pod's life."""

    pod: GpuPod
    segments: tuple[Segment, ...]
    """In order of time; they do not overlap."""


class Timeline(msgspec.Struct, frozen=True):
    """A workload, or one pod."""

    subject: GpuWorkload | GpuPod
    start: Instant
    end: Instant
    lanes: tuple[Lane, ...]
    events: tuple[EventAt, ...]
    refused: tuple[Segment, ...] = ()
    """While a quota kept a workload from making pods; they do not overlap."""


def segments(
    waiting: Iterable[PendingPeriod], holding: Iterable[GpuPeriod], running: Iterable[RunningPeriod], until: Instant
) -> tuple[Segment, ...]:
    """A life of one piece after another: who runs, holds as well, and is told to run."""
    layers = ((Doing.RUNNING, running), (Doing.HOLDING, holding), (Doing.WAITING, waiting))
    spans = [(doing, _spans(periods, until)) for doing, periods in layers]
    edges = sorted({edge for _, found in spans for span in found for edge in span})
    merged: list[Segment] = []
    for start, end in itertools.pairwise(edges):
        doing = next((doing for doing, found in spans if any(a <= start and end <= b for a, b in found)), None)
        if doing is None:
            continue
        if merged and merged[-1].doing is doing and merged[-1].end == start:
            merged[-1] = Segment(doing, merged[-1].start, Instant(end))
        else:
            merged.append(Segment(doing, Instant(start), Instant(end)))
    return tuple(merged)


def _spans(periods: Iterable[Period], until: Instant) -> list[tuple[int, int]]:
    found = [(each.start_at, until if each.end_at is None else min(each.end_at, until)) for each in periods]
    return [(start, end) for start, end in found if start < end]


async def timeline(store: Readable, subject: GpuWorkload | GpuPod, until: Instant) -> Timeline:
    """The life of a workload's pods, or of one pod, up to `until`. Raises StoreUnavailableError, StoreRefusedError."""
    ours = [subject] if isinstance(subject, GpuPod) else await pods_below(store, subject, until)
    pods = [pod for pod in ours if pod.created_at <= until]
    scope, uids = Scope(subject.cluster), [pod.uid for pod in pods]
    waiting, holding, running, events = [
        _by_pod(await read_each(store, kind, "pod_uid", uids, scope))
        for kind in (PendingPeriod, GpuPeriod, RunningPeriod, GpuPodsEvent)
    ]
    lanes = [
        Lane(pod, segments(waiting.get(pod.uid, ()), holding.get(pod.uid, ()), running.get(pod.uid, ()), until))
        for pod in sorted(pods, key=lambda row: (row.created_at, row.name))
    ]
    forbidden = [] if isinstance(subject, GpuPod) else await refusals(store, subject, pods, until)
    refused = segments(forbidden, (), (), until)
    ends = [one[-1].end for one in (refused, *(lane.segments for lane in lanes)) if one]
    ends += [pod.gone_at for pod in pods if pod.gone_at is not None]
    starts = [*(pod.created_at for pod in pods), *(period.start_at for period in forbidden)]
    start = min(starts, default=subject.created_at)
    told = [EventAt(row, pod.namespace, pod.name) for pod in pods for row in events.get(pod.uid, ()) if row.at <= until]
    told.sort(key=lambda each: (each.event.at, each.event.resource_version, each.pod))
    return Timeline(subject, start, min(max([*ends, start]), until), tuple(lanes), tuple(told), refused)


def _by_pod(rows: Iterable[Any]) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for row in rows:
        found.setdefault(row.pod_uid, []).append(row)
    return found
