"""Cron schedules: five fields or a descriptor, refused in the words of the parser that upstream uses.

Source of truth: robfig/cron v3, ParseStandard, and Go's time.ParseDuration and time.LoadLocation.
"""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple
from zoneinfo import available_timezones

from bayplan.cluster.embedded.admission.fields import quoted
from bayplan.cluster.embedded.admission.workloads.numbers import MAX_INT64, atoi


class _Bounds(NamedTuple):
    low: int
    high: int
    names: tuple[str, ...] = ()
    """Words for the numbers from `low` on."""


_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_FIELDS = (_Bounds(0, 59), _Bounds(0, 23), _Bounds(1, 31), _Bounds(1, 12, _MONTHS), _Bounds(0, 6, _DAYS))
"""Minute, hour, day of month, month, day of week."""

_DESCRIPTORS = frozenset(("@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"))
_UNITS = frozenset(("ns", "us", "\u00b5s", "\u03bcs", "ms", "s", "m", "h"))
_NUMBER_AND_UNIT = re.compile(r"([0-9]*\.?[0-9]*)([^0-9.]*)")


class ScheduleError(ValueError):
    """A schedule that cannot be read; the text is for the user."""


def check_schedule(spec: str) -> None:
    """Raise ScheduleError if the schedule cannot be read."""
    if not spec:
        raise ScheduleError("empty spec string")
    if spec.startswith(("TZ=", "CRON_TZ=")):
        zone, space, spec = spec.partition("=")[2].partition(" ")
        if not space:
            raise ScheduleError("invalid schedule format: runtime error: slice bounds out of range [:-1]")
        if fault := location_fault(zone):
            raise ScheduleError(f"provided bad location {zone}: {fault}")
        spec = spec.strip()
    if spec.startswith("@"):
        _check_descriptor(spec)
        return
    fields = spec.split()
    if len(fields) != len(_FIELDS):
        raise ScheduleError(f"expected exactly 5 fields, found {len(fields)}: [{' '.join(fields)}]")
    for field, bounds in zip(fields, _FIELDS, strict=True):
        for expression in filter(None, field.split(",")):
            _check_range(expression, bounds)


def _check_range(expression: str, bounds: _Bounds) -> None:
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


def _check_descriptor(descriptor: str) -> None:
    every, space, duration = descriptor.partition(" ")
    if every == "@every" and space:
        if fault := _duration_fault(duration):
            raise ScheduleError(f"failed to parse duration {descriptor}: {fault}")
    elif descriptor not in _DESCRIPTORS:
        raise ScheduleError(f"unrecognized descriptor: {descriptor}")


def _duration_fault(text: str) -> str | None:
    rest = text[1:] if text[:1] in ("-", "+") else text
    if rest == "0":
        return None
    invalid = f"time: invalid duration {quoted(text)}"
    if not rest:
        return invalid
    while rest:
        parts = _NUMBER_AND_UNIT.match(rest)
        if parts is None or not parts[1].strip("."):
            return invalid
        if not parts[2]:
            return f"time: missing unit in duration {quoted(text)}"
        if parts[2] not in _UNITS:
            return f"time: unknown unit {quoted(parts[2])} in duration {quoted(text)}"
        rest = rest[parts.end() :]
    return None


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
