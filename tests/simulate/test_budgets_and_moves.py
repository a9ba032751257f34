"""What a scenario evicts and moves: as disruption budgets allow, over links that running migrations share."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from bayplan.simulate import eventlog
from bayplan.simulate.eventlog import AnyLine, read
from bayplan.simulate.run import Order, rehearse
from bayplan.simulate.scenario_file import ScenarioError, parse_scenario
from bayplan.simulate.summary import Summary

_SERVICE = """\
duration: 20m
nodes: [{name: n, count: 3, capacity: {cpu: 4, memory: 8Gi}}]
teams: [{name: shop}]
workloads:
  - name: api
    namespace: shop
    kind: Deployment
    behaviour: {pull: 60s}
    spec: {replicas: 6, template: {spec: {containers: [{name: c, image: c, resources: {requests: {cpu: 1}}}]}}}
budgets:
  - {name: api, namespace: shop, workload: api, BOUND}
events:
  - {name: empty, at: 5m, do: {drain: {nodes: [n-1]}}}
"""

_VMS = """\
duration: 20m
nodes: [{name: host, count: 3, capacity: {cpu: 32, memory: 128Gi}}]
teams: [{name: vms}]
vms:
  - {name: db, namespace: vms, count: 3, cpu: 8, memory: 32Gi, dirtyRate: 0, wished: [host-1], LIFETIME}
network: {link: 8000}
budgets: [{name: db, namespace: vms, workload: db, minAvailable: 0}]
events:
  - {name: go, at: 5m, do: {migrate: {vms: db, count: 3}}}
