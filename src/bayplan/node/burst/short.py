"""The short burst: a throttled container gets 1.5 to 3 times its quota for 100 to 500 ms, then its own, then rest.

    WATCHING ── throttle rate over the threshold ──▶ BURSTING ── the time is over ──▶ COOLING ── rested ──▶ WATCHING

One state a group, moved by `step`; the caller writes what it is told and calls again at `wake`. A burst is never
followed by another without a rest at least as long, so a container cannot live on bursts. The rate is that of the last
second. The kernel counts no periods while a container idles, so its first throttled period is one of few.

The kernel counts a throttled period when it is over, which is too late for a spike of a few milliseconds. So a group
that was throttled is remembered for a while and looked at more often: when it spends its quota faster than the quota
comes in again, it bursts before it is held back. As long as spikes come, they are remembered.
"""

from __future__ import annotations

import enum
from typing import NamedTuple

import msgspec

from bayplan.model.clock import MILLISECOND, SECOND, Instant
from bayplan.node.burst.errors import BurstConfigError
from bayplan.node.cgroup.port import Bandwidth, Counters

LEAST_FACTOR, MOST_FACTOR = 1.5, 3.0
SHORTEST, LONGEST = 100 * MILLISECOND, 500 * MILLISECOND


class ShortBurst(msgspec.Struct, frozen=True):
    """The rule's parameters. Spans are in the clock's unit. Raises BurstConfigError outside the safe ranges."""

    threshold: float = 0.10
    least: float = LEAST_FACTOR
    most: float = MOST_FACTOR
    lasts: int = 200 * MILLISECOND
    cooldown: int = 500 * MILLISECOND
    look: int = 50 * MILLISECOND
    """How often a watched group is looked at."""
    window: int = SECOND
    """The span over which the throttle rate is taken."""
    memory: int = 60 * SECOND
    """How long a group is looked at closely after it burst."""
    close_look: int = 5 * MILLISECOND
    """How often, then."""
    early: float = 0.25
    """Of a period's quota, what must be spent before such a group bursts again."""

    def __post_init__(self) -> None:
        for name, fits, expected in (
            ("threshold", 0 <= self.threshold < 1, "0 to below 1"),
            ("least", LEAST_FACTOR <= self.least <= self.most, f"{LEAST_FACTOR} to `most` ({self.most})"),
            ("most", self.most <= MOST_FACTOR, f"at most {MOST_FACTOR}"),
            ("lasts", SHORTEST <= self.lasts <= LONGEST, "100 ms to 500 ms"),
            ("cooldown", self.cooldown >= self.lasts, f"at least as long as the burst ({self.lasts // 1000} ms)"),
            ("look", 0 < self.look <= self.window, "above 0, up to the window"),
            ("close_look", 0 < self.close_look <= self.look, "above 0, up to `look`"),
            ("early", 0 < self.early < 1, "above 0, below 1"),
        ):
            if not fits:
                value = getattr(self, name)
                shown = f"{value / MILLISECOND:g} ms" if isinstance(value, int) else value
                raise BurstConfigError(f"short burst: {name} is {shown}", hint=f"expected {expected}")

    def factor(self, rate: float) -> float:
        """By how much the quota grows: the more throttled, the more, from `least` to `most`."""
        over = (rate - self.threshold) / (1 - self.threshold)
        return self.least + (self.most - self.least) * min(max(over, 0.0), 1.0)


class Phase(enum.Enum):
    """Where a group is in its round."""

    WATCHING = "watching"
    BURSTING = "bursting"
    COOLING = "cooling"


class Sample(NamedTuple):
    """The counters at an instant."""

    at: Instant
    periods: int
    throttled: int
    usage_ns: int


class ShortState(msgspec.Struct, frozen=True):
    """A group's place in its round."""

    phase: Phase = Phase.WATCHING
    until: Instant = Instant(0)
    """When the phase ends; while watching, the next look."""
    samples: tuple[Sample, ...] = ()
    base: Bandwidth | None = None
    """While bursting: what to return to."""
    remembered_until: Instant = Instant(0)
    """Until then it is looked at closely."""


class Step(msgspec.Struct, frozen=True):
    """What to do now, and when to ask again."""

    state: ShortState
    wake: Instant
    write: Bandwidth | None = None
    rate: float = 0.0
    reason: str = ""
    """Why there is something to write."""


def throttle_rate(periods: int, throttled: int) -> float:
    """The share of periods that ended throttled; of no periods none did."""
    return min(throttled / periods, 1.0) if periods > 0 else 0.0


def step(rule: ShortBurst, state: ShortState, bandwidth: Bandwidth, counters: Counters, now: Instant) -> Step:
    """One move. Before `state.until` there is none."""
    if now < state.until:
        return Step(state, state.until)
    if state.phase is Phase.BURSTING:
        until = Instant(now + rule.cooldown)
        cooling = ShortState(Phase.COOLING, until, remembered_until=state.remembered_until)
        return Step(cooling, until, state.base, reason="the burst is over")
    return _watch(rule, state, bandwidth, counters, now)


def _watch(rule: ShortBurst, state: ShortState, bandwidth: Bandwidth, counters: Counters, now: Instant) -> Step:
    sample = Sample(now, counters.periods, counters.throttled_periods, counters.usage_ns)
    samples = (*(each for each in state.samples if each.at >= now - rule.window), sample)
    periods = sample.periods - samples[0].periods
    throttled = sample.throttled - samples[0].throttled
    rate = throttle_rate(periods, throttled)
    closely = now < state.remembered_until
    if bandwidth.quota_us is not None and rate > rule.threshold:
        why = f"{throttled} of {periods} periods throttled ({rate:.0%})"
        return _burst(rule, bandwidth, rule.factor(rate), rate, why, now)
    if closely and (why := _rush(rule, samples, bandwidth)):
        return _burst(rule, bandwidth, rule.most, rate, why, now)
    until = Instant(now + (rule.close_look if closely else rule.look))
    return Step(ShortState(Phase.WATCHING, until, samples, None, state.remembered_until), until, rate=rate)


def _rush(rule: ShortBurst, samples: tuple[Sample, ...], own: Bandwidth) -> str:
    """How the quota goes faster than it comes in: a good part of it within a period, and by the last two looks at more
    than its pace. Empty where it does not."""
    last, before = samples[-1], samples[-3:][0]
    first = next(each for each in samples if each.at >= last.at - own.period_us)
    spent_us, lately_us, span_us = _used_us(first, last), _used_us(before, last), last.at - before.at
    if (
        own.quota_us is None
        or spent_us < rule.early * own.quota_us
        or lately_us * own.period_us <= own.quota_us * span_us
    ):
        return ""
    return (
        f"throttled lately, and of {own.quota_us / 1000:g} ms {spent_us / 1000:.0f} are spent, "
        f"{lately_us / 1000:.0f} in the last {span_us / 1000:.0f}"
    )


def _used_us(one: Sample, other: Sample) -> int:
    return (other.usage_ns - one.usage_ns) // 1000


def _burst(rule: ShortBurst, own: Bandwidth, factor: float, rate: float, why: str, now: Instant) -> Step:
    assert own.quota_us is not None  # only a limit can be raised
    until = Instant(now + rule.lasts)
    write = msgspec.structs.replace(own, quota_us=int(own.quota_us * factor))
    state = ShortState(Phase.BURSTING, until, base=own, remembered_until=Instant(now + rule.memory))
    return Step(state, until, write, rate, f"{why}, quota x{factor:.2f} for {rule.lasts // 1000} ms")
