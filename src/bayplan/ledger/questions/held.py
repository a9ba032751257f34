"""Who holds GPUs and does not use them.

A device counts as unused from the first measurement below the threshold after the last one at or above it, up to its
last measurement. What nobody measured is no data, never idleness: a hole between two measurements ends a stretch, and
a device whose last measurement is old, or that has none, is told apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal

import msgspec

from bayplan.ledger.questions.amounts import cost
from bayplan.ledger.questions.asking import EVERYTHING, Scope, holding, read
from bayplan.ledger.rows import MILLI, GpuPeriod, GpuPod, GpuUse
from bayplan.ledger.store.reading import TABLES, Readable
from bayplan.model.clock import SECOND, Instant

HOLE = 600 * SECOND
"""Two measurements further apart say nothing of the time between them. Monitors measure every 15 s to 5 min."""


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
    wasted: int
    """GPU-nanoseconds."""
    cost: Decimal | None
    """None: no price is known for the model."""


def stretch(samples: Sequence[tuple[Instant, float]], rule: HeldRule, until: Instant) -> Stretch | None:
    """The end of a device's story, if it is below the threshold; `samples` in order of time.

    None where the device is in use, where its last measurement is old, or where it has none.
    """
    if not samples or until - samples[-1][0] > rule.hole:
        return None
    start, values = samples[-1][0], list[float]()
    for at, value in reversed(samples):
        if value >= rule.below or start - at > rule.hole:
            break
        start = at
        values.append(value)
    return Stretch(start, samples[-1][0], sum(values) / len(values)) if values else None


def judged(
    pod: GpuPod,
    periods: Sequence[GpuPeriod],
    devices: Mapping[str, Sequence[tuple[Instant, float]]],
    rule: HeldRule,
    until: Instant,
    prices: Mapping[str, Decimal],
) -> Holder:
    """One holder. A device is a whole GPU, or its part of what is held where there are more devices than that."""
    gpus = sum(period.gpus for period in periods)
    fresh = {name: samples for name, samples in devices.items() if samples and until - samples[-1][0] <= rule.hole}
    share = min(MILLI, gpus // len(fresh)) if fresh else 0
    found = [found for samples in fresh.values() if (found := stretch(samples, rule, until))]
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
        unmeasured=max(0, gpus - MILLI * len(fresh)),
        since=min((each.start for each in unused), default=None),
        utilisation=sum(each.mean for each in unused) / len(unused) if unused else None,
        wasted=wasted,
        cost=cost(wasted, prices[model]) if model in prices else None,
    )


def ranked(holders: Iterable[Holder]) -> list[Holder]:
    """Those that waste most first, then those of whom nothing is known; who uses what it holds is left out."""
    told = [each for each in holders if each.unused or each.unmeasured]
    return sorted(told, key=lambda each: (-each.wasted, -each.unmeasured, each.cluster, each.namespace, each.name))


async def held_unused(
    store: Readable,
    until: Instant,
    since: Instant,
    rule: HeldRule,
    prices: Mapping[str, Decimal] | None = None,
    scope: Scope = EVERYTHING,
) -> list[Holder]:
    """Who holds GPUs at `until` and has not used them, by measurements since `since`; no data is told as such.

    Raises StoreUnavailableError, StoreRefusedError.
    """
    periods: dict[tuple[str, str], list[GpuPeriod]] = {}
    for period in await read(store, GpuPeriod, Scope(scope.cluster), *holding(GpuPeriod, until, until)):
        periods.setdefault((period.cluster, period.pod_uid), []).append(period)
    use = TABLES[GpuUse].c
    samples: dict[tuple[str, str], dict[str, list[tuple[Instant, float]]]] = {}
    for each in await read(store, GpuUse, Scope(scope.cluster), use.at >= since, use.at <= until):
        devices = samples.setdefault((each.cluster, each.pod_uid), {})
        devices.setdefault(each.device, []).append((each.at, each.utilisation))
    pods: list[GpuPod] = await read(store, GpuPod, scope, TABLES[GpuPod].c.created_at <= until)
    return ranked(
        judged(pod, periods[key], samples.get(key, {}), rule, until, prices or {})
        for pod in pods
        if (key := (pod.cluster, pod.uid)) in periods
    )
