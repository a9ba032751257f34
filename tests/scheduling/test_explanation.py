"""Explanations: a placed pod compared with what would be decided now, a pending one with every refusal."""

from __future__ import annotations

from typing import Any

import pytest

from bayplan.model.policies import Event, EventSeries
from bayplan.scheduling.decision import Outcome
from bayplan.scheduling.explanation import Explanation, Plugin, Standing, Waiting, explain, waiting
from bayplan.scheduling.profiles import default_profile
from bayplan.scheduling.state import ClusterState
from bayplan.testing import Manifest, node, pod
from bayplan.testing.pods import PodManifest

PROFILE = default_profile()
SMALL = pod("web").requests(cpu=1, memory="1Gi")


def explained(wanted: PodManifest, *objects: Manifest[Any]) -> Explanation:
    return explain(ClusterState(each.view() for each in objects), PROFILE, wanted.view())


@pytest.mark.parametrize(
    ("wanted", "others", "standing"),
    [
        pytest.param(SMALL.on("n1"), [node("n1")], Standing.SAME, id="the only node"),
        pytest.param(SMALL.on("n1"), [node("n1"), node("n2")], Standing.SAME, id="it does not crowd itself"),
        pytest.param(SMALL.on("n2"), [node("n1"), node("n2")], Standing.TIED, id="the other of two equals"),
        pytest.param(
            SMALL.on("n1"),
            [node("n1"), node("n2"), pod("late").requests(cpu=2).on("n1")],
            Standing.BETTER,
            id="a pod came later to its node",
        ),
        pytest.param(
            SMALL.on("n1"), [node("n1").tainted("new"), node("n2")], Standing.UNFIT, id="its node was tainted since"
        ),
        pytest.param(SMALL.on("n1"), [node("n1").cordoned()], Standing.NOWHERE, id="its node was cordoned since"),
        pytest.param(SMALL.on("gone"), [node("n1")], Standing.UNFIT, id="its node is gone"),
    ],
)
def test_a_placed_pod_is_compared_with_the_decision_now(
    wanted: PodManifest, others: list[Manifest[Any]], standing: Standing
) -> None:
    assert explained(wanted, *others, wanted).standing is standing


def test_the_scores_of_each_plugin_add_up_and_the_chosen_node_stands_first() -> None:
    found = explained(SMALL, node("n1"), node("n2"), node("n3"), pod("a").requests(cpu=2).on("n2"))

    decision = found.decision
    assert found.ranked[0] == decision.node
    assert found.ranked[-1] == "n2"
    assert {*found.scorers} >= {"NodeResourcesFit", "TaintToleration"}
    for each in found.ranked:
        assert decision.total(each) == sum(decision.scores[each][plugin] for plugin in found.scorers)


def test_all_nodes_are_judged_however_many_there_are() -> None:
    assert len(explained(SMALL, *(node(f"n{number}") for number in range(150))).decision.feasible) == 150


def test_a_pending_pod_is_told_every_refusal_of_every_node() -> None:
    found = explained(
        pod("big").requests(cpu=9).selecting(disk="ssd"),
        node("n1").tainted("gpu"),
        node("n2").labelled(disk="ssd"),
        node("n3").cordoned().labelled(disk="ssd").offers(cpu=16),
    )

    assert {name: [each.plugin for each in refusals] for name, refusals in found.refusals.items()} == {
        "n1": ["TaintToleration", "NodeAffinity", "NodeResourcesFit"],
        "n2": ["NodeResourcesFit"],
        "n3": ["NodeUnschedulable"],
    }
    assert found.decision.message.startswith("0/3 nodes are available: 1 Insufficient cpu, 1 node(s) had untolerated")
    assert found.turned_away[0] == Plugin("NodeResourcesFit", 1, 2, {"Insufficient cpu": 2})
    assert [str(each.changes[0]) for each in found.answer.proposals] == [
        "it asked for 4 cpu instead of 9",
        "n3 were uncordoned",
        "there were one more node like n3 (16 cpu, 16Gi memory)",
    ]


def test_what_evicting_others_would_do_is_told() -> None:
    found = explained(
        pod("urgent").requests(cpu=4).pod_having("priority", 10), node("n1"), pod("old").requests(cpu=1).on("n1")
    )

    assert found.decision.preemption is not None
    assert found.decision.preemption.node == "n1"
    assert found.decision.preemption.victims.pods == (("default", "old"),)


def test_a_gated_pod_is_refused_by_no_node() -> None:
    found = explained(SMALL.gated("quota"), node("n1"))

    assert found.decision.outcome is Outcome.GATED
    assert found.refusals == {}
    assert found.answer.proposals[0].node == "n1"


def test_the_state_is_not_changed_by_explaining_a_pod_of_it() -> None:
    placed = SMALL.on("n1").view()
    state = ClusterState([node("n1").view(), placed])
    explain(state, PROFILE, placed)

    assert state.place_of(("default", "web")) == "n1"
    assert state.nodes[0].requested["cpu"] == 1000


def _event(reason: str, count: int, series: int = 0) -> Event:
    return Event(reason=reason, count=count, series=EventSeries(series) if series else None)


def test_the_queue_is_known_from_the_condition_and_the_events() -> None:
    refused = {"type": "PodScheduled", "status": "False", "lastTransitionTime": "2026-01-01T10:00:00Z", "message": "no"}
    fresh = SMALL.having("metadata.creationTimestamp", "2026-01-01T09:00:00Z")
    wanted = fresh.having("status", {"conditions": [refused]})
    events = [_event("FailedScheduling", 2), _event("FailedScheduling", 0, series=3), _event("Pulled", 9)]

    assert waiting(wanted.view(), events) == Waiting("2026-01-01T10:00:00Z", 5, "no")
    assert waiting(fresh.view()) == Waiting("2026-01-01T09:00:00Z")
