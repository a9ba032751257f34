"""From a monitor's series to rows. Pure: series, and who held GPUs when; rows out, and how much could not be told.

A series names a pod, and names are used again. Whose measurement it is follows from the ledger's own account of who was
bound when: the last pod of that name to be bound before the measurement, if it still held its GPUs then. A value may be
a little older than the time it is told for, so a pod is not measured before it has been bound for so long (`fresh`):
what its predecessor of the same name left behind is nobody's.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import msgspec

from bayplan.ledger.rows import GpuUse
from bayplan.ledger.use.exporters import BYTES, Labels, Unit, first, whole
from bayplan.model.clock import MILLISECOND, Instant

_ABOVE = 1.1
"""Rates may come out a little above all of a device; what is far above is no share."""
_MOST_BYTES = 1 << 60


class Series(msgspec.Struct, frozen=True):
    """One line of an answer of Prometheus: labels, and values (as text) by seconds since 1970."""

    metric: dict[str, str]
    values: list[tuple[float, str]] = []


class Holding(NamedTuple):
    """A pod, and when it held GPUs."""

    uid: str
    namespace: str
    name: str
    bound_at: Instant
    end_at: Instant | None

    def at(self, at: Instant, fresh: int = 0) -> bool:
        """Whether it held them then, and for long enough before."""
        return self.bound_at + fresh <= at and (self.end_at is None or at < self.end_at)


class Holders:
    """Who held GPUs, to be found by name and time or by uid."""

    def __init__(self, holdings: Iterable[Holding]) -> None:
        self._by_name: dict[tuple[str, str], list[Holding]] = {}
        self._by_uid: dict[str, Holding] = {}
        for each in sorted(holdings, key=lambda each: each.bound_at):
            self._by_name.setdefault((each.namespace, each.name), []).append(each)
            self._by_uid[each.uid] = each

    def named(self, namespace: str, name: str, at: Instant, fresh: int) -> str:
        """The uid of the pod that a measurement means; empty: nobody's."""
        found = self._by_name.get((namespace, name))
        if found is None:
            return ""
        place = bisect_right(found, at, key=lambda each: each.bound_at)
        return found[place - 1].uid if place and found[place - 1].at(at, fresh) else ""

    def known(self, uid: str, at: Instant) -> str:
        """The uid, if that pod held GPUs then."""
        found = self._by_uid.get(uid)
        return uid if found is not None and found.at(at) else ""


class Reading(msgspec.Struct, frozen=True):
    """How series are read."""

    cluster: str
    labels: Labels = Labels()
    unit: Unit = "auto"
    fresh: int = 0
    """How much older than its time a value may be."""


class Measured(NamedTuple):
    """What series came to."""

    rows: list[GpuUse]
    """By time, then by pod and device; one for each: of several values the largest, so that none in use seems idle."""
    skipped: Counter[str]
    """Values that told nothing, by why: no-pod, no-device, unknown-pod, not-a-number, out-of-range."""


Point = tuple[Instant, str, str]
"""Time, uid, device."""


def measured(use: Sequence[Series], memory: Sequence[Series], holders: Holders, reading: Reading) -> Measured:
    """Rows of utilisation, with the memory that was in use. Raises UseSettingsError for values of an unknown unit."""
    skipped: Counter[str] = Counter()
    shares: dict[Point, float] = {}
    for series in use:
        full = whole(series.metric.get("__name__", ""), reading.unit)
        for point, value in _points(series, holders, reading, skipped):
            share = value / full
            if 0 <= share <= _ABOVE:
                shares[point] = max(shares.get(point, 0.0), min(share, 1.0))
            else:
                skipped["out-of-range"] += 1
    sizes = _sizes(memory, holders, reading) if shares else {}
    rows = [
        GpuUse(
            cluster=reading.cluster,
            pod_uid=uid,
            device=device,
            at=at,
            utilisation=share,
            memory_used=sizes.get((at, uid, device)),
        )
        for (at, uid, device), share in sorted(shares.items())
    ]
    return Measured(rows, skipped)


def _sizes(memory: Sequence[Series], holders: Holders, reading: Reading) -> dict[Point, int]:
    sizes: dict[Point, int] = {}
    for series in memory:
        unit = BYTES.get(series.metric.get("__name__", ""), 1)
        for point, value in _points(series, holders, reading, Counter()):
            if 0 <= value * unit < _MOST_BYTES:
                sizes[point] = max(sizes.get(point, 0), round(value * unit))
    return sizes


def _points(series: Series, holders: Holders, reading: Reading, skipped: Counter[str]) -> Iterator[tuple[Point, float]]:
    """The values of a series that are numbers and somebody's."""
    metric, labels = series.metric, reading.labels
    uid, pod, device = first(metric, labels.uid), first(metric, labels.pod), first(metric, labels.device)
    if not (uid or pod) or not device:
        skipped["no-device" if uid or pod else "no-pod"] += len(series.values)
        return
    namespace = first(metric, labels.namespace)
    part = first(metric, labels.part)
    device = f"{device}/{part}" if part else device
    for seconds, text in series.values:
        at = Instant(round(seconds * 1000) * MILLISECOND)
        owner = holders.known(uid, at) if uid else holders.named(namespace, pod, at, reading.fresh)
        value = _number(text)
        if owner and math.isfinite(value):
            yield (at, owner, device), value
        else:
            skipped["not-a-number" if owner else "unknown-pod"] += 1


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan
