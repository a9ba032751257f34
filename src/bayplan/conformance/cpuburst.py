"""Family cpuburst/koord_cpuburst: a container's quota, step after step, as Koordinator moves it."""

from __future__ import annotations

from typing import Any

import msgspec

from bayplan.conformance.frame import Verdict
from bayplan.model.clock import Instant, seconds
from bayplan.node.burst.koordinator import (
    Bucket,
    BurstConfig,
    Decision,
    Measured,
    Policy,
    ceiling_us,
    static_burst_us,
    step,
)


def run(case: dict[str, Any]) -> Verdict:
    """Run one case: the static burst, the ceiling and every step must agree."""
    config = BurstConfig(
        policy=Policy(case["policy"]),
        cpu_burst_percent=case["cpu_burst_percent"],
        cfs_quota_burst_percent=case["cfs_quota_burst_percent"],
        cfs_quota_burst_period_seconds=case["cfs_quota_burst_period_seconds"],
        share_pool_threshold_percent=case["share_pool_threshold_percent"],
    )
    base = case["base_quota_us"]
    told = _difference(
        "",
        {
            "expected_cfs_burst_us": static_burst_us(config, case["limit_millicores"]),
            "expected_ceil_quota_us": ceiling_us(config, base),
        },
        case,
    )
    quota, now = base, Instant(0)
    bucket = Bucket(case["initial_tokens"], now)
    for number, recorded in enumerate(case["steps"]):
        now = Instant(now + seconds(recorded["dt_s"]))
        measured = Measured(
            recorded["usage_percent_of_limit"], recorded["throttled"], recorded["share_pool_usage_ratio"]
        )
        decision = step(config, bucket, base, quota, measured, now)
        quota = decision.quota_us
        bucket = msgspec.structs.replace(decision.bucket, at=now)  # upstream drops what is left of a second
        told = told or _difference(f"step {number}: ", _answer(decision), recorded)
    return Verdict(str(case["id"]), case["policy"], agrees=not told, difference=told)


def _answer(decision: Decision) -> dict[str, Any]:
    return {
        "node_state": decision.node_state.value,
        "allowed": decision.allowed,
        "tokens": decision.bucket.tokens,
        "operation": decision.operation.value,
        "final_operation": decision.final_operation.value,
        "quota_us": decision.quota_us,
    }


def _difference(where: str, ours: dict[str, Any], theirs: dict[str, Any]) -> str:
    for name, value in ours.items():
        if value != theirs[name]:
            return f"{where}{name}: {value!r}, expected {theirs[name]!r}"
    return ""
