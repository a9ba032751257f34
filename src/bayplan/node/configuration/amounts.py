"""Amounts that a configuration names: reservations (`cpu=500m`) and eviction thresholds (`100Mi`, `5%`)."""

from __future__ import annotations

import re
import struct
from collections.abc import Mapping

import msgspec

from bayplan.model.faults import Faults, below, shown
from bayplan.model.quantity import Quantity, QuantityError, parse
from bayplan.model.resources import CPU, EPHEMERAL_STORAGE, MEMORY

RESERVABLE = (CPU, MEMORY, EPHEMERAL_STORAGE, "pid")
MEMORY_SIGNAL = "memory.available"
SIGNALS = (
    MEMORY_SIGNAL,
    "allocatableMemory.available",
    *(f"{disk}.{what}" for disk in ("nodefs", "imagefs", "containerfs") for what in ("available", "inodesFree")),
    "pid.available",
)
_PERCENTAGE = re.compile(r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)%+")


class Threshold(msgspec.Struct, frozen=True):
    """An amount, or a share of the capacity."""

    amount: Quantity = Quantity()
    share: float = 0.0

    def of(self, capacity: int) -> int:
        """In bytes."""
        return int(capacity * self.share) if self.share else self.amount.value()


def quantity(text: object, path: str, faults: Faults) -> Quantity:
    """What a text or a number says; nothing, and a fault, where it says nothing."""
    if isinstance(text, str) or (isinstance(text, int | float) and not isinstance(text, bool)):
        try:
            return parse(str(text))
        except QuantityError as wrong:
            faults.add(path, f"failed to parse the quantity {shown(text)}: {wrong.message}")
    else:
        faults.add(path, f"expected a quantity, not {shown(text)}")
    return Quantity()


def reserved(given: Mapping[str, str], path: str, faults: Faults) -> dict[str, Quantity]:
    """A reservation by resource."""
    found = {}
    for name, text in given.items():
        place = below(path, name)
        if name not in RESERVABLE:
            faults.add(place, f'cannot reserve "{name}" resource; {", ".join(RESERVABLE)} can be')
            continue
        found[name] = quantity(text, place, faults)
        if found[name].nanos < 0:
            faults.add(place, f'resource quantity for "{name}" cannot be negative: {text}')
    return found


def memory_threshold(given: Mapping[str, str], path: str, faults: Faults) -> Threshold:
    """The threshold of available memory among the given ones; each is checked."""
    found = Threshold()
    for signal, text in given.items():
        place = below(path, signal)
        if signal not in SIGNALS:
            faults.add(place, f"unsupported eviction signal {signal}")
            continue
        read = _threshold(signal, text, place, faults)
        if signal == MEMORY_SIGNAL:
            found = read
    return found


def _threshold(signal: str, text: str, path: str, faults: Faults) -> Threshold:
    if text in ("0%", "100%"):
        return Threshold()  # both mean: no threshold
    if text.endswith("%"):
        return Threshold(share=_share(signal, text, path, faults))
    amount = quantity(text, path, faults)
    if amount.nanos <= 0:
        faults.add(path, f"eviction threshold {signal} must be positive: {amount}")
    return Threshold(amount)


def _share(signal: str, text: str, path: str, faults: Faults) -> float:
    found = _PERCENTAGE.fullmatch(text)
    try:
        share = _single(_single(float(found[1])) / 100) if found else None
    except OverflowError:
        share = None
    if share is None:
        faults.add(path, f"expected a percentage, not {shown(text)}")
        return 0.0
    if not 0 <= share <= 1:
        bound = "<= 100%" if share > 1 else ">= 0%"
        faults.add(path, f"eviction percentage threshold {signal} must be {bound}: {text}")
    return share


def _single(number: float) -> float:
    """As the kubelet holds it: in 32 bits."""
    return float(struct.unpack("f", struct.pack("f", number))[0])
