"""Every fault of a scenario is told, with its line, its path and a code that stays."""

from __future__ import annotations

import pytest

from bayplan.simulate.scenario_file import ScenarioError, json_schema, names, parse_scenario, shipped

_GOOD = """\
nodes:
  - {name: host, count: 2, capacity: {cpu: 8, memory: 64Gi}}
teams:
  - name: vms
usageModels:
  - {name: busy, cpu: 90%}
workloads:
  - name: task
    namespace: vms
    kind: Pod
    arrivals: {every: 5m, count: 3}
    spec:
      containers: [{name: main, image: task}]
  - name: serve
    namespace: vms
    kind: Deployment
    spec:
      template: {spec: {containers: [{name: main, image: serve}]}}
vms:
  - name: web
    namespace: vms
    count: 3
    cpu: {median: 2, spread: 1.5}
    memory: 4Gi
    wished: [host-1]
    usage: busy
events:
  - name: storm
    at: 10m
    do: {fail: {nodes: 1, for: 5m}}
  - name: help
    when: {pending: {above: 20}, for: 2m}
    every: 10m
    times: 2
    do: {addNodes: {group: host, count: 5}}
  - name: calm
    when: {after: storm, for: 20m}
    do: {scale: {workload: serve, replicas: 2}, migrate: {vms: web, from: host-1}}
"""


def _refusal(text: str) -> ScenarioError:
    with pytest.raises(ScenarioError) as refused:
        parse_scenario("x.yaml", text)
    return refused.value


def test_the_good_one_is_good() -> None:
    assert len(parse_scenario("x.yaml", _GOOD).events) == 3


@pytest.mark.parametrize(
    ("old", "new", "fault", "code"),
    [
        pytest.param(
            "count: 3}",
            "count: -3}",
            "11: workloads[0].arrivals.count: expected int >= 1",
            "X004",
            id="a negative count",
        ),
        pytest.param(
            "every: 5m, ", "evry: 5m, ", "11: workloads[0].arrivals.evry: unknown key", "X003", id="an unknown key"
        ),
        pytest.param(
            "{every: 5m, count: 3}",
            "{}",
            "11: workloads[0].arrivals: expected perHour, every or count",
            "X005",
            id="arrivals that never come",
        ),
        pytest.param(
            "every: 5m,",
            "every: 5m, perHour: 2,",
            "11: workloads[0].arrivals.every: expected either",
            "X008",
            id="two paces",
        ),
        pytest.param(
            "every: 5m,",
            "every: 0s,",
            "11: workloads[0].arrivals.every: expected a span above 0",
            "X004",
            id="a pace without time",
        ),
        pytest.param(
            "kind: Deployment",
            "kind: Deployment\n    replicas: {low: 1, high: 2, curve: flat, every: 0s}",
            "17: workloads[1].replicas.every: expected a span above 0",
            "X004",
            id="replicas that are looked at without end",
        ),
        pytest.param(
            "usageModels:",
            "outages: [{node: host-1, at: 1h, lasts: 5m, every: 5m}]\nusageModels:",
            "5: outages[0].every: expected more than lasts",
            "X004",
            id="an outage that begins again as it ends",
        ),
        pytest.param(
            "usageModels:",
            "outages: [{node: host-1, at: 1h, lasts: 0s, every: 0s}]\nusageModels:",
            "5: outages[0].every: expected more than lasts",
            "X004",
            id="outages without end at one instant",
        ),
        pytest.param(
            "{median: 2, spread: 1.5}",
            "{median: two}",
            "23: vms[0].cpu.median: expected a quantity",
            "X009",
            id="a size that is no quantity",
        ),
        pytest.param(
            "memory: 4Gi",
            "memory: big",
            "24: vms[0].memory: expected a quantity",
            "X009",
            id="memory that is no quantity",
        ),
        pytest.param(
            "wished: [host-1]",
            "wished: [host-9]",
            "25: vms[0].wished[0]: expected a node (host-1, host-2)",
            "X006",
            id="a wish for no node",
        ),
        pytest.param(
            "usage: busy",
            "usage: lazy",
            "26: vms[0].usage: expected a usage model (busy)",
            "X006",
            id="no such usage model",
        ),
        pytest.param("cpu: 90%", "cpu: lots", "6: usageModels[0].cpu: expected", "X010", id="no usage curve"),
        pytest.param(
            "    count: 3\n", "", "20: vms[0]: expected count or arrivals", "X005", id="VMs that are not there"
        ),
        pytest.param(
            "at: 10m",
            "at: 10m\n    when: {pending: {above: 1}}",
            "28: events[0]: expected either at or when",
            "X008",
            id="at and when",
        ),
        pytest.param(
            "{fail: {nodes: 1, for: 5m}}",
            "{}",
            "30: events[0].do: expected one of fail, recover",
            "X005",
            id="an event that does nothing",
        ),
        pytest.param(
            "fail: {nodes: 1,",
            "fail: {nodes: [bay-1],",
            "30: events[0].do.fail.nodes[0]: expected a node of a group",
            "X006",
            id="no such node",
        ),
        pytest.param(
            "fail: {nodes: 1,",
            "drain: {nodes: 1,",
            "30: events[0].do.drain.for: expected with fail and cordon only",
            "X008",
            id="a drain that is undone",
        ),
        pytest.param(
            "pending: {above: 20}",
            "pending: {}",
            "32: events[1].when.pending: expected above or below",
            "X005",
            id="a limit without a number",
        ),
        pytest.param(
            "pending: {above: 20}",
            "pendng: {above: 20}",
            "32: events[1].when.pendng: unknown key",
            "X003",
            id="no such metric",
        ),
        pytest.param(
            "every: 10m",
            "every: 1ms",
            "33: events[1].every: expected at least 1s",
            "X004",
            id="an event without end at one instant",
        ),
        pytest.param(
            "    every: 10m\n", "", "33: events[1].times: expected with every", "X008", id="times without every"
        ),
        pytest.param(
            "group: host",
            "group: bay",
            "35: events[1].do.addNodes.group: expected a group of nodes (host)",
            "X006",
            id="no such group",
        ),
        pytest.param(
            "after: storm",
            "after: calm",
            "37: events[2].when.after: expected no circle: calm waits for calm",
            "X012",
            id="an event that waits for itself",
        ),
        pytest.param(
            "after: storm",
            "after: dawn",
            "37: events[2].when.after: expected an event's name",
            "X006",
            id="an event that is not there",
        ),
        pytest.param(
            "workload: serve",
            "workload: task",
            "38: events[2].do.scale.workload: expected a Deployment",
            "X008",
            id="no replicas to scale",
        ),
        pytest.param(
            "vms: web", "vms: db", "38: events[2].do.migrate.vms: expected VMs (web)", "X006", id="no such VMs"
        ),
        pytest.param(
            "name: help", "name: storm", "31: events[1].name: expected names that differ", "X007", id="a name twice"
        ),
        pytest.param(
            "image: task}",
            "image: task, ports: [{containerPort: 0}]}",
            "13: workloads[0].spec.containers[0].ports",
            "X011",
            id="a pod that the API server refuses",
        ),
        pytest.param("nodes:\n", "nodes: [\n", "2: not YAML", "X002", id="no YAML"),
    ],
)
def test_a_fault_has_line_path_and_code(old: str, new: str, fault: str, code: str) -> None:
    assert old in _GOOD
    error = _refusal(_GOOD.replace(old, new, 1))
    assert error.message.startswith(f"x.yaml:{fault}"), error.message
    assert error.kinds[0].value == f"BP-{code}"


