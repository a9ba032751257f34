"""Who holds GPUs and does not use them.

A device counts as unused from the first measurement below the threshold after the last one at or above it, up to its
last measurement. What nobody measured is no data, never idleness: a hole between two measurements ends a stretch, and
a device whose last measurement is old, or that has none, is told apart. The database goes through the measurements: a
week of a thousand devices is ten million of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any

import msgspec
import sqlalchemy as sa

from bayplan.ledger.questions.amounts import cost
from bayplan.ledger.questions.asking import EVERYTHING, Scope, holding, read
from bayplan.ledger.rows import MILLI, GpuPeriod, GpuPod, GpuUse
from bayplan.ledger.store.reading import TABLES, Readable, fetch
from bayplan.model.clock import SECOND, Instant

HOLE = 600 * SECOND
"""Two measurements further apart say nothing of the time between them. Monitors measure every 15 s to 5 min."""


_DIGITS = 6
"""Of a mean that is shown: databases add in different orders."""


class HeldRule(msgspec.Struct, frozen=True):
    """What counts as held and not used."""

    below: float = 0.1
    lasting: int = 3600 * SECOND
    hole: int = HOLE


class Stretch(msgspec.Struct, frozen=True):
    """A device's last measurements without a hole: all below the threshold since `start`."""

    start: Instant
    end: Instant
    mean: float


class Device(msgspec.Struct, frozen=True):
    """A device that is measured at present."""

    name: str
    memory: int | None
    """Bytes in use, by the last measurement; None: not told."""
    unused: Stretch | None
    """None: it is in use."""


class Holder(msgspec.Struct, frozen=True, kw_only=True):
    """A pod that holds GPUs."""

    cluster: str
    namespace: str
    name: str
    uid: str
    user: str
    model: str
    node: str
    gpus: int
    """Thousandths held."""
    unused: int
    """Of those, thousandths below the threshold for long enough."""
    unmeasured: int
    """Of those, thousandths of which there is no data."""
    since: Instant | None
    """Since when the first of the unused is so."""
    utilisation: float | None
    """Mean over the stretches of the unused; None: no data."""
    memory: int | None
    """Bytes in use on the devices of which that is told; None: of none."""
    wasted: int | None
    """GPU-nanoseconds of the unused; None: there are none, as far as there is data."""
    cost: Decimal | None
    """None: no price is known for the model, or nothing is known to be wasted."""


