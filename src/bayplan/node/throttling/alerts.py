"""Alerts that do not flap: a value must stay above its threshold for a while, and fall well below it for as long.

    inactive ── above ──▶ pending ── still above after `hold` ──▶ firing ── below `clear` for `hold` ──▶ inactive

Pure: the state and a value go in, the next state comes out.
"""

from __future__ import annotations

import enum

import msgspec

from bayplan.model.clock import SECOND, Instant

_CLEAR = 0.8
"""An alert ends at four fifths of its threshold."""


class State(enum.StrEnum):
    """Prometheus' words."""

    INACTIVE = "inactive"
    PENDING = "pending"
    FIRING = "firing"


class Rule(msgspec.Struct, frozen=True):
    """When to alert."""

    name: str
    threshold: float
    hold_us: int = 60 * SECOND

    @property
    def clear(self) -> float:
        """Below this an alert may end."""
        return self.threshold * _CLEAR


class Alert(msgspec.Struct, frozen=True):
    """Where one alert of one group stands. `since`: when it left the state's own side of the threshold, if it did."""

    state: State = State.INACTIVE
    since: Instant | None = None


def step(alert: Alert, rule: Rule, value: float, now: Instant) -> Alert:
    """The next state after a value."""
    if alert.state is State.FIRING:
        if value >= rule.clear:
            return Alert(State.FIRING)
        since = now if alert.since is None else alert.since
        return Alert() if now - since >= rule.hold_us else Alert(State.FIRING, since)
    if value <= rule.threshold:
        return Alert()
    since = now if alert.since is None else alert.since
    return Alert(State.FIRING) if now - since >= rule.hold_us else Alert(State.PENDING, since)
