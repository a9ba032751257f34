"""The state in the order of events: what stands where, and what is forgotten."""

from __future__ import annotations

import msgspec

from bayplan.model.nodes import Node
from bayplan.model.policies import Service
from bayplan.scheduling.state import ClusterState


def _node(name: str, zone: str) -> Node:
    return msgspec.convert({"metadata": {"name": name, "labels": {"topology.kubernetes.io/zone": zone}}}, Node)


def _order(state: ClusterState) -> list[str]:
    return [node.name for node in state.nodes]


def test_a_node_that_changes_its_zone_is_moved_when_the_next_one_comes_or_goes() -> None:
    """Upstream's snapshot makes its list anew only then, while its tree has the node in its new zone already."""
    state = ClusterState([_node("a1", "a"), _node("a2", "a"), _node("b1", "b")])
    assert _order(state) == ["a1", "b1", "a2"]
    state.put(_node("a1", "b"))
    assert _order(state) == _order(state.copy()) == ["a1", "b1", "a2"]
    state.put(_node("b2", "b"))
    assert _order(state) == ["a2", "b1", "a1", "b2"]
    state.put(_node("a2", "b"))
    state.drop_node("b1")
    assert _order(state) == ["a1", "b2", "a2"]


def test_a_namespace_leaves_nothing_behind() -> None:
    state = ClusterState()
    for number in range(3):
        service = msgspec.convert({"metadata": {"name": "web", "namespace": f"job-{number}"}}, Service)
        state.put(service)
        state.drop(service)
    assert [*state.all(Service)] == []
    assert not any(state._objects.values())
