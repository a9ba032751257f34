"""How long something took or is ago, as kubectl shows it: `95s`, `5m3s`, `2d5h`, `10y`.

Source of truth: k8s.io/apimachinery 0.36 pkg/util/duration, HumanDuration. Spans are microseconds, the unit of Instant;
nothing is imported, so a command that only prints loads nothing for it.
"""

from __future__ import annotations

UNKNOWN, INVALID = "<unknown>", "<invalid>"

_SECOND = 1_000_000


def age(since: int | None, now: int) -> str:
    """How long ago an Instant was, as kubectl's AGE."""
    return UNKNOWN if since is None else human_duration(now - since)


def human_duration(span: int) -> str:
    """A span as kubectl shows it: two units at most, the second only while it matters.

    A clock may be a little late: less than two seconds before now is now.
    """
    seconds = abs(span) // _SECOND * (1 if span >= 0 else -1)
    if seconds < 0:
        return INVALID if seconds < -1 else "0s"
    minutes, hours, days = seconds // 60, seconds // 3600, seconds // 86400
    steps = (  # below this many seconds: first number and unit, second number and unit
        (2 * 60, seconds, "s", 0, ""),
        (10 * 60, minutes, "m", seconds % 60, "s"),
        (3 * 3600, minutes, "m", 0, ""),
        (8 * 3600, hours, "h", minutes % 60, "m"),
        (48 * 3600, hours, "h", 0, ""),
        (8 * 86400, days, "d", hours % 24, "h"),
        (2 * 365 * 86400, days, "d", 0, ""),
        (8 * 365 * 86400, days // 365, "y", days % 365, "d"),
    )
    for below, first, unit, second, small in steps:
        if seconds < below:
            return f"{first}{unit}{second}{small}" if second else f"{first}{unit}"
    return f"{days // 365}y"
