"""What a pod asks of GPUs, and which devices it has.

A pod asks either for whole GPUs, by the extended resource, or for a share of one, by the annotation SHARE. Which
devices it got is written into the annotation DEVICES when it is bound. Amounts are thousandths of a device.

A share that cannot be read is no share of nothing: whoever wrote it wants a GPU, so GpuShare turns the pod down.
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
_LONGEST = 18
"""Digits: no annotation has more to say, and Python reads no number of thousands of them."""


class Ask(NamedTuple):
    """So many devices, of each so much."""

    number: int
    milli: int
    unread: str | None = None
    """What stands where a share was expected, if it is none."""

    @property
    def total(self) -> int:
        """All of it."""
        return self.number * self.milli

    @property
    def is_share(self) -> bool:
        """Whether others may use the same device."""
        return 0 < self.milli < WHOLE

    @property
    def is_for_share(self) -> bool:
        """Whether a share is asked for, in words that can be read or not: then GpuShare has to look at it."""
        return self.is_share or self.unread is not None


class GpuHold(NamedTuple):
    """What a pod asks for, and the devices it has, as far as anybody wrote that down."""

    ask: Ask
    devices: Devices = ()


_NOTHING = GpuHold(Ask(0, 0))


def hold_of(requests: Mapping[str, int], annotations: Mapping[str, str]) -> GpuHold:
    """What is asked for. A share beside whole GPUs is none; one that cannot be read takes no device."""
    number = requests.get(RESOURCE, 0)
    share = None if number else annotations.get(SHARE)
    if not number and share is None:
        return _NOTHING
    milli = WHOLE if share is None else int(share) if _is_number(share) else 0
    if share is not None and not 0 < milli < WHOLE:
        return GpuHold(Ask(0, 0, share))
    known = filter(_is_number, annotations.get(DEVICES, "").split(","))
    return GpuHold(Ask(number or 1, milli), tuple(map(int, known)))


def written(devices: Devices) -> str:
    """As the annotation has it."""
    return ",".join(map(str, devices))


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= _LONGEST
