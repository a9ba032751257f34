"""A node's conditions, and its kubelet's death and return."""

from __future__ import annotations

import pytest

from bayplan.cluster.kinds import NODE
from bayplan.model.meta import condition
from bayplan.model.nodes import Node
from tests.cluster.kubelet.stage import Stage


def node(stage: Stage) -> Node:
    return stage.world.server.get(NODE, "", "node-1").view(Node)


def test_a_new_node_is_ready_and_under_no_pressure() -> None:
    stage = Stage()
    stage.node()
    found = {each.type: (each.status, each.reason) for each in node(stage).status.conditions}
    assert found == {
        "MemoryPressure": ("False", "KubeletHasSufficientMemory"),
        "DiskPressure": ("False", "KubeletHasNoDiskPressure"),
        "PIDPressure": ("False", "KubeletHasSufficientPID"),
        "Ready": ("True", "KubeletReady"),
    }
    assert [each.type for each in node(stage).status.addresses] == ["InternalIP", "Hostname"]


def test_a_pressure_that_a_client_sets_stays_and_readiness_does_not() -> None:
    stage = Stage()
    stage.node()
    doc = stage.world.server.get(NODE, "", "node-1").doc()
    for each in doc["status"]["conditions"]:
        each["status"] = {"MemoryPressure": "True", "Ready": "False"}.get(each["type"], each["status"])
    stage.world.server.update(NODE, "", "node-1", doc, subresource="status")
    stage.to(10)
    pressure, ready = (condition(node(stage).status.conditions, kind) for kind in ("MemoryPressure", "Ready"))
    assert pressure is not None
    assert ready is not None
    assert (pressure.status, ready.status) == ("True", "True")
    assert ("NodeReady", "Node node-1 status is now: NodeReady") in [each[1:] for each in stage.events]


@pytest.mark.parametrize("bound_while_dead", [True, False])
def test_nothing_happens_on_a_node_whose_kubelet_is_dead(bound_while_dead: bool) -> None:
    stage = Stage()
    stage.node()
    if not bound_while_dead:
        stage.pod(behaviour={"pull": "1m"})
        stage.to(5)
    stage.annotate_node("stopped-at=2026-01-01T00:00:05Z")
    if bound_while_dead:
        stage.pod(behaviour={"pull": "1m"})
    stage.to(300)
    assert stage.status().phase == "Pending"
    stage.delete()
    stage.to(600)
    assert stage.item().meta.deletion_timestamp is not None
    stage.annotate_node(None)
    stage.to(601)
    assert stage.seen[-1] == (600, "gone")


def test_a_node_that_comes_back_is_ready_again() -> None:
    stage = Stage()
    stage.node()
    stage.annotate_node("stopped-at=2026-01-01T00:00:00Z")
    doc = stage.world.server.get(NODE, "", "node-1").doc()
    for each in doc["status"]["conditions"]:
        each |= {"status": "Unknown", "reason": "NodeStatusUnknown", "message": "Kubelet stopped posting node status."}
    stage.world.server.update(NODE, "", "node-1", doc, subresource="status")
    stage.to(60)
    assert {each.status for each in node(stage).status.conditions} == {"Unknown"}
    stage.annotate_node(None)
    stage.to(61)
    assert {each.type: each.status for each in node(stage).status.conditions} == {
        "MemoryPressure": "False",
        "DiskPressure": "False",
        "PIDPressure": "False",
        "Ready": "True",
    }


def test_pods_bound_before_their_node_came_start_when_it_comes() -> None:
    stage = Stage()
    stage.pod()
    stage.to(50)
    assert not stage.status().container_statuses
    stage.node()
    stage.to(60)
    assert stage.status().phase == "Running"
