"""Which Linux throttles a group that has not used its quota: the known defect of CFS bandwidth control.

A CPU takes quota in slices of 5 ms, and what it had not used at the end of the period expired. A group with threads on
many CPUs was throttled with quota unused. Commit de53fd7aedb1 ("sched/fair: Fix low cpu usage with high throttling by
removing expiration of cpu-local slices") ended that in 5.4 and was taken back to 4.14.154, 4.19.84 and 5.3.9.
Distributions patch their own kernels: a vendor's 4.18 may have it, so the number alone is a suspicion, and `causes`
names the defect only where quota was left unused, too.
"""

from __future__ import annotations

import re

FIXED = (5, 4, 0)
BACKPORTS: dict[tuple[int, int], int] = {(4, 14): 154, (4, 19): 84, (5, 3): 9}
"""The first good release of a long-term or last series."""
BURST_SINCE = (5, 14, 0)
"""The first Linux with cpu.max.burst and cpu.cfs_burst_us."""
SLICE_US = 5_000
"""What a CPU takes from the quota at once (kernel.sched_cfs_bandwidth_slice_us)."""

Version = tuple[int, int, int]


def version_of(release: str) -> Version | None:
    """The version of a release as `uname -r` prints it; None where it has none."""
    found = re.match(r"(\d+)\.(\d+)(?:\.(\d+))?", release)
    return (int(found[1]), int(found[2]), int(found[3] or 0)) if found else None


def has_expiry_defect(release: str) -> bool:
    """Whether mainline and stable releases of that number have the defect; an unknown number has not."""
    version = version_of(release)
    if version is None or version >= FIXED:
        return False
    good = BACKPORTS.get(version[:2])
    return good is None or version[2] < good


def has_burst(release: str) -> bool:
    """Whether the kernel lets a group save unused quota."""
    version = version_of(release)
    return version is not None and version >= BURST_SINCE
