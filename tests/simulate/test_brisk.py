"""The kubelet in haste comes to what the whole one comes to."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
import pytest

from bayplan.cluster.embedded.kubelet.controller import KubeletController
from bayplan.cluster.kinds import NAMESPACE, NODE, POD
from bayplan.model.clock import SECOND, VirtualClock
from bayplan.model.pods import Pod
from bayplan.service.durations import Duration
from bayplan.simulate.bare import NOBODY, nodes_of
from bayplan.simulate.eventlog import Phase, read
from bayplan.simulate.lean import cluster_for
from bayplan.simulate.run import EXACT, Order, rehearse
from bayplan.simulate.scenario import Scenario
from bayplan.simulate.scenario_file import parse_scenario, shipped

_ENDS = """
duration: 10m
nodes: [{name: node, count: 3, capacity: {cpu: 8, memory: 32Gi}}]
teams: [{name: load}]
workloads:
  - name: task
    namespace: load
    kind: Pod
    arrivals: {perHour: 600, count: 60}
    behaviour: {run-for: 90s, exit-code: 1}
    lifetime: {median: 2m}
    spec: {restartPolicy: Never, containers: [{name: main, image: task}, {name: beside, image: other}]}
  - name: job
    namespace: load
    kind: Job
    arrivals: {perHour: 60, count: 5}
    spec: {template: {spec: {restartPolicy: Never, containers: [{name: main, image: job}]}}}
  - name: probed
    namespace: load
    kind: Deployment
    spec:
      replicas: 2
      template:
        spec:
          containers: [{name: main, image: serve, readinessProbe: {periodSeconds: 5, httpGet: {port: 80}}}]
outages: [{node: node-1, at: 2m, lasts: 3m}]
"""
_MOST = 75 * 60 * SECOND
"""Of a shipped scenario: the last event of 04-node-failures that has a time is at 70m."""


def _logged(scenario: Scenario, log: Path) -> bytes:
    order = Order(scenario=scenario, name="x", seed=1, duration=scenario.duration.micros)
    asyncio.run(rehearse(order, log))
    return log.read_bytes()


@pytest.mark.parametrize(
    ("name", "start_up"),
    [
        pytest.param("04-node-failures", None, id="the usual start, nodes that fail"),
        pytest.param("", None, id="the usual start, pods that end or go"),
        pytest.param("", Duration(0), id="a start at once"),
        pytest.param("", Duration(2_500_000), id="a start between two seconds"),
    ],
)
def test_a_log_is_the_same_with_the_whole_kubelet(
    name: str, start_up: Duration | None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    scenario = shipped(name) if name else parse_scenario("ends.yaml", _ENDS)
    duration = Duration(min(scenario.duration.micros, _MOST))
    scenario = msgspec.structs.replace(scenario, start_up=start_up, duration=duration)
    brisk = _logged(scenario, tmp_path / "brisk")
    assert any(isinstance(line, Phase) for line in read(tmp_path / "brisk"))
    monkeypatch.setattr("bayplan.simulate.lean.BriskKubelet", KubeletController)
    assert brisk == _logged(scenario, tmp_path / "whole")


@pytest.mark.parametrize(
    ("after", "there"),
    [
        pytest.param(1, True, id="it starts"),
        pytest.param(5, True, id="it runs"),
        pytest.param(20, False, id="it is deleted after the kubelet has written of no other pod"),
    ],
)
async def test_a_deleted_pod_goes(after: int, there: bool) -> None:
    cluster = cluster_for(NOBODY, clock=VirtualClock(), seed=1, scheduler=None, behaviour=EXACT)
    await cluster.create(NODE, nodes_of(1)[0])
    await cluster.create(NAMESPACE, {"metadata": {"name": "load"}})
    await cluster.advance(1)
    spec = {"containers": [{"name": "main", "image": "x"}]}
    await cluster.create(POD, {"metadata": {"name": "one"}, "spec": spec}, "load")
    await cluster.advance(min(after, 5))
    if after > 5:
        await cluster.delete(POD, "one", "load", grace=1)
        await cluster.advance(after - 5)
    found = cluster.world.store.get(POD, "load", "one")
    assert (found is not None) == there
    if found is not None:
        began = found.view(Pod).status.container_statuses[0].state
        assert (began.running is not None) == (after * SECOND > EXACT.pull + EXACT.start)
