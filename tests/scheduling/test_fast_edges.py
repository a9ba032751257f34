"""Corners in which the columnar path must still decide as the readable plugins do, and what it may keep."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from bayplan.model.affinity import TopologySpreadConstraint
from bayplan.model.nodes import Node
from bayplan.model.pods import Pod
from bayplan.model.policies import Service
from bayplan.model.workloads import ReplicaSet
from bayplan.scheduling.arguments import PodTopologySpreadArgs
from bayplan.scheduling.cycle import decide, next_start
from bayplan.scheduling.fast import kept, tallies
from bayplan.scheduling.fast.scheduler import FastScheduler, is_columnar
from bayplan.scheduling.framework import Profile
from bayplan.scheduling.pods import PodInfo
from bayplan.scheduling.profiles import assemble, default_enabled, default_profile

ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def node(name: str, cpu: str = "8", memory: str = "32Gi", **labels: str) -> Node:
    offers = {"cpu": cpu, "memory": memory, "pods": "20"}
    named = {HOST: name} | {ZONE if key == "zone" else key: value for key, value in labels.items()}
    return msgspec.convert({"metadata": {"name": name, "labels": named}, "status": {"allocatable": offers}}, Node)


def pod(name: str, labels: dict[str, str] | None = None, *, cpu: str = "1", owner: str = "", **spec: Any) -> PodInfo:
    container = {"name": "main", "resources": {"requests": {"cpu": cpu, "memory": "1Gi"}}, **spec.pop("container", {})}
    meta: dict[str, Any] = {"name": name, "namespace": "default", "labels": labels or {}}
    if owner:
        meta["ownerReferences"] = [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": owner, "controller": True}]
    return PodInfo(msgspec.convert({"metadata": meta, "spec": {"containers": [container], **spec}}, Pod))


def without(point: str, *names: str) -> Profile:
    enabled = default_enabled()
    enabled[point] = [each for each in enabled[point] if names and each[0] not in names]
    return assemble("default-scheduler", enabled)


def check(fast: FastScheduler, profile: Profile, asked: PodInfo, *, times: int = 3) -> str:
    """The chosen node. Asked again and again: what is kept differs from what is worked out at first."""
    found = ""
    for _ in range(times):
        expected = decide(fast.state, profile, asked, fast.start)
        chosen = fast.choose(asked)
        found = chosen if isinstance(chosen, str) else chosen.node
        assert found == expected.node
        assert isinstance(chosen, str) or chosen == expected
        assert fast.start == next_start(expected)
    return found


def test_a_full_node_of_much_higher_raw_score_stays_full() -> None:
    profile = default_profile()
    fast = FastScheduler(profile)
    for each in (node("dear", "1", disk="ssd"), node("a", rack="1"), node("b")):
        fast.put_node(each)
    fast.put_pod(pod("here", cpu="1"), "dear")
    wishes = [
        {"weight": weight, "preference": {"matchExpressions": [{"key": key, "operator": "Exists"}]}}
        for key, weight in (("disk", 100), ("rack", 1))
    ]
    asked = pod("new", affinity={"nodeAffinity": {PREFERRED: wishes}})
    assert check(fast, profile, asked) == "a"
    fast.put_pod(pod("more", cpu="7500m"), "a")
    assert check(fast, profile, asked) == "b"


def test_a_search_that_began_behind_the_last_node_goes_round() -> None:
    profile = default_profile(percentage_of_nodes_to_score=50)
    fast = FastScheduler(profile)
    for number in range(250):
        fast.put_node(node(f"n{number:03}"))
    fast.start = 240
    for number in range(40):
        fast.drop_node(f"n{number:03}")
    check(fast, profile, pod("new"))
    fast.start = 215
    check(fast, profile, pod("too-big", cpu="64"))


@pytest.mark.parametrize(
    ("profile", "columnar"),
    [
        pytest.param(without("score"), True, id="nothing is scored, so that the first node will do"),
        pytest.param(without("filter", "PodTopologySpread"), False, id="spreading scores but does not filter"),
        pytest.param(without("filter", "InterPodAffinity"), False, id="affinity scores but does not filter"),
        pytest.param(without("score", "PodTopologySpread", "InterPodAffinity"), True, id="both filter, none scores"),
        pytest.param(
            assemble("heavy", default_enabled() | {"score": [("NodeResourcesFit", 1 << 40)]}),
            False,
            id="weights beyond the columns",
        ),
    ],
)
def test_profiles_with_plugins_left_out(profile: Profile, columnar: bool) -> None:
    assert is_columnar(profile) is columnar
    fast = FastScheduler(profile)
    for number in range(6):
        fast.put_node(node(f"n{number}", zone="ab"[number % 2]))
    near = {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": ZONE}
    for number in range(8):
        asked = pod(
            f"p{number}",
            {"app": "web"},
            affinity={"podAffinity": {PREFERRED: [{"weight": 9, "podAffinityTerm": near}]}},
            topologySpreadConstraints=[{**near, "maxSkew": 1, "whenUnsatisfiable": "ScheduleAnyway"}],
        )
        fast.put_pod(asked, check(fast, profile, asked))


@pytest.mark.parametrize(
    "special",
    [
        pytest.param({"cpu": "0"}, id="a node without CPU"),
        pytest.param({"memory": "64Ti"}, id="a node beyond the columns"),
    ],
)
def test_what_an_odd_node_is_told_holds_for_no_other(special: dict[str, str]) -> None:
    profile = default_profile()
    fast = FastScheduler(profile)
    for each in (node("odd", **special), node("plain"), node("last")):
        fast.put_node(each)
    check(fast, profile, pod("new", container={"resources": {"requests": {"cpu": "1", "example.com/gpu": "1"}}}))


def test_what_a_node_with_ports_is_told_holds_for_no_other() -> None:
    profile = default_profile()
    fast = FastScheduler(profile)
    ports = {"ports": [{"containerPort": 80, "hostPort": 80, "protocol": "TCP"}]}
    for name in ("busy", "free"):
        fast.put_node(node(name, "2"))
    fast.put_pod(pod("here", container=ports), "busy")
    fast.put_pod(pod("there"), "free")
    check(fast, profile, pod("new", cpu="2", container=ports))


def test_no_zone_and_an_empty_one_are_counted_together() -> None:
    profile = default_profile()
    fast = FastScheduler(profile)
    for each in (
        node("none-1"),
        node("none-2"),
        node("empty-1", zone=""),
        node("empty-2", zone=""),
        node("a", zone="a"),
    ):
        fast.put_node(each)
    service = {"metadata": {"name": "web", "namespace": "default"}, "spec": {"selector": {"app": "web"}}}
    fast.put(msgspec.convert(service, Service))
    for number in range(12):
        asked = pod(f"p{number}", {"app": "web"})
        fast.put_pod(asked, check(fast, profile, asked))


def test_whether_a_pod_is_one_of_its_own_like_is_told_apart() -> None:
    """A controller's pod may have lost the labels that it is selected by; hard defaults then count it differently."""
    hard = {"topologyKey": HOST, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}
    spread = msgspec.convert(hard, TopologySpreadConstraint)
    args = PodTopologySpreadArgs(default_constraints=(spread,), defaulting_type="List")
    profile = default_profile(arguments={"PodTopologySpread": args})
    fast = FastScheduler(profile)
    fast.put_node(node("small", "2"))
    fast.put_node(node("large", "64"))
    owner = {"metadata": {"name": "web", "namespace": "default"}, "spec": {"selector": {"matchLabels": {"app": "web"}}}}
    fast.put(msgspec.convert(owner, ReplicaSet))
    fast.put_pod(pod("first", {"app": "web"}, owner="web"), "large")
    assert check(fast, profile, pod("strayed", {"app": "other"}, owner="web")) == "large"
    assert check(fast, profile, pod("second", {"app": "web"}, owner="web")) == "small"


