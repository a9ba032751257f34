"""When a cron schedule is due: the next time, and the one that was missed last.

A time is due when a clock on the wall of its zone shows it: an hour that summer time leaves out is never due, one that
comes twice is due twice. (cronsim would not do: it follows Debian's cron, which moves the times of a missing hour.)
Source of truth: robfig/cron v3, spec.go, and pkg/controller/cronjob/utils.go.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import Enum
from functools import cache
from typing import NamedTuple
from zoneinfo import ZoneInfo

from bayplan.cluster.embedded.admission.workloads.cron_schedule import Every, Schedule, Times
from bayplan.model.clock import SECOND, Instant

_MINUTE = 60
_YEARS = 5  # what is not due within as many years never is
_MANY = 100


class Missed(Enum):
    """How many times passed unused."""

    NONE = "none"
    FEW = "few"
    MANY = "many"


class Due(NamedTuple):
    """What there was to start: the latest time that has passed, if any, since the earliest that counts."""

    since: Instant
    last: Instant | None
    missed: Missed


class NeverDueError(ValueError):
    """A schedule that no calendar holds, such as the 31st of February."""


@cache
def zone_of(name: str) -> ZoneInfo:
    """A zone by its name; '' is UTC."""
    return ZoneInfo(name or "UTC")


def next_after(schedule: Schedule, after: Instant) -> Instant | None:
    """The first time after an instant; None if there is none."""
    if isinstance(schedule, Every):
        return Instant((after // SECOND + schedule.seconds) * SECOND)
    zone = zone_of(schedule.zone)
    at = (after // SECOND // _MINUTE + 1) * _MINUTE
    last_year = datetime.fromtimestamp(at, zone).year + _YEARS
    while (local := datetime.fromtimestamp(at, zone)).year <= last_year:
        if local.month not in schedule.months:
            at = _midnight((local.replace(day=1) + timedelta(days=32)).replace(day=1))
        elif not _is_day(schedule, local):
            at = _midnight(local + timedelta(days=1))
        elif local.hour not in schedule.hours:
            at += (_MINUTE - local.minute) * _MINUTE
        elif local.minute not in schedule.minutes:
            at += _MINUTE
        else:
            return Instant(at * SECOND)
    return None


def _midnight(day: datetime) -> int:
    return int(day.replace(hour=0, minute=0, second=0, fold=0).timestamp())


def _is_day(schedule: Times, local: datetime) -> bool:
    by_month, by_week = local.day in schedule.days, local.isoweekday() % 7 in schedule.weekdays
    return by_month or by_week if schedule.either_day else by_month and by_week


def due(schedule: Schedule, since: Instant, now: Instant) -> Due:
    """What was due between two instants. Raises NeverDueError.

    How many times were missed is reckoned from the distance of the first two.
    """
    first = next_after(schedule, since)
    if first is not None and now < first:
        return Due(since, None, Missed.NONE)
    second = next_after(schedule, first) if first is not None else None
    if first is None or (second is not None and second - first < SECOND):
        raise NeverDueError("time difference between two schedules is less than 1 second")
    if second is None or now < second:
        return Due(since, first, Missed.NONE)
    apart = second - first
    count = (now - first) // apart + 1
    last, at = None, next_after(schedule, Instant(first + (count - 2) * apart))
    while at is not None and at <= now:
        last, at = at, next_after(schedule, at)
    return Due(since, last, Missed.MANY if count > _MANY else Missed.FEW)
