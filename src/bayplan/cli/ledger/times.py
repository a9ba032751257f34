"""Times and spans as people type them: `2026-01-02T14:00:00Z`, `yesterday 14:00`, `2 hours ago`, `-90m`, `7d`.

A time without a zone is local time, as with `date` and `journalctl`; what bayplan prints is UTC, and says so.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any

import click

from bayplan.model.clock import SECOND, Instant, parse_rfc3339

_UNITS = {
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes"), 60),
    **dict.fromkeys(("h", "hour", "hours"), 3600),
    **dict.fromkeys(("d", "day", "days"), 86400),
    **dict.fromkeys(("w", "week", "weeks"), 7 * 86400),
}
_PART = re.compile(r"([0-9]+(?:\.[0-9]+)?) *([a-z]+) *")
_SPAN = re.compile(rf"(?:{_PART.pattern})+")
_WITHOUT_SECONDS = re.compile(r"(T[0-9]{2}:[0-9]{2})(Z|[+-][0-9]{2}:[0-9]{2})")
_DAYS = {"today": 0, "yesterday": 1}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST, _LAST = Instant(0), Instant(253_402_300_799 * SECOND)
"""Of 1970 and of 9999: what a ledger, and a calendar, can have."""
_LONGEST = _LAST - _FIRST
_WORDS = 'expected a time such as 2026-01-02T14:00:00Z, "yesterday 14:00", "2h ago" or -90m'
_BEYOND = 'expected a time from 1970 to 9999; got "{}"'


def parse_span(text: str) -> int | None:
    """The microseconds of `7d`, `1h30m`, `2 hours`; None where it is none. Raises OverflowError, if it is longer than
    all time.
    """
    parts = _PART.findall(text)
    if not _SPAN.fullmatch(text) or not all(unit in _UNITS for _, unit in parts):
        return None
    seconds = sum(float(number) * _UNITS[unit] for number, unit in parts)
    if seconds * SECOND > _LONGEST:
        raise OverflowError
    return round(seconds * SECOND)


def parse_time(text: str, now: Instant, zone: tzinfo | None = None) -> Instant:
    """The instant that a person means; `zone`: the local one, None the machine's. Raises ValueError, OverflowError."""
    words = text.strip().lower()
    if words == "now":
        return now
    span = parse_span(words.removesuffix("ago").removeprefix("-").strip())
    if span is not None and (words.endswith("ago") or words.startswith("-")):
        return Instant(now - span)
    try:
        return parse_rfc3339(_WITHOUT_SECONDS.sub(r"\1:00\2", text.strip().upper().replace(" ", "T", 1)))
    except ValueError:
        pass
    day, _, clock = words.partition(" ")
    if day in _DAYS:
        date = _local(now, zone).date() - timedelta(days=_DAYS[day])
        words = f"{date} {clock or '00:00'}"
    elif re.fullmatch(r"[0-9]{1,2}:[0-9]{2}(:[0-9]{2})?", words):
        words = f"{_local(now, zone).date()} {words:0>5}"
    return _instant(_naive(words, text), zone)


def since_or_span(text: str, now: Instant, zone: tzinfo | None = None) -> Instant:
    """As `parse_time`; a bare span is so long ago. Raises ValueError, OverflowError."""
    span = parse_span(text.strip().lower())
    return parse_time(text, now, zone) if span is None else Instant(now - span)


def _naive(words: str, text: str) -> datetime:
    for form in ("%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M", "%Y-%m-%dt%H:%M:%S", "%Y-%m-%dt%H:%M", "%Y-%m-%d"):
        try:
            return datetime.strptime(words, form)  # its zone comes in _instant
        except ValueError:
            continue
    raise ValueError(f'{_WORDS}; got "{text}"')


def _instant(naive: datetime, zone: tzinfo | None) -> Instant:
    try:
        known = naive.astimezone() if zone is None else naive.replace(tzinfo=zone)
    except ValueError as fault:  # the first or the last day of all, in a zone where it is another year
        raise OverflowError from fault
    return Instant((known - _EPOCH) // timedelta(microseconds=1))


def _local(now: Instant, zone: tzinfo | None) -> datetime:
    return (_EPOCH + timedelta(microseconds=now)).astimezone(zone)


def read_time(parse: Callable[[str, Instant], Instant], text: str, now: Instant, flag: str) -> Instant:
    """A flag's time, of the years 1970 to 9999. Raises click.BadParameter."""
    try:
        found = parse(text, now)
    except OverflowError as fault:
        raise click.BadParameter(_BEYOND.format(text), param_hint=flag) from fault
    except ValueError as fault:
        raise click.BadParameter(str(fault), param_hint=flag) from fault
    if not _FIRST <= found <= _LAST:
        raise click.BadParameter(_BEYOND.format(text), param_hint=flag)
    return found


def span_option(_: click.Context, __: click.Parameter, value: str | None) -> int | None:
    """The callback of an option that takes a span, more than none: microseconds."""
    if value is None:
        return None
    try:
        found = parse_span(value.strip().lower())
    except OverflowError:
        found = None
    if not found:
        raise click.BadParameter(f'expected a span such as "90s", "1h" or "7d"; got "{value}"')
    return found


def window_options(default: str | None) -> Callable[[Any], Any]:
    """The flags --since, --until and --step."""

    def options(verb: Any) -> Any:
        for option in (
            click.option("--step", callback=span_option, metavar="SPAN", help="In steps of this length: 1h, 1d."),
            click.option("--until", metavar="TIME", help="Up to this time, not now."),
            click.option(
                "--since",
                default=default,
                show_default=True,
                metavar="SPAN|TIME",
                help="From so long ago, or from a time.",
            ),
        ):
            option(verb)
        return verb

    return options
