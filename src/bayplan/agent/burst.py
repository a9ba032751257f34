"""The agent that lets throttled groups burst: it looks, asks its mode, and has the keeper write.

Only the lowest groups with a limit are looked at: the limits above them follow (see `node.burst.holds`). Without a
keeper it is a rehearsal: everything is decided and told, nothing is written.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec

from bayplan.agent.burst_modes import Advice, Look, Mode
from bayplan.agent.keeper import Told
from bayplan.agent.keeping import Keeping
from bayplan.model.clock import SECOND, Clock, Instant
from bayplan.node.burst.holds import Hold
from bayplan.node.burst.short import throttle_rate
from bayplan.node.cgroup.port import Bandwidth, Counters, GroupGoneError, Tree, UnsupportedError

_RESCAN = SECOND
"""How often new groups are looked for."""


class Happening(msgspec.Struct, frozen=True):
    """Something to tell: a group that got another limit, got its own back, or was refused."""

    at: Instant
    path: str
    what: str
    limit_cpus: float | None = None
    """The limit it has, or would have, from now on."""
    why: str = ""


class Watched(msgspec.Struct):
    """A group as the agent sees it."""

    path: str
    own: Bandwidth
    counters: Counters
    first: Counters
    wake: Instant
    word: str = "watching"
    rate: float = 0.0
    given: Bandwidth | None = None
    """What it holds instead of its own limit."""
    bursts: int = 0
    why: str = ""

    @property
    def throttled_share(self) -> float:
        """The share of periods that ended throttled since the group is watched."""
        first, now = self.first, self.counters
        return throttle_rate(now.periods - first.periods, now.throttled_periods - first.throttled_periods)


class BurstAgent:
    """Looks at groups, those that it `may_touch`, and has them burst. `keeping` None: nothing is written."""

    def __init__(
        self,
        tree: Tree,
        mode: Mode,
        clock: Clock,
        tell: Callable[[Happening], None],
        *,
        below: Sequence[str] = ("/",),
        cpus: int | None = None,
        may_touch: Callable[[str], bool] | None = None,
    ) -> None:
        self._tree, self._mode, self._clock, self._tell = tree, mode, clock, tell
        self._below, self._may_touch = below, may_touch
        self._cpus = cpus or os.cpu_count() or 1
        self._used: tuple[Instant, int] | None = None
        self._busy: float | None = None
        self._scan_at = Instant(0)
        self.keeping: Keeping | None = None
        self.watched: dict[str, Watched] = {}

    async def run(self, until: Instant | None = None) -> None:
        """Look and act until then; without it until cancelled. The caller ends the keeper."""
        while until is None or self._clock.now() < until:
            wake = self.tick()
            await self._clock.sleep_until(wake if until is None else min(wake, until))

    def tick(self) -> Instant:
        """Look at every group whose time has come; returns when to come again."""
        now = self._clock.now()
        if now >= self._scan_at:
            self._scan(now)
        for watched in [*self.watched.values()]:
            if watched.wake <= now:
                self._look(watched, now)
        return min([self._scan_at, *(each.wake for each in self.watched.values())])

    def hear(self, told: Told) -> None:
        """News of the keeper."""
        watched = self.watched.get(told.path)
        own = None if watched is None else watched.own.cpus
        if told.what == "held" or (told.what == "ready" and not told.why):
            return
        if watched is not None:
            watched.given = None
            if told.why:  # somebody else has the say now, or the kernel said no: begin anew with what is there
                self._drop(told.path)
        if told.what == "refused" or told.why or told.late_us is None:
            self._say(told.path, told.what, own, told.why)
            return
        self._say(told.path, told.what, own, f"{told.late_us / 1000:.1f} ms after its time")

    def _scan(self, now: Instant) -> None:
        self._scan_at = Instant(now + _RESCAN)
        self._measure_machine(now)
        found = {
            path: (own, counters)
            for path, own, counters in limited_groups(self._tree, self._below)
            if self._may_touch is None or self._may_touch(path)
        }
        for path in [*self.watched]:
            if path not in found:
                self._lose(path)
        for path, (own, counters) in found.items():
            if path not in self.watched:
                self.watched[path] = Watched(path, own, counters, counters, now)

    def _measure_machine(self, now: Instant) -> None:
        used = self._tree.group("/").counters().usage_ns
        if self._used is not None and now > self._used[0]:
            self._busy = (used - self._used[1]) / ((now - self._used[0]) * 1000 * self._cpus)
        self._used = now, used

    def _look(self, watched: Watched, now: Instant) -> None:
        try:
            watched.counters = self._tree.group(watched.path).counters()
        except GroupGoneError:
            self._lose(watched.path)
            return
        advice = self._mode.look(watched.path, Look(watched.own, watched.counters, now, self._busy))
        watched.wake, watched.word = advice.wake, advice.word
        if advice.word != "bursting":
            watched.rate = advice.rate
        if advice.give is not None:
            self._give(watched, advice)
        elif advice.give_back:
            watched.given = None
            if self.keeping is not None:
                self.keeping.release(watched.path)
            else:
                self._say(watched.path, "would end", watched.own.cpus, advice.why)

    def _give(self, watched: Watched, advice: Advice) -> None:
        assert advice.give is not None
        watched.rate, watched.given, watched.why = advice.rate, advice.give, advice.why
        watched.bursts += 1
        what = "burst" if self.keeping is not None else "would burst"
        self._say(watched.path, what, advice.give.cpus, advice.why)
        if self.keeping is not None:
            self.keeping.hold(Hold(watched.path, advice.give, advice.until))

    def _lose(self, path: str) -> None:
        """The group is gone: those above it need no more for it."""
        self._drop(path)
        if self.keeping is not None:
            self.keeping.release(path)

    def _drop(self, path: str) -> None:
        del self.watched[path]
        self._mode.forget(path)

    def _say(self, path: str, what: str, limit: float | None, why: str) -> None:
        self._tell(Happening(self._clock.now(), path, what, limit, why))


def limited_groups(tree: Tree, below: Iterable[str]) -> Iterator[tuple[str, Bandwidth, Counters]]:
    """The groups with a limit that have no such group beneath them."""
    found: dict[str, tuple[Bandwidth, Counters]] = {}
    for start in below:
        for group in tree.walk(start):
            try:
                bandwidth = group.bandwidth()
                if bandwidth.quota_us is not None:
                    found[group.path] = bandwidth, group.counters()
            except (GroupGoneError, UnsupportedError):  # gone meanwhile, or in other hierarchies only
                continue
    above = {path[:end] for path in found for end, letter in enumerate(path) if letter == "/"}
    for path, (bandwidth, counters) in sorted(found.items()):
        if path not in above:
            yield path, bandwidth, counters
