"""CPU burst by Koordinator's rule: a static cfs_burst, and a quota that follows throttling in small steps.

Source of truth: Koordinator's koordlet, qosmanager/plugins/cpuburst. One step a container: the token bucket says
whether it may go on bursting, throttling asks for more, the node's state has the last word, and the quota moves by a
fifth between the limit and the ceiling. Numbers are floats, then cut, as upstream's: other ways differ by one.
"""

from __future__ import annotations

import enum

import msgspec

from bayplan.model.clock import SECOND, Instant
from bayplan.node.burst.errors import BurstConfigError

UP, DOWN = 1.2, 0.8
COOLING_SHARE = 0.9
"""From this share of the threshold on, the node cools: nobody gets more."""
SPENDING_PERCENT, SAVING_PERCENT = 100, 60
"""Use at or above the first spends tokens, below the second saves them; between them nothing moves."""
BASE_PERIOD_US = 100_000


class Policy(enum.StrEnum):
    """Which of the two bursts are on."""

    NONE = "none"
    CPU_BURST_ONLY = "cpuBurstOnly"
    CFS_QUOTA_BURST_ONLY = "cfsQuotaBurstOnly"
    AUTO = "auto"

    @property
    def bursts(self) -> bool:
        """Whether cfs_burst is set."""
        return self in (Policy.AUTO, Policy.CPU_BURST_ONLY)

    @property
    def scales(self) -> bool:
        """Whether the quota follows throttling."""
        return self in (Policy.AUTO, Policy.CFS_QUOTA_BURST_ONLY)


class NodeState(enum.StrEnum):
    """How busy the CPUs are that containers share."""

    OVERLOAD = "nodeBurstOverload"
    COOLING = "nodeBurstCooling"
    IDLE = "nodeBurstIdle"
    UNKNOWN = "nodeBurstUnknown"


class Operation(enum.StrEnum):
    """What happens to the quota."""

    SCALE_UP = "cfsScaleUp"
    SCALE_DOWN = "cfsScaleDown"
    REMAIN = "cfsRemain"
    RESET = "cfsReset"


_BY_NODE = {
    (NodeState.OVERLOAD, Operation.SCALE_UP): Operation.SCALE_DOWN,
    (NodeState.OVERLOAD, Operation.REMAIN): Operation.SCALE_DOWN,
    (NodeState.COOLING, Operation.SCALE_UP): Operation.REMAIN,
    (NodeState.UNKNOWN, Operation.SCALE_UP): Operation.REMAIN,
}


class BurstConfig(msgspec.Struct, frozen=True):
    """The strategy, by upstream's names and with its defaults, but for the policy: who asks for bursts means them."""

    policy: Policy = Policy.AUTO
    cpu_burst_percent: int = 1000
    cfs_quota_burst_percent: int = 300
    cfs_quota_burst_period_seconds: int = -1
    """How long a container may burst at the ceiling; negative: for ever."""
    share_pool_threshold_percent: int = 50

    def __post_init__(self) -> None:
        for name, low, high in (
            ("cpu_burst_percent", 0, 10_000),
            ("cfs_quota_burst_percent", 0, 10_000),
            ("share_pool_threshold_percent", 0, 100),
        ):
            if not low <= (value := getattr(self, name)) <= high:
                raise BurstConfigError(f"{name} is {value}", hint=f"expected {low} to {high}")

    @property
    def capacity(self) -> int:
        """Tokens that fit into the bucket: percent of the limit, times seconds."""
        return self.cfs_quota_burst_period_seconds * (self.cfs_quota_burst_percent - 100)

    @property
    def limited(self) -> bool:
        """Whether a token bucket ends long bursts."""
        return self.cfs_quota_burst_period_seconds >= 0


class Bucket(msgspec.Struct, frozen=True):
    """Tokens as of an instant."""

    tokens: int
    at: Instant

    def after(self, config: BurstConfig, usage_percent: int, now: Instant) -> Bucket:
        """The bucket at `now`, had the use been this since the last time.

        Whole seconds count. What is left of one counts next time: upstream drops it, and then a bucket looked at every
        999 ms never changes.
        """
        whole = max(now - self.at, 0) // SECOND
        tokens = self.tokens
        if usage_percent >= SPENDING_PERCENT or usage_percent < SAVING_PERCENT:
            tokens += (100 - usage_percent) * whole
        return Bucket(max(min(tokens, config.capacity), -config.capacity), Instant(self.at + whole * SECOND))


class Measured(msgspec.Struct, frozen=True):
    """What a step looks at. None: not known."""

    usage_percent: int
    """Of the limit."""
    throttled: bool | None
    share_pool_ratio: float | None


class Decision(msgspec.Struct, frozen=True):
    """One step for one container, with all that led to it."""

    node_state: NodeState
    allowed: bool
    bucket: Bucket
    operation: Operation
    """What the container alone would get."""
    final_operation: Operation
    quota_us: int


def node_state(config: BurstConfig, share_pool_ratio: float | None) -> NodeState:
    """How busy the node is."""
    if share_pool_ratio is None:
        return NodeState.UNKNOWN
    threshold = config.share_pool_threshold_percent / 100
    if share_pool_ratio >= threshold:
        return NodeState.OVERLOAD
    return NodeState.COOLING if share_pool_ratio >= threshold * COOLING_SHARE else NodeState.IDLE


def static_burst_us(config: BurstConfig, limit_millicores: int) -> int:
    """The container's cfs_burst. Mainline kernels take no more than the quota; `Bandwidth` writers must cut it."""
    if not config.policy.bursts or limit_millicores <= 0:
        return 0
    return int(limit_millicores / 1000 * (config.cpu_burst_percent / 100) * BASE_PERIOD_US)


def ceiling_us(config: BurstConfig, base_us: int) -> int:
    """The quota's upper end."""
    percent = config.cfs_quota_burst_percent
    return int(base_us * percent / 100) if percent > 100 else base_us


def step(
    config: BurstConfig, bucket: Bucket, base_us: int, quota_us: int, measured: Measured, now: Instant
) -> Decision:
    """What becomes of a container's quota: `base_us` is its limit, `quota_us` what is in force."""
    state = node_state(config, measured.share_pool_ratio)
    allowed = True
    if config.limited:
        bucket = bucket.after(config, measured.usage_percent, now)
        allowed = config.cfs_quota_burst_percent >= 100 and bucket.tokens > 0
    wished = _operation(config, allowed, measured.throttled)
    final = _BY_NODE.get((state, wished), wished)
    target = {
        Operation.SCALE_UP: int(quota_us * UP),
        Operation.SCALE_DOWN: int(quota_us * DOWN),
        Operation.REMAIN: quota_us,
        Operation.RESET: base_us,
    }[final]
    return Decision(state, allowed, bucket, wished, final, max(base_us, min(target, ceiling_us(config, base_us))))


def _operation(config: BurstConfig, allowed: bool, throttled: bool | None) -> Operation:
    if not config.policy.scales:
        return Operation.RESET
    if not allowed:
        return Operation.SCALE_DOWN
    return Operation.SCALE_UP if throttled else Operation.REMAIN
