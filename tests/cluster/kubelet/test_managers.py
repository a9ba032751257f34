"""Nodes with a machine: exclusive CPUs, memory and devices given out, given back, refused."""

from __future__ import annotations

import pytest

from bayplan.cluster.embedded.controllers.replica_set import ReplicaSetController
from bayplan.cluster.kinds import NODE, POD, REPLICA_SET
from bayplan.model.meta import condition
from bayplan.model.pods import Pod
from bayplan.node.annotations.equipment import CONFIGURATION, MACHINE
from tests.cluster.kubelet.machines import (
    MEMORY,
    RESTRICTED,
    STATIC,
    WHOLE_CORES,
    Doc,
    asks,
    gpu,
    held,
    node,
    outcome,
    record,
    stage_with,
)
from tests.cluster.kubelet.stage import Stage, container

# --- what a node offers


def test_a_node_offers_what_its_machine_has_less_what_is_reserved() -> None:
    stage = stage_with({**STATIC, "kubeReserved": {"memory": "1Gi", "cpu": "500m"}})

    assert node(stage).status.capacity == {"cpu": "16", "memory": "32Gi", "nvidia.com/gpu": "2", "pods": "110"}
    assert node(stage).status.allocatable == {
        "cpu": "14",  # the reserved CPUs by name replace every amount of CPU
        "memory": "31644Mi",  # 1Gi, and 100Mi below which pods would be evicted
        "nvidia.com/gpu": "2",
        "pods": "110",
    }


def test_hugepages_are_taken_from_the_memory_that_pods_may_ask_for() -> None:
    machine = "{layout: {coresPerSocket: 2, memoryPerNode: 8Gi, hugepagesPerNode: {2Mi: 512, 1Gi: 2}}}"
    stage = stage_with(None, machine)

    assert node(stage).status.capacity["hugepages-2Mi"] == "1Gi"
    assert node(stage).status.allocatable["memory"] == "5020Mi"


def test_what_a_node_was_said_to_offer_stays() -> None:
    stage = Stage()
    stage.node(annotations={MACHINE: "vm-8"})

    assert node(stage).status.capacity["cpu"] == "4"


# --- who gets what


@pytest.mark.parametrize(
    ("configuration", "containers", "expected"),
    [
        pytest.param(STATIC, [asks("2")], "app 1,9", id="two CPUs of a Guaranteed pod are one core"),
        pytest.param(STATIC, [asks("500m")], "", id="a part of a CPU comes from the shared pool"),
        pytest.param(STATIC, [container()], "", id="a BestEffort pod holds nothing"),
        pytest.param(None, [asks("2")], "", id="policy none gives out no CPUs"),
        pytest.param(
            STATIC, [asks("2"), asks("1500m", name="proxy")], "app 1,9", id="each container is looked at by itself"
        ),
        pytest.param(None, [asks("1", **gpu("1"))], "app nvidia.com/gpu gpu-0", id="devices are held under any policy"),
        pytest.param(
            RESTRICTED, [asks("7", **gpu("1"))], "app 4-7,12-14 nvidia.com/gpu gpu-1", id="CPUs follow the device"
        ),
        pytest.param(MEMORY, [asks("4", "15500Mi")], "app 4-5,12-13 memory 1", id="CPUs follow the memory"),
        pytest.param(
            WHOLE_CORES,
            [asks("3")],
            "SMTAlignmentError: Pod was rejected: SMT Alignment Error: requested 3 cpus not multiple cpus per core = 2",
            id="half a core is refused where only whole ones are given",
        ),
        pytest.param(
            STATIC,
            [asks("15")],
            "UnexpectedAdmissionError: Pod was rejected: Allocate failed due to not enough cpus available to satisfy "
            "request: requested=15, available=14, which is unexpected",
            id="more than there is is refused by the CPU manager before amounts are counted",
        ),
        pytest.param(
            {**RESTRICTED, "topologyManagerPolicy": "single-numa-node"},
            [asks("9")],
            "TopologyAffinityError: Pod was rejected: Resources cannot be allocated with Topology locality",
            id="more than one NUMA node has is refused where one must do",
        ),
        pytest.param(
            RESTRICTED,
            [asks("1", **gpu("3"))],
            "TopologyAffinityError: Pod was rejected: Resources cannot be allocated with Topology locality",
            id="more devices than there are fit nowhere",
        ),
        pytest.param(
            None,
            [asks("1", **gpu("3"))],
            "UnexpectedAdmissionError: Pod was rejected: Allocate failed due to requested number of devices "
            "unavailable for nvidia.com/gpu. Requested: 3, Available: 2, which is unexpected",
            id="more devices than there are, with no topology policy",
        ),
    ],
)
def test_a_pod_comes(configuration: Doc | None, containers: list[Doc], expected: str) -> None:
    stage = stage_with(configuration)
    stage.pod(containers=containers)
    stage.to(10)

    assert outcome(stage) == expected
    assert stage.status().phase == ("Failed" if "rejected" in expected else "Running")


