"""The seed's three scenarios end on the real scheduler as they end on ours."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from bayplan.cluster.lab.toolchain import LabUnavailableError
from bayplan.simulate.eventlog import Ended, Writer, read
from bayplan.simulate.lab_run import LabRunError, check, on_lab
from bayplan.simulate.run import Order, rehearse
from bayplan.simulate.scenario_file import shipped


def _order(name: str, engine: str = "lab", policy: str = "default") -> Order:
    scenario = shipped(name)
    return Order(
        scenario=scenario,
        name=name,
        seed=scenario.seed,
        engine=engine,
        policy=policy,
        duration=scenario.duration.micros,
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", ["01-initial-placement", "02-migration", "03-exhaustion"])
def test_both_engines_end_with_the_same_counts(name: str, tmp_path: Path) -> None:
    try:
        with Writer(tmp_path / "log") as log:
            real = asyncio.run(on_lab(_order(name), log, None, stopping=lambda: False))
    except LabUnavailableError as error:
        pytest.skip(f"no lab here: {error.message}")
    ours = asyncio.run(rehearse(_order(name, "embedded")))
    for key in ("created", "placed", "pending", "running", "migrations", "migrations_refused", "events"):
        assert getattr(real, key) == getattr(ours, key), key
    last = [*read(tmp_path / "log")][-1]
    assert isinstance(last, Ended)
    assert last.complete


@pytest.mark.parametrize(
    ("name", "policy", "fault"),
    [
        pytest.param("04-node-failures", "default", "events[0].do.fail", id="failures are not for the lab"),
        pytest.param("05-gpu-shares", "default", "workloads[0].runTime", id="nor are run times"),
        pytest.param("03-exhaustion", "fgd", "policy fgd", id="nor are policies that kube-scheduler has not"),
    ],
)
def test_what_is_not_for_the_lab(name: str, policy: str, fault: str) -> None:
    with pytest.raises(LabRunError) as refused:
        check(_order(name, policy=policy), None)
    assert fault in refused.value.message
