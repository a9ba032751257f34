"""Cron schedules: five fields or a descriptor, refused in the words of the parser that upstream uses.

Source of truth: robfig/cron v3, ParseStandard, and Go's time.ParseDuration and time.LoadLocation. When a schedule is
due is another matter: controllers/cron_job_times.py.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple
from zoneinfo import available_timezones

from bayplan.cluster.embedded.admission.fields import quoted
from bayplan.cluster.embedded.admission.workloads.numbers import MAX_INT64, atoi
from bayplan.model.clock import SECOND
from bayplan.model.durations import DurationError, parse_duration


class _Bounds(NamedTuple):
    low: int
    high: int
    names: tuple[str, ...] = ()
    """Words for the numbers from `low` on."""


_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_FIELDS = (_Bounds(0, 59), _Bounds(0, 23), _Bounds(1, 31), _Bounds(1, 12, _MONTHS), _Bounds(0, 6, _DAYS))
"""Minute, hour, day of month, month, day of week."""

_DESCRIPTORS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}


class Times(NamedTuple):
    """The minutes at which something is due, in a zone's own time ('' is UTC)."""

    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    either_day: bool
    """Day of month and day of week are both restricted: one of them is enough."""
    zone: str


class Every(NamedTuple):
    """Due again and again after so many seconds."""

    seconds: int


Schedule = Times | Every


class ScheduleError(ValueError):
    """A schedule that cannot be read; the text is for the user."""


def read_schedule(spec: str) -> Schedule:
    """The schedule that a text names. Raises ScheduleError."""
    if not spec:
        raise ScheduleError("empty spec string")
    zone = ""
    if spec.startswith(("TZ=", "CRON_TZ=")):
        zone, space, spec = spec.partition("=")[2].partition(" ")
        if not space:
            raise ScheduleError("invalid schedule format: runtime error: slice bounds out of range [:-1]")
        if fault := location_fault(zone):
            raise ScheduleError(f"provided bad location {zone}: {fault}")
        spec = spec.strip()
    if spec.startswith("@every "):
        return _every(spec)
    if spec.startswith("@") and spec not in _DESCRIPTORS:
        raise ScheduleError(f"unrecognized descriptor: {spec}")
    fields = _DESCRIPTORS.get(spec, spec).split()
    if len(fields) != len(_FIELDS):
        raise ScheduleError(f"expected exactly 5 fields, found {len(fields)}: [{' '.join(fields)}]")
    read = [_field(field, bounds) for field, bounds in zip(fields, _FIELDS, strict=True)]
    minutes, hours, days, months, weekdays = (values for values, _ in read)
    return Times(minutes, hours, days, months, weekdays, not (read[2][1] or read[4][1]), zone)


def _every(spec: str) -> Every:
    try:
        span = parse_duration(spec.removeprefix("@every "))
    except DurationError as error:
        raise ScheduleError(f"failed to parse duration {spec}: {error}") from None
    return Every(max(1, span // SECOND))


def _field(field: str, bounds: _Bounds) -> tuple[frozenset[int], bool]:
    """The values that a field allows, and whether it was left open (`*`)."""
    values: set[int] = set()
    starred = False
    for expression in filter(None, field.split(",")):
        allowed, star = _range(expression, bounds)
        values.update(allowed)
        starred |= star
    return frozenset(values), starred


def _range(expression: str, bounds: _Bounds) -> tuple[range, bool]:
    """`a`, `a-b`, `*` or `?`, each with an optional `/step`."""
    span, *steps = expression.split("/")
    start, end = _limits(span, expression, bounds)
    if len(steps) > 1:
        raise ScheduleError(f"too many slashes: {expression}")
    step = _number(steps[0]) if steps else 1
    if steps and "-" not in span:
        end = bounds.high
    if start < bounds.low:
        raise ScheduleError(f"beginning of range ({start}) below minimum ({bounds.low}): {expression}")
    if end > bounds.high:
        raise ScheduleError(f"end of range ({end}) above maximum ({bounds.high}): {expression}")
    if start > end:
        raise ScheduleError(f"beginning of range ({start}) beyond end of range ({end}): {expression}")
    if step == 0:
        raise ScheduleError(f"step of range should be a positive number: {expression}")
    return range(start, end + 1, step), span.partition("-")[0] in ("*", "?") and step == 1


def _limits(span: str, expression: str, bounds: _Bounds) -> tuple[int, int]:
    low, *rest = span.split("-")
    if low in ("*", "?"):
        return bounds.low, bounds.high
    start = _number(low, bounds)
    if len(rest) > 1:
        raise ScheduleError(f"too many hyphens: {expression}")
    return start, _number(rest[0], bounds) if rest else start


def _number(text: str, bounds: _Bounds | None = None) -> int:
    if bounds and text.lower() in bounds.names:
        return bounds.low + bounds.names.index(text.lower())
    value = atoi(text)
    if value is None or (abs(value) == MAX_INT64 and not text.endswith(str(MAX_INT64))):
        fault = "invalid syntax" if value is None else "value out of range"
        raise ScheduleError(f"failed to parse int from {text}: strconv.Atoi: parsing {quoted(text)}: {fault}")
    if value < 0:
        raise ScheduleError(f"negative number ({value}) not allowed: {text}")
    return value


@cache
def _zones() -> frozenset[str]:
    return frozenset(available_timezones())


def location_fault(name: str) -> str | None:
    """What Go's time.LoadLocation says against a time zone."""
    if name in ("", "UTC", "Local") or name in _zones():
        return None
    if ".." in name or name[0] in "/\\":
        return "time: invalid location name"
    return f"unknown time zone {name}"
