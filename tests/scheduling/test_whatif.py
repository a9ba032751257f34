"""The smallest changes, one by one: what is proposed, in which words, and what is not."""

from __future__ import annotations

from typing import Any

import pytest

from bayplan.model.meta import KubernetesObject
from bayplan.model.pods import Pod
from bayplan.model.resources import pod_requests
from bayplan.scheduling.pods import PodInfo
from bayplan.scheduling.profiles import default_profile
from bayplan.scheduling.state import ClusterState
from bayplan.scheduling.whatif import Answer, Kind, smallest_changes
from bayplan.scheduling.whatif.lowering import amounts, lowered
from bayplan.testing import Manifest, node, pod
from bayplan.testing.nodes import NodeManifest
from bayplan.testing.pods import PodManifest

PROFILE = default_profile()
HOST = "kubernetes.io/hostname"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def state_of(*objects: Manifest[Any]) -> ClusterState:
    views: list[KubernetesObject] = [each.view() for each in objects]
    return ClusterState(views)


def asked(wanted: PodManifest, *objects: Manifest[Any]) -> Answer:
    return smallest_changes(state_of(*objects), PROFILE, PodInfo(wanted.view()), most=20)


def told(answer: Answer) -> list[str]:
    return [", and ".join(map(str, each.changes)) for each in answer.proposals]


def near(**labels: str) -> PodManifest:
    term = {"topologyKey": HOST, "labelSelector": {"matchLabels": labels}}
    return pod("new").pod_having(f"affinity.podAffinity.{REQUIRED}", [term])


def wanting(*expressions: dict[str, Any]) -> PodManifest:
    terms = {"nodeSelectorTerms": [{"matchExpressions": [*expressions]}]}
    return pod("new").pod_having(f"affinity.nodeAffinity.{REQUIRED}", terms)


def on_port(name: str, port: int) -> PodManifest:
    container = {"name": "main", "image": "x", "ports": [{"containerPort": port, "hostPort": port, "protocol": "TCP"}]}
    return pod(name).pod_having("containers", [container])


FULL = node("n1").offers({"pods": "1"})
NEW = pod("new")


