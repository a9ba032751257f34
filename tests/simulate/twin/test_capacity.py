"""Capacity: counts that are exact, sets of nodes that are smallest, and reruns that agree."""

from __future__ import annotations

from itertools import combinations_with_replacement

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayplan.cluster.kinds import NODE, POD
from bayplan.model.nodes import Node
from bayplan.model.pods import Pod
from bayplan.scheduling import pods
from bayplan.scheduling.profiles import default_profile
from bayplan.scheduling.state import ClusterState
from bayplan.scheduling.whatif.shapes import shape_of
from bayplan.simulate.twin.adding import smallest_addition
from bayplan.simulate.twin.capacity import alike, how_many, independent, searching
from bayplan.simulate.twin.questions import ask_for, overview
from bayplan.testing import namespace, node, pod, quota
from bayplan.testing.nodes import NodeManifest
from bayplan.testing.pods import PodManifest
from tests.simulate.twin.clusters import busy, gpu_node, snapshot_of

PROFILE = searching(default_profile())


def _node(name: str, cpu: int, zone: str = "") -> NodeManifest:
    labels = {"kubernetes.io/hostname": name} | ({"zone": zone} if zone else {})
    return node(name).offers(cpu=cpu, memory="64Gi").labelled(labels)


def _state(*nodes: NodeManifest, pods: tuple[PodManifest, ...] = ()) -> ClusterState:
    return ClusterState([*(each.view() for each in nodes), *(each.view() for each in pods)])


@pytest.mark.parametrize(
    ("wanted", "number", "exact"),
    [
        pytest.param(pod().requests(cpu=2), 4 + 3, True, id="as many as cores allow"),
        pytest.param(pod().requests(cpu=64), 0, True, id="none of what is too large"),
        pytest.param(pod("x").labelled(app="x").requests(cpu=1).apart_from(app="x"), 2, True, id="one a node"),
        pytest.param(
            pod("x").labelled(app="x").requests(cpu=1).spread("zone", app="x"), 13, False, id="evenly over zones"
        ),
        pytest.param(pod().requests(cpu=1).selecting(zone="b"), 6, True, id="only where it may go"),
    ],
)
def test_how_many_more(wanted: PodManifest, number: int, exact: bool) -> None:
    state = _state(_node("a", 8, "a"), _node("b", 8, "b"), pods=(pod("old").requests(cpu=2).on("b"),))
    fit = how_many(state, PROFILE, wanted.view())
    assert (fit.number, fit.exact, fit.verified) == (number, exact, True)
    assert sum(fit.nodes.values()) == number
    assert "0/2 nodes are available" in fit.why


def test_a_count_may_be_ended() -> None:
    fit = how_many(_state(_node("a", 8)), PROFILE, pod().requests(cpu=1).view(), most=3)
    assert (fit.number, fit.why, fit.verified) == (3, "", True)


def test_the_state_stays_as_it_is() -> None:
    state = _state(_node("a", 8))
    how_many(state, PROFILE, pod().requests(cpu=1).view())
    assert not state.nodes[0].pods


sizes = st.lists(st.integers(1, 12), min_size=1, max_size=3, unique=True)


@settings(max_examples=40)
@given(sizes, st.integers(1, 4), st.integers(1, 12))
def test_no_smaller_set_of_nodes_would_do(cores: list[int], ask: int, wanted: int) -> None:
    """Against every set of as few nodes, by brute force."""
    shapes = sorted((shape_of(_node(f"s{each}", each).view()) for each in cores), key=lambda each: each.size)
    state = _state(_node("there", 4))
    wish = pod().requests(cpu=ask).view()
    found = smallest_addition(state, PROFILE, wish, wanted, shapes)
    now, takes = 4 // ask, {each: each // ask for each in cores}
    if now >= wanted or not any(takes.values()):
        assert not found.nodes
        assert found.enough == (now >= wanted)
        return
    number = sum(found.nodes.values())
    assert found.enough
    assert found.exact
    assert found.then.verified
    every = [
        each
        for count in range(number + 1)
        for each in combinations_with_replacement(sorted(cores), count)
        if now + sum(takes[one] for one in each) >= wanted
    ]
    best = min(every, key=lambda each: (len(each), sum(each)))
    mine = [int(name[1:]) for name, count in found.nodes.items() for _ in range(count)]
    assert (number, sum(mine)) == (len(best), sum(best))


