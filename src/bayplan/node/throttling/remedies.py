"""The quota, period or burst that would end a throttling, computed from the work that was seen.

A group may use its quota in every period, and with a burst also what it saved: a bucket that holds quota + burst and
gets a quota a period. Work W on p CPUs that begins just after a refill spans k = ceil(W/p / period) periods. It is not
throttled when the bucket holds enough until the last refill, (k-1) * p * period - (k-2) * quota, and to the end,
W - (k-1) * quota. The kernel takes a burst of at most the quota, and periods from 1 ms to 1 s. Each CPU holds up to a
slice (5 ms) that the others cannot use: it is added to the work for every CPU but one.
"""

from __future__ import annotations

import enum
import math

import msgspec

from bayplan.node.cgroup.port import Bandwidth
from bayplan.node.throttling.kernels import SLICE_US

HEADROOM = 1.25
"""Room above what was seen: the next burst is not the last one. A quarter, as no measurement says better."""

LONGEST_PERIOD_US = 1_000_000
_STEP_US = 1_000


class Lever(enum.StrEnum):
    """What is changed."""

    QUOTA = "quota"
    PERIOD = "period"
    BURST = "burst"


class Remedy(msgspec.Struct, frozen=True):
    """A limit that would end the throttling, and what it means."""

    lever: Lever
    bandwidth: Bandwidth
    why: str


def needed_us(work_us: float, parallel: int) -> int:
    """Quota that a burst of work needs at once, with headroom and the slices that CPUs keep to themselves."""
    return _up(work_us * HEADROOM + SLICE_US * (parallel - 1))


def more_quota(now: Bandwidth, cpus: float, why: str) -> Remedy:
    """A limit of so many CPUs."""
    quota = _at_least_more(cpus * now.period_us, now.quota_us)
    return Remedy(Lever.QUOTA, msgspec.structs.replace(now, quota_us=quota), why)


def quota_for(now: Bandwidth, work_us: int, parallel: int) -> Remedy:
    """A quota that one period of the burst fits into."""
    most = parallel * now.period_us  # all the CPUs it can run on, all the period
    quota = _at_least_more(min(needed_us(min(work_us, most), parallel), most), now.quota_us)
    why = f"a quota of {_ms(quota)} a period holds the {_ms(min(work_us, most))} that it uses in one"
    return Remedy(Lever.QUOTA, msgspec.structs.replace(now, quota_us=quota), why)


def burst_for(now: Bandwidth, work_us: int, parallel: int) -> Remedy:
    """A burst that holds what is above the quota; the quota grows where the kernel's bound on bursts asks for it."""
    quota, period = now.quota_us or 0, now.period_us * parallel
    needed = needed_us(work_us, parallel)
    periods = math.ceil(needed / period)
    missing = max(needed - periods * quota, (periods - 1) * (period - quota))
    burst = _at_least_more(max(missing, _STEP_US), now.burst_us)
    if burst <= quota:
        why = f"a burst of {_ms(burst)} lets it save for the {_ms(work_us)} that it uses at a time"
        return Remedy(Lever.BURST, msgspec.structs.replace(now, burst_us=burst), why)
    # the same with a burst of one quota
    quota = _at_least_more(max(needed / (periods + 1), (periods - 1) * period / periods), now.quota_us)
    why = (
        f"bursts of {_ms(work_us)} need a quota of {_ms(quota)} and a burst as large: "
        "the kernel takes no burst above the quota"
    )
    return Remedy(Lever.BURST, msgspec.structs.replace(now, quota_us=quota, burst_us=quota), why)


def period_for(now: Bandwidth, work_us: int, parallel: int) -> Remedy | None:
    """The same limit over a period that is long enough for the burst; None where that exceeds the kernel's second."""
    limit = now.cpus or 0.0
    period = _up(needed_us(work_us, parallel) / limit) if limit else 0
    if not now.period_us < period <= LONGEST_PERIOD_US:
        return None
    why = f"a period of {_ms(period)} with the same limit of {limit:.2f} CPUs holds a burst of {_ms(work_us)}"
    return Remedy(Lever.PERIOD, msgspec.structs.replace(now, quota_us=_up(limit * period), period_us=period), why)


def _at_least_more(micros: float, now_us: int | None) -> int:
    """What was computed, or where that is no more than there is, which did not suffice, a quarter more than that."""
    found = _up(micros)
    return found if found > (now_us or 0) else _up((now_us or 0) * HEADROOM)


def _up(micros: float) -> int:
    """Whole milliseconds, upwards: what people write down."""
    return math.ceil(micros / _STEP_US) * _STEP_US


def _ms(micros: float) -> str:
    return f"{micros / 1000:.0f} ms"
