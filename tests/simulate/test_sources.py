"""What comes is counted as it comes, and what is deleted is there."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from bayplan.simulate import eventlog
from bayplan.simulate.eventlog import read
from bayplan.simulate.run import Order, rehearse
from bayplan.simulate.scenario_file import parse_scenario
from bayplan.simulate.summary import Summary

_GROUND = """\
duration: 2h
nodes: [{name: n, count: 3, capacity: {cpu: 32, memory: 128Gi}}]
teams: [{name: t}]
"""
_PODS = """\
workloads:
  - {name: w, namespace: t, kind: Pod, ARRIVALS, spec: {containers: [{name: c, image: c}]}}
"""
_VMS = """\
vms:
  - {name: v, namespace: t, cpu: 1, memory: 1Gi, dirtyRate: 0, ARRIVALS}
"""


def _run(text: str, log: Path) -> Summary:
    scenario = parse_scenario("x.yaml", _GROUND + text)
    order = Order(scenario=scenario, name="x", seed=1, duration=scenario.duration.micros)
    return asyncio.run(rehearse(order, log))


@pytest.mark.parametrize(
    ("events", "created"),
    [
        pytest.param("[]", 18, id="at a pace that nothing changes"),
        pytest.param("[{at: 1h, do: {arrivals: {workload: v, factor: 1}}}]", 18, id="at a pace that might change"),
        pytest.param("[{at: 1m, do: {arrivals: {workload: v, factor: 4}}}]", 18, id="four times as fast"),
        pytest.param(
            "[{at: 1m, do: {create: {workload: v, count: 5}, arrivals: {workload: v, factor: 1}}}]",
            23,
            id="beside those that somebody creates",
        ),
    ],
)
def test_so_many_arrive_beside_those_that_are_there(events: str, created: int, tmp_path: Path) -> None:
    text = _VMS.replace("ARRIVALS", "count: 10, arrivals: {every: 5m, count: 8}")
    assert _run(f"{text}events: {events}\n", tmp_path / "log").created == created


_SHORT = _PODS.replace("ARRIVALS", "arrivals: {every: 10m}, lifetime: {median: 15m, spread: 1}")
_STAYING = _PODS.replace("ARRIVALS", "arrivals: {every: 50m}")


@pytest.mark.parametrize(
    ("load", "events", "deleted"),
    [
        pytest.param(
            _SHORT, "[{at: 61m, do: {delete: {workload: w, count: 2}}}]", ["w-6", "w-7"], id="not those that have left"
        ),
        pytest.param(_SHORT, "[{at: 61m, do: {delete: {workload: w}}}]", ["w-6", "w-7"], id="all that are there"),
        pytest.param(_STAYING, "[{at: 20m, do: {delete: {workload: w}}}]", ["w-1"], id="not those that are to come"),
        pytest.param(
            _STAYING,
            "[{at: 20m, do: {create: {workload: w}}}, {at: 51m, do: {delete: {workload: w, count: 2}}}]",
            ["w-1", "w-3"],
            id="a created one before one that arrived after it",
        ),
        pytest.param(
            _VMS.replace("ARRIVALS", "count: 2, lifetime: {median: 40m, spread: 1}"),
            "[{at: 5m, do: {migrate: {vms: v-1}}}, {at: 20m, do: {delete: {workload: v, count: 1}}}]",
            ["virt-launcher-v-1-2"],
            id="a VM where it is by then",
        ),
    ],
)
def test_the_oldest_that_are_there_are_deleted_and_once(
    load: str, events: str, deleted: list[str], tmp_path: Path
) -> None:
    summary = _run(f"{load}events: {events}\n", tmp_path / "log")
    did = [each for line in read(tmp_path / "log") if isinstance(line, eventlog.Happened) for each in line.did]
    assert [each for each in did if each.startswith("delete")] == [f"delete Pod t/{name}" for name in deleted]
    assert summary.denied == {}
