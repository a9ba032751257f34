"""What a group did, looked at several times a period, and the bursts of work that can be told from it.

A burst is work between two pauses of the group's own. Throttling pauses it as well, and cuts a burst into pieces, one a
period; such a pause ends with a throttled period counted and is no pause of its own. So the work of a burst is known
even where it was throttled: it is what the group used until it had nothing more to do.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from bayplan.model.clock import Instant
from bayplan.node.cgroup.port import Bandwidth

_BUSY_CPUS = 0.02
"""Less than this between two looks is a pause: timers and signals of an idle process."""


class Look(msgspec.Struct, frozen=True):
    """Counters at an instant, and how many threads of the group were running or wanted to (state R)."""

    at: Instant
    usage_ns: int
    periods: int
    throttled_periods: int
    throttled_ns: int
    runnable: int = 0


class Evidence(msgspec.Struct, frozen=True):
    """All that an explanation rests on."""

    bandwidth: Bandwidth
    looks: tuple[Look, ...]
    cpus: int
    """CPUs that the group may run on."""
    kernel: str
    """`uname -r`."""
    threads: int = 0
    """The most threads that it had."""
    node_idle_cpus: float | None = None
    """CPUs of the whole node that had nothing to do meanwhile, on average."""
    has_burst: bool = True
    """Whether the kernel lets the group save unused quota."""

    @property
    def span_us(self) -> int:
        """How long the group was looked at."""
        return self.looks[-1].at - self.looks[0].at if self.looks else 0

    @property
    def throttle_rate(self) -> float:
        """Throttled periods of all."""
        periods = self.looks[-1].periods - self.looks[0].periods if self.looks else 0
        return (self.looks[-1].throttled_periods - self.looks[0].throttled_periods) / periods if periods else 0.0

    @property
    def usage_cpus(self) -> float:
        """CPUs in use on average."""
        return (self.looks[-1].usage_ns - self.looks[0].usage_ns) / 1000 / self.span_us if self.span_us else 0.0

    @property
    def throttled_seconds(self) -> float:
        """Seconds throttled a second, summed over CPUs."""
        throttled = self.looks[-1].throttled_ns - self.looks[0].throttled_ns if self.looks else 0
        return throttled / 1000 / self.span_us if self.span_us else 0.0


class Burst(msgspec.Struct, frozen=True):
    """Work between two pauses."""

    work_us: int
    lasted_us: int
    throttled_periods: int
    runnable: int
    """The most threads that wanted to run at once."""
    whole: bool = True
    """Whether both its pauses were seen; work that was cut off by the end of looking is not known."""


def bursts(looks: Sequence[Look]) -> list[Burst]:
    """The bursts, in order."""
    found: list[Burst] = []
    start: int | None = None
    last = 0  # the look at which the burst was last seen at work
    for index in range(1, len(looks)):
        if not _at_work(looks[index - 1], looks[index]):
            continue
        if start is not None and index - 1 > last and _paused_itself(looks[last], looks[index]):
            found.append(_burst(looks, start, last))
            start = None
        start = index - 1 if start is None else start
        last = index
    if start is not None:
        found.append(_burst(looks, start, last))
    return found


def _at_work(before: Look, after: Look) -> bool:
    return (after.usage_ns - before.usage_ns) / 1000 > _BUSY_CPUS * (after.at - before.at)


def _paused_itself(stopped: Look, resumed: Look) -> bool:
    return resumed.throttled_periods == stopped.throttled_periods


def _burst(looks: Sequence[Look], start: int, last: int) -> Burst:
    first, end = looks[start], looks[last]
    # the period that throttled it is counted when it ends: one look later, where there is one
    counted = looks[min(last + 1, len(looks) - 1)]
    return Burst(
        (end.usage_ns - first.usage_ns) // 1000,
        end.at - first.at,
        counted.throttled_periods - first.throttled_periods,
        max(look.runnable for look in looks[start : last + 1]),
        start > 0 and last < len(looks) - 1,
    )
