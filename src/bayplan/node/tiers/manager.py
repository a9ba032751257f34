"""`TierManager`: how far the node interferes with each task. Weights come first, the hard quota last.

A weight only matters while others want the same CPU, so it costs nothing on an idle machine; a quota holds a task back
even there. Tiers 1 and 2 therefore lower the weight alone, and tier 3, for the truly disruptive, adds the quota. A task
that is throttled by its own limit gets a burst budget for a moment, except in tier 3, whose quota is meant.

The manager keeps time with the clock it is given and has no timer: whoever drives it calls `reset_due` at `next_reset`.
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import msgspec

from bayplan.model.clock import MILLISECOND, SECOND, Clock, Instant
from bayplan.model.errors import BayplanError, PermanentError
from bayplan.node.burst.holds import Hold, Holds
from bayplan.node.burst.short import throttle_rate
from bayplan.node.cgroup.port import Bandwidth, Counters, Group, GroupGoneError, Tree
from bayplan.node.tiers.budget import Budget
from bayplan.node.tiers.metrics import ThrottleMetrics
from bayplan.node.tiers.task import Task

THRESHOLD = 0.10
BURST_LASTS = 200 * MILLISECOND
COOLDOWN = 500 * MILLISECOND
WINDOW = SECOND
"""The span over which the throttle rate is taken."""


class Tier(msgspec.Struct, frozen=True):
    """One degree of interference."""

    number: int
    meaning: str
    share: float = 1.0
    """Of the task's own weight."""
    quota_cpus: float | None = None
    """The hard limit in CPUs; None: the task's own."""
    burst: float = 0.0
    """The largest factor of a burst; 0: none."""


TIERS = (
    Tier(0, "left alone", burst=3.0),
    Tier(1, "lower weight", share=0.5, burst=2.0),
    Tier(2, "lowest weight", share=0.1, burst=1.5),
    Tier(3, "lowest weight and a hard quota", share=0.1, quota_cpus=0.25),
)


class TierError(PermanentError):
    """A task or tier that is not there, or a burst that the tier does not grant."""

    code = "BP-N051"


@runtime_checkable
class _CountsShares(Protocol):
    """A group of version 1, whose own unit is finer than the weight: what was found goes back in it."""

    def shares(self) -> int: ...

    def set_shares(self, shares: int) -> None: ...


class _Weight:
    """A group's soft share as it was found."""

    def __init__(self, group: Group) -> None:
        self._own = group.weight()
        self._shares = group.shares() if isinstance(group, _CountsShares) else None

    def write(self, group: Group, share: float) -> None:
        """Give the group a part of it; all of it is exactly what was found."""
        if share == 1 and self._shares is not None and isinstance(group, _CountsShares):
            group.set_shares(self._shares)
        else:
            group.set_weight(max(1, round(self._own * share)))


class _Kept(msgspec.Struct):
    task: Task
    tier: Tier
    weight: _Weight
    looks: list[tuple[Instant, Counters]]
    metrics: ThrottleMetrics = msgspec.field(default_factory=ThrottleMetrics)
    budget: Budget = Budget()
    rests_until: Instant = Instant(0)


