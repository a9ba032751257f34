"""A copy of the state is one to try things on: whatever is done to it, the original stays."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from bayplan.model.nodes import Node
from bayplan.scheduling.cycle import decide
from bayplan.scheduling.decision import Decision
from bayplan.scheduling.pods import PodInfo
from bayplan.scheduling.profiles import default_profile
from bayplan.scheduling.state import ClusterState
from bayplan.testing import node, pod

PROFILE = default_profile()
IMAGE = "registry.example/app:1"


def _node(name: str) -> Node:
    return node(name).having("status.images", [{"names": [IMAGE], "sizeBytes": 900_000_000}]).view()


def _state() -> ClusterState:
    apart = pod("apart").apart_from(app="web").on("n1").view()
    waiting = pod("waiting").requests(cpu=1).having("status", {"nominatedNodeName": "n2"}).view()
    return ClusterState([_node("n1"), _node("n2"), node("n3").view(), apart, waiting])


def _decided(state: ClusterState) -> Decision:
    return decide(state, PROFILE, PodInfo(pod("new").labelled(app="web").requests(cpu=1).view()))


@pytest.mark.parametrize("only", [None, ("n1",)], ids=["all nodes its own", "one node its own"])
@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda state: state.put_node(node("n1").cordoned().view()), id="a node changes"),
        pytest.param(lambda state: state.put_node(_node("n4")), id="a node comes"),
        pytest.param(lambda state: state.drop_node("n1"), id="a node goes"),
        pytest.param(lambda state: state.drop_pod(("default", "apart")), id="a pod goes"),
        pytest.param(lambda state: state.put_pod(PodInfo(pod("x").requests(cpu=3).view()), "n1"), id="a pod comes"),
        pytest.param(lambda state: state.withdraw(("default", "waiting")), id="a nomination is withdrawn"),
    ],
)
def test_the_original_stays_as_it_is(change: Callable[[ClusterState], object], only: tuple[str, ...] | None) -> None:
    state = _state()
    twin = state.copy(only)
    assert _decided(twin) == _decided(state)

    change(twin)

    assert _decided(state) == _decided(_state())
    assert state.images[IMAGE].nodes == {"n1", "n2"}