def test_a_pod_with_resources_as_a_whole_is_left_alone() -> None:
    stage = stage_with(STATIC)
    stage.pod(resources={"limits": {"cpu": "2", "memory": "1Gi"}})
    stage.to(10)

    assert (stage.status().phase, held(stage)) == ("Running", "")


def test_the_record_says_how_it_was_chosen() -> None:
    stage = stage_with(RESTRICTED)
    stage.pod(containers=[asks("2", **gpu("1"))])
    stage.to(10)

    assert record(stage) == {
        "uid": stage.item().uid,
        "containers": {
            "app": {
                "cpus": "1,9",
                "devices": {"nvidia.com/gpu": ["gpu-0"]},
                "affinity": "0",
                "preferred": True,
                "why": "the narrowest NUMA nodes that every provider prefers",
                "hints": {"nvidia.com/gpu": "0 or 1", "cpu": "0 or 1"},
            }
        },
    }


def test_a_refused_pod_says_what_was_free_then() -> None:
    stage = stage_with(RESTRICTED)
    stage.pod("first", containers=[asks("5")])
    stage.pod("second", containers=[asks("5")])
    stage.pod("third", containers=[asks("4")])
    stage.to(10)

    assert [outcome(stage, name).partition(":")[0] for name in ("first", "second", "third")] == [
        "app 1-3,9-10",
        "app 4-6,12-13",
        "TopologyAffinityError",
    ]
    assert record(stage, "third")["refused"] == {
        "container": "app",
        "free": {"cpu": {"0": "11", "1": "7,14-15"}},
        "policy": "restricted by container",
        "affinity": "0-1",
        "why": "no NUMA nodes are preferred by every provider; these come nearest",
        "hints": {"cpu": "0-1 at best"},
    }
    told = [(reason, text) for _, reason, text in stage.events if reason == "TopologyAffinityError"]
    assert told == [("TopologyAffinityError", "Resources cannot be allocated with Topology locality")]


# --- and gives it back


@pytest.mark.parametrize("how", ["deleted", "ended"])
def test_what_a_pod_held_is_there_for_the_next(how: str) -> None:
    stage = stage_with(STATIC)
    short = {"run-for": "5s"} if how == "ended" else {}
    stage.pod("first", short, containers=[asks("13")], restartPolicy="Never")
    stage.to(5)
    stage.pod("early", containers=[asks("2")])
    stage.to(6)
    if how == "deleted":
        stage.delete("first")
    stage.to(20)
    stage.pod("late", containers=[asks("2")])
    stage.to(30)

    assert outcome(stage, "early").startswith("UnexpectedAdmissionError")
    assert outcome(stage, "late") == "app 1,9"


def test_a_pod_on_its_way_out_still_holds_its_cpus() -> None:
    stage = stage_with(STATIC)
    stage.pod("first", {"shutdown": "20s"}, containers=[asks("13")])
    stage.to(5)
    stage.delete("first")
    stage.to(10)
    stage.pod("second", containers=[asks("2")])
    stage.to(11)

    assert outcome(stage, "second").startswith("UnexpectedAdmissionError")


