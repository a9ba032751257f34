"""Kubernetes quantities (`100m`, `1.5Gi`, `12e6`), exact.

A quantity is a whole number of nanos and the family of suffixes it was written in. Nanos are the finest step of
resource.Quantity, so nothing is ever lost and no float is involved. Quantities compare by value alone: `1Ki == 1024`.

Source of truth: k8s.io/apimachinery 0.36 pkg/api/resource. Two differences, both where upstream loses the value: from
10^21 on its String() drops the suffix (`1000E` prints as `1`), here `1000E` stays; and int64 overflow in Value() and
MilliValue() yields 0 or wraps, here the number is just large.
"""

from __future__ import annotations

import enum
import functools
import re
from typing import NamedTuple

import msgspec

from bayplan.model.errors import PermanentError

_GRAMMAR = "^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$"
WRONG_FORMAT = f"quantities must match the regular expression '{_GRAMMAR}'"
WRONG_NUMBER = "unable to parse numeric part of quantity"
WRONG_SUFFIX = "unable to parse quantity's suffix"

NANOS = 1_000_000_000
_NANOS_PER_MILLI = 1_000_000
_MAX_BINARY = (2**63 - 1) * NANOS
_MOST_DIGITS = 1000  # ours: a text of ten bytes (1e999999999) must not cost gigabytes


class QuantityError(PermanentError, ValueError):
    """The text is no quantity. The message is the API server's."""

    code = "BP-M001"


class Format(enum.Enum):
    """The family of suffixes, remembered from the text so that the value is written the way it was read."""

    DECIMAL_SI = "DecimalSI"  # 12M
    BINARY_SI = "BinarySI"  # 12Mi
    DECIMAL_EXPONENT = "DecimalExponent"  # 12e6


