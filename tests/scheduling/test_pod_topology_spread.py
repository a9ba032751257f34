"""Topology spread: hard constraints refuse, soft ones score, and the system spreads what Services select."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.cluster.kinds import REPLICATION_CONTROLLER, SERVICE
from bayplan.model.affinity import TopologySpreadConstraint
from bayplan.scheduling.arguments import PodTopologySpreadArgs
from bayplan.scheduling.framework import Refusal
from bayplan.scheduling.plugins.pod_topology_spread import PodTopologySpread
from bayplan.scheduling.plugins.pod_topology_spread.scoring import rounded
from bayplan.scheduling.pods import PodInfo
from bayplan.scheduling.state import ClusterState
from bayplan.testing.builder import manifest
from bayplan.testing.nodes import NodeManifest, node
from bayplan.testing.pods import PodManifest, pod
from bayplan.testing.workloads import replica_set

ZONE = "topology.kubernetes.io/zone"
HOST = "kubernetes.io/hostname"
UNEVEN = Refusal("PodTopologySpread", ("node(s) didn't match pod topology spread constraints",))
NO_LABEL = Refusal(
    "PodTopologySpread",
    ("node(s) didn't match pod topology spread constraints (missing required label)",),
    hopeless=True,
)


def zoned(name: str, zone: str) -> NodeManifest:
    return node(name).labelled({ZONE: zone})


def placed(name: str, where: str, **labels: str) -> PodManifest:
    return pod(name).labelled(labels or {"app": "web"}).on(where)


def web(name: str = "new") -> PodManifest:
    return pod(name).labelled(app="web")


def constraint(**fields: Any) -> dict[str, Any]:
    given = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule"}
    return {**given, "labelSelector": {"matchLabels": {"app": "web"}}, **fields}


def asking(*constraints: dict[str, Any]) -> PodManifest:
    return web().having("spec.topologySpreadConstraints", list(constraints))


THREE = (zoned("a1", "a"), zoned("a2", "a"), zoned("b1", "b"))


def verdicts(incoming: PodManifest, *objects: Any, args: PodTopologySpreadArgs | None = None) -> dict[str, str]:
    state = ClusterState(each.view() for each in objects)
    plugin = PodTopologySpread(args) if args else PodTopologySpread()
    found = plugin.filter(PodInfo(incoming.view()), state)
    if found is None:
        return {"": "skipped"}
    names = {None: "fits", UNEVEN: "uneven", NO_LABEL: "no label"}
    return {each.name: names[found.check(each)] for each in state.nodes}


def scores(incoming: PodManifest, *objects: Any, args: PodTopologySpreadArgs | None = None) -> dict[str, int] | None:
    state = ClusterState(each.view() for each in objects)
    plugin = PodTopologySpread(args) if args else PodTopologySpread()
    found = plugin.score(PodInfo(incoming.view()), state, state.nodes)
    if found is None:
        return None
    raw = [found.score(each) for each in state.nodes]
    return dict(zip((each.name for each in state.nodes), found.normalise(state.nodes, raw), strict=True))


FITS_ALL = {"a1": "fits", "a2": "fits", "b1": "fits"}
ONLY_B = {"a1": "uneven", "a2": "uneven", "b1": "fits"}


@pytest.mark.parametrize(
    ("incoming", "objects", "expected"),
    [
        pytest.param(web(), THREE, {"": "skipped"}, id="a pod without constraints is not asked about"),
        pytest.param(
            asking(constraint(whenUnsatisfiable="ScheduleAnyway")), THREE, {"": "skipped"},
            id="soft constraints do not filter",
        ),
        pytest.param(asking(constraint()), THREE, FITS_ALL, id="the first pod of its kind goes anywhere"),
        pytest.param(
            asking(constraint()), (*THREE, placed("p", "a1")), ONLY_B, id="a domain that is one ahead takes no more"
        ),
        pytest.param(
            asking(constraint(maxSkew=2)), (*THREE, placed("p", "a1")), FITS_ALL, id="a larger skew allows more"
        ),
        pytest.param(
            asking(constraint(labelSelector={"matchLabels": {"app": "db"}})),
            (*THREE, placed("p", "a1", app="db")),
            FITS_ALL,
            id="a pod that does not match its own selector does not add to the skew",
        ),
        pytest.param(
            asking(constraint()),
            (*THREE, placed("p", "a1").having("metadata.deletionTimestamp", "2024-01-01T00:00:00Z")),
            FITS_ALL,
            id="terminating pods are not counted",
        ),
        pytest.param(
            asking(constraint()),
            (*THREE, pod("p", "other").labelled(app="web").on("a1")),
            FITS_ALL,
            id="pods of other namespaces are not counted",
        ),
        pytest.param(
            asking(constraint(minDomains=3)), THREE, FITS_ALL, id="with too few domains the least is 0, which it is"
        ),
        pytest.param(
            asking(constraint(minDomains=3)),
            (*THREE, placed("p", "a1"), placed("q", "b1")),
            {"a1": "uneven", "a2": "uneven", "b1": "uneven"},
            id="with too few domains the least is 0, though each holds one",
        ),
        pytest.param(
            asking(constraint(labelSelector={})),
            (*THREE, placed("p", "a1"), placed("q", "a1")),
            FITS_ALL,
            id="an empty selector counts nobody",
        ),
        pytest.param(
            asking(constraint(labelSelector={}, maxSkew=1, minDomains=9)),
            THREE,
            FITS_ALL,
            id="an empty selector matches the pod itself, which alone is within the skew",
        ),
        pytest.param(
            asking(constraint()),
            (*THREE, node("c1"), placed("p", "c1")),
            {**FITS_ALL, "c1": "no label"},
            id="a node without the label is refused, and its pods are not counted",
        ),
        pytest.param(
            asking(constraint()).selecting({ZONE: "a"}),
            (*THREE, placed("p", "a1")),
            FITS_ALL,
            id="domains that the node selector excludes are not the emptiest",
        ),
        pytest.param(
            asking(constraint(nodeAffinityPolicy="Ignore")).selecting({ZONE: "a"}),
            (*THREE, placed("p", "a1")),
            ONLY_B,
            id="unless the policy says to ignore it",
        ),
        pytest.param(
            asking(constraint()),
            (THREE[0], THREE[1], THREE[2].tainted("gpu"), placed("p", "a1")),
            ONLY_B,
            id="taints do not matter by default",
        ),
        pytest.param(
            asking(constraint(nodeTaintsPolicy="Honor")),
            (THREE[0], THREE[1], THREE[2].tainted("gpu"), placed("p", "a1")),
            FITS_ALL,
            id="unless the policy says to honour them",
        ),
        pytest.param(
            asking(constraint(matchLabelKeys=["rev", "absent"])).labelled(rev="2"),
            (*THREE, placed("p", "a1", app="web", rev="1")),
            FITS_ALL,
            id="matchLabelKeys narrow the selector to the pod's own values",
        ),
        pytest.param(
            asking(constraint(matchLabelKeys=["rev"])).labelled(rev="2"),
            (*THREE, placed("p", "a1", app="web", rev="2")),
            ONLY_B,
            id="matchLabelKeys still count pods of the same value",
        ),
        pytest.param(
            asking(constraint(), constraint(topologyKey=HOST)),
            (*THREE, placed("p", "a1"), placed("q", "b1")),
            {"a1": "uneven", "a2": "fits", "b1": "uneven"},
            id="all constraints must hold",
        ),
    ],
)  # fmt: skip
def test_hard_constraints(incoming: PodManifest, objects: tuple[Any, ...], expected: dict[str, str]) -> None:
    assert verdicts(incoming, *objects) == expected


SOFT = {"whenUnsatisfiable": "ScheduleAnyway"}
BY_LIST = PodTopologySpreadArgs(
    default_constraints=(TopologySpreadConstraint(max_skew=1, topology_key=ZONE, when_unsatisfiable="ScheduleAnyway"),),
    defaulting_type="List",
)
WEB_SERVICE = manifest(SERVICE, "web", spec={"selector": {"app": "web"}})


@pytest.mark.parametrize(
    ("incoming", "objects", "expected"),
    [
        pytest.param(web(), THREE, None, id="a pod that nothing selects is not spread"),
        pytest.param(asking(constraint()), THREE, None, id="hard constraints do not score, nor does the system then"),
        pytest.param(
            asking(constraint(**SOFT)), THREE, {"a1": 100, "a2": 100, "b1": 100}, id="where nobody is, all are best"
        ),
        pytest.param(
            # ln(2 zones + 2) = 1.386: two pods give round(2.77) = 3, one gives 1; 100*(3+1-s)/3
            asking(constraint(**SOFT)),
            (*THREE, placed("p", "a1"), placed("q", "a2"), placed("r", "b1")),
            {"a1": 33, "a2": 33, "b1": 100},
            id="fewer pods in the zone are better",
        ),
        pytest.param(
            asking(constraint(**SOFT)),
            (*THREE, node("c1"), placed("p", "b1")),
            {"a1": 100, "a2": 100, "b1": 0, "c1": 0},
            id="a node without the label gets nothing",
        ),
        pytest.param(
            web(),
            (WEB_SERVICE, *THREE, placed("p", "a1")),
            # a1: 1*ln 5 + 2 + 1*ln 4 + 4 = 9.0; a2: 0 + 2 + ln 4 + 4 = 7.4; b1: 6
            {"a1": 66, "a2": 88, "b1": 100},
            id="what a Service selects is spread by host and zone",
        ),
        pytest.param(
            web(),
            (WEB_SERVICE, *THREE, node("c1"), placed("p", "a1")),
            # three domains with that of no name: a1: ln 6 + 2 + ln 5 + 4 = 9.4; a2: 7.6; b1: 6; c1: 2
            {"a1": 22, "a2": 33, "b1": 55, "c1": 100},
            id="a node without a zone is spread by host alone, and makes a domain of no name",
        ),
    ],
)
def test_soft_constraints(incoming: PodManifest, objects: tuple[Any, ...], expected: dict[str, int] | None) -> None:
    assert scores(incoming, *objects) == expected


def owned(kind: str, api_version: str = "apps/v1") -> PodManifest:
    reference = {"apiVersion": api_version, "kind": kind, "name": "web", "uid": "u", "controller": True}
    return web().having("metadata.ownerReferences", [reference])


@pytest.mark.parametrize(
    ("incoming", "owner"),
    [
        pytest.param(owned("ReplicaSet"), replica_set("web"), id="a ReplicaSet"),
        pytest.param(
            owned("ReplicationController", "v1"),
            manifest(REPLICATION_CONTROLLER, "web", spec={"selector": {"app": "web"}}),
            id="a ReplicationController",
        ),
    ],
)
def test_controllers_tell_who_the_like_are(incoming: PodManifest, owner: Any) -> None:
    assert scores(incoming, owner, *THREE, placed("p", "a1")) == {"a1": 66, "a2": 88, "b1": 100}
    assert scores(incoming, *THREE, placed("p", "a1")) is None


def test_default_constraints_of_a_profile_replace_the_systems() -> None:
    objects = (WEB_SERVICE, *THREE, node("c1"), placed("p", "a1"))
    assert scores(web(), *objects, args=BY_LIST) == {"a1": 0, "a2": 0, "b1": 100, "c1": 0}


def test_a_copy_supposes_without_changing_the_original() -> None:
    state = ClusterState(each.view() for each in (*THREE, placed("p", "a1")))
    found = PodTopologySpread().filter(PodInfo(asking(constraint()).view()), state)
    assert found is not None
    a1 = state.nodes[0]
    supposed = found.copy()
    supposed.remove(a1.pods["default", "p"], a1)
    assert supposed.check(a1) is None
    assert found.check(a1) == UNEVEN
    supposed.add(a1.pods["default", "p"], a1)
    assert supposed.check(a1) == UNEVEN


@given(st.lists(st.sampled_from(["a1", "a2", "b1"]), max_size=8))
def test_adding_pods_one_by_one_is_counting_them_at_once(places: list[str]) -> None:
    incoming = PodInfo(asking(constraint(), constraint(topologyKey=HOST)).view())
    pods = [placed(f"p{i}", where) for i, where in enumerate(places)]
    empty_state = ClusterState(each.view() for each in THREE)
    counted_state = ClusterState([*(each.view() for each in THREE), *(each.view() for each in pods)])
    counted = PodTopologySpread().filter(incoming, counted_state)
    grown = PodTopologySpread().filter(incoming, empty_state)
    assert counted
    assert grown
    for each, where in zip(pods, places, strict=True):
        found = empty_state.node(where)
        assert found
        grown.add(PodInfo(each.view()), found)
    assert [counted.check(each) for each in counted_state.nodes] == [grown.check(each) for each in empty_state.nodes]


@pytest.mark.parametrize(
    ("score", "expected"),
    [(0.0, 0), (0.49999999999999994, 0), (0.5, 1), (1.5, 2), (2.5, 3), (4503599627370495.5, 4503599627370496)],
)
def test_halves_go_up_as_in_go(score: float, expected: int) -> None:
    assert rounded(score) == expected
