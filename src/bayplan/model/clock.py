"""Time comes in from outside. This module is the only one in the package that reads the machine's clock.

`Instant` is whole microseconds since the Unix epoch: exact, ordered, cheap. A pure core takes an Instant as an
argument; a shell holds a Clock.
"""

from __future__ import annotations

import asyncio
import functools
import heapq
import itertools
import math
import re
import time
from datetime import UTC, datetime, timedelta
from typing import NewType, Protocol

Instant = NewType("Instant", int)

MICROSECOND = 1
MILLISECOND = 1_000
SECOND = 1_000_000

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_RFC3339 = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?(Z|[+-][0-9]{2}:[0-9]{2})", re.ASCII
)


def seconds(value: float) -> int:
    """A span in the unit of Instant."""
    return round(value * SECOND)


@functools.lru_cache(maxsize=256)
def _second_text(whole: int) -> str:
    return (_EPOCH + timedelta(seconds=whole)).isoformat()[:19]


def rfc3339(at: Instant) -> str:
    """`2026-01-02T03:04:05Z`, the form of metav1.Time: whole seconds, UTC."""
    return _second_text(at // SECOND) + "Z"


def rfc3339_micro(at: Instant) -> str:
    """`2026-01-02T03:04:05.000006Z`, the form of metav1.MicroTime."""
    return f"{_second_text(at // SECOND)}.{at % SECOND:06d}Z"


def parse_rfc3339(text: str) -> Instant:
    """The instant that an RFC 3339 text names; fractions below a microsecond are cut. Raises ValueError."""
    if not _RFC3339.fullmatch(text):  # fromisoformat takes more: week dates, no zone, any separator
        raise ValueError(f"{text!r} is no RFC 3339 time, such as 2026-01-02T03:04:05Z")
    return Instant((datetime.fromisoformat(text) - _EPOCH) // _MICROSECOND)


class Clock(Protocol):
    """Where a shell gets the time from, and how it waits."""

    def now(self) -> Instant:
        """The present instant. Never goes backwards."""
        ...

    async def sleep_until(self, at: Instant) -> None:
        """Return once `now() >= at`; at once if it is already."""
        ...


class SystemClock:
    """The machine's time: wall clock at the start, advanced by the monotonic clock."""

    def __init__(self) -> None:
        self._base = time.time_ns() // 1000 - time.monotonic_ns() // 1000

    def now(self) -> Instant:
        return Instant(self._base + time.monotonic_ns() // 1000)

    async def sleep_until(self, at: Instant) -> None:
        if (left := at - self.now()) > 0:
            await asyncio.sleep(left / SECOND)
            await self.sleep_until(at)  # a timer may fire a little early


class ScaledClock:
    """The machine's time at another speed: it begins at `start` and runs `speed` times as fast."""

    def __init__(self, start: Instant, speed: float, base: Clock | None = None) -> None:
        self._base: Clock = SystemClock() if base is None else base
        self._start, self._speed = start, speed
        self._begun = self._base.now()

    def now(self) -> Instant:
        return Instant(self._start + int((self._base.now() - self._begun) * self._speed))

    async def sleep_until(self, at: Instant) -> None:
        while (left := at - self.now()) > 0:
            await self._base.sleep_until(Instant(self._base.now() + max(MILLISECOND, math.ceil(left / self._speed))))


class VirtualClock:
    """Time that moves only when told to. Sleepers wake in the order of their instants, then of arrival."""

    def __init__(self, start: Instant = Instant(1_767_225_600 * SECOND)) -> None:  # 2026-01-01T00:00:00Z
        self._now = start
        self._sleepers: list[tuple[Instant, int, asyncio.Future[None]]] = []  # a heap
        self._arrivals = itertools.count()

    def now(self) -> Instant:
        return self._now

    async def sleep_until(self, at: Instant) -> None:
        if at <= self._now:
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        sleeper = (at, next(self._arrivals), future)
        heapq.heappush(self._sleepers, sleeper)
        try:
            await future
        except asyncio.CancelledError:
            if sleeper in self._sleepers:  # else a busy watch with a far deadline leaves one behind at every change
                self._sleepers.remove(sleeper)
                heapq.heapify(self._sleepers)
            raise

    def advance_to(self, at: Instant) -> None:
        """Move to `at` and wake who waited for it. Raises ValueError when `at` lies in the past."""
        if at < self._now:
            raise ValueError(f"time does not go back: it is {rfc3339(self._now)}, asked for {rfc3339(at)}")
        self._now = at
        while self._sleepers and self._sleepers[0][0] <= at:
            future = heapq.heappop(self._sleepers)[2]
            if not future.done():
                future.set_result(None)


def monotonic() -> float:
    """Seconds on the machine's monotonic clock, which all of its processes share.

    For measuring spans, and for deadlines that two processes agree on; whatever else decides by time takes a Clock.
    """
    return time.perf_counter()