@pytest.mark.parametrize(
    ("wanted", "objects", "sentences"),
    [
        pytest.param(
            NEW.requests(cpu=6),
            [node("n1"), node("n2"), pod("old").requests(cpu="500m").on("n2")],
            ["it asked for 4 cpu instead of 6"],
            id="a pod too big for any node may ask for what the emptiest has left",
        ),
        pytest.param(
            NEW.requests(cpu=3),
            [node("n1"), pod("old").requests(cpu=3).on("n1")],
            ["it asked for 1 cpu instead of 3", "there were one more node like n1 (4 cpu, 16Gi memory)"],
            id="a pod that no node has room for may ask for less, or for a node",
        ),
        pytest.param(
            NEW.requests(gpu=1),
            [node("n1").offers(gpu=1), pod("old").requests(gpu=1).on("n1"), node("n2")],
            ["there were one more node like n1 (4 cpu, 16Gi memory, 1 nvidia.com/gpu)"],
            id="nobody is told to ask for nothing",
        ),
        pytest.param(
            NEW,
            [node("n1").tainted("gpu", "yes"), node("n2").tainted("team", effect="NoExecute")],
            ["it tolerated the taint gpu=yes:NoSchedule", "it tolerated the taint team:NoExecute"],
            id="a taint may be tolerated",
        ),
        pytest.param(
            NEW,
            [node("n1").cordoned().tainted("node.kubernetes.io/unschedulable")],
            ["n1 were uncordoned", "there were one more node like n1 (4 cpu, 16Gi memory)"],
            id="a cordon is lifted, not tolerated",
        ),
        pytest.param(
            NEW,
            [node("n1").tainted("node.kubernetes.io/not-ready", effect="NoExecute")],
            [
                "n1 recovered (it is tainted node.kubernetes.io/not-ready)",
                "there were one more node like n1 (4 cpu, 16Gi memory)",
            ],
            id="an ill node is cured, its taint not tolerated",
        ),
        pytest.param(
            NEW.selecting(disk="ssd"),
            [node("n1")],
            ["its node selector did not ask for disk=ssd"],
            id="an entry of the node selector may go",
        ),
        pytest.param(
            wanting({"key": "disk", "operator": "Exists"}, {"key": "zone", "operator": "In", "values": ["a", "b"]}),
            [node("n1").labelled(disk="x"), node("n2")],
            ["its node affinity did not require zone In (a, b)"],
            id="of a node affinity the one expression goes that fails",
        ),
        pytest.param(
            wanting({"key": "disk", "operator": "Exists"}),
            [node("n1")],
            ["its node affinity did not require disk Exists"],
            id="a node affinity without its last expression asks for nothing",
        ),
        pytest.param(
            NEW.labelled(app="web").spread(HOST, app="web"),
            [node("n1"), pod("old").labelled(app="web").on("n1"), node("n2").cordoned()],
            [
                f"its spread over {HOST} (maxSkew 1) were ScheduleAnyway",
                "n2 were uncordoned",
                "there were one more node like n1 (4 cpu, 16Gi memory)",
            ],
            id="a spread constraint may become a wish",
        ),
        pytest.param(
            near(app="db"),
            [node("n1")],
            [f"it did not require pods app=db by {HOST} near it"],
            id="a wanted neighbour that is nowhere may be given up",
        ),
        pytest.param(
            NEW.apart_from(app="db"),
            [node("n1"), pod("db").labelled(app="db").on("n1")],
            [
                f"it did not keep away from pods app=db by {HOST}",
                "there were one more node like n1 (4 cpu, 16Gi memory)",
            ],
            id="a neighbour that was not wanted may be put up with",
        ),
        pytest.param(
            on_port("new", 80),
            [node("n1"), on_port("old", 80).on("n1"), node("n2").cordoned()],
            [
                "it did not ask for the host port 80/TCP",
                "n2 were uncordoned",
                "there were one more node like n1 (4 cpu, 16Gi memory)",
            ],
            id="a host port may be given up",
        ),
        pytest.param(
            NEW,
            [FULL, pod("old").on("n1"), node("n2").offers({"pods": "1"}, cpu=2), pod("other").on("n2")],
            ["there were one more node like n2 (2 cpu, 16Gi memory)"],
            id="of two shapes that would do, the smaller one is added",
        ),
        pytest.param(
            NEW.requests(cpu=3),
            [node("n1"), pod("a").requests(cpu=2).on("n1"), node("n2"), pod("b").requests(cpu=3).on("n2")],
            [
                "it asked for 2 cpu instead of 3",
                "there were one more node like n1 (4 cpu, 16Gi memory)",
            ],
            id="a pod moves only to where it fits",
        ),
        pytest.param(
            NEW.requests(cpu=4),
            [node("n1"), pod("a").requests(cpu=1).on("n1"), node("n2"), pod("b").requests(cpu=2).on("n2")],
            [
                "it asked for 3 cpu instead of 4",
                "there were one more node like n1 (4 cpu, 16Gi memory)",
                "pod default/a moved from n1 to n2",
            ],
            id="of the pods that might move, the smallest does",
        ),
        pytest.param(
            NEW.requests(cpu=6),
            [node("n1").tainted("gpu")],
            ["it tolerated the taint gpu:NoSchedule, and it asked for 4 cpu instead of 6"],
            id="two changes are made together where no single one would do",
        ),
        pytest.param(
            NEW.selecting(a="1", b="2", c="3").requests(cpu=9),
            [node("n1")],
            [],
            id="more than three are not looked for",
        ),
        pytest.param(
            NEW.gated("quota"), [node("n1")], ["its scheduling gates were removed (quota)"], id="a gate may be opened"
        ),
        pytest.param(
            NEW.gated("quota").requests(cpu=9),
            [node("n1")],
            ["its scheduling gates were removed (quota), and it asked for 4 cpu instead of 9"],
            id="behind a gate there may be more to change",
        ),
        pytest.param(NEW, [node("n1")], [], id="a pod that fits needs no change"),
        pytest.param(NEW, [], [], id="without any node there is nothing to be like"),
    ],
)
def test_the_smallest_changes(wanted: PodManifest, objects: list[Manifest[Any]], sentences: list[str]) -> None:
    answer = asked(wanted, *objects)

    assert told(answer) == sentences
    assert answer.complete


def test_pods_that_belong_to_a_node_do_not_move() -> None:
    daemon = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "1", "controller": True}
    holders = [
        pod("daemon").having("metadata.ownerReferences", [daemon]),
        pod("static").annotated({"kubernetes.io/config.mirror": "x"}),
        pod("going").having("metadata.deletionTimestamp", "2026-01-01T00:00:00Z"),
    ]
    for holder in holders:
        found = asked(NEW.requests(cpu=4), node("n1"), holder.requests(cpu=1).on("n1"), node("n2").cordoned())
        assert Kind.MOVE_POD not in {change.kind for each in found.proposals for change in each.changes}


def test_a_pod_moves_out_of_the_way_of_one_that_keeps_away_from_it() -> None:
    other = pod("old").labelled(app="db").on("n1").selecting(disk="ssd")
    wanted = NEW.apart_from(app="db").selecting(disk="ssd").requests(cpu=3)
    nodes = [node(name).labelled(disk="ssd") for name in ("n1", "n2")]
    answer = asked(wanted, *nodes, other, pod("big").requests(cpu=2).on("n2"))

    assert "pod default/old moved from n1 to n2" in told(answer)