def test_an_init_container_shares_with_its_pod_and_its_memory_is_free_once_it_is_done() -> None:
    stage = stage_with(MEMORY)
    first = asks("4", "10Gi", "load")
    stage.pod("first", {"run-for.load": "30s"}, initContainers=[first], containers=[asks("2", "2Gi")])
    stage.to(10)
    assert held(stage, "first") == "load 1-2,9-10 memory 0 | app 1,9 memory 0"
    stage.pod("early", containers=[asks("2", "9Gi")])
    stage.to(60)
    stage.pod("late", containers=[asks("2", "12Gi")])
    stage.to(70)

    assert [held(stage, name) for name in ("early", "late")] == ["app 4,12 memory 1", "app 3,11 memory 0"]


def test_the_next_pod_of_a_replica_set_gets_what_the_refused_one_did_not() -> None:
    stage = stage_with(RESTRICTED, stage=Stage(more=[ReplicaSetController()]))
    stage.pod("first", containers=[asks("5")])
    stage.pod("second", containers=[asks("5")])
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"nodeName": "node-1", "containers": [asks("4")]}}
    spec = {"replicas": 1, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    stage.world.server.create(REPLICA_SET, "default", {"metadata": {"name": "web"}, "spec": spec})
    stage.to(2)
    pods = [each for each in stage.world.store.objects(POD) if each.name.startswith("web-")]
    assert {each.view(Pod).status.reason for each in pods if each.view(Pod).is_terminal} == {"TopologyAffinityError"}
    stage.delete("first")
    stage.to(600)
    running = [each.name for each in stage.world.store.objects(POD) if each.view(Pod).status.phase == "Running"]

    assert len(running) == 2
    assert held(stage, next(name for name in running if name.startswith("web-"))) == "app 1-2,9-10"


# --- a kubelet that cannot start


@pytest.mark.parametrize(
    ("annotations", "told"),
    [
        pytest.param({MACHINE: "epyc-42"}, 'no machine is named "epyc-42"', id="a machine that does not exist"),
        pytest.param({MACHINE: "{layout: {}}"}, "coresPerSocket", id="a machine file with a fault"),
        pytest.param({MACHINE: "{layout"}, f"{MACHINE}: neither YAML nor JSON", id="a file that is no YAML"),
        pytest.param({CONFIGURATION: "{}"}, f"add the annotation {MACHINE}", id="a configuration without a machine"),
        pytest.param(
            {MACHINE: "vm-8", CONFIGURATION: "cpuManagerPolicy: statik"}, 'unknown policy: "statik"', id="no policy"
        ),
        pytest.param(
            {MACHINE: "vm-8", CONFIGURATION: "cpuManagerPolicy: static"},
            "requires systemreserved.cpu + kubereserved.cpu to be greater than zero",
            id="a policy without the reservation it needs",
        ),
        pytest.param(
            {
                MACHINE: "vm-8",
                CONFIGURATION: "{cpuManagerPolicy: static, reservedSystemCPUs: '0', "
                "cpuManagerPolicyOptions: {full-cores: 'true'}}",
            },
            "full-cores",
            id="an option that the policy does not have",
        ),
    ],
)
def test_a_kubelet_that_cannot_start_says_why_and_does_nothing(annotations: dict[str, str], told: str) -> None:
    stage = Stage()
    stage.node(annotations=annotations)
    stage.pod()
    stage.to(100)
    ready = condition(node(stage).status.conditions, "Ready")

    assert ready is not None
    assert (ready.status, ready.reason) == ("False", "KubeletNotReady")
    assert told in ready.message
    assert [(reason, text) for _, reason, text in stage.events] == [("KubeletSetupFailed", ready.message)]
    assert not stage.status().container_statuses


def test_it_starts_once_that_is_mended() -> None:
    stage = Stage()
    stage.node(annotations={MACHINE: "vm-9"})
    stage.pod()
    stage.to(5)
    doc = stage.world.server.get(NODE, "", "node-1").doc()
    doc["metadata"]["annotations"][MACHINE] = "vm-8"
    stage.world.server.update(NODE, "", "node-1", doc)
    stage.to(20)
    ready = condition(node(stage).status.conditions, "Ready")

    assert ready is not None
    assert (ready.status, stage.status().phase) == ("True", "Running")
    assert ("NodeReady", "Node node-1 status is now: NodeReady") in [each[1:] for each in stage.events]
