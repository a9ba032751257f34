"""Times and spans as people type them: `2026-01-02T14:00:00Z`, `yesterday 14:00`, `2h ago`, `-90m`, `7d`.

A time without a zone is local time, as with `date` and `journalctl`; what bayplan prints is UTC, and says so.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any

import click

from bayplan.model.clock import SECOND, Instant, parse_rfc3339

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}
_SPAN = re.compile(r"(?:[0-9]+(?:\.[0-9]+)?[smhdw])+")
_PART = re.compile(r"([0-9]+(?:\.[0-9]+)?)([smhdw])")
_DAYS = {"today": 0, "yesterday": 1}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_WORDS = 'expected a time such as 2026-01-02T14:00:00Z, "yesterday 14:00", "2h ago" or -90m'


def parse_span(text: str) -> int | None:
    """The microseconds of `7d`, `1h30m`; None where it is none."""
    if not _SPAN.fullmatch(text):
        return None
    return round(sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(text)) * SECOND)


def parse_time(text: str, now: Instant, zone: tzinfo | None = None) -> Instant:
    """The instant that a person means; `zone` is the local one, None the machine's. Raises ValueError."""
    words = text.strip().lower()
    if words == "now":
        return now
    span = parse_span(words.removesuffix("ago").removeprefix("-").strip())
    if span is not None and (words.endswith("ago") or words.startswith("-")):
        return Instant(now - span)
    try:
        return parse_rfc3339(text.strip().upper().replace(" ", "T", 1))
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
    """As `parse_time`; a bare span is so long ago. Raises ValueError."""
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
    known = naive.astimezone() if zone is None else naive.replace(tzinfo=zone)
    return Instant((known - _EPOCH) // timedelta(microseconds=1))


def _local(now: Instant, zone: tzinfo | None) -> datetime:
    return (_EPOCH + timedelta(microseconds=now)).astimezone(zone)


def read_time(parse: Callable[[str, Instant], Instant], text: str, now: Instant, flag: str) -> Instant:
    """A flag's time. Raises click.BadParameter."""
    try:
        return parse(text, now)
    except (ValueError, OverflowError) as fault:
        raise click.BadParameter(str(fault), param_hint=flag) from fault


def span_option(_: click.Context, __: click.Parameter, value: str | None) -> int | None:
    """The callback of an option that takes a span, more than none: microseconds."""
    if value is None:
        return None
    found = parse_span(value.strip().lower())
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