def test_node_names_that_contradict_each_other_are_answered_too() -> None:
    fields = [{"key": "metadata.name", "operator": "In", "values": [name]} for name in ("n1", "n2")]
    terms = {"nodeSelectorTerms": [{"matchFields": fields}]}
    wanted = NEW.pod_having(f"affinity.nodeAffinity.{REQUIRED}", terms)

    assert told(asked(wanted, node("n1"), node("n2"))) == [
        "its node affinity did not require metadata.name In (n1)",
        "its node affinity did not require metadata.name In (n2)",
    ]


def test_those_who_wait_for_a_node_are_counted() -> None:
    waiting = pod("waiting").requests(cpu=1).having("status", {"nominatedNodeName": "n1"})

    assert told(asked(NEW.requests(cpu=4), node("n1"), waiting))[0] == "it asked for 3 cpu instead of 4"


def _pod(containers: list[dict[str, str]], init: list[dict[str, str]], sidecars: list[dict[str, str]]) -> PodManifest:
    groups = [
        *((each, {}) for each in init[:1]),
        *((each, {"restartPolicy": "Always"}) for each in sidecars),
        *((each, {}) for each in init[1:]),
    ]
    return (
        pod("p")
        .pod_having(
            "containers", [{"name": f"c{i}", "resources": {"requests": each}} for i, each in enumerate(containers)]
        )
        .pod_having(
            "initContainers",
            [{"name": f"i{i}", "resources": {"requests": each}, **more} for i, (each, more) in enumerate(groups)],
        )
    )


@pytest.mark.parametrize(
    ("before", "amount", "requests"),
    [
        pytest.param(
            _pod([{"cpu": "1"}, {"cpu": "3"}], [], []), 2500, ["1", "1500m"], id="the largest container gives"
        ),
        pytest.param(_pod([{"cpu": "2"}, {"cpu": "3"}], [], []), 1000, ["1", "0"], id="and when it is spent, the next"),
        pytest.param(
            _pod([{"cpu": "1"}], [{"cpu": "5"}, {"cpu": "1"}], [{"cpu": "1"}]),
            2000,
            ["1", "2", "1", "1"],
            id="init containers come down to the same amount, beside the sidecars before them",
        ),
        pytest.param(
            _pod([{"cpu": "1"}], [], []).pod_having("overhead", {"cpu": "500m"}),
            1000,
            ["500m"],
            id="the overhead stays",
        ),
        pytest.param(
            _pod([{"cpu": "1"}], [], []).pod_having("resources", {"requests": {"cpu": "4"}}),
            2000,
            ["1"],
            id="what the pod asks for as a whole comes down",
        ),
    ],
)
def test_a_pod_asks_for_less(before: PodManifest, amount: int, requests: list[str]) -> None:
    after = lowered(before.view(), "cpu", amount)

    assert pod_requests(after)["cpu"] == amount
    every = (*after.spec.containers, *after.spec.init_containers)
    assert [each.resources.requests["cpu"] for each in every] == requests


def test_limits_that_must_equal_requests_come_down_with_them() -> None:
    wanted: Pod = pod("p").requests(gpu=4).view()
    resources = lowered(wanted, "nvidia.com/gpu", 3).spec.containers[0].resources

    assert resources.requests == resources.limits == {"nvidia.com/gpu": "3"}


def test_the_state_that_is_asked_stays_as_it_is() -> None:
    nodes: list[NodeManifest] = [node("n1").cordoned(), node("n2")]
    state = state_of(*nodes, pod("a").requests(cpu=3).on("n2"))
    smallest_changes(state, PROFILE, PodInfo(NEW.requests(cpu=3).view()))

    assert [each.name for each in state.nodes] == ["n1", "n2"]
    assert [each.node.spec.unschedulable for each in state.nodes] == [True, False]
    assert [[*each.pods] for each in state.nodes] == [[], [("default", "a")]]


@pytest.mark.parametrize(
    ("resource", "less", "more", "said"),
    [
        pytest.param("cpu", 3500, 1_000_000, ("3.5", "1000"), id="cores, never thousands of them as k"),
        pytest.param("cpu", 333, 2000, ("0.333", "2"), id="parts of a core"),
        pytest.param("nvidia.com/gpu", 2, 16, ("2", "16"), id="pieces"),
        pytest.param("memory", 716024970542, 700 << 30, ("666.8Gi", "700Gi"), id="bytes, rounded down"),
        pytest.param("memory", 512 << 20, 2 << 30, ("512Mi", "2Gi"), id="each in its own unit"),
        pytest.param("memory", (1 << 30) + (1 << 20), (1 << 30) + (40 << 20), ("1Gi", "1.03Gi"), id="digits that tell"),
        pytest.param(
            "memory", 1 << 30, (1 << 30) + 1, ("1073741824", "1073741825"), id="a difference too small for units"
        ),
    ],
)
def test_amounts_for_people(resource: str, less: int, more: int, said: tuple[str, str]) -> None:
    assert amounts(resource, less, more) == said
