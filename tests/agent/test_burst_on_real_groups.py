"""A real spiky process under a real quota is throttled without a burst and not, or far less, with one."""

from __future__ import annotations

import asyncio

import msgspec
import pytest
from benchmarks.burst import SPIKE, SURGE, Seen, modes, spiky
from benchmarks.cpu_work import Work, are_groups_writable, real_groups

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not are_groups_writable(), reason="control groups are not writable here"),
]


def measured(mode: str, work: Work) -> Seen:
    with real_groups(f"test-{mode}") as (tree, (group,)):
        return asyncio.run(spiky(tree, group, modes()[mode], msgspec.structs.replace(work, lasts=6)))


@pytest.mark.parametrize(
    ("work", "mode"),
    [
        pytest.param(SPIKE, "static", id="a spike that a standing burst covers"),
        pytest.param(SURGE, "auto", id="a surge of several periods under Koordinator's whole rule"),
        pytest.param(SURGE, "short", id="a surge of several periods under short bursts"),
    ],
)
def test_a_burst_ends_throttling(work: Work, mode: str) -> None:
    tries = (measured("none", work) for _ in range(3))  # a spike may fall between two periods, each time of a run
    without = next((seen for seen in tries if seen.throttled), None)
    with_burst = measured(mode, work)
    assert without is not None
    assert with_burst.throttled * 3 <= without.throttled * 2
