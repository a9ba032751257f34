"""A model of the kernel's bandwidth control, a millisecond at a time: what a group with given work would show."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from bayplan.model.clock import Instant
from bayplan.node.cgroup.port import Bandwidth
from bayplan.node.throttling.evidence import Evidence, Look

_STEP_US = 1000


class Job(msgspec.Struct, frozen=True):
    """Work that arrives at an instant and runs on at most so many CPUs, with as many threads."""

    at_us: int
    work_us: int
    parallel: int = 1


def every(pause_us: int, work_us: int, parallel: int = 1, *, span_us: int = 3_000_000) -> list[Job]:
    """The same job over and over."""
    return [Job(at, work_us, parallel) for at in range(pause_us // 2, span_us, pause_us)]


def watched(
    bandwidth: Bandwidth,
    jobs: Sequence[Job],
    *,
    span_us: int = 3_000_000,
    cpus: int = 4,
    kernel: str = "6.1.0",
    offset_us: int = 0,
    looks_a_period: int = 8,
) -> Evidence:
    """What a close look at the group would see. `offset_us`: how far its periods are from the jobs' clock."""
    assert bandwidth.quota_us is not None
    quota, most = bandwidth.quota_us, bandwidth.quota_us + bandwidth.burst_us
    tokens, usage, throttled_ns = most, 0, 0
    periods = throttled_periods = 0
    active = throttled = False
    left: list[list[int]] = []
    waiting = sorted(jobs, key=lambda job: job.at_us)
    looks = []
    pause = max(_STEP_US, bandwidth.period_us // looks_a_period // _STEP_US * _STEP_US)
    for now in range(0, span_us, _STEP_US):
        if (now + offset_us) % bandwidth.period_us < _STEP_US:
            tokens = min(most, tokens + quota)
            periods += active
            throttled_periods += throttled
            active = throttled = False
        while waiting and waiting[0].at_us <= now:
            job = waiting.pop(0)
            left.append([job.work_us, job.parallel])
        runnable = sum(parallel for _, parallel in left)
        if now % pause == 0:
            looks.append(Look(Instant(now), usage * 1000, periods, throttled_periods, throttled_ns, runnable))
        for job_left in left:
            wanted = min(job_left[0], min(job_left[1], cpus) * _STEP_US)
            got = min(wanted, tokens)
            active = True
            throttled |= got < wanted
            throttled_ns += (wanted - got) * 1000
            tokens -= got
            usage += got
            job_left[0] -= got
        left = [job_left for job_left in left if job_left[0]]
    return Evidence(bandwidth, tuple(looks), cpus, kernel, threads=8)
