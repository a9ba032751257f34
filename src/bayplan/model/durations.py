"""Go's durations (`1h2m3s`, `250ms`) and spans in microseconds, the unit of Instant.

Source of truth: Go's time.ParseDuration and Duration.String. What is finer than a microsecond is cut off.
"""

from __future__ import annotations

import re

from bayplan.model.errors import PermanentError

_NANOSECONDS = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,  # U+00B5, micro sign
    "μs": 1_000,  # U+03BC, Greek mu: Go takes both
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "m": 60_000_000_000,
    "h": 3_600_000_000_000,
}
_PART = re.compile(r"([0-9]*)(?:\.([0-9]*))?([^0-9.]*)")
_MOST = 2**63


class DurationError(PermanentError, ValueError):
    """The text is no duration. The message is Go's."""

    code = "BP-M003"


def parse_duration(text: str) -> int:
    """The microseconds that a Go duration names. Raises DurationError with Go's words."""
    rest = text[1:] if text[:1] in ("+", "-") else text
    if rest == "0":
        return 0
    if not rest:
        raise DurationError(f"time: invalid duration {_quoted(text)}")
    total = 0
    while rest:
        match = _PART.match(rest)
        assert match is not None  # every part of the expression may be empty
        whole, fraction, unit = match.groups(default="")
        if not whole and not fraction:
            raise DurationError(f"time: invalid duration {_quoted(text)}")
        if not unit:
            raise DurationError(f"time: missing unit in duration {_quoted(text)}")
        if unit not in _NANOSECONDS:
            raise DurationError(f"time: unknown unit {_quoted(unit)} in duration {_quoted(text)}")
        # twenty digits are too many in any unit: further ones need not be read
        total += int(whole.lstrip("0")[:20] or "0") * _NANOSECONDS[unit] + _fraction(fraction, _NANOSECONDS[unit])
        if total > _MOST - (text[0] != "-"):
            raise DurationError(f"time: invalid duration {_quoted(text)}")
        rest = rest[match.end() :]
    return -(total // 1000) if text[0] == "-" else total // 1000


def _fraction(digits: str, unit: int) -> int:
    """Go rounds a fraction by way of a float of its first 18 or 19 digits; so must we to agree."""
    kept = digits[:19] if int(digits[:19] or "0") <= _MOST else digits[:18]
    return int(float(int(kept or "0")) * (unit / 10.0 ** len(kept)))


def format_duration(microseconds: int) -> str:
    """The span as Go prints it: `1h2m3s`, `1.5s`, `250ms`, `0s`."""
    sign, span = ("-", -microseconds) if microseconds < 0 else ("", microseconds)
    if span < 1_000_000:
        if span == 0:
            return "0s"
        return f"{sign}{span}µs" if span < 1000 else f"{sign}{_decimal(span, 1000)}ms"
    minutes, rest = divmod(span, 60_000_000)
    text = f"{_decimal(rest, 1_000_000)}s"
    if minutes:
        hours, minutes = divmod(minutes, 60)
        text = f"{hours}h{minutes}m{text}" if hours else f"{minutes}m{text}"
    return sign + text


def _decimal(number: int, unit: int) -> str:
    whole, rest = divmod(number, unit)
    return f"{whole}.{rest:0{len(str(unit)) - 1}d}".rstrip("0").rstrip(".") if rest else str(whole)


def _quoted(text: str) -> str:
    """Go's time.quote, which spells out what is not printable ASCII."""
    return '"' + "".join(_escaped(c) for c in text) + '"'


def _escaped(char: str) -> str:
    if char in '"\\':
        return f"\\{char}"
    return char if " " <= char < "\x7f" else "".join(f"\\x{byte:02x}" for byte in char.encode(errors="surrogatepass"))