def test_what_is_kept_stays_bounded_when_every_pod_is_like_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "_MOST_SHAPES", 4)
    monkeypatch.setattr(kept, "_FEWEST_SHAPES", 4)
    profile = default_profile()
    fast = FastScheduler(profile)
    for number in range(3):
        fast.put_node(node(f"n{number}"))
    most = 0
    for number in range(60):
        mine = {"labelSelector": {"matchLabels": {"job": str(number)}}, "topologyKey": HOST}
        asked = pod(
            f"p{number}",
            {"job": str(number)},
            cpu="10m",
            nodeSelector={HOST: f"n{number % 3}"} if number % 2 else {},
            tolerations=[{"key": f"job-{number}", "operator": "Exists"}],
            affinity={"podAntiAffinity": {REQUIRED: [mine]}},
        )
        fast.put_pod(asked, check(fast, profile, asked, times=1))
        if number > 2:
            fast.drop_pod(("default", f"p{number - 3}"))
        holds = fast._first.kept
        assert holds is not None
        assert holds._tallies is not None
        most = max(most, len(holds._statics), len(holds._tallies.held), len(holds._tallies._asked))
    assert 8 < most < 24


def test_pods_of_labels_or_images_that_are_all_their_own_leave_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tallies, "_MOST_REMEMBERED", 8)
    profile = default_profile()
    fast = FastScheduler(profile)
    fast.put_node(node("a"))
    fast.put_node(node("b"))
    service = {"metadata": {"name": "web", "namespace": "default"}, "spec": {"selector": {"app": "web"}}}
    fast.put(msgspec.convert(service, Service))
    for number in range(60):
        labels, image = {"app": "web", "job": str(number)}, {"image": f"registry/job:{number}"}
        asked = pod(f"p{number}", labels, cpu="10m", container=image)
        fast.put_pod(asked, check(fast, profile, asked, times=1))
        if number > 2:
            fast.drop_pod(("default", f"p{number - 3}"))
        holds = fast._first.kept
        assert holds is not None
        assert holds._tallies is not None
        assert len(holds._tallies._classes) < 20
        assert len(holds._statics) == 1