"""


def _run(text: str, tmp_path: Path) -> tuple[Summary, list[AnyLine]]:
    scenario = parse_scenario("x.yaml", text)
    order = Order(scenario=scenario, name="x", seed=1, duration=scenario.duration.micros)
    summary = asyncio.run(rehearse(order, tmp_path / "log"))
    return summary, [*read(tmp_path / "log")]


def _gone(lines: list[AnyLine]) -> list[float]:
    return [line.t for line in lines if isinstance(line, eventlog.Gone)]


@pytest.mark.parametrize(
    ("bound", "waits"),
    [
        pytest.param("minAvailable: 0", False, id="without a bound all go at once"),
        pytest.param("maxUnavailable: 1", True, id="one after the other, each once the one before has been replaced"),
        pytest.param('minAvailable: "80%"', True, id="five of six have to serve"),
    ],
)
def test_a_drain_waits_for_the_budget(bound: str, waits: bool, tmp_path: Path) -> None:
    summary, lines = _run(_SERVICE.replace("BOUND", bound), tmp_path)
    gone = _gone(lines)
    assert len(gone) == 2
    assert (gone[1] - gone[0] >= 60) is waits  # the pull takes so long
    assert summary.running == 6
    assert bool(summary.denied) is waits


def test_a_budget_that_forbids_everything_keeps_a_drained_node_busy_and_is_told_once(tmp_path: Path) -> None:
    summary, lines = _run(_SERVICE.replace("BOUND", "maxUnavailable: 0"), tmp_path)
    assert not _gone(lines)
    assert summary.denied == {"evict Pod shop: budget api": 2}
    told = next(line for line in lines if isinstance(line, eventlog.Denied))
    assert told.reason == "The disruption budget api needs 6 healthy pods and has 6 currently"


@pytest.mark.parametrize(
    ("count", "times"),
    [pytest.param(1, 1, id="one has it to itself"), pytest.param(3, 3, id="three take as long each")],
)
def test_migrations_that_leave_one_node_together_share_its_link(count: int, times: int, tmp_path: Path) -> None:
    text = _VMS.replace("LIFETIME", "affinity: {}").replace(
        "migrate: {vms: db, count: 3}", f"migrate: {{vms: db, count: {count}}}"
    )
    text = text.replace(
        "{name: host, count: 3,", "{name: spare, count: 0, capacity: {cpu: 32, memory: 128Gi}}, {name: host, count: 1,"
    )
    text += "  - {at: 4m, do: {addNodes: {group: spare, count: 3}}}\n"
    summary, lines = _run(text, tmp_path)
    assert (summary.migrations, summary.migrations_refused) == (count, 0)
    assert max(_gone(lines)) - 300 == pytest.approx(times * 34.36, abs=0.7)


def test_a_drained_node_is_left_by_its_vms_and_none_is_lost(tmp_path: Path) -> None:
    text = _VMS.replace("LIFETIME", "affinity: {}").replace("migrate: {vms: db, count: 3}", "drain: {group: host}")
    text = text.replace("group: host", "nodes: [host-1, host-2]")
    summary, lines = _run(text, tmp_path)
    assert (summary.running, summary.pending) == (3, 0)
    assert summary.migrations >= 2
    placed = {line.pod: line.node for line in lines if isinstance(line, eventlog.Placed)}
    gone = {line.pod for line in lines if isinstance(line, eventlog.Gone)}
    assert {node for name, node in placed.items() if name not in gone} == {"host-3"}


def test_a_vm_that_has_migrated_still_leaves_in_its_time(tmp_path: Path) -> None:
    summary, _ = _run(_VMS.replace("LIFETIME", "lifetime: {median: 15m}"), tmp_path)
    assert (summary.migrations, summary.running, summary.denied) == (3, 0, {})


@pytest.mark.parametrize(
    ("pods", "denied", "moved"),
    [
        pytest.param(3, 6, 0, id="there is no room for a second pod of any of them"),
        pytest.param(4, 4, 2, id="there is room for one at a time"),
    ],
)
def test_a_migration_whose_target_a_quota_refuses_is_over(pods: int, denied: int, moved: int, tmp_path: Path) -> None:
    text = _VMS.replace("LIFETIME", "affinity: {}").replace("{name: vms}", f"{{name: vms, quota: {{pods: {pods}}}}}")
    text = text.replace("at: 5m,", "at: 5m, every: 10m,")
    summary, _ = _run(text, tmp_path)
    assert summary.denied == {"create Pod vms: Forbidden": denied}
    assert (summary.migrations_refused, summary.migrations) == (denied, moved)


@pytest.mark.parametrize(
    ("manner", "refused", "moved"),
    [
        pytest.param("fail", 3, 0, id="given up at once"),
        pytest.param("wait", 0, 3, id="made once the budget has room"),
    ],
)
def test_a_migration_that_a_budget_forbids(manner: str, refused: int, moved: int, tmp_path: Path) -> None:
    text = _VMS.replace("LIFETIME", "affinity: {}").replace("minAvailable: 0", "minAvailable: 3")
    text = text.replace("count: 3}}", f"count: 3, budget: {manner}}}}}")
    text += "  - {name: room, at: 8m, do: {create: {workload: db, count: 1}}}\n"
    summary, lines = _run(text, tmp_path)
    assert (summary.migrations_refused, summary.migrations) == (refused, moved)
    assert "ask to evict Pod vms: budget db" in summary.denied
    assert all(at > 480 for at in _gone(lines))


@pytest.mark.parametrize(
    ("old", "new", "fault", "code"),
    [
        pytest.param(", BOUND", "", "budgets[0]: expected either minAvailable or maxUnavailable", "X008", id="none"),
        pytest.param("BOUND", "minAvailable: half", "budgets[0].minAvailable", "X004", id="no number, no share"),
        pytest.param("workload: api, BOUND", "workload: web, minAvailable: 1",
                     "budgets[0].workload: expected a workload or VMs of the namespace (api)", "X006", id="of nothing"),
        pytest.param("namespace: shop, workload: api, BOUND", "namespace: nowhere, selector: {}, minAvailable: 1",
                     "budgets[0].namespace: expected a team (shop)", "X006", id="of nobody"),
        pytest.param("workload: api, BOUND", "selector: {matchLabels: {a: '?'}}, minAvailable: 1",
                     "budgets[0].selector", "X011", id="a selector that the API server refuses"),
    ],
)  # fmt: skip
def test_a_budget_that_cannot_be(old: str, new: str, fault: str, code: str) -> None:
    with pytest.raises(ScenarioError) as refused:
        parse_scenario("x.yaml", _SERVICE.replace(old, new))
    assert fault in refused.value.message
    assert f"BP-{code}" in [kind.value for kind in refused.value.kinds]