@pytest.mark.parametrize(
    ("workload", "fault"),
    [
        pytest.param("task", "expected a workload whose arrivals have perHour or every", id="all at once"),
        pytest.param("serve", "expected a workload with arrivals", id="from the start"),
    ],
)
def test_what_has_no_pace_cannot_come_faster(workload: str, fault: str) -> None:
    text = _GOOD.replace("{every: 5m, count: 3}", "{count: 3}")
    error = _refusal(f"{text}  - {{at: 1h, do: {{arrivals: {{workload: {workload}, factor: 4}}}}}}\n")
    assert error.message == f"x.yaml:39: events[3].do.arrivals.workload: {fault}"
    assert [kind.value for kind in error.kinds] == ["BP-X008"]


def test_a_circle_of_events_is_told_once() -> None:
    error = _refusal(_GOOD.replace("at: 10m", "when: {after: calm}"))
    assert error.message == "x.yaml:29: events[0].when.after: expected no circle: storm waits for calm waits for storm"


def test_all_faults_of_a_shape_are_told_at_once() -> None:
    text = _GOOD.replace("count: 2,", "cuont: 2,").replace("kind: Pod", "kind: Pud").replace("at: 10m", "at: noon")
    error = _refusal(text)
    assert [line.split(": ")[1] for line in error.message.splitlines()] == [
        "nodes[0].cuont",
        "nodes[0]",
        "workloads[0].kind",
        "events[0].at",
    ]
    assert len(error.kinds) == 4


def test_all_faults_of_meaning_are_told_at_once() -> None:
    text = _GOOD.replace("usage: busy", "usage: lazy").replace("group: host", "group: bay")
    text = text.replace("image: task}", "image: task, ports: [{containerPort: 0}]}")
    kinds = [kind.value for kind in _refusal(text).kinds]
    assert kinds == ["BP-X006", "BP-X006", "BP-X011"]


@pytest.mark.parametrize("name", names())
def test_what_is_shipped_can_be_used(name: str) -> None:
    assert shipped(name).node_count > 0


def test_the_schema_knows_every_section_and_no_other_key() -> None:
    schema = json_schema()
    scenario = schema["$defs"]["Scenario"]
    assert {"nodes", "vms", "events", "usageModels", "seed", "duration"} <= scenario["properties"].keys()
    assert scenario["additionalProperties"] is False