class Quantity(msgspec.Struct, frozen=True, eq=False, gc=False):
    """An exact amount. `str()` is the canonical form: the largest suffix that needs no fraction."""

    nanos: int = 0
    format: Format = Format.DECIMAL_SI

    @classmethod
    def whole(cls, value: int, family: Format = Format.DECIMAL_SI) -> Quantity:
        """`value` units: bytes, devices, cores."""
        return cls(value * NANOS, family)

    @classmethod
    def of_milli(cls, value: int, family: Format = Format.DECIMAL_SI) -> Quantity:
        """`value` thousandths: millicores."""
        return cls(value * _NANOS_PER_MILLI, family)

    def value(self) -> int:
        """Whole units, a rest rounded away from zero."""
        return away_from_zero(self.nanos, NANOS)

    def milli(self) -> int:
        """Thousandths, a rest rounded away from zero."""
        return away_from_zero(self.nanos, _NANOS_PER_MILLI)

    def __str__(self) -> str:
        if self.nanos == 0:
            return "0"
        if self.format is Format.BINARY_SI and abs(self.nanos) >= 1024 * NANOS and self.nanos % NANOS == 0:
            number, exponent = _reduce(self.nanos // NANOS, 1024, len(_BINARY_SUFFIXES) - 1)
            return f"{number}{_BINARY_SUFFIXES[exponent]}"
        if self.format is Format.DECIMAL_EXPONENT:
            number, exponent = _reduce(self.nanos, 1000, _MOST_DIGITS)
            return f"{number}e{3 * exponent - 9}" if exponent != 3 else str(number)
        number, exponent = _reduce(self.nanos, 1000, len(_DECIMAL_SUFFIXES) - 1)
        return f"{number}{_DECIMAL_SUFFIXES[exponent]}"

    def __bool__(self) -> bool:
        return self.nanos != 0

    def __hash__(self) -> int:
        return hash(self.nanos)

    def __eq__(self, other: object) -> bool:
        return self.nanos == other.nanos if isinstance(other, Quantity) else NotImplemented

    def __lt__(self, other: Quantity) -> bool:
        return self.nanos < other.nanos

    def __le__(self, other: Quantity) -> bool:
        return self.nanos <= other.nanos

    def __gt__(self, other: Quantity) -> bool:
        return self.nanos > other.nanos

    def __ge__(self, other: Quantity) -> bool:
        return self.nanos >= other.nanos

    def __add__(self, other: Quantity) -> Quantity:
        return Quantity(self.nanos + other.nanos, self.format if self.nanos else other.format)

    def __sub__(self, other: Quantity) -> Quantity:
        return Quantity(self.nanos - other.nanos, self.format if self.nanos else other.format)

    def __mul__(self, factor: int) -> Quantity:
        return Quantity(self.nanos * factor, self.format)

    __rmul__ = __mul__

    def __neg__(self) -> Quantity:
        return Quantity(-self.nanos, self.format)


_DECIMAL_SUFFIXES = ("n", "u", "m", "", "k", "M", "G", "T", "P", "E")
_BINARY_SUFFIXES = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_SUFFIXES = {
    **{suffix: (Format.DECIMAL_SI, 3 * i - 9) for i, suffix in enumerate(_DECIMAL_SUFFIXES)},
    **{suffix: (Format.BINARY_SI, 10 * i) for i, suffix in enumerate(_BINARY_SUFFIXES) if suffix},
}
# Upstream scans by hand and is laxer than the expression in its message: `.`, `-` and `Ki` are all zero.
_TEXT = re.compile(r"([+-]?)0*([0-9]*)(?:\.([0-9]*))?([eEinumkKMGTP]*[-+]?[0-9]*)")


class _Parts(NamedTuple):
    """A text taken apart. `whole` has no leading zeros and is at least `0`."""

    negative: bool
    whole: str
    fraction: str
    family: Format
    exponent: int  # of ten; of two when the family is binary

    def fits_int64(self) -> bool:
        """Whether upstream takes its short way; only there a text may stay as it was written."""
        if self.family is Format.BINARY_SI:
            return not self.fraction and len(self.whole) + 3 * self.exponent // 10 <= 14
        return len(self.whole) + len(self.fraction) <= 18 and self.exponent - len(self.fraction) >= -9


def _split(text: str) -> _Parts:
    match = _TEXT.fullmatch(text)
    if match is None or not text:
        raise QuantityError(WRONG_FORMAT)
    sign, whole, fraction, suffix = match.groups(default="")
    known = _SUFFIXES.get(suffix)
    if known is None:
        if len(suffix) < 2 or suffix[0] not in "eE" or suffix[1] not in "+-0123456789":
            raise QuantityError(WRONG_SUFFIX)
        known = Format.DECIMAL_EXPONENT, _exponent(suffix[1:])
    parts = _Parts(sign == "-", whole or "0", fraction, *known)
    if not parts.fits_int64() and not any("0" <= c <= "9" for c in text[: match.start(4)]):
        raise QuantityError(WRONG_NUMBER)
    return parts


def _exponent(text: str) -> int:
    digits = text.lstrip("+-")
    exponent = int(text) if digits and len(digits) <= _MOST_DIGITS else None
    if exponent is None or not -(2**63) <= exponent < 2**63:
        raise QuantityError(WRONG_SUFFIX)
    return (exponent + 2**31) % 2**32 - 2**31  # upstream keeps the low 32 bits


@functools.lru_cache(maxsize=16_384)
def parse(text: str) -> Quantity:
    """The quantity that `text` names. Raises QuantityError with the API server's words."""
    negative, whole, fraction, family, exponent = _split(text)
    digits = whole + fraction
    power = (0 if family is Format.BINARY_SI else exponent) + 9 - len(fraction)
    if len(digits) > _MOST_DIGITS:
        raise QuantityError(WRONG_NUMBER)
    number = int(digits)
    if number and power > _MOST_DIGITS:
        raise QuantityError(WRONG_NUMBER)
    if family is Format.BINARY_SI:
        number <<= exponent
    nanos = number * 10 ** min(max(power, 0), _MOST_DIGITS)
    if power < 0:  # a trace of something is not nothing: round up to the next nano
        nanos = -(-number // 10 ** min(-power, 2 * _MOST_DIGITS))
    if family is Format.BINARY_SI:
        nanos = min(nanos, _MAX_BINARY)
        if 0 < nanos < NANOS:
            family = Format.DECIMAL_SI
    return Quantity(-nanos if negative else nanos, family)


@functools.lru_cache(maxsize=16_384)
def canonical(text: str) -> str:
    """The text that an API server stores and returns for `text`.

    That is `str(parse(text))`, except that upstream keeps a text it takes for canonical already: `1e3`, but also
    `+1`, `01` and `1.234`.
    """
    quantity = parse(text)
    parts = _split(text)
    if quantity and parts.fits_int64():
        digits = parts.whole + parts.fraction
        if parts.family is Format.BINARY_SI:
            keep = int(digits) % 8 != 0
        else:
            keep = (parts.exponent - len(parts.fraction)) % 3 == 0 and digits[-3:] != "000" and digits[0] != "0"
        if keep:
            return text
    return str(quantity)


def away_from_zero(number: int, unit: int) -> int:
    """How many `unit`s `number` is, a rest rounded up in magnitude."""
    return -(-number // unit) if number > 0 else number // unit


def _reduce(number: int, factor: int, most: int) -> tuple[int, int]:
    """`number` without its factors of `factor`, at most `most` of them, and how many there were."""
    times = 0
    while times < most and number % factor == 0:
        number //= factor
        times += 1
    return number, times