def test_pods_that_keep_apart_take_a_node_each() -> None:
    wish = pod("x").labelled(app="x").requests(cpu=1).apart_from(app="x").view()
    found = smallest_addition(_state(_node("a", 8)), PROFILE, wish, 4, [shape_of(_node("n", 8).view())])
    assert found.nodes == {"n": 3}
    assert found.then.number == 4


def test_pods_that_spread_get_nodes_where_they_are_needed_and_that_is_a_bound() -> None:
    wish = pod("x").labelled(app="x").requests(cpu=4).spread("zone", app="x").view()
    shapes = [shape_of(_node("in-a", 8, "a").view()), shape_of(_node("in-b", 8, "b").view())]
    found = smallest_addition(_state(_node("a", 8, "a"), _node("b", 4, "b")), PROFILE, wish, 6, shapes)
    assert found.enough
    assert not found.exact
    assert found.nodes == {"in-a": 1, "in-b": 1}


def test_a_pod_on_its_own_is_independent_and_one_with_friends_is_not() -> None:
    assert independent(pod().view())
    assert not independent(pod().spread("zone", app="x").view())


async def test_an_overview_counts_by_model_and_by_pod_and_tells_what_pending_ones_need() -> None:
    found = overview(await snapshot_of(await busy()), default_profile())
    assert (found.nodes, found.pending) == (3, 1)
    by_size = {each.devices: fit.number for each, fit in found.gpus}
    assert by_size == {1: 16, 2: 7, 4: 2, 8: 0}  # four web pods with one each, a Job with four
    assert {each.owner.split("/")[0] for each, _ in found.alike} == {"ReplicaSet", "StatefulSet", "Job", ""}
    assert all(fit.verified for _, fit in (*found.gpus, *found.alike))
    ((sort, why),) = found.waiting
    assert sort.pod.metadata.name == "big"
    assert why.answer.proposals


async def test_a_pod_is_also_tried_on_a_living_copy_where_quotas_count() -> None:
    cluster = await busy(namespace("team"), quota("team", "team").having("spec.hard", {"requests.nvidia.com/gpu": "3"}))
    snapshot = await snapshot_of(cluster)
    body = pod("train", "team").requests(gpu=1).document()
    answer = await ask_for(snapshot, default_profile(), body, "team")
    assert answer.fit.number == 16
    assert (answer.rerun.created, answer.rerun.placed) == (3, 3)
    assert "exceeded quota" in answer.rerun.refusal


async def test_nodes_to_add_are_tried_on_a_living_copy() -> None:
    snapshot = await snapshot_of(await busy())
    body = pod("train").requests(gpu=8).document()
    answer = await ask_for(snapshot, default_profile(), body, "default", replicas=2)
    assert answer.addition is not None
    assert answer.addition.nodes == {"a": 2}
    assert (answer.rerun.asked, answer.rerun.placed) == (2, 2)
    assert answer.explanation is not None
    assert answer.explanation.answer.proposals


async def test_asking_changes_nothing() -> None:
    cluster = await busy()
    revision = cluster.world.store.revision
    snapshot = await snapshot_of(cluster)
    overview(snapshot, default_profile())
    await ask_for(snapshot, default_profile(), pod("train").requests(gpu=8).document(), "default", replicas=9)
    assert cluster.world.store.revision == revision
    assert {item.kind for item in snapshot.objects} >= {NODE, POD}


def test_pods_that_ask_for_different_things_are_told_apart_however_many_there_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pods, "_MOST_KNOWN", 1)  # what they want is forgotten, and its place in memory used again
    found = alike(pod(f"p{number}").requests(cpu=number).view() for number in range(1, 50))
    assert len(found) == 49


def test_a_cordoned_node_takes_nothing_and_its_shape_may_be_added() -> None:
    away: Node = gpu_node("a").having("spec.unschedulable", True).view()
    state = ClusterState([away])
    wish: Pod = pod().requests(gpu=8).view()
    assert how_many(state, PROFILE, wish).number == 0
    assert smallest_addition(state, PROFILE, wish, 1, [shape_of(away)]).nodes == {"a": 1}
