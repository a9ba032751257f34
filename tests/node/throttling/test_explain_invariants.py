"""Whatever is measured, it is explained, the same every time, and the kernel takes every remedy."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bayplan.model.clock import Instant
from bayplan.node.cgroup.port import Bandwidth
from bayplan.node.throttling.causes import Cause, explain
from bayplan.node.throttling.evidence import Evidence, Look

STEPS = st.tuples(
    st.integers(1, 200_000),  # microseconds to the next look
    st.integers(0, 1_000_000_000),  # CPU time used
    st.integers(0, 5),  # periods
    st.integers(0, 5),  # of them throttled, at most
    st.integers(0, 500_000_000),  # time throttled
    st.integers(0, 40),  # threads that want to run
)


@st.composite
def evidence(draw: st.DrawFn) -> Evidence:
    looks = [Look(Instant(0), 0, 0, 0, 0)]
    for after, used, periods, throttled, held, runnable in draw(st.lists(STEPS, min_size=1, max_size=30)):
        last = looks[-1]
        looks.append(
            Look(
                Instant(last.at + after),
                last.usage_ns + used,
                last.periods + periods,
                last.throttled_periods + min(periods, throttled),
                last.throttled_ns + held,
                runnable,
            )
        )
    period = draw(st.integers(1_000, 1_000_000))
    cpus = draw(st.integers(1, 256))
    quota = draw(st.none() | st.integers(1_000, cpus * period))  # more than it can run on throttles nobody
    return Evidence(
        Bandwidth(quota, period, draw(st.integers(0, quota or 0))),
        tuple(looks),
        cpus,
        draw(st.sampled_from(["6.18.0", "4.18.0-305.el8", "4.19.83", "odd"])),
        threads=draw(st.integers(0, 100)),
        node_idle_cpus=draw(st.none() | st.floats(0, 256)),
        has_burst=draw(st.booleans()),
    )


@given(evidence())
def test_every_remedy_is_a_limit_that_the_kernel_takes(seen: Evidence) -> None:
    found = explain(seen)
    assert found == explain(seen)
    assert (found.cause in (Cause.NONE, Cause.NO_LIMIT)) == (not found.remedies)
    for remedy in found.remedies:
        limit = remedy.bandwidth
        assert limit.quota_us is not None
        assert limit.quota_us >= 1_000
        assert 1_000 <= limit.period_us <= 1_000_000
        assert 0 <= limit.burst_us <= limit.quota_us
        assert limit != seen.bandwidth, "a remedy changes something"
        assert limit.quota_us * seen.bandwidth.period_us >= (seen.bandwidth.quota_us or 0) * limit.period_us, "or takes"
        if not seen.has_burst:
            assert limit.burst_us in (0, seen.bandwidth.burst_us)
