"""A VM as a pod: how big, where it may go, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from bayplan.simulate.vms import VM, Node, NodeShape, VMError, VMFileError, parse_vms
from bayplan.simulate.vms.launcher import FORCED, digest, launcher
from bayplan.simulate.vms.vm import GIBI, USUAL, requests

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def terms(pod: dict[str, Any]) -> Any:
    return pod["spec"]["affinity"]["nodeAffinity"][REQUIRED]["nodeSelectorTerms"]


@pytest.mark.parametrize(
    ("cpu", "memory", "shape", "expected"),
    [
        pytest.param(0.1, 0.25, USUAL, {"cpu": "3200m", "memory": "32768Mi"}, id="shares of 32 cores and 128Gi"),
        pytest.param(1, 1, NodeShape(4, 8 * GIBI), {"cpu": "4000m", "memory": "8192Mi"}, id="a whole small node"),
        pytest.param(0.00001, 0.000001, USUAL, {"cpu": "1m", "memory": "1Mi"}, id="a little is rounded up"),
        pytest.param(0, 0, USUAL, {"cpu": "0m", "memory": "0Mi"}, id="nothing stays nothing"),
    ],
)
def test_a_consumption_becomes_a_request(cpu: float, memory: float, shape: NodeShape, expected: dict[str, str]) -> None:
    assert requests(VM("vm", cpu, memory), shape) == expected


def test_without_a_node_nothing_is_said_about_nodes() -> None:
    pod = launcher(VM("vm", 0.1, 0.1), USUAL)

    assert "nodeName" not in pod["spec"]
    assert "affinity" not in pod["spec"]
    assert FORCED not in pod["metadata"]["annotations"]


def test_a_forced_pod_says_so() -> None:
    pod = launcher(VM("vm", 0.1, 0.1), USUAL, node_name="n1")

    assert pod["spec"]["nodeName"] == "n1"
    assert pod["metadata"]["annotations"][FORCED] == "n1"


def test_each_alternative_of_a_vm_is_directed_and_an_empty_one_still_matches_nothing() -> None:
    ssd = {"key": "disk", "operator": "In", "values": ["ssd"]}
    own = {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [ssd]}, {}]}}}
    vm = VM("vm", 0.1, 0.1, affinity=own)

    pod = launcher(vm, USUAL, only="n2", never="n1")

    fields = [
        {"key": "metadata.name", "operator": "In", "values": ["n2"]},
        {"key": "metadata.name", "operator": "NotIn", "values": ["n1"]},
    ]
    assert terms(pod) == [{"matchExpressions": [ssd], "matchFields": fields}, {}]
    assert vm.affinity == {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [ssd]}, {}]}}}


def test_where_a_pod_is_directed_to_does_not_change_what_vm_it_is() -> None:
    vm = VM("vm", 0.1, 0.1)

    same = launcher(vm, USUAL, never="n1")["metadata"]["annotations"]

    assert digest(vm, USUAL) in same.values()
    assert digest(VM("vm", 0.2, 0.1), USUAL) not in same.values()


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda: VM("", 0.1, 0.1), id="no id"),
        pytest.param(lambda: VM("VM_1", 0.1, 0.1), id="an id that no pod could have"),
        pytest.param(lambda: VM("x" * 54, 0.1, 0.1), id="an id that is too long"),
        pytest.param(lambda: VM("vm", -0.1, 0.1), id="a negative consumption"),
        pytest.param(lambda: VM("vm", 0.1, float("nan")), id="a consumption that is no number"),
        pytest.param(lambda: NodeShape(0), id="a node without cores"),
    ],
)
def test_what_cannot_be_is_refused(make: Any) -> None:
    with pytest.raises(VMError):
        make()


def test_fields_stand_where_they_always_stood() -> None:
    assert VM("vm-1", 0.1, 0.2, "pod", "node") == VM(
        id="vm-1", cpu_consumption=0.1, memory_consumption=0.2, pod_name="pod", scheduled_node="node"
    )


SCENARIO = """
nodes:
  - name: n1
    cores: 16
    memory: 64Gi
    labels: {zone: a}
    taints: [{key: gpu, value: "yes", effect: NoSchedule}]
    vms:
      - {id: vm-1, cpu_consumption: 0.1, memory_consumption: 0.2, dirty_rate_mbps: 100, priority_class_name: high}
  - {name: n2}
"""


def test_a_scenario_file() -> None:
    taint = {"key": "gpu", "value": "yes", "effect": "NoSchedule"}
    vm = VM("vm-1", 0.1, 0.2, dirty_rate_mbps=100, priority_class_name="high")

    assert parse_vms("f", SCENARIO) == [
        Node("n1", [vm], NodeShape(16, 64 * GIBI), {"zone": "a"}, [taint]),
        Node("n2"),
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("nodes: [{name: a, cpus: 3}]", "f:1: nodes[0].cpus: unknown key", id="a key"),
        pytest.param("nodes:\n- {name: a, memory: 3Zi}", "f:2: nodes[0]: ", id="an amount"),
        pytest.param("nodes: [{name: a, pods: -1}]", "f:1: nodes[0]: a node of", id="a negative number"),
        pytest.param(
            "nodes:\n- name: a\n  vms:\n  - {id: v, cpu_consumption: -1, memory_consumption: 0}",
            "f:4: nodes[0].vms[0]: v: cpu_consumption: expected a number from 0 on, got -1",
            id="a VM of less than nothing",
        ),
        pytest.param("nodes: [{name: a}, {name: a}]", 'f:1: nodes: there are two nodes "a"', id="a name twice"),
        pytest.param("nodes: [", "f:2: not YAML", id="no YAML"),
        pytest.param("", "f:1: expected object, got null", id="nothing"),
    ],
)
def test_a_scenario_that_cannot_be_used_is_refused_with_line_and_path(text: str, expected: str) -> None:
    with pytest.raises(VMFileError) as refused:
        parse_vms("f", text)
    assert refused.value.message.startswith(expected)
