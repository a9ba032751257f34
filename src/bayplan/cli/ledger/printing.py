"""How answers look: rows as plain values for programs; bars and sparklines for people."""

from __future__ import annotations

import enum
import sys
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import msgspec

from bayplan.model.clock import Instant, rfc3339, rfc3339_micro

UNKNOWN, NONE, NO_DATA = "<unknown>", "<none>", "no data"
_TIMES = ("_at", "_after")
_TIME_NAMES = frozenset(("at", "start", "end", "since", "until"))
_JSON = frozenset(("labels", "annotations"))
_EIGHTHS = " ▏▎▍▌▋▊▉█"
_HEIGHTS = "▁▂▃▄▅▆▇█"


def plain(value: Any) -> Any:
    """An answer as JSON knows it: times in RFC 3339, labels as objects, GPUs in thousandths as they are stored."""
    if isinstance(value, msgspec.Struct):
        return {name: _field(name, getattr(value, name)) for name in value.__struct_fields__}
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, Decimal):
        return str(value)
    return [plain(each) for each in value] if isinstance(value, tuple | list) else value


def _field(name: str, value: Any) -> Any:
    if isinstance(value, int) and not isinstance(value, bool) and (name in _TIME_NAMES or name.endswith(_TIMES)):
        return rfc3339_micro(Instant(value))
    return msgspec.json.decode(value) if name in _JSON and isinstance(value, str) else plain(value)


def time_text(at: Instant | None, absent: str = "") -> str:
    """A time in a cell."""
    return absent if at is None else rfc3339(at)


def on_terminal() -> bool:
    """Whether somebody looks: pictures are for them alone."""
    return sys.stdout.isatty()


def bar(part: int, whole: int, width: int) -> str:
    """A bar as long as its part of the whole."""
    eighths = max(part, 0) * width * 8 // whole if whole > 0 else 0
    full, rest = divmod(min(eighths, width * 8), 8)
    return "█" * full + (_EIGHTHS[rest] if rest else "")


def spark(values: Sequence[int], width: int, top: int | None = None) -> str:
    """A line of little columns, no wider than `width`: neighbours share one where there are more."""
    groups = -(-len(values) // max(width, 1))
    means = [sum(part) / len(part) for i in range(0, len(values), groups) if (part := values[i : i + groups])]
    high = max(means, default=0) if top is None else top
    return "".join(_column(each, high) for each in means)


def _column(value: float, high: float) -> str:
    if value <= 0 or high <= 0:
        return " "
    return _HEIGHTS[min(int(value / high * len(_HEIGHTS)), len(_HEIGHTS) - 1)]


def percent(part: int, whole: int) -> str:
    """`61%`."""
    return f"{(part * 200 + whole) // (2 * whole)}%" if whole else "0%"