class TierManager:
    """The tasks of a node and their tiers. `close` leaves every group as it was found."""

    def __init__(self, tree: Tree, clock: Clock, holds: Holds) -> None:
        self._tree, self._clock, self._holds = tree, clock, holds
        self._tasks: dict[str, _Kept] = {}

    def add(self, task: Task, tier: int = 0) -> None:
        """Take a task on. Raises TierError, GroupGoneError, WriteRefusedError."""
        if task.id in self._tasks:
            raise TierError(f"task {task.id} is there already", hint="set_tier moves it to another tier")
        _tier(task.id, tier)
        try:
            group = task.enter(self._tree)
            looks = [(self._clock.now(), group.counters())]
            self._tasks[task.id] = _Kept(task, TIERS[0], _Weight(group), looks)
            self.set_tier(task.id, tier)
        except BayplanError:
            if task.id in self._tasks:
                self.remove(task.id)
            else:
                task.leave(self._tree)
            raise

    def remove(self, task_id: str) -> None:
        """Give the task's group its own weight and limit back, and forget the task. Raises WriteRefusedError."""
        kept = self._kept(task_id)
        self._holds.release(kept.task.path)
        del self._tasks[task_id]
        try:
            kept.weight.write(self._tree.group(kept.task.path), 1)
        except GroupGoneError:
            return  # the container ended, and its limits with it
        finally:
            kept.task.leave(self._tree)

    def close(self) -> None:
        """Remove every task. One that cannot be does not keep the others: the first refusal is raised at the end."""
        refusals: list[BayplanError] = []
        for task_id in [*self._tasks]:
            try:
                self.remove(task_id)
            except BayplanError as error:
                refusals.append(error)
        if refusals:
            raise refusals[0]

    def tier(self, task_id: str) -> Tier:
        """The tier a task is in. Raises TierError."""
        return self._kept(task_id).tier

    def metrics(self, task_id: str) -> ThrottleMetrics:
        """What throttling did to the task so far. Raises TierError."""
        return self._kept(task_id).metrics

    def set_tier(self, task_id: str, number: int) -> None:
        """Move a task to a tier. Raises TierError, GroupGoneError, WriteRefusedError."""
        kept = self._kept(task_id)
        tier, path = _tier(task_id, number), kept.task.path
        kept.weight.write(self._tree.group(path), tier.share)
        if tier.quota_cpus is not None:
            self._hold(kept, _capped(self._holds.own(path), tier.quota_cpus))
        elif kept.tier.quota_cpus is not None:
            self._holds.release(path)
        kept.tier = tier

    def get_throttle_rate(self, task_id: str) -> float:
        """The share of the last second's periods in which the task was throttled. Raises TierError."""
        kept, now = self._kept(task_id), self._clock.now()
        counters = self._tree.group(kept.task.path).counters()
        kept.metrics.observe(kept.looks[-1][1], counters)
        recent = [look for look in kept.looks if look[0] >= now - WINDOW]
        kept.looks = [*(recent or kept.looks[-1:]), (now, counters)]
        first = kept.looks[0][1]
        return throttle_rate(counters.periods - first.periods, counters.throttled_periods - first.throttled_periods)

    def handle_burst(self, task_id: str) -> Instant | None:
        """Give a throttled task a burst; returns when it ends, None where there is none.

        Every call is a look the budget learns from. Raises TierError, GroupGoneError, WriteRefusedError.
        """
        kept, rate = self._kept(task_id), self.get_throttle_rate(task_id)
        kept.budget = kept.budget.learn(rate)
        limited = self._holds.own(kept.task.path).quota_us is not None
        if rate <= THRESHOLD or not kept.tier.burst or not limited or self._clock.now() < kept.rests_until:
            return None
        self.apply_burst_budget(task_id)
        return self.schedule_budget_reset(task_id, BURST_LASTS)

    def apply_burst_budget(self, task_id: str) -> Bandwidth:
        """Raise the task's limit by its budget; returns what it has now. Raises TierError where it has no burst."""
        kept = self._kept(task_id)
        own = self._holds.own(kept.task.path)
        if not kept.tier.burst or own.quota_us is None:
            why = "it has no limit" if kept.tier.burst else f"tier {kept.tier.number} ({kept.tier.meaning})"
            raise TierError(f"task {task_id} has no burst: {why}")
        given = msgspec.structs.replace(own, quota_us=int(own.quota_us * kept.budget.factor(kept.tier.burst)))
        self._hold(kept, given)
        kept.metrics.burst_activations += 1
        return given

    def schedule_budget_reset(self, task_id: str, after: int) -> Instant:
        """Have the task's own limit return after so many microseconds; it then rests.

        Raises TierError, also in a tier without bursts: its quota is there to stay.
        """
        kept = self._kept(task_id)
        if not kept.tier.burst:
            raise TierError(f"task {task_id} has no burst to end: tier {kept.tier.number} ({kept.tier.meaning})")
        at = Instant(self._clock.now() + after)
        self._holds.expire(kept.task.path, at)
        kept.rests_until = Instant(at + COOLDOWN)
        return at

    @property
    def next_reset(self) -> Instant | None:
        """When `reset_due` has something to do."""
        return self._holds.next_due

    def reset_due(self) -> list[str]:
        """Give those their own limits back whose time is over; returns their ids."""
        ended = {release.path for release in self._holds.release_due(self._clock.now())}
        return [task_id for task_id, kept in self._tasks.items() if kept.task.path in ended]

    def _hold(self, kept: _Kept, given: Bandwidth) -> None:
        if left_alone := self._holds.hold(Hold(kept.task.path, given)):
            raise TierError(f"task {kept.task.id}: {left_alone}", hint="it is theirs; the next call begins with it")

    def _kept(self, task_id: str) -> _Kept:
        try:
            return self._tasks[task_id]
        except KeyError as error:
            known = ", ".join(sorted(self._tasks)) or "none"
            raise TierError(f"no task {task_id}", hint=f"tasks: {known}") from error


def _tier(task_id: str, number: int) -> Tier:
    if not 0 <= number < len(TIERS):
        raise TierError(f"task {task_id}: no tier {number}", hint=f"tiers are 0 to {len(TIERS) - 1}")
    return TIERS[number]


def _capped(own: Bandwidth, cpus: float) -> Bandwidth:
    quota = int(cpus * own.period_us)
    quota = quota if own.quota_us is None else min(quota, own.quota_us)
    return msgspec.structs.replace(own, quota_us=quota, burst_us=min(own.burst_us, quota))
