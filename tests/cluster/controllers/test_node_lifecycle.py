"""Nodes that fail, return, are cordoned or go: their taints, their pods, and what is said of it."""

from __future__ import annotations

from typing import Any

import pytest

from bayplan.cluster.embedded.controllers.node_lifecycle import NodeLifecycle, tainted
from bayplan.cluster.embedded.controllers.node_registry import NodeRegistry
from bayplan.cluster.embedded.controllers.node_zones import next_slot
from bayplan.cluster.embedded.controllers.pod_collector import SINCE, PodCollector
from bayplan.cluster.embedded.controllers.taint_eviction import TaintEviction, patience_ends
from bayplan.cluster.embedded.kubelet.controller import KubeletController
from bayplan.cluster.embedded.kubelet.node import STOPPED
from bayplan.cluster.kinds import NODE, POD
from bayplan.model.clock import SECOND, Instant, rfc3339
from bayplan.model.meta import Condition, ObjectMeta
from bayplan.model.nodes import Node, NodeSpec, NodeStatus
from bayplan.model.pods import Pod, PodSpec
from bayplan.model.taints import Taint, Toleration
from tests.cluster.controllers.stage import START, Stage

UNREACHABLE = "node.kubernetes.io/unreachable"
NOT_READY = "node.kubernetes.io/not-ready"


class NodeStage(Stage):
    """A cluster that watches over its nodes."""

    def __init__(self, nodes: int = 3) -> None:
        super().__init__(NodeRegistry(), NodeLifecycle(), TaintEviction(), PodCollector(), nodes=nodes)
        for node in list(self.store.objects(NODE)):
            self.report(node.name)
        self.hands.ends = lambda _pod: False

    def report(self, name: str, ready: str = "True") -> None:
        """The kubelet says how its node is."""
        condition = {
            "type": "Ready",
            "status": ready,
            "reason": "KubeletReady",
            "lastTransitionTime": rfc3339(self.now),
        }
        self.server.write_status(self.server.get(NODE, "", name), {"conditions": [condition]})
        self.settle()

    def stop(self, name: str) -> None:
        """The kubelet falls silent."""
        self.patch(NODE, name, {"metadata": {"annotations": {STOPPED: f"stopped-at={rfc3339(self.now)}"}}}, "")

    def start(self, name: str) -> None:
        """The kubelet is back."""
        self.patch(NODE, name, {"metadata": {"annotations": {STOPPED: None}}}, "")
        self.report(name)

    def pod(self, name: str, node: str = "node-0", tolerations: list[dict[str, Any]] | None = None) -> None:
        """A pod on a node."""
        spec: dict[str, Any] = {"nodeName": node, "containers": [{"name": "a", "image": "a"}]}
        if tolerations is not None:
            spec["tolerations"] = tolerations
        self.create(POD, name, spec)

    def taints(self, name: str = "node-0") -> list[str]:
        """A node's taints."""
        return [str(each) for each in self.server.get(NODE, "", name).view(Node).spec.taints]

    def is_going(self, name: str) -> bool:
        """Whether a pod is being deleted."""
        return self.server.get(POD, "default", name).meta.deletion_timestamp is not None


def test_a_silent_node_is_lost_after_fifty_seconds() -> None:
    stage = NodeStage()
    stage.pod("p")
    stage.stop("node-0")
    stage.wait(49)
    assert stage.taints() == []
    stage.wait(1)
    conditions = stage.server.get(NODE, "", "node-0").view(Node).status.conditions
    assert [(one.type, one.status, one.reason) for one in conditions] == [
        ("Ready", "Unknown", "NodeStatusUnknown"),
        ("MemoryPressure", "Unknown", "NodeStatusNeverUpdated"),
        ("DiskPressure", "Unknown", "NodeStatusNeverUpdated"),
        ("PIDPressure", "Unknown", "NodeStatusNeverUpdated"),
    ]
    assert conditions[0].message == "Kubelet stopped posting node status."
    assert stage.taints() == [f"{UNREACHABLE}:NoSchedule", f"{UNREACHABLE}:NoExecute"]
    ready = stage.server.get(POD, "default", "p").view(Pod).status.conditions[-1]
    assert (ready.type, ready.status) == ("Ready", "False")
    assert stage.events("node-0") == [
        "RegisteredNode: Node node-0 event: Registered Node node-0 in Controller",
        "NodeNotReady: Node node-0 status is now: NodeNotReady",
    ]
    assert stage.events("p") == ["NodeNotReady: Node is not ready"]


def test_pods_leave_a_lost_node_after_five_minutes() -> None:
    stage = NodeStage()
    stage.pod("p")
    stage.pod("forever", tolerations=[{"operator": "Exists"}])
    stage.stop("node-0")
    stage.wait(50 + 299)
    assert not stage.is_going("p")
    stage.wait(1)
    assert stage.is_going("p")
    assert not stage.is_going("forever")
    told = stage.server.get(POD, "default", "p").view(Pod).status.conditions[-1]
    assert (told.type, told.reason) == ("DisruptionTarget", "DeletionByTaintManager")
    assert stage.events("p")[-1] == "TaintManagerEviction: Marking for deletion Pod default/p"


