"""Values with a parser of their own: quantities, times, bytes. Text in, canonical text out, Go's words on failure."""

from __future__ import annotations

import base64
import functools
import re
from datetime import UTC, datetime

from bayplan.model.quantity import canonical


class ScalarError(ValueError):
    """A text that its parser refuses; the message is upstream's."""


_TIME_PARTS: tuple[tuple[str, str], ...] = (
    ("2006", r"\d{4}"),
    ("-", "-"),
    ("01", r"\d\d"),
    ("-", "-"),
    ("02", r"\d\d"),
    ("T", "T"),
    ("15", r"\d\d"),
    (":", ":"),
    ("04", r"\d\d"),
    (":", ":"),
    ("05", r"\d\d"),
)
_ZONE = ("Z07:00", r"Z|[+-]\d\d:\d\d")
_SECONDS = ((*_TIME_PARTS, ("", r"(?:[.,]\d+)?"), _ZONE), "2006-01-02T15:04:05Z07:00")
_MICROS = ((*_TIME_PARTS, (".000000", r"\.\d{6}"), _ZONE), "2006-01-02T15:04:05.000000Z07:00")
_RANGES = (("month", 5, 1, 12), ("day", 8, 1, 31), ("hour", 11, 0, 23), ("minute", 14, 0, 59), ("second", 17, 0, 59))


def _parse_time(text: str, layout: tuple[tuple[tuple[str, str], ...], str]) -> datetime:
    parts, shown = layout
    rest = text
    for element, pattern in parts:
        match = re.match(pattern, rest)
        if match is None:
            raise ScalarError(f'parsing time "{text}" as "{shown}": cannot parse "{rest}" as "{element}"')
        rest = rest[match.end() :]
    if rest:
        raise ScalarError(f'parsing time "{text}": extra text: "{rest}"')
    for name, start, least, most in _RANGES:
        if not least <= int(text[start : start + 2]) <= most:
            raise ScalarError(f'parsing time "{text}": {name} out of range')
    try:
        return datetime.fromisoformat(text).astimezone(UTC)
    except ValueError:
        raise ScalarError(f'parsing time "{text}": day out of range') from None


@functools.lru_cache(maxsize=4096)
def time_text(text: str) -> str:
    """metav1.Time: UTC, whole seconds."""
    return _parse_time(text, _SECONDS).strftime("%Y-%m-%dT%H:%M:%SZ")


@functools.lru_cache(maxsize=4096)
def micro_time_text(text: str) -> str:
    """metav1.MicroTime: UTC, six digits."""
    return _parse_time(text, _MICROS).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def bytes_text(text: str) -> str:
    """Base64, checked as Go's StdEncoding does (line ends are skipped)."""
    clean = text.replace("\n", "").replace("\r", "")
    try:
        base64.b64decode(clean, validate=True)
    except ValueError:  # binascii.Error is one; a foreign character is another
        raise ScalarError(f"illegal base64 data at input byte {_bad_base64_at(text)}") from None
    return clean


def _bad_base64_at(text: str) -> int:
    """Where Go finds the fault: at the first foreign character, else at the start of the last, incomplete group."""
    for at, character in enumerate(text):
        if not (character.isascii() and (character.isalnum() or character in "+/=\r\n")):
            return at
    return len(text) // 4 * 4


def quantity_text(text: str) -> str:
    """A quantity in canonical form; QuantityError carries upstream's words."""
    return canonical(text)
