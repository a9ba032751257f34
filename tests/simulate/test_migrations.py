"""VMs that migrate are never without a pod: the source goes only when the target runs, and stays where that fails."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from bayplan.simulate import eventlog
from bayplan.simulate.eventlog import AnyLine, read
from bayplan.simulate.run import Order, rehearse
from bayplan.simulate.scenario_file import parse_scenario
from bayplan.simulate.summary import Summary, text

_VMS = """\
duration: 30m
startUp: 3s
nodes: [{name: h, count: 3, capacity: {cpu: 32, memory: 128Gi}}]
teams: [{name: t}]
network: {link: 1000}
vms: [{name: v, namespace: t, count: 1, cpu: 1, memory: 1Gi, dirtyRate: 0}]
events:
  - {name: go, at: 5m, do: {migrate: {vms: v, count: 3}}}
"""
_COPY = 8.6
"""Seconds that a GiB takes."""
_FIRST, _SECOND = "t/virt-launcher-v-1-1", "t/virt-launcher-v-1-2"


def _run(given: str, tmp_path: Path) -> tuple[Summary, list[AnyLine]]:
    scenario = parse_scenario("x.yaml", given)
    order = Order(scenario=scenario, name="x", seed=1, duration=scenario.duration.micros)
    return asyncio.run(rehearse(order, tmp_path / "log")), [*read(tmp_path / "log")]


def _gone(lines: list[AnyLine]) -> dict[str, float]:
    return {line.pod: line.t for line in lines if isinstance(line, eventlog.Gone)}


def _runs(lines: list[AnyLine]) -> dict[str, float]:
    return {line.pod: line.t for line in lines if isinstance(line, eventlog.Phase) and line.phase == "Running"}


def _stayed(lines: list[AnyLine]) -> list[tuple[str, str]]:
    return [(line.vm, line.reason) for line in lines if isinstance(line, eventlog.Stayed)]


@pytest.mark.parametrize(
    ("start_up", "later"),
    [
        pytest.param("3s", _COPY, id="a target that runs waits for the copy"),
        pytest.param("30s", 30.0, id="a copy waits for its target to run"),
        pytest.param("10m", 600.0, id="however long that takes"),
    ],
)
def test_the_source_goes_once_the_target_runs_and_has_its_memory(start_up: str, later: float, tmp_path: Path) -> None:
    summary, lines = _run(_VMS.replace("startUp: 3s", f"startUp: {start_up}").replace("at: 5m", "at: 15m"), tmp_path)
    assert _gone(lines) == {_FIRST: pytest.approx(900 + later, abs=0.2)}
    assert _runs(lines)[_SECOND] <= _gone(lines)[_FIRST]
    assert (summary.migrations, summary.migrations_refused, summary.running) == (1, 0, 1)


def test_a_target_whose_node_is_lost_takes_nothing_over(tmp_path: Path) -> None:
    given = _VMS.replace("startUp: 3s", "startUp: 1m").replace("memory: 128Gi}}]", "memory: 128Gi}}, LATE]")
    given = given.replace("LATE", "{name: late, count: 0, capacity: {cpu: 32, memory: 128Gi}}")
    given = given.replace("name: h, count: 3", "name: h, count: 1")
    given += "  - {at: 4m, do: {addNodes: {group: late, count: 1}}}\n  - {at: 5m10s, do: {fail: {nodes: [late-1]}}}\n"
    summary, lines = _run(given, tmp_path)
    assert _FIRST not in _gone(lines)
    assert _stayed(lines) == [("t/v-1", "the target is gone")]
    assert (summary.migrations, summary.why_refused) == (0, {"the target is gone": 1})


_SHRINKING = """\
duration: 30m
startUp: 3s
nodes: [{name: h, count: 3, capacity: {cpu: 32, memory: 128Gi}}]
teams: [{name: t}]
network: {link: 1000}
vms:
  - {name: v, namespace: t, count: 1, cpu: 1, memory: 1Gi, dirtyRate: 0, labels: {of: us}}
  - {name: w, namespace: t, count: 2, cpu: 1, memory: 1Gi, labels: {of: us}}
budgets: [{name: us, namespace: t, selector: {matchLabels: {of: us}}, minAvailable: 2}]
events:
  - {name: go, at: 5m, do: {migrate: {vms: v, budget: BUDGET}}}
  - {name: fewer, at: 5m4s, do: {delete: {workload: w, count: 2}}}
  - {name: more, at: 10m, do: {create: {workload: w, count: 1}}}
"""


@pytest.mark.parametrize(
    ("budget", "gone", "stayed"),
    [
        pytest.param("fail", _SECOND, [("t/v-1", "disruption budget us")], id="it is given up, and the target goes"),
        pytest.param("wait", _FIRST, [], id="it ends once the budget has room again"),
    ],
)
def test_a_budget_that_has_lost_its_room_while_the_memory_was_copied(
    budget: str, gone: str, stayed: list[tuple[str, str]], tmp_path: Path
) -> None:
    summary, lines = _run(_SHRINKING.replace("BUDGET", budget), tmp_path)
    assert _stayed(lines) == stayed
    assert summary.denied == {"evict Pod t: budget us": 1}
    assert (summary.migrations, summary.migrations_refused) == (not stayed, len(stayed))
    left = _gone(lines)
    assert {_FIRST, _SECOND} & left.keys() == {gone}
    assert left[gone] == pytest.approx(300 + _COPY, abs=0.2) if stayed else left[gone] > 600
    assert summary.running == 2


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        pytest.param("dirtyRate: 0", "dirtyRate: 5000", "its memory changes as fast as it can be sent", id="too busy"),
        pytest.param("memory: 1Gi", "memory: 60Gi", "the copy was not complete after 300s", id="too large"),
        pytest.param("cpu: 1, memory: 1Gi", "cpu: 17, memory: 1Gi, nodeSelector: {kubernetes.io/hostname: h-1}",
                     "no place: 0/3 nodes are available", id="no place"),
        pytest.param("events:", "budgets: [{name: all, namespace: t, workload: v, minAvailable: 1}]\nevents:",
                     "disruption budget all", id="a budget"),
        pytest.param("{name: t}", "{name: t, quota: {pods: 1}}", "the target was refused: Forbidden", id="a quota"),
        pytest.param("dirtyRate: 0", "dirtyRate: 0, lifetime: {median: 305s}", "the VM is gone", id="it leaves"),
    ],
)  # fmt: skip
def test_a_migration_that_is_refused_says_why(old: str, new: str, reason: str, tmp_path: Path) -> None:
    given = _VMS.replace(old, new).replace("count: 3}}}", "count: 3, budget: fail}}}")
    summary, lines = _run(given, tmp_path)
    ((vm, told),) = _stayed(lines)
    assert vm == "t/v-1"
    assert told.startswith(reason)
    assert (summary.migrations, summary.migrations_refused, summary.why_refused) == (0, 1, {told: 1})
    assert f"               1  {told}" in text(summary)
    assert summary.running == (reason != "the VM is gone")
    assert not summary.pending