def judged(
    pod: GpuPod,
    periods: Sequence[GpuPeriod],
    devices: Sequence[Device],
    rule: HeldRule,
    prices: Mapping[str, Decimal],
) -> Holder:
    """One holder. A device is a whole GPU, or its part of what is held where there are more devices than that."""
    gpus = sum(period.gpus for period in periods)
    share = min(MILLI, gpus // len(devices)) if devices else 0
    memory = [device.memory for device in devices if device.memory is not None]
    found = [device.unused for device in devices if device.unused is not None]
    unused = [each for each in found if each.end - each.start >= rule.lasting]
    wasted = sum(share * (each.end - each.start) for each in unused)
    model = periods[0].gpu_model
    return Holder(
        cluster=pod.cluster,
        namespace=pod.namespace,
        name=pod.name,
        uid=pod.uid,
        user=pod.user,
        model=model,
        node=periods[0].node_name,
        gpus=gpus,
        unused=share * len(unused),
        unmeasured=max(0, gpus - MILLI * len(devices)),
        since=min((each.start for each in unused), default=None),
        utilisation=round(sum(each.mean for each in unused) / len(unused), _DIGITS) if unused else None,
        memory=sum(memory) if memory else None,
        wasted=wasted if unused else None,
        cost=cost(wasted, prices[model]) if unused and model in prices else None,
    )


def ranked(holders: Iterable[Holder]) -> list[Holder]:
    """Those that waste most first, then those of whom nothing is known; who uses what it holds is left out."""
    told = [each for each in holders if each.unused or each.unmeasured]
    return sorted(
        told, key=lambda each: (-(each.wasted or 0), -each.unmeasured, each.cluster, each.namespace, each.name)
    )


async def _devices(
    store: Readable, until: Instant, since: Instant, rule: HeldRule, scope: Scope
) -> dict[tuple[str, str], list[Device]]:
    """The devices of each pod that are measured at present."""
    found: dict[tuple[str, str], list[Device]] = {}
    for cluster, uid, name, last, memory, start, mean in await fetch(store, _measured(until, since, rule, scope)):
        unused = None if start is None else Stretch(Instant(start), Instant(last), mean)
        found.setdefault((cluster, uid), []).append(Device(name, memory, unused))
    return found


def _measured(until: Instant, since: Instant, rule: HeldRule, scope: Scope) -> sa.Select[Any]:
    """Of each such device its last measurement, and where its last stretch below the threshold begins."""
    use, period = TABLES[GpuUse], TABLES[GpuPeriod].c
    device = ("cluster", "pod_uid", "device")
    key = [use.c[name] for name in device]
    holders = sa.select(period.cluster, period.pod_uid).where(*holding(GpuPeriod, until, until)).distinct().subquery()
    at = use.c.at + 0  # else SQLite goes by time, through the measurements of all pods, once for each holder
    each = (
        sa.select(*key, use.c.at, use.c.utilisation)
        .add_columns(sa.func.lag(use.c.at).over(partition_by=key, order_by=use.c.at).label("before"))
        .join_from(holders, use, sa.and_(use.c.cluster == holders.c.cluster, use.c.pod_uid == holders.c.pod_uid))
        .where(*Scope(scope.cluster).of(GpuUse), at >= since, at <= until)
        .cte("each_one")
    )
    begins = sa.case(
        (each.c.utilisation >= rule.below, each.c.at + 1),
        (each.c.at - each.c.before > rule.hole, each.c.at),
        else_=since,
    )
    ends = (
        sa.select(*(each.c[name] for name in device))
        .add_columns(sa.func.max(each.c.at).label("last"), sa.func.max(begins).label("begins"))
        .group_by(*(each.c[name] for name in device))
        .having(sa.func.max(each.c.at) >= until - rule.hole)
        .cte("ends")
    )
    first = sa.case((ends.c.begins > ends.c.last, ends.c.last), else_=ends.c.begins)
    within = sa.and_(*(use.c[name] == ends.c[name] for name in device), use.c.at.between(first, ends.c.last))
    below = use.c.at >= ends.c.begins
    return (
        sa.select(*(ends.c[name] for name in device), ends.c.last)
        .add_columns(
            sa.func.max(sa.case((use.c.at == ends.c.last, use.c.memory_used))),
            sa.func.min(sa.case((below, use.c.at))),
            sa.func.avg(sa.case((below, use.c.utilisation))),
        )
        .join_from(ends, use, within)
        .group_by(*(ends.c[name] for name in device), ends.c.last)
        .order_by(*(ends.c[name] for name in device))
    )


async def held_unused(
    store: Readable,
    until: Instant,
    since: Instant,
    rule: HeldRule,
    prices: Mapping[str, Decimal] | None = None,
    scope: Scope = EVERYTHING,
) -> list[Holder]:
    """Who holds GPUs at `until`, or in the present of the cluster if that is earlier, and has not used them, by
    measurements since `since`; no data is told as such.

    Raises StoreUnavailableError, StoreRefusedError.
    """
    holders: list[Holder] = []
    for part, at in scope.parts(until):
        holders += await _holders(store, at, since, rule, prices or {}, part)
    return ranked(holders)


async def _holders(
    store: Readable, until: Instant, since: Instant, rule: HeldRule, prices: Mapping[str, Decimal], scope: Scope
) -> list[Holder]:
    periods: dict[tuple[str, str], list[GpuPeriod]] = {}
    for period in await read(store, GpuPeriod, scope.whole, *holding(GpuPeriod, until, until)):
        periods.setdefault((period.cluster, period.pod_uid), []).append(period)
    devices = await _devices(store, until, since, rule, scope)
    pods: list[GpuPod] = await read(store, GpuPod, scope, TABLES[GpuPod].c.created_at <= until)
    return [
        judged(pod, periods[key], devices.get(key, []), rule, prices)
        for pod in pods
        if (key := (pod.cluster, pod.uid)) in periods
    ]