def test_a_node_that_returns_in_time_keeps_its_pods() -> None:
    stage = NodeStage()
    stage.pod("p")
    stage.stop("node-0")
    stage.wait(100)
    stage.start("node-0")
    assert stage.taints() == []
    assert stage.events("p")[-1] == "TaintManagerEviction: Cancelling deletion of Pod default/p"
    stage.wait(600)
    assert not stage.is_going("p")


def test_a_node_that_says_it_is_not_ready_is_tainted_at_once() -> None:
    stage = NodeStage()
    stage.report("node-0", "False")
    assert stage.taints() == [f"{NOT_READY}:NoSchedule", f"{NOT_READY}:NoExecute"]
    stage.stop("node-0")
    stage.wait(50)
    assert stage.taints() == [f"{UNREACHABLE}:NoSchedule", f"{UNREACHABLE}:NoExecute"]


def test_nodes_of_a_zone_are_emptied_ten_seconds_apart() -> None:
    stage = NodeStage(nodes=5)
    stage.stop("node-0")
    stage.stop("node-1")
    stage.wait(50)
    assert [len(stage.taints(name)) for name in ("node-0", "node-1")] == [2, 1]
    stage.wait(10)
    assert [len(stage.taints(name)) for name in ("node-0", "node-1")] == [2, 2]


def test_when_all_nodes_are_lost_no_pod_is_evicted() -> None:
    stage = NodeStage(nodes=2)
    stage.pod("p")
    stage.stop("node-0")
    stage.wait(100)
    stage.stop("node-1")
    stage.wait(1000)
    assert stage.taints("node-0") == stage.taints("node-1") == [f"{UNREACHABLE}:NoSchedule"]
    assert not stage.is_going("p")
    stage.start("node-1")
    stage.wait(5)
    assert stage.taints("node-0") == [f"{UNREACHABLE}:NoSchedule", f"{UNREACHABLE}:NoExecute"]


def test_looking_again_changes_nothing() -> None:
    stage = NodeStage()
    stage.pod("p")
    stage.stop("node-0")
    for seconds in (49, 1, 200, 200):
        stage.wait(seconds)
        for controller in (NodeLifecycle(), TaintEviction()):
            assert not controller.reconcile(("", "node-0"), stage.store, stage.now).writes


def test_a_cordoned_node_is_tainted_until_it_is_not() -> None:
    stage = NodeStage()
    stage.patch(NODE, "node-0", {"spec": {"unschedulable": True}}, "")
    assert stage.taints() == ["node.kubernetes.io/unschedulable:NoSchedule"]
    stage.patch(NODE, "node-0", {"spec": {"unschedulable": None}}, "")
    assert stage.taints() == []


def test_a_taint_of_a_person_evicts_those_that_do_not_tolerate_it() -> None:
    stage = NodeStage()
    patient = [{"key": "fix", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 20}]
    stage.pod("soon", tolerations=patient)
    stage.pod("now", tolerations=[])
    stage.patch(NODE, "node-0", {"spec": {"taints": [{"key": "fix", "effect": "NoExecute"}]}}, "")
    assert (stage.is_going("now"), stage.is_going("soon")) == (True, False)
    stage.wait(10)
    stage.pod("late", tolerations=patient)
    stage.wait(10)
    assert (stage.is_going("soon"), stage.is_going("late")) == (True, False)
    stage.wait(10)
    assert stage.is_going("late")


def test_a_pressed_node_takes_no_more_pods() -> None:
    stage = NodeStage()
    node = stage.server.get(NODE, "", "node-0")
    ready = {"type": "Ready", "status": "True"}
    stage.server.write_status(node, {"conditions": [{"type": "MemoryPressure", "status": "True"}, ready]})
    stage.settle()
    assert stage.taints() == ["node.kubernetes.io/memory-pressure:NoSchedule"]


def test_pods_of_a_node_that_is_gone_fail_and_go() -> None:
    stage = NodeStage()
    stage.pod("p")
    stage.server.delete(NODE, "", "node-0")
    stage.wait(39)
    assert SINCE in stage.server.get(POD, "default", "p").meta.annotations
    changes = stage.store.log(POD)
    end = changes.end
    stage.wait(1)
    assert stage.store.get(POD, "default", "p") is None
    status = changes.read(end, 1)[0].new.view(Pod).status
    assert (status.phase, status.conditions[-1].reason) == ("Failed", "DeletionByPodGC")
    assert stage.events("node-0")[-1] == "RemovingNode: Node node-0 event: Removing Node node-0 from Controller"


