"""Pressure (PSI) of a node, computed from how much its VMs want of it.

Idle nodes hardly stall, busy ones from 70% on, and beyond 90% it grows with the square, up to 0.8 when all is used.
What CPU is wanted beyond that (memory cannot be) adds half of itself, up to 1.

    0 .. 0.7    0.07 u
    0.7 .. 0.9  from 0.049 straight to 0.2
    0.9 .. 1    0.2 + 0.6 ((u - 0.9) / 0.1)^2
    1 ..        0.8 + 0.5 (u - 1), at most 1; memory: 0.8

`seed` is the curve of simulators that went before: the same but for 70 to 90%, where it begins at 0 again, so that a
node at 72% shows less pressure than one at 65%. It is there to compare with their recordings, not to decide by.
"""

from __future__ import annotations

from collections.abc import Callable

Curve = Callable[[float], float]

_BUSY, _FULL = 0.7, 0.9
_AT_BUSY, _AT_FULL, _AT_ALL = 0.049, 0.2, 0.8


def monotone(used: float) -> float:
    """Pressure of a share of use from 0 to 1. Never falls."""
    if used < _BUSY:
        return 0.07 * max(0.0, used)
    if used < _FULL:
        return _AT_BUSY + (_AT_FULL - _AT_BUSY) * (used - _BUSY) / (_FULL - _BUSY)
    return _near_all(used)


def seed(used: float) -> float:
    """The curve of earlier simulators, with its step down at 70%."""
    if used < _BUSY:
        return min(0.05, 0.07 * max(0.0, used))
    if used < _FULL:
        return _AT_FULL * (used - _BUSY) / (_FULL - _BUSY)
    return _near_all(used)


def _near_all(used: float) -> float:
    return _AT_FULL + (_AT_ALL - _AT_FULL) * ((min(used, 1.0) - _FULL) / (1.0 - _FULL)) ** 2


CURVES: dict[str, Curve] = {"monotone": monotone, "seed": seed}


def cpu_pressure(wanted: float, curve: Curve = monotone) -> float:
    """Pressure of a node whose VMs want so much of its CPU."""
    return min(1.0, _AT_ALL + 0.5 * (wanted - 1.0)) if wanted > 1.0 else curve(wanted)


def memory_pressure(wanted: float, curve: Curve = monotone) -> float:
    """Pressure of a node whose VMs want so much of its memory."""
    return curve(min(1.0, wanted))
