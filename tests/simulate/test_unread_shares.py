"""Pods that ask for a share of a GPU in words that nobody can read wait, in a run as elsewhere; they take no GPU."""

from __future__ import annotations

import pytest

from bayplan.simulate.gpus import gpus_asked
from bayplan.simulate.policy import configuration
from bayplan.simulate.scenario_file import parse_scenario

_SCENARIO = """\
duration: 10m
nodes: [{name: n, count: 1, capacity: {cpu: 8, memory: 32Gi, nvidia.com/gpu: 1}}]
teams: [{name: t}]
workloads:
  - name: w
    namespace: t
    kind: Pod
    arrivals: {count: 1, every: 1m}
    annotations: {bayplan.dev/gpu-share: "%s"}
    spec: {containers: [{name: main, image: i}]}
"""


@pytest.mark.parametrize(
    ("share", "gpus"),
    [
        pytest.param("250", 0.25, id="a quarter"),
        pytest.param("4600", 0, id="too much"),
        pytest.param("a", 0, id="a word"),
    ],
)
def test_what_a_share_comes_to(share: str, gpus: float) -> None:
    assert gpus_asked({}, share, {}) == gpus


@pytest.mark.parametrize("share", ["250", "4600", "a"])
def test_shares_are_looked_at_under_every_policy(share: str) -> None:
    scenario = parse_scenario("s.yaml", _SCENARIO % share)
    (profile,) = configuration(scenario, "default", 1).profiles
    assert "GpuShare" in [each.name for each in profile.filters]