def test_pods_of_a_node_that_comes_again_stay() -> None:
    stage = NodeStage()
    stage.pod("p")
    stage.server.delete(NODE, "", "node-0")
    stage.wait(20)
    stage.add_node("node-0")
    stage.wait(60)
    assert not stage.is_going("p")
    assert SINCE not in stage.server.get(POD, "default", "p").meta.annotations


def test_a_node_that_was_given_up_lets_its_deleted_pods_go() -> None:
    stage = NodeStage()
    stage.pod("p")
    stage.report("node-0", "False")
    stage.server.delete(POD, "default", "p")
    stage.settle()
    assert stage.store.get(POD, "default", "p") is not None
    taint = {"key": "node.kubernetes.io/out-of-service", "value": "nodeshutdown", "effect": "NoSchedule"}
    stage.patch(NODE, "node-0", {"spec": {"taints": [taint]}}, "")
    assert stage.store.get(POD, "default", "p") is None


def test_a_node_dies_and_returns_under_its_kubelet() -> None:
    stage = Stage(KubeletController(), NodeRegistry(), NodeLifecycle(), hands=False)

    def seen() -> tuple[list[str], list[str]]:
        node = stage.server.get(NODE, "", "node-0").view(Node)
        return [each.effect for each in node.spec.taints], [one.status for one in node.status.conditions]

    stage.settle()
    well = (list[str](), ["False", "False", "False", "True"])
    assert seen() == well
    stage.patch(NODE, "node-0", {"metadata": {"annotations": {STOPPED: f"stopped-at={rfc3339(stage.now)}"}}}, "")
    stage.wait(60)
    assert seen() == (["NoSchedule", "NoExecute"], ["Unknown"] * 4)
    stage.patch(NODE, "node-0", {"metadata": {"annotations": {STOPPED: None}}}, "")
    assert seen() == well
    reasons = [event.partition(":")[0] for event in stage.events("node-0")]
    assert reasons == ["RegisteredNode", "NodeNotReady", "NodeReady"]


def _node(name: str, ready: str, *taints: Taint, unschedulable: bool = False) -> Node:
    conditions = (Condition(type="Ready", status=ready),) if ready else ()
    return Node(
        metadata=ObjectMeta(name=name, uid=name),
        spec=NodeSpec(taints=taints, unschedulable=unschedulable),
        status=NodeStatus(conditions=conditions),
    )


OWN = Taint("gpu", "", "NoSchedule")
FRESH = Taint(NOT_READY, "", "NoSchedule")


@pytest.mark.parametrize(
    ("node", "taints"),
    [
        pytest.param(_node("n", "True", FRESH, OWN), ["gpu:NoSchedule"], id="a ready node loses what kept it empty"),
        pytest.param(_node("n", "", FRESH), [str(FRESH)], id="a node that has said nothing keeps its first taint"),
        pytest.param(
            _node("n", "Unknown", FRESH, OWN),
            ["gpu:NoSchedule", f"{UNREACHABLE}:NoSchedule", f"{UNREACHABLE}:NoExecute"],
            id="an unreachable node swaps one for the other",
        ),
    ],
)
def test_taints_follow_conditions(node: Node, taints: list[str]) -> None:
    assert [str(each) for each in tainted(node, START, may_evict=True)] == taints


@pytest.mark.parametrize(
    ("down", "up", "slot"),
    [
        pytest.param(1, 5, Instant(0), id="one of a few may go at once"),
        pytest.param(3, 2, None, id="most of a small zone: none goes"),
        pytest.param(40, 20, Instant(0), id="most of a large zone: they go slowly"),
        pytest.param(2, 1, Instant(0), id="two are never most"),
        pytest.param(4, 0, None, id="all of everything: none goes"),
    ],
)
def test_how_fast_a_zone_is_emptied(down: int, up: int, slot: Instant | None) -> None:
    nodes = [_node(f"down-{i}", "Unknown") for i in range(down)] + [_node(f"up-{i}", "True") for i in range(up)]
    assert next_slot(nodes[0], nodes) == slot


@pytest.mark.parametrize(
    ("tolerations", "end"),
    [
        pytest.param((), Instant(0), id="no toleration: at once"),
        pytest.param((Toleration("fix", "Exists"),), None, id="tolerated for ever"),
        pytest.param((Toleration("fix", "Exists", "", "", 30),), START + 30 * SECOND, id="tolerated for a while"),
        pytest.param((Toleration("fix", "Exists", "", "", 0),), Instant(0), id="tolerated for no time"),
    ],
)
def test_how_long_a_pod_stays(tolerations: tuple[Toleration, ...], end: Instant | None) -> None:
    taint = Taint("fix", "", "NoExecute", rfc3339(START))
    assert patience_ends(Pod(spec=PodSpec(tolerations=tolerations)), [taint]) == end
