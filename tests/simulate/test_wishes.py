"""Why a VM is not where it was wished is told by the scheduler that placed it."""

from __future__ import annotations

import asyncio

import pytest

from bayplan.simulate.policy import configuration
from bayplan.simulate.run import Order, rehearse
from bayplan.simulate.scenario_file import shipped


@pytest.mark.parametrize(
    ("policy", "reasons"),
    [
        pytest.param("default", {"NodeResourcesFit", "tie"}, id="by the usual plugins"),
        pytest.param("random", {"Random"}, id="by chance alone"),
        pytest.param("bestfit", {"BestFit", "NodeResourcesFit", "tie"}, id="by what fits best"),
    ],
)
def test_reasons_are_those_of_the_policy_that_ran(policy: str, reasons: set[str]) -> None:
    scenario = shipped("01-initial-placement")
    order = Order(scenario=scenario, name="x", seed=1, policy=policy, duration=scenario.duration.micros)
    agreement = asyncio.run(rehearse(order, None, configuration(scenario, policy, 1))).agreement
    assert agreement is not None
    assert agreement.reasons.keys() == reasons
