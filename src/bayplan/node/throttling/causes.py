"""Why a group is throttled, from what was measured, and what would end it.

The causes, in the order in which they are looked for; the first that holds is the answer:

    kernel defect     the kernel's number is that of a defective one, and quota was unused in throttled periods
    limit too low     the group never rests, or uses nearly all of its limit: it has more work than it may do
    threads together  on average it uses less, but its threads run at the same time and spend a period's quota at once
    period too short  one thread at a time, less than the limit on average, but a burst exceeds one period's quota
"""

from __future__ import annotations

import enum

import msgspec

from bayplan.node.throttling.evidence import Burst, Evidence, bursts
from bayplan.node.throttling.kernels import SLICE_US, has_expiry_defect
from bayplan.node.throttling.remedies import (
    HEADROOM,
    Remedy,
    burst_for,
    more_quota,
    period_for,
    quota_for,
)

NEAR_LIMIT = 0.85
"""The share of the limit in use from which the limit itself is what holds the group back."""

RESTLESS = 0.9
"""With something to run at so many of its looks a group never rests, even where a busy node keeps it from its limit."""

UNUSED = 0.8
"""A throttled period that used less than this share of its quota was throttled without need."""

LITTLE = 0.01
"""A throttle rate below this has no cause worth a change."""


class Cause(enum.StrEnum):
    """What holds a group back."""

    NONE = "NotThrottled"
    NO_LIMIT = "NoLimit"
    LIMIT_TOO_LOW = "LimitTooLow"
    THREADS_TOGETHER = "ThreadsTogether"
    PERIOD_TOO_SHORT = "PeriodTooShort"
    KERNEL_DEFECT = "KernelDefect"


class Explanation(msgspec.Struct, frozen=True):
    """The cause, in words and numbers, and what would end it, the best first."""

    cause: Cause
    summary: str
    throttle_rate: float
    usage_cpus: float
    limit_cpus: float | None
    reasons: tuple[str, ...] = ()
    remedies: tuple[Remedy, ...] = ()
    advice: tuple[str, ...] = ()
    """What can be done without touching the limit."""


def explain(evidence: Evidence) -> Explanation:
    """Name the cause."""
    limit = evidence.bandwidth.cpus
    if limit is None:
        return _explanation(evidence, Cause.NO_LIMIT, "the group has no CPU limit: it is never throttled by its own")
    if evidence.throttle_rate < LITTLE:
        summary = f"{evidence.throttle_rate:.1%} of its periods were throttled: nothing to explain"
        return _explanation(evidence, Cause.NONE, summary)
    if has_expiry_defect(evidence.kernel) and (used := _used_when_throttled(evidence)) < UNUSED:
        return _defect(evidence, used)
    if evidence.usage_cpus >= NEAR_LIMIT * limit or _never_rests(evidence):
        return _too_low(evidence, limit)
    burst = _typical(evidence)
    if burst is None:
        return _too_low(evidence, limit)
    parallel = max(1, min(burst.runnable, evidence.cpus))
    if burst.runnable >= 2 and parallel > limit:
        return _together(evidence, limit, burst, parallel)
    return _short(evidence, limit, burst)


def _explanation(
    evidence: Evidence,
    cause: Cause,
    summary: str,
    reasons: tuple[str, ...] = (),
    remedies: tuple[Remedy | None, ...] = (),
    advice: tuple[str, ...] = (),
) -> Explanation:
    idle = evidence.node_idle_cpus
    paradox = () if idle is None or not reasons else (f"meanwhile {idle:.2f} CPUs of the node were idle",)
    return Explanation(
        cause,
        summary,
        evidence.throttle_rate,
        evidence.usage_cpus,
        evidence.bandwidth.cpus,
        reasons + paradox,
        tuple(remedy for remedy in remedies if remedy is not None),
        advice,
    )


def _never_rests(evidence: Evidence) -> bool:
    return sum(look.runnable > 0 for look in evidence.looks) >= RESTLESS * len(evidence.looks)


def _used_when_throttled(evidence: Evidence) -> float:
    """The share of its quota that the group had used when it was throttled, on average."""
    used = throttled = 0
    for burst in bursts(evidence.looks):
        used += burst.work_us if burst.throttled_periods else 0
        throttled += burst.throttled_periods
    quota = throttled * (evidence.bandwidth.quota_us or 0)
    return used / quota if quota else 1.0


