"""Nodes with a machine: exclusive CPUs, memory and devices given out, given back, refused; and never given twice."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayplan.cluster.embedded.controllers.replica_set import ReplicaSetController
from bayplan.cluster.embedded.kubelet.equipment import CONFIGURATION, MACHINE
from bayplan.cluster.embedded.kubelet.holdings import HOLDINGS
from bayplan.cluster.kinds import NODE, POD, REPLICA_SET
from bayplan.model.meta import condition
from bayplan.model.nodes import Node
from bayplan.model.pods import Pod
from bayplan.node.sets import parse_list
from tests.cluster.kubelet.stage import Stage, container

Doc = dict[str, Any]

TWO_NODES = """
name: two-nodes
layout: {sockets: 2, coresPerSocket: 4, threadsPerCore: 2, memoryPerNode: 16Gi, distances: {otherSocket: 21}}
devices:
- {resource: nvidia.com/gpu, id: gpu-0, nodes: "0"}
- {resource: nvidia.com/gpu, id: gpu-1, nodes: "1"}
"""
"""CPUs 0-3 and 8-11 on NUMA node 0, 4-7 and 12-15 on node 1; core 0 has CPUs 0 and 8."""

STATIC: Doc = {"cpuManagerPolicy": "static", "reservedSystemCPUs": "0,8"}
WHOLE_CORES = {**STATIC, "cpuManagerPolicyOptions": {"full-pcpus-only": "true"}}
RESTRICTED = {**STATIC, "topologyManagerPolicy": "restricted"}
MEMORY = {
    **RESTRICTED,
    "memoryManagerPolicy": "Static",
    "systemReserved": {"memory": "924Mi"},
    "reservedMemory": [{"numaNode": 0, "limits": {"memory": "1Gi"}}],
}


def stage_with(configuration: Mapping[str, Any] | None, machine: str = TWO_NODES, stage: Stage | None = None) -> Stage:
    """A stage whose node has a machine; what it offers is up to its kubelet."""
    stage = stage or Stage()
    said = {} if configuration is None else {CONFIGURATION: msgspec.json.encode(configuration).decode()}
    doc = {"metadata": {"name": "node-1", "annotations": {MACHINE: machine, **said}}}
    stage.world.server.create(NODE, "", doc)
    stage.world.settle()
    return stage


def asks(cpu: str = "2", memory: str = "1Gi", name: str = "app", **more: str) -> Doc:
    """A container whose limits are its requests: alone, it makes a Guaranteed pod."""
    return container(name, resources={"limits": {"cpu": cpu, "memory": memory, **more}})


def gpu(count: str) -> dict[str, str]:
    return {"nvidia.com/gpu": count}


def record(stage: Stage, name: str = "p") -> Doc:
    text = stage.item(name).meta.annotations.get(HOLDINGS)
    found: Doc = {} if text is None else msgspec.json.decode(text)
    return found


def held(stage: Stage, name: str = "p") -> str:
    """`app 1-2 mem 0 gpu gpu-0`, one for each container that holds something."""
    words = []
    for container_, each in record(stage, name).get("containers", {}).items():
        parts = [container_, each.get("cpus", "")]
        parts += [f"{resource} {nodes}" for resource, nodes, _ in each.get("memory", ())]
        parts += [f"{resource} {','.join(ids)}" for resource, ids in each.get("devices", {}).items()]
        words.append(" ".join(part for part in parts if part))
    return " | ".join(words)


def outcome(stage: Stage, name: str = "p") -> str:
    """What it holds, or why it was refused."""
    status = stage.status(name)
    return f"{status.reason}: {status.message}" if status.phase == "Failed" else held(stage, name)


def node(stage: Stage) -> Node:
    return stage.world.server.get(NODE, "", "node-1").view(Node)


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


# --- nothing is kept in the kubelet


def restarted(stage: Stage) -> Stage:
    """Another engine with the same objects: all that a restart leaves."""
    again = Stage()
    again.world.chance.setstate(stage.world.chance.getstate())  # uids go on where they were
    for kind in (NODE, POD):
        for item in stage.world.store.objects(kind):
            again.world.store.put(kind, item.meta, item.sections)
    again.world.advance(stage.world.now)
    return again


def test_after_a_restart_everyone_holds_what_they_held() -> None:
    stage = stage_with(RESTRICTED)
    stage.pod("first", containers=[asks("3", **gpu("1"))])
    stage.to(2)
    stage = restarted(stage)
    stage.pod("second", containers=[asks("3", **gpu("1"))])
    stage.to(10)

    assert [held(stage, name) for name in ("first", "second")] == [
        "app 1-2,9 nvidia.com/gpu gpu-0",
        "app 4-5,12 nvidia.com/gpu gpu-1",
    ]
    assert [stage.status(name).phase for name in ("first", "second")] == ["Running", "Running"]


def test_a_record_that_was_written_and_then_nothing_more_is_written_anew() -> None:
    stage = stage_with(STATIC)
    stage.annotate_node("stopped-at=2026-01-01T00:00:00Z")
    stage.pod(containers=[asks("2")])
    stale = {"uid": stage.item().uid, "containers": {"app": {"cpus": "5"}}}
    doc = stage.item().doc()
    doc["metadata"]["annotations"] = {HOLDINGS: msgspec.json.encode(stale).decode()}
    stage.world.server.update(POD, "default", "p", doc)
    stage.annotate_node(None)
    stage.to(10)

    assert (held(stage), stage.status().phase) == ("app 1,9", "Running")


# --- records that somebody wrote into


def tamper(stage: Stage, text: str | None, name: str = "first") -> None:
    doc = stage.item(name).doc()
    doc["metadata"]["annotations"] |= {HOLDINGS: text}
    doc["metadata"]["annotations"] = {key: value for key, value in doc["metadata"]["annotations"].items() if value}
    stage.world.server.update(POD, "default", name, doc)


UID = "{uid}"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        pytest.param(None, "is missing", id="taken away"),
        pytest.param("{", "cannot be read: Input data was truncated", id="no JSON"),
        pytest.param(
            '{"uid":"{uid}","containers":{"app":{"cpus":7}}}', "cannot be read: Expected `str`", id="a number"
        ),
        pytest.param('{"uid":"other"}', "is of another pod, uid other", id="that of another pod"),
        pytest.param('{"uid":"{uid}","containers":{"app":{"cpus":"9-7"}}}', "is not right: list", id="no list"),
        pytest.param(
            '{"uid":"{uid}","containers":{"app":{"cpus":"0-1"}}}', "CPUs 0 cannot be given to a pod", id="reserved CPUs"
        ),
        pytest.param(
            '{"uid":"{uid}","containers":{"app":{"cpus":"99"}}}', "CPUs 99 cannot be given to a pod", id="no such CPU"
        ),
        pytest.param(
            '{"uid":"{uid}","containers":{"app":{"devices":{"nvidia.com/gpu":["x"]}}}}',
            "there is no nvidia.com/gpu x",
            id="no such device",
        ),
        pytest.param(
            '{"uid":"{uid}","containers":{"app":{"memory":[["memory","0",5]]}}}',
            "NUMA nodes 0 do not have 5 of memory",
            id="memory where no manager gives any",
        ),
    ],
)
def test_nothing_is_given_out_while_nobody_knows_what_a_pod_holds(text: str | None, told: str) -> None:
    stage = stage_with(STATIC)
    stage.pod("first", containers=[asks("2")])
    stage.to(5)
    tamper(stage, text and text.replace(UID, stage.item("first").uid))
    stage.pod("second", containers=[asks("2")])
    stage.pod("shared", containers=[container()])
    stage.to(10)

    assert outcome(stage, "second").startswith(
        "UnexpectedAdmissionError: Pod was rejected: Allocate failed due to nobody knows what pod default/first holds: "
        f"annotation {HOLDINGS} "
    )
    assert told in outcome(stage, "second")
    assert next(text for _, reason, text in stage.events if reason == "UnknownHoldings") in outcome(stage, "second")
    assert (stage.status("first").phase, stage.status("shared").phase) == ("Running", "Running")
    stage.delete("first")
    stage.to(20)
    stage.pod("third", containers=[asks("2")])
    stage.to(25)
    assert held(stage, "third") == "app 1,9"


def test_cpus_that_two_pods_claim_are_given_to_no_third() -> None:
    stage = stage_with(STATIC)
    for name in ("first", "second"):
        stage.pod(name, containers=[asks("2")])
    stage.to(5)
    tamper(stage, stage.item("first").meta.annotations[HOLDINGS].replace("1,9", "2,10"))
    stage.pod("third", containers=[asks("2")])
    stage.to(10)

    assert "another pod holds CPUs 2,10" in outcome(stage, "third")


def test_a_record_in_a_template_counts_for_nothing() -> None:
    stage = stage_with(STATIC)
    copied = {"annotations": {HOLDINGS: '{"uid":"x","containers":{"app":{"cpus":"1-7"}}}'}}
    stage.pod("shared", metadata=copied)
    stage.pod("own", metadata=copied, containers=[asks("2")])
    stage.to(5)

    assert [held(stage, name) for name in ("shared", "own")] == ["", "app 1,9"]
    assert HOLDINGS not in stage.item("shared").meta.annotations


def test_where_no_cpu_is_left_to_share_nothing_more_is_given_out() -> None:
    stage = stage_with({**STATIC, "cpuManagerPolicyOptions": {"strict-cpu-reservation": "true"}})
    stage.pod("first", containers=[asks("14")])
    stage.to(5)
    stage.pod("second", containers=[asks("1")])
    stage.to(10)

    assert held(stage, "first") == "app 1-7,9-15"
    assert outcome(stage, "second").startswith("UnexpectedAdmissionError: Pod was rejected: Allocate failed due to ")


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


# --- what must always hold

CONFIGURATIONS = [
    STATIC,
    RESTRICTED,
    MEMORY,
    WHOLE_CORES,
    {**STATIC, "cpuManagerPolicyOptions": {"strict-cpu-reservation": "true"}},
    {**STATIC, "cpuManagerPolicyOptions": {"distribute-cpus-across-numa": "true"}},
    {**RESTRICTED, "topologyManagerScope": "pod"},
]
SIZES = st.tuples(st.sampled_from(["1", "2", "3", "4", "7", "500m"]), st.sampled_from(["1Gi", "6Gi"]), st.booleans())
STEPS = st.lists(st.one_of(st.lists(SIZES, min_size=1, max_size=2), st.integers(0, 9), st.none()), max_size=14)
"""A pod with one or two containers comes, one of those that are there goes, or everything is restarted."""


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(CONFIGURATIONS), STEPS)
def test_no_cpu_and_no_device_is_ever_held_by_two_pods(configuration: Doc, steps: list[Any]) -> None:
    stage = stage_with(configuration)
    there: list[str] = []
    for number, step in enumerate(steps):
        if step is None:
            stage = restarted(stage)
        elif isinstance(step, int):
            if there:
                stage.delete(there.pop(step % len(there)))
        else:
            sizes = [
                asks(cpu, memory, f"c{at}", **gpu("1" if device else "0"))
                for at, (cpu, memory, device) in enumerate(step)
            ]
            stage.pod(f"p{number}", initContainers=sizes[1:], containers=sizes[:1])
            there.append(f"p{number}")
        stage.to(number * 3)
        check(stage)


def check(stage: Stage) -> None:
    """Over the records of the pods that are not over."""
    cpus, devices = 0, set[str]()
    for item in stage.world.store.objects(POD):
        found = record(stage, item.name).get("containers", {})
        if item.view(Pod).is_terminal:
            assert not found
            continue
        own, ids = 0, set[str]()
        for name, each in found.items():
            got = parse_list(each.get("cpus", ""))
            asked = next(
                c for c in item.doc()["spec"]["initContainers" if name != "c0" else "containers"] if c["name"] == name
            )
            amount = asked["resources"]["limits"]["cpu"]
            assert got.bit_count() == (int(amount) if amount.isdigit() else 0)
            own |= got
            ids |= {*each.get("devices", {}).get("nvidia.com/gpu", ())}
        assert not own & cpus
        assert not own & parse_list("0,8")
        assert not ids & devices
        cpus, devices = cpus | own, devices | ids
