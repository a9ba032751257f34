"""`bayplan simulate capacity --scenario`: the cluster of a scenario as it is when its warm-up is over."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bayplan.cli.main import main

_SCENARIO = """\
nodes: [{name: n, count: 3, capacity: {cpu: 8, memory: 32Gi, nvidia.com/gpu: 4}}]
teams: [{name: t}]
workloads:
  - name: web
    namespace: t
    kind: Deployment
    spec: {replicas: 4, template: {spec: {containers: [{name: c, image: c, resources: {requests: {cpu: 1}}}]}}}
  - name: later
    namespace: t
    kind: Pod
    arrivals: {count: 8, start: 1s}
    spec: {containers: [{name: c, image: c, resources: {requests: {cpu: 2}}}]}
events:
  - {at: 2s, do: {removeNodes: {nodes: [n-3]}}}
"""


@pytest.mark.parametrize(
    ("warm_up", "nodes", "placed", "pending", "gpus"),
    [
        pytest.param("", 3, 4, 0, 12, id="without one: ready nodes, and what there is from the start"),
        pytest.param("warmUp: 1s\n", 3, 12, 0, 12, id="with one: what has come by then has its place, too"),
        pytest.param("warmUp: 2s\n", 2, 12, 0, 8, id="and what was to happen by then has happened"),
    ],
)
def test_a_scenario_is_asked_when_its_nodes_are_ready(
    warm_up: str,
    nodes: int,
    placed: int,
    pending: int,
    gpus: int,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "x.yaml").write_text(warm_up + _SCENARIO)
    assert main(["simulate", "capacity", "--scenario", str(tmp_path / "x.yaml"), "-o", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["nodes"], found["placed"], found["pending"]) == (nodes, placed, pending)
    assert found["byGpuModel"][0]["more"] == gpus
