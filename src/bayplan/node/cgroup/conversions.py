"""CPU numbers from one unit to another: milliCPU, shares of version 1, weights of version 2, quotas.

Two families that do not agree, and must not be mixed: the kernel's own (a weight of 100 is 1024 shares, linear), and
what kubelet and the OCI runtimes compute before they write `cpu.weight`.
"""

from __future__ import annotations

import math

MIN_SHARES, DEFAULT_SHARES, MAX_SHARES = 2, 1024, 262_144
MIN_WEIGHT, DEFAULT_WEIGHT, MAX_WEIGHT = 1, 100, 10_000
DEFAULT_PERIOD_US = 100_000
MIN_QUOTA_US = 1_000


def weight_to_shares(weight: int) -> int:
    """As the kernel does on a write of cpu.weight (kernel/sched/core.c, sched_weight_from_cgroup)."""
    return min(max(_divide_to_nearest(weight * DEFAULT_SHARES, DEFAULT_WEIGHT), MIN_SHARES), MAX_SHARES)


def shares_to_weight(shares: int) -> int:
    """As the kernel does on a read of cpu.weight (kernel/sched/core.c, sched_weight_to_cgroup)."""
    return min(max(_divide_to_nearest(shares * DEFAULT_WEIGHT, DEFAULT_SHARES), MIN_WEIGHT), MAX_WEIGHT)


def milli_to_shares(milli: int) -> int:
    """As kubelet 1.36 does (cm/helpers_linux.go, MilliCPUToShares): no request is the least, not the default."""
    return min(max(milli * DEFAULT_SHARES // 1000, MIN_SHARES), MAX_SHARES)


def milli_to_quota(milli: int, period_us: int = DEFAULT_PERIOD_US) -> int | None:
    """As kubelet 1.36 does (cm/helpers_linux.go, MilliCPUToQuota): at least 1 ms; None, no limit, for 0."""
    return max(milli * period_us // 1000, MIN_QUOTA_US) if milli else None


def runtime_weight(shares: int) -> int:
    """The weight that kubelet 1.36, runc from 1.3.2 and crun from 1.23 write for shares: 1024 become 100.

    Source: github.com/opencontainers/cgroups 0.0.6, ConvertCPUSharesToCgroupV2Value, a curve through least, default and
    most; its story is kubernetes/kubernetes issue 131216 and opencontainers/cgroups pull request 20.
    """
    if shares <= MIN_SHARES:
        return MIN_WEIGHT
    if shares >= MAX_SHARES:
        return MAX_WEIGHT
    log = math.log2(shares)
    return math.ceil(10 ** ((log * log + 125 * log) / 612 - 7 / 34))


def _divide_to_nearest(number: int, divisor: int) -> int:
    return (number + divisor // 2) // divisor
