"""The arithmetic of probes, back-offs and pulls, against playing them out."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.cluster.embedded.kubelet.behaviour import Behaviour, Failing
from bayplan.cluster.embedded.kubelet.course import course, failing_pull, restart_delay
from bayplan.model.clock import SECOND, Instant
from bayplan.model.pods import Container, Probe

_LONG = 700


@pytest.mark.parametrize(
    ("ran", "delay"),
    [
        pytest.param([], 0, id="the first restart is at once"),
        pytest.param([5], 10, id="the second waits ten seconds"),
        pytest.param([5, 5, 5], 40, id="each one twice as long"),
        pytest.param([5] * 9, 300, id="five minutes at the most"),
        pytest.param([5, 5, _LONG], 0, id="a long run is forgiven"),
        pytest.param([5, _LONG, 5], 10, id="after a long run it begins anew"),
    ],
)
def test_restart_delay(ran: list[int], delay: int) -> None:
    assert restart_delay([span * SECOND for span in ran]) == delay * SECOND


def asked(failing: list[tuple[int, int | None]], probe: Probe, until: int) -> list[tuple[int, bool]]:
    """A probe played out, second by second."""
    verdict: bool | None = None
    last: bool | None = None
    run = 0
    found = []
    for at in range(probe.initial_delay_seconds, until, probe.period_seconds):
        ok = not any(begin <= at and (end is None or at < end) for begin, end in failing)
        run = run + 1 if ok is last else 1
        last = ok
        if run >= (probe.success_threshold if ok else probe.failure_threshold) and ok is not verdict:
            verdict = ok
            found.append((at, ok))
    return found


windows = st.lists(st.tuples(st.integers(0, 60), st.integers(1, 40) | st.none()), max_size=3)
small = st.integers(1, 4)


@given(windows, small, small, small, st.integers(0, 9), st.integers(0, 30))
def test_readiness_is_what_asking_would_have_found(
    failing: list[tuple[int, int | None]], period: int, success: int, failure: int, delay: int, ready_after: int
) -> None:
    probe = Probe(
        period_seconds=period, success_threshold=success, failure_threshold=failure, initial_delay_seconds=delay
    )
    intervals = [(begin, None if span is None else begin + span) for begin, span in failing]
    behaviour = Behaviour(
        pull=0,
        start=0,
        shutdown=0,
        ready_after=ready_after * SECOND,
        failing=tuple(
            Failing("readiness", begin * SECOND, None if end is None else end * SECOND) for begin, end in intervals
        ),
    )
    found = course(Container(readiness_probe=probe), behaviour, Instant(0), 0, 30).readiness
    before = [(0, ready_after)] if ready_after else []
    assert [(at // SECOND, ok) for at, ok in found if at < 500 * SECOND] == asked([*before, *intervals], probe, 500)


@given(st.integers(0, 20), st.integers(0, 5000))
def test_a_failing_pull_is_what_trying_would_have_found(pull: int, second: int) -> None:
    failed, failures, wait = pull, 0, 10
    while failed <= second:
        failures += 1
        at, failed = failed, failed + wait + pull
        wait = min(wait * 2, 300)
    found = failing_pull(Instant(0), pull * SECOND, Instant(second * SECOND))
    assert found.failures == failures
    if failures:
        told = second < at + 2
        assert found.backing_off is not told
        assert found.until == (at + 2 if told else failed) * SECOND
    assert found.until > second * SECOND
