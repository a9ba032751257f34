"""GPUs times time. Thousandths of a GPU times microseconds are GPU-nanoseconds: whole numbers, of any size.

Python adds them, not the database: a week of a few thousand GPUs is beyond 64 bits.
"""

from __future__ import annotations

from decimal import Decimal

from bayplan.ledger.rows import MILLI

SECOND = 1_000_000_000
HOUR = 3600 * SECOND


def gpus(milli: int) -> str:
    """`8`, `0.5`."""
    return _decimal(milli, MILLI)


def gpu_hours(amount: int, digits: int = 2) -> str:
    """`1234.50`: rounded half up."""
    scale = 10**digits
    sign, rounded = ("-" if amount < 0 else ""), (abs(amount) * scale * 2 + HOUR) // (2 * HOUR)
    whole, rest = divmod(rounded, scale)
    return f"{sign if rounded else ''}{whole}.{rest:0{digits}d}" if digits else f"{sign}{whole}"


def gpu_seconds(amount: int) -> str:
    """`4444.2`, exact: what sums are made of."""
    return _decimal(amount, SECOND)


def cost(amount: int, price: Decimal) -> Decimal:
    """What GPU-nanoseconds cost at a price for a GPU-hour, in hundredths."""
    return (Decimal(amount) * price / HOUR).quantize(Decimal("0.01"))


def _decimal(number: int, unit: int) -> str:
    whole, rest = divmod(abs(number), unit)
    sign = "-" if number < 0 else ""
    return f"{sign}{whole}.{rest:0{len(str(unit)) - 1}d}".rstrip("0").rstrip(".") if rest else f"{sign}{whole}"