def _typical(evidence: Evidence) -> Burst | None:
    """A large burst among the throttled ones: at nine of ten, so that one freak does not set the limit."""
    found = [burst for burst in bursts(evidence.looks) if burst.throttled_periods]
    whole = sorted((burst for burst in found if burst.whole), key=lambda burst: burst.work_us) or found
    if not whole:
        return None
    chosen = whole[min(len(whole) - 1, len(whole) * 9 // 10)]
    together = sorted(burst.runnable for burst in whole)[len(whole) // 2]
    return msgspec.structs.replace(chosen, runnable=together)


def _too_low(evidence: Evidence, limit: float) -> Explanation:
    looks = evidence.looks
    wanted = sum(look.runnable for look in looks) / len(looks)
    demand = min(float(evidence.cpus), max(wanted, evidence.usage_cpus + evidence.throttled_seconds))
    # what fills every CPU it may run on needs no headroom: more does not exist
    target = min(float(evidence.cpus), demand if demand >= evidence.cpus else demand * HEADROOM)
    why = f"it has work for {demand:.2f} CPUs, and may use {limit:.2f}"
    summary = f"the limit is too low: it has work all the time, and used {evidence.usage_cpus:.2f} of {limit:.2f} CPUs"
    return _explanation(
        evidence,
        Cause.LIMIT_TOO_LOW,
        summary,
        (
            f"it used {evidence.usage_cpus / limit:.0%} of its limit over {_s(evidence.span_us)}",
            f"{wanted:.1f} of its threads were running or wanted to, on average",
            f"it was held back {evidence.throttled_seconds:.2f} s a second, summed over CPUs",
        ),
        (more_quota(evidence.bandwidth, target, why),),
        ("remove the limit and keep the request: the weight shares a busy node fairly",),
    )


def _together(evidence: Evidence, limit: float, burst: Burst, parallel: int) -> Explanation:
    now = evidence.bandwidth
    spent = (now.quota_us or 0) / parallel
    summary = (
        f"{burst.runnable} threads spend one period's quota together: on {parallel} CPUs the {_ms(now.quota_us)} "
        f"are gone after {_ms(spent)} of {_ms(now.period_us)}"
    )
    fewer = "one thread" if limit < 1.5 else f"{round(limit)} threads"
    remedies = [quota_for(now, burst.work_us, parallel)]
    if evidence.has_burst:
        remedies.insert(0, burst_for(now, burst.work_us, parallel))
    return _explanation(
        evidence,
        Cause.THREADS_TOGETHER,
        summary,
        (
            f"on average it used {evidence.usage_cpus:.2f} CPUs, {evidence.usage_cpus / limit:.0%} of its limit",
            f"{burst.runnable} of at most {evidence.threads} threads wanted to run at once, on {evidence.cpus} CPUs",
            f"a burst is {_ms(burst.work_us)} of work, the quota {_ms(now.quota_us)} a period",
        ),
        tuple(remedies),
        (f"run {fewer} at a time (GOMAXPROCS, worker counts): the limit is {limit:.2f} CPUs",),
    )


def _short(evidence: Evidence, limit: float, burst: Burst) -> Explanation:
    now = evidence.bandwidth
    summary = (
        f"the period is short against its bursts: {_ms(burst.work_us)} of work at a time, and a quota of "
        f"{_ms(now.quota_us)} every {_ms(now.period_us)}"
    )
    remedies = [period_for(now, burst.work_us, 1), quota_for(now, burst.work_us, 1)]
    if evidence.has_burst:
        remedies.insert(1, burst_for(now, burst.work_us, 1))
    return _explanation(
        evidence,
        Cause.PERIOD_TOO_SHORT,
        summary,
        (
            f"on average it used {evidence.usage_cpus:.2f} CPUs, {evidence.usage_cpus / limit:.0%} of its limit",
            f"a burst took {_ms(burst.lasted_us)} with throttling; alone on a CPU it takes {_ms(burst.work_us)}",
        ),
        tuple(remedies),
    )


def _defect(evidence: Evidence, used: float) -> Explanation:
    now = evidence.bandwidth
    cpus = (now.cpus or 0.0) + evidence.cpus * SLICE_US / now.period_us
    why = f"until then, {_ms(SLICE_US)} more for each of {evidence.cpus} CPUs makes up for slices that expire"
    summary = f"kernel {evidence.kernel} throttles groups that have quota left (commit de53fd7aedb1 mends it)"
    return _explanation(
        evidence,
        Cause.KERNEL_DEFECT,
        summary,
        (f"in throttled periods it had used {used:.0%} of its quota",),
        (more_quota(now, cpus, why),),
        ("run Linux 5.4 or newer, 5.3.9, 4.19.84 or 4.14.154, or a vendor's kernel with that commit",),
    )


def _ms(micros: float | None) -> str:
    return f"{(micros or 0) / 1000:.0f} ms"


def _s(micros: int) -> str:
    return f"{micros / 1e6:.1f} s"
