"""A scenario is read whole, or refused with file, line and path."""

from __future__ import annotations

import re
from pathlib import Path

import click
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.cli.up import up
from bayplan.simulate.entry import Entry
from bayplan.simulate.scenario import scaled
from bayplan.simulate.scenario_file import ScenarioError, parse_scenario, read_scenario, shipped

_GOOD = """\
nodes:
  - name: gpu
    count: 2
    capacity: {cpu: 8, memory: 64Gi, nvidia.com/gpu: 8}
teams:
  - name: vision
    quota: {requests.nvidia.com/gpu: 4}
curves:
  - {name: office, hours: [0, 0, 0, 0, 0, 0, 0, 0.5, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0.5, 0, 0, 0, 0, 0, 0]}
workloads:
  - name: train
    namespace: vision
    kind: Job
    arrivals: {perHour: 2, curve: office}
    runTime: {median: 45m, spread: 2}
    sizes:
      - {share: 1, resources: {limits: {nvidia.com/gpu: 1}}}
    mishaps:
      - {share: 0.1, behaviour: {exit-code: 1}}
    spec:
      template:
        spec:
          restartPolicy: Never
          containers:
            - {name: main, image: train}
outages:
  - {node: gpu-2, at: 1h, lasts: 5m}
"""


def test_the_shipped_scenario_is_a_dozen_nodes_of_eight_gpus() -> None:
    scenario = shipped()
    assert scenario.node_count == 12
    assert len({team.name for team in scenario.teams}) >= 4
    assert {workload.kind for workload in scenario.workloads} == {
        "Pod",
        "Job",
        "Deployment",
        "StatefulSet",
        "DaemonSet",
    }


def test_a_file_is_read(tmp_path: Path) -> None:
    file = tmp_path / "load.yaml"
    file.write_text(_GOOD)
    scenario = read_scenario(file)
    assert scenario.workloads[0].run_time is not None
    assert scenario.workloads[0].run_time.median.seconds == 45 * 60


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        pytest.param("count: 2", "count: two", "x.yaml:3: nodes[0].count: expected int, got str", id="a wrong type"),
        pytest.param("count: 2", "count: -1", "x.yaml:3: nodes[0].count: expected int >= 0", id="a number too small"),
        pytest.param("count: 2", "cuont: 2", "x.yaml:3: nodes[0].cuont: unknown key", id="an unknown key"),
        pytest.param(
            "    count: 2\n", "", "x.yaml:2: nodes[0]: object missing required field count", id="a key missing"
        ),
        pytest.param("count: 2", "count: [", "x.yaml:5: not YAML: ", id="no YAML"),
        pytest.param("name: gpu", "name: GPU", "x.yaml:2: nodes[0].name: expected str matching regex", id="a bad name"),
        pytest.param(
            "median: 45m",
            "median: 45",
            "x.yaml:15: workloads[0].runTime.median: expected a duration such as 45m, got 45",
            id="a number where a duration belongs",
        ),
        pytest.param(
            "median: 45m",
            "median: 45x",
            'x.yaml:15: workloads[0].runTime.median: expected a duration such as "250ms", "5m" or "1h30m"; got "45x"',
            id="a text that is no duration",
        ),
        pytest.param(
            "[0, 0,", "[0,", "x.yaml:9: curves[0].hours: expected array of length >= 24", id="a day of 23 hours"
        ),
        pytest.param(
            "curve: office",
            "curve: night",
            'x.yaml:14: workloads[0].arrivals.curve: expected a curve (office, flat), got "night"',
            id="a curve that is not there",
        ),
        pytest.param(
            "namespace: vision",
            "namespace: sight",
            'x.yaml:12: workloads[0].namespace: expected a team (vision), got "sight"',
            id="a team that is not there",
        ),
        pytest.param(
            "node: gpu-2",
            "node: gpu-3",
            'x.yaml:27: outages[0].node: expected a node (gpu-1, gpu-2), got "gpu-3"',
            id="node",
        ),
        pytest.param(
            "    arrivals: {perHour: 2, curve: office}\n",
            "",
            "x.yaml:11: workloads[0]: expected arrivals: a Job ends, and others come after it",
            id="a job that never comes",
        ),
        pytest.param(
            "exit-code: 1",
            "exit-code: 300",
            'x.yaml:19: workloads[0].mishaps[0].behaviour.exit-code: expected an exit code from 0 to 255, got "300"',
            id="a behaviour that is none",
        ),
        pytest.param(
            "restartPolicy: Never",
            "restartPolicy: Always",
            'x.yaml:23: workloads[0].spec.template.spec.restartPolicy: Required value: valid values: "OnFailure"',
            id="a template that the API server refuses",
        ),
        pytest.param(
            "nvidia.com/gpu: 1}",
            "nvidia.com/gpu: 1.5}",
            "x.yaml:17: workloads[0].sizes[0].resources.limits",
            id="a size that the API server refuses",
        ),
        pytest.param(
            "quota: {requests.nvidia.com/gpu",
            "quota: {re/quests/gpu",
            "x.yaml:7: teams[0].quota",
            id="a quota of nothing",
        ),
        pytest.param(
            "memory: 64Gi",
            "memory: lots",
            'x.yaml:4: nodes[0].capacity.memory: expected a quantity such as 500m, 8 or 64Gi, got "lots"',
            id="a capacity that is no quantity",
        ),
        pytest.param(_GOOD, "", "x.yaml:1: nodes: expected nodes, unless", id="an empty file"),
    ],
)
def test_a_broken_scenario_names_file_line_and_path(old: str, new: str, fault: str) -> None:
    assert old in _GOOD
    with pytest.raises(ScenarioError) as refused:
        parse_scenario("x.yaml", _GOOD.replace(old, new))
    assert refused.value.message.startswith(fault), refused.value.message


@given(st.integers(1, 400))
def test_scaled_to_any_number_of_nodes_it_has_that_many(nodes: int) -> None:
    scenario = scaled(_SHIPPED, nodes)
    assert scenario.node_count == nodes
    names = {name for group in scenario.nodes for name in group.node_names()}
    assert {outage.node for outage in scenario.outages} <= names


def test_load_and_quota_grow_with_the_nodes() -> None:
    twice = scaled(parse_scenario("x.yaml", _GOOD), 4)
    assert twice.teams[0].quota == {"requests.nvidia.com/gpu": "8"}
    assert twice.workloads[0].arrivals is not None
    assert twice.workloads[0].arrivals.per_hour == 4


_SHIPPED = shipped()


_DOCS = Path(__file__).parents[2] / "docs"
_PAGE = (_DOCS / "up.md").read_text()
_BOTH = _PAGE + (_DOCS / "simulate.md").read_text()


def test_every_key_of_a_scenario_is_documented() -> None:
    entries: list[type[Entry]] = Entry.__subclasses__()
    keys = {field.encode_name for entry in entries for field in msgspec.structs.fields(entry)}
    assert [key for key in sorted(keys) if f"`{key}`" not in _BOTH] == []


def test_the_example_of_the_documentation_can_be_used() -> None:
    examples = [text for text in re.findall(r"^```yaml\n(.*?)^```", _BOTH, re.M | re.S) if "\nnodes:\n" in f"\n{text}"]
    assert [parse_scenario("page", text).node_count for text in examples] == [2, 4]


def test_every_flag_is_documented() -> None:
    shown = [option for option in up.params if isinstance(option, click.Option) and not option.hidden]
    flags = [name for option in shown for name in option.opts if name.startswith("--")]
    assert [flag for flag in flags if f"`{flag} " not in _PAGE and flag != "--output"] == []
