"""Live agreement in short: a real kube-scheduler and bayplan on the same arrivals. `make agreement` is the long run."""

from __future__ import annotations

import asyncio

import pytest

from bayplan.cluster.lab.toolchain import LabUnavailableError
from bayplan.conformance.agreement.campaign import run_shape
from bayplan.conformance.agreement.report import Report
from bayplan.conformance.agreement.shapes import SHAPES

pytestmark = pytest.mark.slow

_DECISIONS = 75


def _run(shape: str) -> Report:
    report = Report()
    try:
        asyncio.run(run_shape(SHAPES[shape], _DECISIONS, seed=11, report=report, tell=print))
    except LabUnavailableError as error:
        pytest.skip(f"no lab here: {error.message}")
    return report


@pytest.mark.parametrize(
    "shape",
    [
        pytest.param("zones", id="spread over zones, by constraints and by default"),
        pytest.param("affinity", id="pods that seek and shun others"),
        pytest.param("priorities", id="pods that evict others"),
        pytest.param("zones-parallel", id="with sixteen threads, among our best"),
    ],
)
def test_the_real_scheduler_decides_as_bayplan_does(shape: str) -> None:
    report = _run(shape)

    [tally] = report.tallies
    assert tally.decisions >= _DECISIONS
    assert tally.disagreements == [], "\n".join(report.lines())
