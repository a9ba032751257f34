"""Preemption: who may be evicted, who is spared, how far it looks, and what is written afterwards."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.model.meta import Condition
from bayplan.scheduling.cycle import decide
from bayplan.scheduling.decision import Outcome, Victims
from bayplan.scheduling.messages import with_preemption
from bayplan.scheduling.pods import PodInfo
from bayplan.scheduling.preemption import Aftermath, Eviction, aftermath, clear_lower_nominations, preempt
from bayplan.scheduling.state import ClusterState
from bayplan.testing.nodes import NodeManifest
from bayplan.testing.pods import PodManifest
from bayplan.testing.policies import BudgetManifest
from tests.scheduling.preempting import PROFILE, attempt, budget, cluster, going, keys, small, started

# --- one node


TOP = started("top", 100, cpu=2)


@pytest.mark.parametrize(
    ("objects", "incoming", "victims"),
    [
        pytest.param(
            [started("low", 1), started("high", 2)],
            started("top", 100, cpu=1),
            Victims(keys("low")),
            id="the least important one goes, if that is enough",
        ),
        pytest.param(
            [started("old", 1, day=1), started("young", 1, day=2)],
            started("top", 100, cpu=1),
            Victims(keys("young")),
            id="of equals the one that started last",
        ),
        pytest.param(
            [started("low", 1), started("high", 2)],
            TOP,
            Victims(keys("high", "low")),
            id="the most important victim first",
        ),
        pytest.param(
            [started("peer", 100), started("low", 99)],
            started("top", 100, cpu=1),
            Victims(keys("low")),
            id="a pod of the same priority stays",
        ),
        pytest.param(
            [started("guarded", 1).labelled(app="web"), started("high", 2), budget("b", 0, app="web")],
            started("top", 100, cpu=1),
            Victims(keys("high")),
            id="a pod that a budget protects is given back before a more important one",
        ),
        pytest.param(
            [started("guarded", 1).labelled(app="web"), started("high", 2), budget("b", 0, app="web")],
            TOP,
            Victims(keys("high", "guarded"), 1),
            id="a budget is broken if nothing else helps, and victims are still in order of importance",
        ),
        pytest.param(
            [started("free", 1), started("guarded", 1).labelled(app="web"), budget("b", 0, app="web")],
            TOP,
            Victims(keys("guarded", "free"), 1),
            id="of equals the protected victim stands first",
        ),
        pytest.param(
            [started("big", 1, cpu=1.5), started("little", 2, cpu=0.5)],
            started("top", 100, cpu=0.5),
            Victims(keys("big")),
            id="a big pod goes although a little one would do, if it is less important",
        ),
        pytest.param(
            [started("low", 1), started("high", 2), started("waiting", 100).having("status.nominatedNodeName", "n")],
            started("top", 100, cpu=1),
            Victims(keys("high", "low")),
            id="room is kept for an equal that waits for the node",
        ),
        pytest.param(
            [started("low", 1), started("high", 2), started("waiting", 99).having("status.nominatedNodeName", "n")],
            started("top", 100, cpu=1),
            Victims(keys("low")),
            id="no room is kept for a lesser one that waits for the node",
        ),
        pytest.param(
            [started("shy", 1, cpu=0.1).labelled(app="shy"), started("low", 0, cpu=0.1)],
            started("top", 100, cpu=1).apart_from(app="shy"),
            Victims(keys("shy")),
            id="the pod that keeps it away goes, not the least important",
        ),
    ],
)
def test_who_has_to_go(objects: list[PodManifest], incoming: PodManifest, victims: Victims) -> None:
    placed = [each if _elsewhere(each) else each.on("n") for each in objects]
    assert attempt(cluster(small("n"), *placed), incoming).candidates == {"n": victims}


def _elsewhere(manifest: PodManifest | BudgetManifest) -> bool:
    return isinstance(manifest, BudgetManifest) or "nominatedNodeName" in manifest.body["status"]


# --- the whole attempt


@pytest.mark.parametrize(
    ("objects", "incoming", "message"),
    [
        pytest.param(
            [small("n"), started("low", cpu=2).on("n")],
            TOP.pod_having("preemptionPolicy", "Never"),
            "not eligible due to preemptionPolicy=Never.",
            id="a pod that never evicts",
        ),
        pytest.param(
            [small("n"), going(started("low", cpu=2).on("n"))],
            TOP.having("status", {"nominatedNodeName": "n"}),
            "not eligible due to a terminating pod on the nominated node.",
            id="a pod that waits for its victim to end",
        ),
        pytest.param(
            [small("n"), started("peer", 100, cpu=2).on("n")],
            TOP,
            "0/1 nodes are available: 1 No preemption victims found for incoming pod.",
            id="nobody is less important",
        ),
        pytest.param(
            [small("n").cordoned(), started("low", cpu=2).on("n")],
            TOP,
            "0/1 nodes are available: 1 Preemption is not helpful for scheduling.",
            id="a cordoned node is not freed by evictions",
        ),
        pytest.param(
            [small("n"), started("low").on("n"), started("peer", 100).on("n"), small("m", 1), small("o").cordoned()],
            TOP,
            "0/3 nodes are available: 1 Insufficient cpu, 2 Preemption is not helpful for scheduling.",
            id="each node with its own reason",
        ),
    ],
)
def test_an_attempt_in_vain(objects: list[NodeManifest | PodManifest], incoming: PodManifest, message: str) -> None:
    found = attempt(cluster(*objects), incoming)
    assert (found.node, found.candidates, found.message) == ("", {}, message)
    assert found.eligible == message.startswith("0/")


@pytest.mark.parametrize(
    "objects",
    [
        pytest.param(
            [small("n").cordoned(), going(started("low", cpu=2).on("n"))], id="its nominated node is cordoned"
        ),
        pytest.param([small("n"), started("low", cpu=2).on("n")], id="nobody is leaving its nominated node"),
        pytest.param(
            [small("n"), going(started("low", cpu=2), reason="EvictionByEvictionAPI").on("n")],
            id="who is leaving was not evicted by a scheduler",
        ),
        pytest.param(
            [small("n"), going(started("low", 0, cpu=1).on("n"), status="False"), started("more").on("n")],
            id="the condition no longer holds",
        ),
        pytest.param([], id="its nominated node is gone"),
        pytest.param(
            [small("n"), going(started("peer", 100).on("n")), started("low").on("n")],
            id="who is leaving its nominated node is not less important",
        ),
    ],
)
def test_a_nominated_pod_may_evict_again(objects: list[NodeManifest | PodManifest]) -> None:
    state = cluster(*objects, small("other"), started("victim", cpu=2).on("other"))
    assert "other" in attempt(state, TOP.having("status", {"nominatedNodeName": "n"})).candidates


def many(count: int, *guarded: int) -> ClusterState:
    """Nodes n0, n1, ... with a pod each that could go; a budget protects those on the guarded ones."""
    pods = [started(f"p{i}", cpu=2).on(f"n{i}").labelled(guarded=str(i in guarded)) for i in range(count)]
    return cluster(*(small(f"n{i}") for i in range(count)), *pods, budget("b", 0, guarded="True"))


@pytest.mark.parametrize(
    ("guarded", "offset", "tried"),
    [
        pytest.param((), 0, "n0 n1", id="it ends at the number of candidates wanted"),
        pytest.param((), 3, "n3 n4", id="it begins at the offset"),
        pytest.param((), 9, "n4 n0", id="it wraps round"),
        pytest.param((0,), 0, "n1 n0", id="who breaks a budget stands behind"),
        pytest.param((0, 1, 2), 0, "n3 n0 n1", id="it goes on until one breaks no budget"),
        pytest.param((0, 1, 2, 3, 4), 0, "n0 n1", id="if all break one, the first are kept"),
    ],
)
def test_how_far_the_dry_run_goes(guarded: tuple[int, ...], offset: int, tried: str) -> None:
    found = attempt(many(5, *guarded), TOP, offset, min_candidate_nodes_absolute=2)
    assert " ".join(found.candidates) == tried


def test_a_share_of_the_nodes_is_wanted_if_it_is_more_than_the_number() -> None:
    found = attempt(many(10), TOP, min_candidate_nodes_absolute=1, min_candidate_nodes_percentage=45)
    assert len(found.candidates) == 4


def test_each_node_is_tried_with_the_pods_of_the_others_in_place() -> None:
    zoned = [small(name).labelled(zone="z") for name in ("a", "b")]
    shy = [started(f"shy-{name}").labelled(app="shy").on(name) for name in ("a", "b")]
    found = attempt(cluster(*zoned, *shy), started("top", 100).apart_from(within="zone", app="shy"))
    assert found.message == "0/2 nodes are available: 2 node(s) didn't match pod anti-affinity rules."


def test_a_nomination_that_only_the_state_knows_of_counts() -> None:
    state = cluster(small("n"), going(started("low", cpu=2).on("n")))
    state.nominate(PodInfo(TOP.view()), "n")
    assert not attempt(state, TOP).eligible


def test_of_tied_nodes_the_first_is_taken_and_all_are_told() -> None:
    found = attempt(many(3, 1), TOP)
    assert (found.node, found.decided_by, found.any_of) == ("n0", "random", ("n0", "n2"))


def test_a_profile_without_the_plugin_evicts_nobody() -> None:
    profile = msgspec.structs.replace(PROFILE, preemption=None)
    incoming, state = PodInfo(TOP.view()), many(2)
    found = preempt(state, profile, incoming, decide(state, profile, incoming))
    assert (found.eligible, found.candidates, found.message) == (False, {}, "")


@pytest.mark.parametrize(
    ("priority", "ending"),
    [
        pytest.param(99, "", id="a node was found"),
        pytest.param(
            100,
            " no new claims to deallocate, preemption: "
            "0/1 nodes are available: 1 No preemption victims found for incoming pod.",
            id="nobody could be evicted",
        ),
    ],
)
def test_the_event_tells_of_an_attempt_in_vain_only(priority: int, ending: str) -> None:
    state, incoming = cluster(small("n"), started("other", priority, cpu=2).on("n")), PodInfo(TOP.view())
    decision = decide(state, PROFILE, incoming)
    told = with_preemption(decision, PROFILE, preempt(state, PROFILE, incoming, decision)).message
    assert told == f"0/1 nodes are available: 1 Insufficient cpu.{ending}"


# --- afterwards


def test_victims_are_marked_deleted_and_told_of_and_the_node_is_nominated() -> None:
    state = cluster(
        small("n"),
        started("low", 1).on("n").having("metadata.generation", 3),
        going(started("leaving", 2).on("n")),
        started("lesser", 5).having("status", {"nominatedNodeName": "n"}),
        started("equal", 100, cpu=0).having("status", {"nominatedNodeName": "n"}),
    )
    top = TOP.having("metadata.uid", "11-22").pod_having("schedulerName", "mine")
    found = attempt(state, top)
    condition = Condition(
        type="DisruptionTarget",
        status="True",
        observed_generation=3,
        reason="PreemptionByScheduler",
        message="mine: preempting to accommodate a higher priority pod",
    )
    eviction = Eviction(("default", "low"), condition, "Preempted by pod 11-22 on node n", "Preempted", "Preempting")
    assert found.victims.pods == keys("leaving", "low")
    assert aftermath(state, PodInfo(top.view()), found) == Aftermath("n", keys("lesser"), (eviction,))


def test_nothing_is_withdrawn_while_all_victims_are_leaving_anyway() -> None:
    waiting = started("lesser", 5).having("status", {"nominatedNodeName": "n"})
    state = cluster(small("n"), going(started("low", 1, cpu=2).on("n")), waiting)
    top = PodInfo(TOP.view())
    assert aftermath(state, top, attempt(state, TOP)) == Aftermath("n")
    assert [each.key for each in clear_lower_nominations(state, top, "n")] == list(keys("lesser"))


@pytest.mark.parametrize(
    ("policy", "nomination"),
    [
        pytest.param("Never", None, id="a pod that may not evict keeps its nomination"),
        pytest.param("PreemptLowerPriority", "", id="a pod that found nobody loses it"),
    ],
)
def test_a_nomination_after_an_attempt_in_vain(policy: str, nomination: str | None) -> None:
    state, top = cluster(small("n", 1)), TOP.pod_having("preemptionPolicy", policy)
    assert aftermath(state, PodInfo(top.view()), attempt(state, top)) == Aftermath(nomination)


# --- what always holds


@st.composite
def crowded(draw: st.DrawFn) -> tuple[ClusterState, PodManifest]:
    """Nodes that are full of pods, budgets, and a pod that wants half a node."""
    objects: list[NodeManifest | PodManifest | BudgetManifest] = [
        budget(app, draw(st.integers(0, 2)), app=app) for app in ("web", "db")
    ]
    for place in range(draw(st.integers(1, 4))):
        objects.append(small(f"n{place}", 4))
        for index in range(draw(st.integers(3, 7))):
            made = started(f"p{place}-{index}", draw(st.integers(-2, 6)), draw(st.integers(1, 5)), cpu=1)
            objects.append(made.labelled(app=draw(st.sampled_from(["web", "db", "none"]))).on(f"n{place}"))
    incoming = started("top", draw(st.integers(0, 6)), cpu=draw(st.integers(2, 4)))
    return cluster(*objects), incoming.apart_from(app="db") if draw(st.booleans()) else incoming


def fits_without(state: ClusterState, incoming: PodManifest, name: str, victims: Sequence[tuple[str, str]]) -> bool:
    """Whether the pod fits on a node once these are gone, found out by a decision of its own."""
    (place,) = [each for each in state.nodes if each.name == name]
    stay = [each.pod for key, each in place.pods.items() if key not in victims]
    return decide(ClusterState([place.node, *stay]), PROFILE, PodInfo(incoming.view())).outcome is Outcome.SCHEDULED


@given(crowded())
def test_victims_are_lesser_and_enough_and_none_too_many(case: tuple[ClusterState, PodManifest]) -> None:
    state, incoming = case
    found = attempt(state, incoming)
    for name, victims in found.candidates.items():
        place = state.node(name)
        assert place is not None
        assert all(place.pods[key].priority < incoming.view().spec.priority for key in victims.pods)
        assert fits_without(state, incoming, name, victims.pods)
        for spared in victims.pods:
            assert not fits_without(state, incoming, name, [key for key in victims.pods if key != spared])
    for name in found.rejected:
        place = state.node(name)
        assert place is not None
        lesser = [key for key, each in place.pods.items() if each.priority < incoming.view().spec.priority]
        assert not fits_without(state, incoming, name, lesser)


@given(crowded())
def test_an_attempt_changes_nothing(case: tuple[ClusterState, PodManifest]) -> None:
    state, incoming = case
    before = [(each.name, each.step, dict(each.pods), dict(each.requested)) for each in state.nodes]
    first = attempt(state, incoming)
    assert before == [(each.name, each.step, dict(each.pods), dict(each.requested)) for each in state.nodes]
    assert attempt(state, incoming) == first
