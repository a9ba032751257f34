"""What time it is for the cluster: the times that a ledger stamps itself must fit those that objects carry.

Ours, where the server's clock agrees with it: that has microseconds, and a server says whole seconds only. Else theirs,
as they told it last, and as fast as it went between their last two answers: a clock may be wrong, and a `bayplan up
--speed 60` runs a minute a second.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from bayplan.model.clock import SECOND, Clock, Instant
from bayplan.model.errors import BayplanError
from bayplan.service.logging import get_logger

log = get_logger(__name__)

_SKEW = 5 * SECOND
"""Up to this, the difference may be the way of the answer."""
_EVERY = 10 * SECOND
_FIRST = 2 * SECOND
_AS_FAST = 0.2
"""Whole seconds, ten apart, tell a speed only so well."""

AskTime = Callable[[], Awaitable[Instant | None]]
"""The server's time now; None: it does not say."""


class Stamps:
    """Call it for the time. `begin` before the first call; `run` beside the rest."""

    def __init__(self, ask: AskTime, clock: Clock) -> None:
        self._ask = ask
        self._clock = clock
        self._ours = self._theirs = self._last = Instant(0)
        self._speed = 1.0
        self._differs = False

    def __call__(self) -> Instant:
        """Now; by their clock never earlier than the last time."""
        now = self._clock.now()
        if not self._differs:
            return now
        self._last = max(self._last, Instant(self._theirs + int((now - self._ours) * self._speed)))
        return self._last

    async def begin(self) -> None:
        """Ask; and where the clocks differ once more, for the speed."""
        await self._compare()
        if self._differs:
            await self._clock.sleep_until(Instant(self._clock.now() + _FIRST))
            await self._compare()

    async def run(self) -> None:
        """Ask from time to time, until cancelled."""
        while True:
            await self._clock.sleep_until(Instant(self._clock.now() + _EVERY))
            await self._compare()

    async def _compare(self) -> None:
        try:
            theirs = await self._ask()
        except BayplanError as error:
            log.debug("server's time not told", why=error.message)
            return
        if theirs is None:
            return
        ours, before = self._clock.now(), self._differs
        self._differs = abs(theirs - ours) > _SKEW
        if self._differs and before and ours > self._ours:
            speed = (theirs - self._theirs) / (ours - self._ours)
            self._speed = 1.0 if abs(speed - 1) < _AS_FAST else max(speed, 0.0)
        self._ours, self._theirs = ours, theirs
        if self._differs != before:
            log.warning("clocks differ" if self._differs else "clocks agree", seconds=(theirs - ours) // SECOND)
        if not self._differs:
            self._speed, self._last = 1.0, Instant(0)
