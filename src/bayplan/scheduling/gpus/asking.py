"""What a pod asks of GPUs, and which devices it has.

A pod asks either for whole GPUs, by the extended resource, or for a share of one, by the annotation SHARE. Which
devices it got is written into the annotation DEVICES when it is bound. Amounts are thousandths of a device.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

SHARE = "bayplan.dev/gpu-share"
"""Thousandths of one GPU that a pod asks for, 1 to 999."""
DEVICES = "bayplan.dev/gpu-devices"
"""The GPUs that a pod got, by index: `0,3`."""
RESOURCE = "nvidia.com/gpu"
WHOLE = 1000
Devices = tuple[int, ...]


class Ask(NamedTuple):
    """So many devices, of each so much."""

    number: int
    milli: int

    @property
    def total(self) -> int:
        """All of it."""
        return self.number * self.milli

    @property
    def is_share(self) -> bool:
        """Whether others may use the same device."""
        return 0 < self.milli < WHOLE


class GpuHold(NamedTuple):
    """What a pod asks for, and the devices it has, as far as anybody wrote that down."""

    ask: Ask
    devices: Devices = ()


_NOTHING = GpuHold(Ask(0, 0))


def hold_of(requests: Mapping[str, int], annotations: Mapping[str, str]) -> GpuHold:
    """What is asked for. A share that cannot be read is none, and so is one beside whole GPUs."""
    number = requests.get(RESOURCE, 0)
    share = "" if number else annotations.get(SHARE, "")
    milli = WHOLE if number else int(share) if _is_number(share) else 0
    if not (number or 0 < milli < WHOLE):
        return _NOTHING
    known = filter(_is_number, annotations.get(DEVICES, "").split(","))
    return GpuHold(Ask(number or 1, milli), tuple(map(int, known)))


def written(devices: Devices) -> str:
    """As the annotation has it."""
    return ",".join(map(str, devices))


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal()
