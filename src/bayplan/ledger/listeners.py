"""Which kinds are listened to: one listener a kind, however many workloads it has.

The listener manager's duties as a state machine: time, wants and signs of life in, actions out.

    recover   at the start, a listener for each kind of which stored workloads are open
    start     at once, when a kind turns up
    collect   every 10 s: end those of whose kind nothing is left
    health    every 30 s: restart those that ended, or gave no sign of life for too long
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from bayplan.cluster import kinds
from bayplan.ledger.owners import Watch
from bayplan.ledger.status.kinds import GroupKind
from bayplan.model.clock import SECOND, Instant

CONTROLLERS = (
    kinds.REPLICATION_CONTROLLER,
    kinds.REPLICA_SET,
    kinds.DEPLOYMENT,
    kinds.STATEFUL_SET,
    kinds.DAEMON_SET,
    kinds.JOB,
    kinds.CRON_JOB,
)
"""The built-in kinds that may stand above pods."""


class Timing(msgspec.Struct, frozen=True, kw_only=True):
    """The numbers of the listener manager."""

    collect: int = 10 * SECOND
    health: int = 30 * SECOND
    silence: int = 150 * SECOND
    """A living reflector gives a sign with each event, bookmark, pause and attempt: at the latest after its stall time
    (70 s) and its longest pause (30 s)."""


class Sign(msgspec.Struct, frozen=True):
    """What is known of a running listener."""

    heard_at: Instant
    """The last event, bookmark or attempt of its reflector."""
    ended: str | None = None
    """Why it ended, if it did."""


class Action(msgspec.Struct, frozen=True):
    """What to do. A restart ends the old listener before it starts the new one."""

    verb: Literal["start", "restart", "stop"]
    kind: GroupKind
    watch: Watch
    event: str
    """The name of the log event that goes with it (events.py)."""
    fields: dict[str, Any]


class _Listener(msgspec.Struct):
    watch: Watch
    started_at: Instant
    failures: int = 0


class Listeners:
    """Decides; somebody else runs them. Call `step` whenever the wants change, and at `due` at the latest."""

    def __init__(self, timing: Timing = Timing()) -> None:  # noqa: B008 - frozen
        self._timing = timing
        self._running: dict[GroupKind, _Listener] = {}
        self._collected_at: Instant | None = None
        self._checked_at: Instant | None = None

    def step(
        self, now: Instant, wanted: Mapping[GroupKind, Watch], signs: Mapping[GroupKind, Sign] | None = None
    ) -> list[Action]:
        """What to do now. `signs` has those of running listeners; one without is as old as its start."""
        first = self._collected_at is None
        if self._collected_at is None or self._checked_at is None:
            self._collected_at = self._checked_at = now
        actions = [action for kind, watch in wanted.items() for action in self._want(now, kind, watch, first)]
        if now - self._collected_at >= self._timing.collect:
            self._collected_at = now
            actions += [self._end(kind) for kind in list(self._running) if kind not in wanted]
        if now - self._checked_at >= self._timing.health:
            self._checked_at = now
            actions += [action for kind in self._running for action in self._check(now, kind, (signs or {}).get(kind))]
        return actions

    def due(self, now: Instant) -> Instant:
        """When `step` is to be called again."""
        if self._collected_at is None or self._checked_at is None:
            return now
        return Instant(min(self._collected_at + self._timing.collect, self._checked_at + self._timing.health))

    def __len__(self) -> int:
        """How many listeners run."""
        return len(self._running)

    def _want(self, now: Instant, kind: GroupKind, watch: Watch, first: bool) -> list[Action]:
        running = self._running.get(kind)
        if running is None:
            self._running[kind] = _Listener(watch, now)
            name = "listener recovered" if first else "listener started"
            return [Action("start", kind, watch, name, {"kind": str(kind), "whole": watch.whole})]
        if watch.whole and not running.watch.whole:  # never narrowed: that would cost a list, and gain little
            running.watch, running.started_at = watch, now
            return [Action("restart", kind, watch, "listener widened", {"kind": str(kind)})]
        return []

    def _end(self, kind: GroupKind) -> Action:
        return Action("stop", kind, self._running.pop(kind).watch, "listener ended", {"kind": str(kind)})

    def _check(self, now: Instant, kind: GroupKind, sign: Sign | None) -> list[Action]:
        listener = self._running[kind]
        heard_at = max(listener.started_at, sign.heard_at if sign is not None else 0)
        if sign is not None and sign.ended is not None:
            why = sign.ended
        elif now - heard_at > self._timing.silence:
            why = f"no sign of life for {(now - heard_at) // SECOND} s"
        else:
            listener.failures = 0
            return []
        listener.failures += 1
        listener.started_at = now
        fields = {"kind": str(kind), "why": why, "failures": listener.failures}
        return [Action("restart", kind, listener.watch, "listener restarted", fields)]
