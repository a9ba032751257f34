"""The agent that lets throttled groups burst: it looks, asks its mode, and has the keeper write.

Only the lowest groups with a limit are looked at: the limits above them follow (see `node.burst.holds`). Without a
keeper it is a rehearsal: everything is decided and told, nothing is written.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec

from bayplan.agent.burst_modes import Advice, Look, Mode
from bayplan.agent.keeper import Told
from bayplan.agent.keeping import Keeping
from bayplan.agent.reading import UNREADABLE, cpu_part, is_text
from bayplan.model.clock import SECOND, Clock, Instant
from bayplan.node.burst.holds import Hold
from bayplan.node.burst.short import throttle_rate
from bayplan.node.cgroup.port import Bandwidth, Counters, Group, Tree, UnsupportedError
from bayplan.node.tiers.metrics import ThrottleMetrics

_RESCAN = SECOND
"""How often new groups are looked for."""
_REST = 3
"""Times that a round of looks took until the next one: hundreds of groups are looked at less often, and the rest of the
process, which answers signals and scrapes, always has its turn."""


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
    given_before: Bandwidth | None = None
    """What it held before that: the keeper may not have come to write the new one yet."""
    metrics: ThrottleMetrics = msgspec.field(default_factory=ThrottleMetrics)
    why: str = ""

    @property
    def bursts(self) -> int:
        """How often it got a limit other than its own."""
        return self.metrics.burst_activations

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
        self._tree, self._mode, self._clock, self._tell = cpu_part(tree), mode, clock, tell
        self._below, self._may_touch = below, may_touch
        self._cpus = cpus or os.cpu_count() or 1
        self._used: tuple[Instant, int] | None = None
        self._busy: float | None = None
        self._scan_at = Instant(0)
        self.keeping: Keeping | None = None
        self.watched: dict[str, Watched] = {}
        self._groups: dict[str, Group] = {}
        """Of those that are watched: finding one again costs as much as reading it."""
        self.left_out = 0
        """Groups with a limit that it may not touch."""
        self.unmeasured: tuple[str, ...] = ()
        """Groups that have a limit and no counters: of version 1, and in the hierarchy of cpu alone."""

    async def run(self, until: Instant | None = None) -> None:
        """Look and act until then; without it until cancelled. The caller ends the keeper."""
        while until is None or self._clock.now() < until:
            began = self._clock.now()
            wake = self.tick()
            ended = self._clock.now()
            wake = Instant(max(wake, ended + _REST * (ended - began)))
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
        found = {group.path: (group, own) for group, own in limited_groups(self._tree, self._below)}
        if self._may_touch is not None:
            ours = {path: seen for path, seen in found.items() if self._may_touch(path)}
            self.left_out, found = len(found) - len(ours), ours
        for path, known in [*self.watched.items()]:
            # a limit that is neither its own nor what it was given is somebody else's: begin anew with it
            if path not in found or found[path][1] not in (known.own, known.given, known.given_before):
                self._lose(path)
        unmeasured = []
        for path, (group, own) in found.items():
            if path not in self.watched:
                try:
                    counters = group.counters()
                except UNREADABLE as fault:
                    unmeasured += [path] if isinstance(fault, UnsupportedError) else []
                    continue
                self.watched[path] = Watched(path, own, counters, counters, now)
                self._groups[path] = group
        self.unmeasured = tuple(unmeasured)

    def _measure_machine(self, now: Instant) -> None:
        used = self._tree.group("/").counters().usage_ns
        if self._used is not None and now > self._used[0]:
            self._busy = (used - self._used[1]) / ((now - self._used[0]) * 1000 * self._cpus)
        self._used = now, used

    def _look(self, watched: Watched, now: Instant) -> None:
        try:
            counters = self._groups[watched.path].counters()
        except UNREADABLE:
            self._lose(watched.path)
            return
        watched.metrics.observe(watched.counters, counters)
        watched.counters = counters
        advice = self._mode.look(watched.path, Look(watched.own, watched.counters, now, self._busy))
        watched.wake, watched.word = advice.wake, advice.word
        if advice.word != "bursting":
            watched.rate = advice.rate
        if advice.give is not None and watched.given is None and not self._has_its_own(watched):
            self._lose(watched.path)  # resized since the last scan: what was computed is of a limit that is no more
        elif advice.give is not None:
            self._give(watched, advice)
        elif advice.give_back and self.keeping is not None:
            self.keeping.release(watched.path)  # the keeper says when it is done; until then the limit is not its own
        elif advice.give_back:
            watched.given = None
            self._say(watched.path, "would end", watched.own.cpus, advice.why)

    def _has_its_own(self, watched: Watched) -> bool:
        try:
            return self._groups[watched.path].bandwidth() == watched.own
        except UNREADABLE:
            return False

    def _give(self, watched: Watched, advice: Advice) -> None:
        assert advice.give is not None
        watched.given_before, watched.given = watched.given, advice.give
        watched.rate, watched.why = advice.rate, advice.why
        watched.metrics.burst_activations += 1
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
        del self.watched[path], self._groups[path]
        self._mode.forget(path)

    def _say(self, path: str, what: str, limit: float | None, why: str) -> None:
        self._tell(Happening(self._clock.now(), path, what, limit, why))


def limited_groups(tree: Tree, below: Iterable[str]) -> Iterator[tuple[Group, Bandwidth]]:
    """The groups with a limit that have no such group beneath them."""
    found: dict[str, tuple[Group, Bandwidth]] = {}
    for start in below:
        for group in tree.walk(start):
            with contextlib.suppress(*UNREADABLE):
                bandwidth = group.bandwidth()
                if bandwidth.quota_us is not None and is_text(group.path):
                    found[group.path] = group, bandwidth
    above = {path[:end] for path in found for end, letter in enumerate(path) if letter == "/"}
    yield from (found[path] for path in sorted(found.keys() - above))
