"""Budgets of VMs that say how many may be missing: on both engines, and naming the budget."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
import pytest

from bayplan.cluster.lab.toolchain import LabUnavailableError
from bayplan.simulate import eventlog
from bayplan.simulate.eventlog import Writer, read
from bayplan.simulate.lab_run import on_lab
from bayplan.simulate.run import Order, rehearse
from bayplan.simulate.scenario_file import parse_scenario
from bayplan.simulate.summary import Summary

_VMS = """\
duration: 90s
nodes: [{name: host, count: 3, capacity: {cpu: 32, memory: 128Gi}}]
teams: [{name: vms}]
vms:
  - {name: shut, namespace: vms, count: 3, cpu: 2, memory: 1Gi, dirtyRate: 0}
  - {name: ajar, namespace: vms, count: 3, cpu: 2, memory: 1Gi, dirtyRate: 0}
budgets:
  - {name: none, namespace: vms, workload: shut, maxUnavailable: 0}
  - {name: one, namespace: vms, workload: ajar, maxUnavailable: 1}
events:
  - {name: given up, at: 30s, do: {migrate: {vms: shut, count: 2, budget: fail}}}
  - {name: let go, at: 40s, do: {migrate: {vms: ajar, count: 3, budget: fail}}}
  - {name: patient, at: 70s, do: {migrate: {vms: shut, count: 1, budget: wait}}}
"""


def _order(text: str = _VMS) -> Order:
    scenario = parse_scenario("x.yaml", text)
    return Order(scenario=scenario, name="x", seed=0, duration=scenario.duration.micros)


def _as_budgets_say(found: Summary, log: Path) -> None:
    """None of those that may not be missing has moved; of the others all have."""
    assert (found.running, found.pending) == (6, 0)
    assert (found.migrations, found.why_refused) == (3, {"disruption budget none": 2})
    assert found.denied == {"ask to evict Pod vms: budget none": 3}  # two given up, and one that waits, told once
    stayed = [line.reason for line in read(log) if isinstance(line, eventlog.Stayed)]
    assert stayed == ["disruption budget none"] * 2
    gone = {line.pod for line in read(log) if isinstance(line, eventlog.Gone)}
    assert gone == {f"vms/virt-launcher-ajar-{number}-1" for number in (1, 2, 3)}


def test_as_many_as_may_be_missing_move_on_the_embedded_engine(tmp_path: Path) -> None:
    _as_budgets_say(asyncio.run(rehearse(_order(), tmp_path / "log")), tmp_path / "log")


@pytest.mark.slow
def test_as_many_as_may_be_missing_move_on_the_real_control_plane(tmp_path: Path) -> None:
    try:
        with Writer(tmp_path / "log") as log:
            order = msgspec.structs.replace(_order(), engine="lab")
            found = asyncio.run(on_lab(order, log, None, stopping=lambda: False))
    except LabUnavailableError as error:
        pytest.skip(f"no lab here: {error.message}")
    _as_budgets_say(found, tmp_path / "log")


@pytest.mark.parametrize(
    ("bound", "moved"),
    [
        pytest.param('maxUnavailable: "34%"', 3, id="one in three may be missing"),
        pytest.param('maxUnavailable: "0%"', 0, id="none may be missing"),
        pytest.param('minAvailable: "50%"', 3, id="half have to be there"),
        pytest.param('minAvailable: "100%"', 0, id="all have to be there"),
    ],
)
def test_a_share_is_one_of_the_vms_that_there_should_be(bound: str, moved: int) -> None:
    text = _VMS.replace("maxUnavailable: 1", bound)
    assert asyncio.run(rehearse(_order(text))).migrations == moved


def test_a_selector_may_mean_vms_too() -> None:
    labels = "{matchLabels: {simulate.bayplan.dev/vms: ajar}}"
    text = _VMS.replace("workload: ajar, maxUnavailable: 1", f"selector: {labels}, maxUnavailable: 0")
    assert asyncio.run(rehearse(_order(text))).migrations == 0


def test_a_vm_that_leaves_takes_along_what_owned_it() -> None:
    text = _VMS + "  - {name: less, at: 80s, do: {delete: {workload: ajar, count: 3}}}\n"
    found = asyncio.run(rehearse(_order(text)))
    assert (found.running, found.denied) == (3, {"ask to evict Pod vms: budget none": 3})
