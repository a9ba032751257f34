"""One decision: how far the search goes, whom it asks, how the choice is made."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.scheduling.cycle import decide, next_start, wanted
from bayplan.scheduling.decision import Decision, Outcome, TieRule
from bayplan.scheduling.framework import NodeScore, Plugin, Profile, Refusal
from bayplan.scheduling.pods import PodInfo
from bayplan.scheduling.profiles import KNOWN, assemble, default_enabled, default_profile
from bayplan.scheduling.state import ClusterState, NodeState
from bayplan.scheduling.ties import heap_winner
from bayplan.testing import node, pod
from bayplan.testing.nodes import NodeManifest
from bayplan.testing.pods import PodManifest

PROFILE = default_profile()
NAMES_IN = "affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution"


def cluster(*objects: NodeManifest | PodManifest) -> ClusterState:
    return ClusterState(each.view() for each in objects)


def info(manifest: PodManifest) -> PodInfo:
    return PodInfo(manifest.view())


def by_name(*names: str, base: PodManifest | None = None) -> PodManifest:
    """A pod that names the nodes it may run on."""
    terms = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [name]}]} for name in names]
    return (base or pod()).pod_having(NAMES_IN, {"nodeSelectorTerms": terms})


def nodes(count: int, *, cordoned: Sequence[int] = ()) -> ClusterState:
    made = [node(f"n{number:03}") for number in range(count)]
    return cluster(*(each.cordoned() if number in cordoned else each for number, each in enumerate(made)))


# --- how far the search goes


@pytest.mark.parametrize(
    ("count", "percentage", "enough"),
    [
        pytest.param(99, 5, 99, id="a small cluster is searched whole"),
        pytest.param(150, 5, 100, id="a hundred at least"),
        pytest.param(400, 100, 400, id="all, if it is said so"),
        pytest.param(400, 0, 188, id="47 percent of 400"),
        pytest.param(1000, 0, 420, id="42 percent of 1000"),
        pytest.param(5000, 0, 500, id="10 percent of 5000"),
        pytest.param(20000, 0, 1000, id="5 percent are the least"),
        pytest.param(0, 0, 0, id="none of none"),
    ],
)
def test_how_many_nodes_are_enough(count: int, percentage: int, enough: int) -> None:
    assert wanted(count, percentage) == enough


def test_the_search_ends_with_the_first_node_too_many_and_does_not_count_it() -> None:
    decision = decide(nodes(150, cordoned=[3, 50, 102, 110]), PROFILE, info(pod()))
    assert len(decision.feasible) == 100
    assert [*decision.refusals] == ["n003", "n050", "n102"]
    assert decision.evaluated == 103
    assert next_start(decision) == 103


def test_the_next_search_begins_there_and_wraps_round() -> None:
    decision = decide(nodes(150), PROFILE, info(pod()), start=103)
    assert decision.feasible[0] == "n103"
    assert decision.feasible[-1] == "n052"
    assert next_start(decision) == 53


def test_a_failed_search_moves_the_start_too() -> None:
    decision = decide(nodes(4), PROFILE, info(pod().requests(cpu=99)), start=3)
    assert (decision.outcome, next_start(decision)) == (Outcome.UNSCHEDULABLE, 3)
    named = decide(nodes(4), PROFILE, info(by_name("n002", base=pod().requests(cpu=99))), start=3)
    assert (named.evaluated, next_start(named)) == (1, 0)


def test_without_scores_one_node_is_enough() -> None:
    decision = decide(nodes(5), msgspec.structs.replace(PROFILE, scorers=()), info(pod()), start=2)
    assert (decision.node, decision.rule, decision.feasible) == ("n002", TieRule.ONLY, ("n002",))


# --- whom it asks


def test_a_gated_pod_is_not_decided() -> None:
    decision = decide(nodes(2), PROFILE, info(pod().gated("a.example/x").gated("a.example/y")))
    assert decision.outcome is Outcome.GATED
    assert decision.whole == Refusal(
        "SchedulingGates", ("waiting for scheduling gates: [a.example/x a.example/y]",), hopeless=True
    )
    assert next_start(decision) == 0


def test_a_cluster_without_nodes_says_so() -> None:
    decision = decide(cluster(), PROFILE, info(pod()))
    assert (decision.outcome, decision.plugins) == (Outcome.UNSCHEDULABLE, ())
    assert decision.message == "no nodes available to schedule pods"
    assert next_start(decision) == 0


def nominated(name: str, **requests: Any) -> PodInfo:
    return info(pod().requests(**requests).having("status.nominatedNodeName", name))


def test_a_nominated_node_that_fits_is_taken_unseen_of_others_and_leaves_the_start() -> None:
    decision = decide(nodes(3), PROFILE, nominated("n001"), start=2)
    assert (decision.node, decision.rule, decision.scored) == ("n001", TieRule.NOMINATED, False)
    assert (decision.feasible, decision.refusals) == (("n001",), {})
    assert next_start(decision) == 2


def test_the_state_may_know_of_a_nomination_that_the_pod_does_not() -> None:
    state, asker = nodes(3), info(pod())
    state.nominate(asker, "n002")
    assert decide(state, PROFILE, asker).node == "n002"


@pytest.mark.parametrize("name", ["n001", "ghost"], ids=["one that does not fit", "one that is not there"])
def test_a_nominated_node_that_will_not_do_is_no_more_than_that(name: str) -> None:
    decision = decide(nodes(3, cordoned=[1]), PROFILE, nominated(name))
    assert decision.feasible == ("n000", "n002")
    assert [*decision.refusals] == ["n001"]


def test_those_who_wait_for_a_node_count_on_it_already() -> None:
    state = cluster(node("a").offers(cpu=2), node("b").offers(cpu=4))
    state.nominate(info(pod("waiting").requests(cpu=1)), "a")
    decision = decide(state, PROFILE, info(pod().requests(cpu=2)))
    assert decision.node == "b"
    assert decision.refusals["a"].reasons == ("Insufficient cpu",)


ELSEWHERE = Refusal("", ("node(s) didn't satisfy plugin(s) [NodeAffinity]",), hopeless=True)


def test_only_the_nodes_that_are_named_are_asked() -> None:
    decision = decide(nodes(4, cordoned=[1, 3]), PROFILE, info(by_name("n001", "n002", "ghost")))
    assert decision.node == "n002"
    assert decision.refusals["n000"] == decision.refusals["n003"] == ELSEWHERE
    assert decision.refusals["n001"].plugin == "NodeUnschedulable"
    assert (decision.evaluated, decision.plugins) == (2, ("NodeAffinity", "NodeUnschedulable"))


def test_among_named_nodes_upstream_chooses_at_random() -> None:
    decision = decide(nodes(4), PROFILE, info(by_name("n001", "n003")))
    assert decision.any_of == decision.best == ("n001", "n003")
    assert decision.node in decision.any_of


def test_a_nominated_node_that_is_not_named_keeps_its_own_refusal() -> None:
    asker = by_name("n000").having("status.nominatedNodeName", "n001")
    decision = decide(nodes(3, cordoned=[1]), PROFILE, info(asker))
    assert decision.refusals["n001"].plugin == "NodeUnschedulable"
    assert decision.refusals["n002"] == ELSEWHERE


def test_names_that_contradict_each_other_turn_all_nodes_down_at_once() -> None:
    fields = [{"key": "metadata.name", "operator": "In", "values": [name]} for name in ("n000", "n001")]
    asker = pod().pod_having(NAMES_IN, {"nodeSelectorTerms": [{"matchFields": fields}]})
    decision = decide(nodes(2), PROFILE, info(asker), start=1)
    assert decision.whole == Refusal("NodeAffinity", ("pod affinity terms conflict",), hopeless=True)
    assert decision.fit_error == "0/2 nodes are available: pod affinity terms conflict."
    assert (decision.plugins, next_start(decision)) == (("NodeAffinity",), 1)


# --- how the choice is made


class Points(Plugin):
    """Gives each node the points that its label says."""

    name = "Points"

    def score(self, pod: PodInfo, state: ClusterState, nodes: Sequence[NodeState]) -> NodeScore:
        return _Points()


class _Points(NodeScore):
    def score(self, node: NodeState) -> int:
        return int(node.labels["points"])

    def normalise(self, nodes: Sequence[NodeState], scores: list[int]) -> list[int]:
        return [10 * score for score in scores]


def scored(*points: int) -> Decision:
    state = cluster(*(node(f"n{i}").labelled(points=str(each)) for i, each in enumerate(points)))
    return decide(state, Profile("s", (), (), ((Points(), 2), (PROFILE.scorers[-1][0], 1))), info(pod()))


def test_a_plugins_points_are_normalised_and_weighed() -> None:
    decision = scored(1, 4, 3)
    assert decision.scores["n1"] == {"Points": 80, "ImageLocality": 0}
    assert (decision.node, decision.rule, decision.total("n1")) == ("n1", TieRule.BEST, 80)


@given(st.lists(st.integers(0, 2), min_size=2, max_size=20))
def test_of_equals_the_top_of_the_heap_is_taken(points: list[int]) -> None:
    decision = scored(*points)
    assert decision.node == f"n{heap_winner(points)}"
    assert decision.best == tuple(f"n{i}" for i, each in enumerate(points) if each == max(points))
    assert decision.rule is (TieRule.BEST if len(decision.best) == 1 else TieRule.HEAP)


def test_a_node_without_rivals_is_scored_only_for_those_who_want_to_know() -> None:
    state = nodes(3, cordoned=[0, 2])
    asked, plain = (decide(state, PROFILE, info(pod()), score_single=each) for each in (True, False))
    assert (asked.rule, asked.scored, asked.best) == (TieRule.ONLY, False, ("n001",))
    assert [*asked.scores["n001"]] == ["TaintToleration", "NodeResourcesFit", "DynamicResources", "ImageLocality"]
    assert plain.scores == {}
    assert msgspec.structs.replace(asked, scores={}) == plain


# --- profiles


def test_the_default_profile_is_upstreams() -> None:
    assert [plugin.name for plugin in PROFILE.gates] == ["SchedulingGates", "DynamicResources"]
    assert " ".join(plugin.name for plugin in PROFILE.filters) == (
        "NodeUnschedulable NodeName TaintToleration NodeAffinity NodePorts NodeResourcesFit VolumeRestrictions "
        "NodeVolumeLimits VolumeBinding VolumeZone PodTopologySpread InterPodAffinity DynamicResources "
        "NodeDeclaredFeatures"
    )
    assert {plugin.name: weight for plugin, weight in PROFILE.scorers} == {
        "TaintToleration": 3, "NodeAffinity": 2, "NodeResourcesFit": 1, "VolumeBinding": 1, "PodTopologySpread": 2,
        "InterPodAffinity": 2, "DynamicResources": 2, "NodeResourcesBalancedAllocation": 1, "ImageLocality": 1,
    }  # fmt: skip
    assert PROFILE.claims
    assert PROFILE.preemption is not None


@pytest.mark.parametrize("known", [each for each in KNOWN if each.make and each.args], ids=lambda known: known.name)
def test_arguments_reach_their_plugin(known: Any) -> None:
    profile = default_profile(arguments={known.name: known.args()})
    assert known.name in [plugin.name for plugin, _ in profile.scorers]


def test_what_is_not_enabled_takes_no_part() -> None:
    enabled = default_enabled() | {"postFilter": [], "score": [("ImageLocality", 7)]}
    profile = assemble("mine", enabled)
    assert (profile.preemption, profile.claims) == (None, False)
    assert [(plugin.name, weight) for plugin, weight in profile.scorers] == [("ImageLocality", 7)]
    assert profile.filters != ()
