"""The two ways of bursting as the agent drives them: what to give a group now, and when to look again.

A mode remembers what a pure core needs from look to look; it reads nothing and writes nothing.
"""

from __future__ import annotations

from typing import Protocol

import msgspec

from bayplan.model.clock import MILLISECOND, SECOND, Instant
from bayplan.node.burst import koordinator, short
from bayplan.node.burst.koordinator import Bucket, BurstConfig, Measured
from bayplan.node.burst.short import Phase, ShortBurst, ShortState, throttle_rate
from bayplan.node.cgroup.port import Bandwidth, Counters


class Look(msgspec.Struct, frozen=True):
    """What is seen of a group at an instant."""

    own: Bandwidth
    counters: Counters
    now: Instant
    busy: float | None = None
    """The share of the machine's CPUs in use; None: not known yet."""


class Advice(msgspec.Struct, frozen=True):
    """What a group should have, and when to look again."""

    wake: Instant
    word: str
    """Where the group is: watching, bursting, cooling, or the operation's name."""
    rate: float = 0.0
    give: Bandwidth | None = None
    """Another limit than it has now; None: as it is."""
    until: Instant | None = None
    give_back: bool = False
    why: str = ""


class Mode(Protocol):
    """One way of bursting."""

    def look(self, path: str, look: Look) -> Advice:
        """Look at a group that has a limit."""
        ...

    def forget(self, path: str) -> None:
        """The group is gone, or somebody else changed its limit."""
        ...


class ShortMode:
    """Bursts of some hundred milliseconds (`node.burst.short`)."""

    def __init__(self, rule: ShortBurst) -> None:
        self._rule = rule
        self._states: dict[str, ShortState] = {}

    def look(self, path: str, look: Look) -> Advice:
        before = self._states.get(path, ShortState())
        step = short.step(self._rule, before, look.own, look.counters, look.now)
        self._states[path] = step.state
        begins = step.state.phase is Phase.BURSTING and before.phase is not Phase.BURSTING
        return Advice(
            wake=step.wake,
            word=step.state.phase.value,
            rate=step.rate,
            give=step.write if begins else None,
            until=step.state.until if begins else None,
            give_back=step.write is not None and not begins,
            why=step.reason,
        )

    def forget(self, path: str) -> None:
        self._states.pop(path, None)


class _Scaled(msgspec.Struct):
    bucket: Bucket
    quota_us: int
    given: Bandwidth | None
    counters: Counters
    at: Instant


class KoordinatorMode:
    """Koordinator's rule (`node.burst.koordinator`): a standing cfs_burst, and a quota that moves by a fifth a look.

    A new container's bucket begins a quarter full: upstream draws a number between empty and half.
    """

    def __init__(self, config: BurstConfig, every: int = SECOND) -> None:
        self._config, self._every = config, every
        self._scaled: dict[str, _Scaled] = {}

    def look(self, path: str, look: Look) -> Advice:
        own_us, now = look.own.quota_us, look.now
        assert own_us is not None
        wake = Instant(now + self._every)
        known = self._scaled.get(path)
        if known is None:
            known = _Scaled(Bucket(self._config.capacity // 4, now), own_us, None, look.counters, now)
            self._scaled[path] = known
            return self._give(known, look, wake, "cfsRemain", "", 0.0)
        periods = look.counters.periods - known.counters.periods
        throttled = look.counters.throttled_periods - known.counters.throttled_periods
        measured = Measured(_usage_percent(known, look), throttled > 0 if periods else None, look.busy)
        decision = koordinator.step(self._config, known.bucket, own_us, known.quota_us, measured, now)
        why = f"{throttled} of {periods} periods throttled, {measured.usage_percent}% of the limit used, "
        why += f"{decision.node_state}, {decision.final_operation}"
        known.bucket, known.quota_us = decision.bucket, decision.quota_us
        known.counters, known.at = look.counters, now
        return self._give(known, look, wake, decision.final_operation, why, throttle_rate(periods, throttled))

    def _give(self, known: _Scaled, look: Look, wake: Instant, word: str, why: str, rate: float) -> Advice:
        millicores = round((look.own.cpus or 0) * 1000)
        static = (
            koordinator.static_burst_us(self._config, millicores) * look.own.period_us // koordinator.BASE_PERIOD_US
        )
        burst = min(static, known.quota_us)  # mainline kernels take no more
        given = msgspec.structs.replace(look.own, quota_us=known.quota_us, burst_us=burst)
        news = given != (known.given or look.own)
        if news and known.given is None and not why:
            why = f"cfs_burst of {burst / MILLISECOND:g} ms"
        known.given = given
        return Advice(wake, word, rate, given if news else None, why=why if news else "")

    def forget(self, path: str) -> None:
        self._scaled.pop(path, None)


def _usage_percent(known: _Scaled, look: Look) -> int:
    elapsed_ns = (look.now - known.at) * 1000
    limit = look.own.cpus
    if elapsed_ns <= 0 or not limit:
        return 0
    return int((look.counters.usage_ns - known.counters.usage_ns) / elapsed_ns / limit * 100)
