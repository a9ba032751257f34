"""A scenario put to a twin: it finds what is there, begins when the twin was taken, and repeats itself."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from bayplan.cluster.kinds import DEPLOYMENT, NODE, POD
from bayplan.model.clock import rfc3339
from bayplan.simulate import eventlog
from bayplan.simulate.eventlog import read
from bayplan.simulate.policy import configuration
from bayplan.simulate.run import Order, rehearse
from bayplan.simulate.scenario_file import ScenarioError, parse_scenario
from bayplan.simulate.scenario_ground import Ground, ground_of
from bayplan.simulate.summary import Summary, text
from bayplan.simulate.twin.snapshot import Snapshot
from tests.simulate.twin.clusters import busy, snapshot_of

_STORM = """\
duration: 1h
nodes: []
workloads:
  - name: batch
    namespace: default
    kind: Job
    arrivals: {every: 10m, count: 3}
    spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: c, resources: {requests: {cpu: 8}}}]}}}
events:
  - {name: lost, at: 5m, do: {fail: {nodes: [b]}}}
  - {name: growth, at: 20m, do: {scale: {workload: default/web, replicas: 9}}}
  - {name: end, at: 50m, do: {delete: {workload: default/db}}}
"""


async def _run(scenario: str, snapshot: Snapshot, log: Path | None = None, policy: str = "default") -> Summary:
    parsed = parse_scenario("x.yaml", scenario, ground_of(snapshot))
    order = Order(scenario=parsed, name="x", seed=3, policy=policy, duration=parsed.duration.micros, twin=snapshot)
    return await rehearse(order, log, configuration(parsed, policy, 3, order.pods))


async def test_events_and_load_meet_what_is_there(tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    taken = await snapshot_of(await busy())
    summary = await _run(_STORM, taken, tmp_path / "log")
    assert "\n".join(text(summary)) == snapshot
    lines = [*read(tmp_path / "log")]
    assert isinstance(lines[0], eventlog.Began)
    assert lines[0].start == rfc3339(taken.at)
    lost = [line.node for line in lines if isinstance(line, eventlog.NodeLine) and line.state == "lost"]
    assert lost == ["b"]
    gone = {line.pod for line in lines if isinstance(line, eventlog.Gone)}
    assert {"default/db-0", "default/db-1"} <= gone


async def test_the_same_twin_and_scenario_write_the_same_bytes(tmp_path: Path) -> None:
    taken = await snapshot_of(await busy())
    for name in ("one", "two"):
        await _run(_STORM, taken, tmp_path / name)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


async def test_what_was_there_counts_neither_as_created_nor_as_placed() -> None:
    taken = await snapshot_of(await busy())
    summary = await _run("duration: 10m\n", taken)
    assert (summary.created, summary.placed, summary.succeeded) == (0, 0, 0)
    assert (summary.nodes, summary.running, summary.pending) == (len(taken.of(NODE)), len(taken.of(POD)) - 1, 1)


async def test_nodes_that_come_let_in_what_waited() -> None:
    taken = await snapshot_of(await busy())
    more = """\
duration: 10m
nodes: [{name: huge, count: 0, capacity: {cpu: 96, memory: 1Ti}}]
events: [{when: {pending: {above: 0}}, do: {addNodes: {group: huge, count: 1}}}]
"""
    summary = await _run(more, taken)
    assert (summary.nodes, summary.placed, summary.pending) == (4, 1, 0)


async def test_nodes_are_picked_by_their_labels() -> None:
    taken = await snapshot_of(await busy())
    summary = await _run("events: [{at: 1m, do: {cordon: {labels: {kubernetes.io/hostname: c}}}}]", taken)
    assert summary.events == {"events[0]": 1}
    assert "1 node(s) were unschedulable" in next(iter(summary.why_pending))


async def test_fgd_expects_the_pods_that_are_there() -> None:
    taken = await snapshot_of(await busy())
    summary = await _run(_STORM, taken, policy="fgd")
    assert summary.fragmentation > 0


async def test_a_team_that_is_there_is_not_made_again() -> None:
    taken = await snapshot_of(await busy())
    summary = await _run("duration: 1m\nteams: [{name: default}, {name: new}]\n", taken)
    assert summary.denied == {}


@pytest.mark.parametrize(
    ("scenario", "fault"),
    [
        pytest.param(
            "events: [{at: 1m, do: {fail: {nodes: [d]}}}]",
            'events[0].do.fail.nodes[0]: expected a node of a group, or of the twin, got "d"',
            id="a node that the twin does not have",
        ),
        pytest.param(
            "events: [{at: 1m, do: {arrivals: {workload: default/web, factor: 2}}}]",
            "events[0].do.arrivals.workload: expected a workload of the scenario: the twin's Deployment can be deleted"
            " or scaled",
            id="a pace for what does not come",
        ),
        pytest.param(
            "events: [{at: 1m, do: {scale: {workload: default/train, replicas: 2}}}]",
            "events[0].do.scale.workload: expected a workload of the scenario: the twin's Job can be deleted",
            id="replicas of a Job",
        ),
        pytest.param(
            "events: [{at: 1m, do: {delete: {workload: default/web, count: 2}}}]",
            "events[0].do.delete.count: expected none",
            id="half a Deployment",
        ),
        pytest.param(
            "teams: [{name: default, quota: {count/pods: 3}}]",
            'teams[0].quota: expected none: the twin has the namespace "default"',
            id="a quota for a namespace that is there",
        ),
        pytest.param(
            "workloads: [{name: web, namespace: default, kind: Deployment, spec: {template: {spec: {containers: "
            "[{name: c, image: c}]}}}}]",
            'workloads[0].name: the twin has "default/web" already',
            id="a Deployment that is there",
        ),
        pytest.param(
            "workloads: [{name: x, namespace: nowhere, kind: Deployment, spec: {template: {spec: {containers: "
            "[{name: c, image: c}]}}}}]",
            "workloads[0].namespace: expected a team",
            id="a namespace that is nowhere",
        ),
    ],
)
async def test_what_does_not_go_with_the_twin_is_refused(scenario: str, fault: str) -> None:
    ground = ground_of(await snapshot_of(await busy()))
    with pytest.raises(ScenarioError) as refused:
        parse_scenario("x.yaml", scenario, ground)
    assert refused.value.message.startswith(f"x.yaml:1: {fault}")


def test_the_example_of_the_documentation_can_be_used() -> None:
    page = (Path(__file__).parents[3] / "docs" / "twin.md").read_text()
    (example,) = re.findall(r"^```yaml\n(.*?)^```", page, re.M | re.S)
    ground = Ground(("a100-b-1",), ("vision",), {}, {"vision/serve": DEPLOYMENT}, is_twin=True)
    assert len(parse_scenario("page", example, ground).events) == 3


def test_without_a_twin_there_must_be_nodes() -> None:
    with pytest.raises(ScenarioError, match="nodes: expected nodes, unless the scenario is put to a twin"):
        parse_scenario("x.yaml", "nodes: []")
