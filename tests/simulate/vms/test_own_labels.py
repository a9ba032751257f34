"""Whose labels are whose: a VM's own count for the scheduler, those that tell whose pod it is are ours alone."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bayplan.cluster.kinds import POD
from bayplan.simulate.scenario_file import ScenarioError, parse_scenario
from bayplan.simulate.vms import VM, Node, PodManager, VMError, VMFileError, parse_vms
from bayplan.simulate.vms.launcher import launcher
from bayplan.simulate.vms.vm import USUAL
from bayplan.testing import fake_cluster

Doc = dict[str, Any]
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
HOST, ZONE = "kubernetes.io/hostname", "zone"
OF_APP = {"labelSelector": {"matchLabels": {"app": "x"}}}
APART = {"podAntiAffinity": {REQUIRED: [{**OF_APP, "topologyKey": HOST}]}}
TOGETHER = {"podAffinity": {REQUIRED: [{**OF_APP, "topologyKey": ZONE}]}}
SPREAD = [{**OF_APP, "maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule"}]


def placed(number: int, **asked: Any) -> list[str]:
    """Where so many VMs with the label app are put, on three nodes in three zones; empty for those that wait."""
    nodes = [Node(f"n{place}", labels={ZONE: f"z{place}"}) for place in range(3)]
    vms = [VM(f"vm-{each}", 0.05, 0.05, labels={"app": "x"}, **asked) for each in range(number)]
    with PodManager(backend=fake_cluster()) as pods:
        pods.ensure_nodes(nodes)
        pods.sync_pods_with_vms(vms)
        pods.update_vm_node_assignments(vms)
    return sorted(vm.scheduled_node for vm in vms)


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        pytest.param({"affinity": APART}, ["", "", "", "n0", "n1", "n2"], id="apart by app: one on a node"),
        pytest.param({"topology_spread": SPREAD}, ["n0", "n0", "n1", "n1", "n2", "n2"], id="spread by app: two each"),
    ],
)
def test_rules_on_a_vms_own_app_are_kept(asked: Doc, expected: list[str]) -> None:
    assert placed(6, **asked) == expected


def test_vms_that_are_to_be_together_by_app_are() -> None:
    assert len({*placed(6, affinity=TOGETHER)}) == 1


def test_app_is_virt_launcher_unless_the_vm_says_otherwise() -> None:
    labels = [launcher(VM("vm", 0, 0, labels=own), USUAL)["metadata"]["labels"] for own in ({}, {"app": "x"})]
    assert [each.pop("app") for each in labels] == ["virt-launcher", "x"]
    ours = {
        "app.kubernetes.io/managed-by": "bayplan-vms",
        "kubevirt.io/domain": "vm",
        "vm.kubevirt.io/name": "vm",
    }
    assert labels == [ours, ours]


def test_pods_are_found_by_what_is_ours_whatever_their_app() -> None:
    with PodManager(backend=fake_cluster()) as pods:
        pods.ensure_nodes([Node("n")])
        vm = VM("vm", 0.1, 0.1, labels={"app": "x"})
        assert pods.sync_pods_with_vms([vm]) == {"created": 1, "deleted": 0, "updated": 0}
        assert pods.update_vm_node_assignments([vm])["scheduled"] == 1
        assert pods.sync_pods_with_vms([]) == {"created": 0, "deleted": 1, "updated": 0}


def test_a_vm_that_gets_other_labels_gets_another_pod() -> None:
    cluster = fake_cluster()
    with PodManager(backend=cluster) as pods:
        pods.ensure_nodes([Node("n")])
        vm = VM("vm", 0.1, 0.1, labels={"app": "x"})
        pods.sync_pods_with_vms([vm])
        vm.labels = {"app": "y"}
        assert pods.sync_pods_with_vms([vm]) == {"created": 0, "deleted": 0, "updated": 1}
    assert [item.meta.labels["app"] for item in cluster.world.store.objects(POD)] == ["y"]


# --- what is refused, and where it stands

REFUSED: list[Any] = [
    pytest.param(
        {"labels": {"kubevirt.io/domain": "x"}},
        "labels.kubevirt.io/domain: expected no such label",
        id="the label of a domain",
    ),
    pytest.param(
        {"labels": {"vm.kubevirt.io/name": "x"}},
        "labels.vm.kubevirt.io/name: expected no such label",
        id="the label of a VM",
    ),
    pytest.param(
        {"labels": {"app.kubernetes.io/managed-by": "Helm"}},
        "labels.app.kubernetes.io/managed-by: expected no such label",
        id="the label by which pods are found",
    ),
    pytest.param({"labels": {"a b": "c"}}, 'labels: Invalid value: "a b"', id="no name of a label"),
    pytest.param({"affinity": {"nope": 1}}, "affinity.nope: unknown key", id="an affinity that there is not"),
    pytest.param({"affinity": {"podAffinity": 1}}, "affinity.podAffinity: cannot be of type number", id="a wrong type"),
    pytest.param(
        {"tolerations": [{"key": "a", "operator": "Foo"}]},
        'tolerations[0].operator: Unsupported value: "Foo"',
        id="an operator that there is not",
    ),
    pytest.param({"priority_class_name": "A_b"}, 'priority_class_name: Invalid value: "A_b"', id="no name of a class"),
    pytest.param(
        {"topology_spread": [{**SPREAD[0], "maxSkew": 0}]},
        "topology_spread[0].maxSkew: Invalid value: 0",
        id="no skew at all",
    ),
    pytest.param({"node_selector": {"a": "b c"}}, 'node_selector: Invalid value: "b c"', id="no value of a label"),
]


@pytest.mark.parametrize(("asked", "expected"), REFUSED)
def test_what_cannot_be_asked_is_refused_in_python(asked: Doc, expected: str) -> None:
    with pytest.raises(VMError) as refused:
        VM("vm", 0.1, 0.1, **asked)
    assert refused.value.message.startswith(f"vm: {expected}")


@pytest.mark.parametrize(("asked", "expected"), REFUSED)
def test_and_in_a_file_of_vms_with_its_path(asked: Doc, expected: str) -> None:
    vm = {"id": "vm", "cpu_consumption": 0.1, "memory_consumption": 0.1, **asked}
    with pytest.raises(VMFileError) as refused:
        parse_vms("f", f'{{"nodes": [{{"name": "n", "vms": [{json.dumps(vm)}]}}]}}')
    assert refused.value.message.startswith(f"f:1: nodes[0].vms[0].{expected}")


@pytest.mark.parametrize(("asked", "expected"), REFUSED)
def test_and_in_a_scenario_file_with_its_path(asked: Doc, expected: str) -> None:
    names = {
        "node_selector": "nodeSelector",
        "topology_spread": "topologySpreadConstraints",
        "priority_class_name": "priorityClassName",
    }
    for ours, theirs in names.items():
        expected = expected.replace(ours, theirs)
    (told,) = _refusal({names.get(name, name): value for name, value in asked.items()})
    assert told.startswith(expected)


def _refusal(asked: Doc) -> list[str]:
    """What is said of a scenario with one group of VMs, each from its key on."""
    group = {"name": "web", "namespace": "t", "count": 1, "cpu": 1, "memory": "1Gi", **asked}
    node = {"name": "n", "count": 1, "capacity": {"cpu": 8, "memory": "8Gi", "pods": 10}}
    with pytest.raises(ScenarioError) as refused:
        parse_scenario("f", json.dumps({"nodes": [node], "teams": [{"name": "t"}], "vms": [group]}))
    told = refused.value.message.splitlines()
    assert all(line.startswith("f:1: vms[0].") for line in told)
    return [line.removeprefix("f:1: vms[0].") for line in told]


def test_the_label_of_a_group_is_ours_in_a_scenario_file() -> None:
    (told,) = _refusal({"labels": {"simulate.bayplan.dev/vms": "others"}})
    assert told.startswith("labels.simulate.bayplan.dev/vms: expected no such label")


def test_a_vm_that_was_changed_since_is_looked_at_again() -> None:
    with PodManager(backend=fake_cluster()) as pods:
        vm = VM("vm", 0.1, 0.1)
        vm.affinity = {"nope": 1}
        with pytest.raises(VMError, match=r"affinity\.nope"):
            pods.create_pod(vm)
        assert pods.mirror.vms() == []
