"""Affinity between pods: what is required refuses, what is preferred scores."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.scheduling.arguments import InterPodAffinityArgs
from bayplan.scheduling.framework import Refusal
from bayplan.scheduling.plugins.inter_pod_affinity import InterPodAffinity
from bayplan.scheduling.pods import PodInfo
from bayplan.scheduling.state import ClusterState
from bayplan.testing.nodes import node
from bayplan.testing.pods import PodManifest, pod
from bayplan.testing.policies import namespace

ZONE = "topology.kubernetes.io/zone"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
NAMES = {
    None: "fits",
    Refusal("InterPodAffinity", ("node(s) didn't match pod affinity rules",), hopeless=True): "not near",
    Refusal("InterPodAffinity", ("node(s) didn't match pod anti-affinity rules",)): "not away",
    Refusal("InterPodAffinity", ("node(s) didn't satisfy existing pods anti-affinity rules",)): "not wanted",
}
THREE = tuple(node(name).labelled({ZONE: name[0]}) for name in ("a1", "a2", "b1"))
NODES = [each.view() for each in THREE]
SPACES = (namespace("default"), namespace("shop").labelled(team="shop"), namespace("bare"))


def term(app: str = "web", **fields: Any) -> dict[str, Any]:
    return {"topologyKey": ZONE, "labelSelector": {"matchLabels": {"app": app}}, **fields}


def weighted(weight: int, app: str = "web", **fields: Any) -> dict[str, Any]:
    return {"weight": weight, "podAffinityTerm": term(app, **fields)}


def asking(side: str, rules: str, *terms: dict[str, Any], name: str = "new", app: str = "db") -> PodManifest:
    return pod(name).labelled(app=app).having(f"spec.affinity.{side}.{rules}", list(terms))


def near(*terms: dict[str, Any], app: str = "db") -> PodManifest:
    return asking("podAffinity", REQUIRED, *terms, app=app)


def away(*terms: dict[str, Any], name: str = "new", app: str = "db") -> PodManifest:
    return asking("podAntiAffinity", REQUIRED, *terms, name=name, app=app)


def web(where: str, space: str = "default", name: str = "web") -> PodManifest:
    return pod(name, space).labelled(app="web").on(where)


def verdicts(incoming: PodManifest, *objects: Any) -> dict[str, str]:
    state = ClusterState(each.view() for each in objects)
    found = InterPodAffinity().filter(PodInfo(incoming.view()), state)
    return {each.name: NAMES[found.check(each)] for each in state.nodes} if found else {"": "skipped"}


def scores(incoming: PodManifest, *objects: Any, args: InterPodAffinityArgs | None = None) -> dict[str, int] | None:
    state = ClusterState(each.view() for each in objects)
    plugin = InterPodAffinity(args) if args else InterPodAffinity()
    found = plugin.score(PodInfo(incoming.view()), state, state.nodes)
    if found is None:
        return None
    raw = [found.score(each) for each in state.nodes]
    return dict(zip((each.name for each in state.nodes), found.normalise(state.nodes, raw), strict=True))


def everywhere(verdict: str) -> dict[str, str]:
    return dict.fromkeys(("a1", "a2", "b1"), verdict)


ONLY_A = {"a1": "fits", "a2": "fits", "b1": "not near"}
NOT_A = {"a1": "not away", "a2": "not away", "b1": "fits"}
UNWANTED_IN_A = {"a1": "not wanted", "a2": "not wanted", "b1": "fits"}
SHOP: dict[str, Any] = {"namespaceSelector": {"matchLabels": {"team": "shop"}}}
NOT_SHOP: dict[str, Any] = {
    "namespaceSelector": {"matchExpressions": [{"key": "team", "operator": "NotIn", "values": ["shop"]}]}
}


@pytest.mark.parametrize(
    ("incoming", "objects", "expected"),
    [
        pytest.param(pod("new"), (web("a1"),), {"": "skipped"}, id="where nobody has terms, nobody is asked"),
        pytest.param(near(term()), (web("a1"),), ONLY_A, id="affinity leads to the domain of those wanted"),
        pytest.param(near(term()), (), everywhere("not near"), id="affinity to pods that are not there fits nowhere"),
        pytest.param(
            near(term(), app="web"), (), everywhere("fits"), id="the first of its kind may go anywhere"
        ),
        pytest.param(
            near(term(), app="web"), (web("a1"),), ONLY_A, id="once one of its kind is there, it must follow"
        ),
        pytest.param(
            near(term(topologyKey="rack"), app="web"), (), everywhere("not near"),
            id="even the first needs a node with the label",
        ),
        pytest.param(
            near(term(), term("db")), (web("a1"), web("b1", name="w2").labelled(app="db")), everywhere("not near"),
            id="all terms must match one and the same pod",
        ),
        pytest.param(near(term()), (web("a1", "shop"),), everywhere("not near"), id="a term speaks of its namespace"),
        pytest.param(
            near(term(namespaces=["shop"])), (web("a1", "shop"),), ONLY_A, id="or of the namespaces that it names"
        ),
        pytest.param(near(term(**SHOP)), (web("a1", "shop"),), ONLY_A, id="or of those that it selects"),
        pytest.param(
            near(term(**NOT_SHOP)), (web("a1", "shop"),), ONLY_A,
            id="a selector that an unlabelled namespace meets speaks of every namespace",
        ),
        pytest.param(
            near(term(namespaceSelector={})), (web("a1", "shop"),), ONLY_A, id="an empty one speaks of all, too"
        ),
        pytest.param(away(term()), (web("a1"),), NOT_A, id="anti-affinity leads away"),
        pytest.param(away(term()), (), everywhere("fits"), id="anti-affinity to nobody allows all"),
        pytest.param(
            away(term(topologyKey="rack")), (web("a1"),), everywhere("fits"),
            id="anti-affinity over a label that no node has allows all",
        ),
        pytest.param(
            pod("new").labelled(app="web"), (away(term(), name="old").on("a1"),), UNWANTED_IN_A,
            id="those that are there are heard, too",
        ),
        pytest.param(
            pod("new"), (away(term(), name="old").on("a1"),), {"": "skipped"}, id="unless they mean somebody else"
        ),
        pytest.param(
            pod("new", "shop").labelled(app="web"), (away(term(**SHOP), name="old").on("a1"),), UNWANTED_IN_A,
            id="their namespace selector is matched against the pod's namespace",
        ),
        pytest.param(
            pod("new", "shop").labelled(app="web"), (away(term(**NOT_SHOP), name="old").on("a1"),), {"": "skipped"},
            id="and only against that one",
        ),
        pytest.param(
            away(term(), app="web"), (away(term(), name="old", app="web").on("a1"),), NOT_A,
            id="of two reasons the pod's own is told",
        ),
    ],
)  # fmt: skip
def test_required_terms(incoming: PodManifest, objects: tuple[Any, ...], expected: dict[str, str]) -> None:
    assert verdicts(incoming, *SPACES, *THREE, *objects) == expected


def likes(*terms: dict[str, Any], name: str = "new") -> PodManifest:
    return asking("podAffinity", PREFERRED, *terms, name=name)


def dislikes(*terms: dict[str, Any], name: str = "new") -> PodManifest:
    return asking("podAntiAffinity", PREFERRED, *terms, name=name)


@pytest.mark.parametrize(
    ("incoming", "objects", "expected"),
    [
        pytest.param(pod("new"), (web("a1"),), None, id="where nobody has terms, nothing is scored"),
        pytest.param(likes(weighted(5)), (), None, id="nor where nobody matches them"),
        pytest.param(likes(weighted(5)), (web("a1"),), {"a1": 100, "a2": 100, "b1": 0}, id="liked pods attract"),
        pytest.param(dislikes(weighted(5)), (web("a1"),), {"a1": 0, "a2": 0, "b1": 100}, id="disliked pods repel"),
        pytest.param(
            likes(weighted(3), weighted(2, topologyKey="kubernetes.io/hostname")),
            (web("a1"),),
            {"a1": 100, "a2": 60, "b1": 0},
            id="the weights of all terms add up",
        ),
        pytest.param(
            pod("new").labelled(app="web"),
            (likes(weighted(5), name="old").on("b1"),),
            {"a1": 0, "a2": 0, "b1": 100},
            id="what those there like counts as well",
        ),
        pytest.param(
            pod("new").labelled(app="web"),
            (asking("podAffinity", REQUIRED, term(), name="old").on("b1"),),
            {"a1": 0, "a2": 0, "b1": 100},
            id="what they require counts as a wish",
        ),
        pytest.param(
            dislikes(weighted(5)).labelled(app="web"),
            (likes(weighted(5), name="old").labelled(app="web").on("b1"),),
            {"a1": 0, "a2": 0, "b1": 0},
            id="wishes that cancel out leave a score of 0",
        ),
        pytest.param(
            likes(weighted(5, **NOT_SHOP)),
            (web("a1", "shop"),),
            {"a1": 100, "a2": 100, "b1": 0},
            id="a selector that an unlabelled namespace meets speaks of every namespace here, too",
        ),
    ],
)
def test_preferred_terms(incoming: PodManifest, objects: tuple[Any, ...], expected: dict[str, int] | None) -> None:
    assert scores(incoming, *SPACES, *THREE, *objects) == expected


def test_the_weight_of_required_terms_is_an_argument() -> None:
    objects = (*THREE, asking("podAffinity", REQUIRED, term(), name="old").on("b1"))
    assert scores(pod("new").labelled(app="web"), *objects, args=InterPodAffinityArgs(0)) is None


def test_the_wishes_of_others_can_be_ignored_for_pods_that_have_none() -> None:
    args = InterPodAffinityArgs(ignore_preferred_terms_of_existing_pods=True)
    old = likes(weighted(5), name="old").on("b1")
    assert scores(pod("new").labelled(app="web"), *THREE, old, args=args) is None
    heard = {"a1": 0, "a2": 0, "b1": 0}
    assert scores(likes(weighted(5)).labelled(app="web"), *THREE, old, web("a1"), args=args) == heard


def test_a_copy_supposes_without_changing_the_original() -> None:
    state = ClusterState([*NODES, web("a1").view()])
    found = InterPodAffinity().filter(PodInfo(away(term()).view()), state)
    assert found
    a1, a2, b1 = (state.node(name) for name in ("a1", "a2", "b1"))
    assert a1
    assert a2
    assert b1
    supposed = found.copy()
    supposed.remove(a1.pods["default", "web"], a1)
    supposed.add(a1.pods["default", "web"], b1)
    assert [NAMES[supposed.check(each)] for each in (a1, a2, b1)] == ["fits", "fits", "not away"]
    assert [NAMES[found.check(each)] for each in (a1, a2, b1)] == ["not away", "not away", "fits"]


def test_a_pod_that_leaves_takes_its_terms_along() -> None:
    old = away(term(), name="old").on("a1").view()
    state = ClusterState([*NODES, old])
    incoming = PodInfo(pod("new").labelled(app="web").view())
    assert InterPodAffinity().filter(incoming, state)
    state.drop(old)
    assert InterPodAffinity().filter(incoming, state) is None


@given(st.lists(st.integers(-500, 500), min_size=1, max_size=20))
def test_normalised_scores_keep_their_order(raw: list[int]) -> None:
    state = ClusterState([*NODES, web("a1").view()])
    found = InterPodAffinity().score(PodInfo(likes(weighted(5)).view()), state, state.nodes)
    assert found
    result = found.normalise(state.nodes, raw)
    assert all(0 <= each <= 100 for each in result)
    ranked = [after for _, after in sorted(zip(raw, result, strict=True))]
    assert ranked == sorted(ranked)
