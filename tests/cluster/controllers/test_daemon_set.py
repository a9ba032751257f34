"""DaemonSets put a pod on every node that suits them, and roll a template out node by node."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from bayplan.cluster.embedded.controllers.daemon_set import DaemonSetController
from bayplan.cluster.embedded.controllers.daemon_set_nodes import Eligibility, Site, target_node, tolerations
from bayplan.cluster.kinds import CONTROLLER_REVISION, DAEMON_SET, NODE, POD
from bayplan.model.nodes import Node
from bayplan.model.objects import from_builtins
from bayplan.model.pods import Pod, PodSpec
from bayplan.model.workloads import DaemonSet

from .stage import Stage, running, template, workload

BOTH, NEITHER, STAYS = Site(runs=True, stays=True), Site(runs=False, stays=False), Site(runs=False, stays=True)


def affine(operator: str, *values: str) -> dict[str, Any]:
    term = {"matchExpressions": [{"key": "zone", "operator": operator, "values": [*values]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    return {"affinity": {"nodeAffinity": required}}


def tainted(effect: str, key: str = "dedicated") -> dict[str, Any]:
    return {"taints": [{"key": key, "effect": effect}]}


@pytest.mark.parametrize(
    ("pod", "node", "expected"),
    [
        pytest.param({}, {}, BOTH, id="a plain one suits any node"),
        pytest.param({"nodeName": "other"}, {}, NEITHER, id="one for a named node suits no other"),
        pytest.param({"nodeSelector": {"zone": "a"}}, {}, BOTH, id="the node has the label"),
        pytest.param({"nodeSelector": {"zone": "b"}}, {}, NEITHER, id="the node has another label"),
        pytest.param(affine("In", "a", "c"), {}, BOTH, id="the affinity names its zone"),
        pytest.param(affine("NotIn", "a"), {}, NEITHER, id="the affinity forbids its zone"),
        pytest.param(affine("Gt", "x"), {}, NEITHER, id="an affinity without sense suits none"),
        pytest.param({}, tainted("NoSchedule"), STAYS, id="a taint keeps new ones off and lets old ones stay"),
        pytest.param({}, tainted("NoExecute"), NEITHER, id="a stronger taint sends the old ones away"),
        pytest.param({}, tainted("PreferNoSchedule"), BOTH, id="a soft taint does not matter"),
        pytest.param(
            {"tolerations": [{"operator": "Exists"}]}, tainted("NoExecute"), BOTH, id="what is tolerated is not"
        ),
        pytest.param({}, tainted("NoSchedule", "node.kubernetes.io/unschedulable"), BOTH, id="a cordoned node will do"),
        pytest.param({}, tainted("NoExecute", "node.kubernetes.io/not-ready"), BOTH, id="an unready node will do"),
    ],
)
def test_which_nodes_suit(pod: dict[str, Any], node: dict[str, Any], expected: Site) -> None:
    wanted = from_builtins({"spec": {"template": {"spec": pod}}}, DaemonSet)
    site = from_builtins({"metadata": {"name": "n", "labels": {"zone": "a"}}, "spec": node}, Node)
    assert Eligibility(wanted).of(site) == expected


def test_what_daemons_always_tolerate() -> None:
    own = {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5}
    found = tolerations(from_builtins({"hostNetwork": True, "tolerations": [own, {"key": "a"}]}, PodSpec))
    assert [(one.key.removeprefix("node.kubernetes.io/"), one.effect) for one in found] == [
        ("not-ready", "NoExecute"),
        ("a", ""),
        ("unreachable", "NoExecute"),
        ("disk-pressure", "NoSchedule"),
        ("memory-pressure", "NoSchedule"),
        ("pid-pressure", "NoSchedule"),
        ("unschedulable", "NoSchedule"),
        ("network-unavailable", "NoSchedule"),
    ]
    assert found[0].toleration_seconds is None


def nodes(stage: Stage) -> list[str]:
    return sorted(target_node(pod.view(Pod)) for pod in stage.pods())


def images(stage: Stage) -> list[str]:
    return sorted(pod.view(Pod).spec.containers[0].image for pod in stage.pods())


def roll_to(stage: Stage, image: str) -> None:
    stage.patch(DAEMON_SET, "web", {"spec": {"template": template(image)}})


def test_every_node_gets_a_pod_and_a_new_node_as_well() -> None:
    stage = Stage()
    stage.create(DAEMON_SET, "web", workload())
    assert nodes(stage) == ["node-0", "node-1", "node-2"]
    assert stage.status(DAEMON_SET, "web") == {
        "currentNumberScheduled": 3,
        "numberMisscheduled": 0,
        "desiredNumberScheduled": 3,
        "numberReady": 3,
        "observedGeneration": 1,
        "updatedNumberScheduled": 3,
        "numberAvailable": 3,
    }
    (revision,) = stage.store.objects(CONTROLLER_REVISION, "default")
    digest = revision.meta.labels["controller-revision-hash"]
    assert revision.name == f"web-{digest}"
    assert all(
        pod.meta.labels == {"app": "web", "controller-revision-hash": digest, "pod-template-generation": "1"}
        for pod in stage.pods()
    )
    before = stage.events("web")
    stage.add_node("node-3")
    assert nodes(stage)[-1] == "node-3"
    assert len(stage.events("web")) == len(before) + 1
    assert stage.status(DAEMON_SET, "web")["numberReady"] == 4


def test_pods_follow_labels_and_taints() -> None:
    stage = Stage()
    spec = {**workload(), "template": template(nodeSelector={"gpu": "yes"})}
    stage.create(DAEMON_SET, "web", spec)
    assert stage.status(DAEMON_SET, "web")["desiredNumberScheduled"] == 0
    stage.patch(NODE, "node-1", {"metadata": {"labels": {"gpu": "yes"}}}, namespace="")
    assert nodes(stage) == ["node-1"]
    stage.patch(NODE, "node-1", {"spec": tainted("NoExecute")}, namespace="")
    assert nodes(stage) == []


def test_a_cordoned_node_keeps_and_gets_its_daemons() -> None:
    stage = Stage()
    stage.patch(NODE, "node-2", {"spec": {"unschedulable": True}}, namespace="")
    stage.create(DAEMON_SET, "web", workload())
    assert nodes(stage) == ["node-0", "node-1", "node-2"]


def test_an_update_goes_node_by_node() -> None:
    stage = Stage()
    stage.create(DAEMON_SET, "web", workload())
    stage.hands.starts = lambda _pod: False
    roll_to(stage, "web:2")
    assert images(stage) == ["web:1", "web:1", "web:2"]
    assert stage.status(DAEMON_SET, "web")["updatedNumberScheduled"] == 1
    stage.hands.starts = lambda _pod: True
    for pod in stage.pods():
        if pod.view(Pod).status.phase == "Pending":
            stage.set_status(pod, running(stage.now))
    assert images(stage) == ["web:2"] * 3
    assert stage.store.count(CONTROLLER_REVISION) == 2


def test_with_surge_the_old_pod_stays_until_the_new_one_works() -> None:
    stage = Stage()
    rolling = {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
    stage.create(DAEMON_SET, "web", workload(updateStrategy=rolling))
    stage.hands.starts = lambda _pod: False
    roll_to(stage, "web:2")
    assert images(stage) == ["web:1", "web:1", "web:1", "web:2"]
    stage.hands.starts = lambda _pod: True
    (waiting,) = [pod for pod in stage.pods() if pod.view(Pod).status.phase == "Pending"]
    stage.set_status(waiting, running(stage.now))
    assert images(stage) == ["web:2"] * 3
    assert nodes(stage) == ["node-0", "node-1", "node-2"]


def test_on_delete_only_what_is_deleted_is_updated() -> None:
    stage = Stage()
    stage.create(DAEMON_SET, "web", workload(updateStrategy={"type": "OnDelete"}))
    roll_to(stage, "web:2")
    assert images(stage) == ["web:1"] * 3
    stage.server.delete(POD, "default", stage.names()[0])
    stage.settle()
    assert images(stage) == ["web:1", "web:1", "web:2"]


def test_a_failed_daemon_is_made_anew_but_not_without_end() -> None:
    stage = Stage()
    stage.create(DAEMON_SET, "web", workload())
    failed = stage.pods()[0]
    stage.set_status(failed, {"phase": "Failed"})
    assert failed.name in stage.names()
    stage.wait(1)
    assert failed.name not in stage.names()
    assert len(nodes(stage)) == 3
    where = target_node(failed.view(Pod))
    text = f"Found failed daemon pod default/{failed.name} on node {where}, will try to kill it"
    assert f"FailedDaemonPod: {text}" in stage.events("web")


def test_a_pod_that_waits_for_a_node_that_is_gone_goes_too() -> None:
    stage = Stage(hands=False)
    stage.create(DAEMON_SET, "web", workload())
    stage.server.delete(NODE, "", "node-1")
    stage.patch(DAEMON_SET, "web", {"metadata": {"labels": {"look": "again"}}})
    assert nodes(stage) == ["node-0", "node-2"]


def test_only_so_many_revisions_are_kept() -> None:
    stage = Stage()
    stage.create(DAEMON_SET, "web", workload(revisionHistoryLimit=1))
    for number in (2, 3, 4):
        roll_to(stage, f"web:{number}")
    assert stage.store.count(CONTROLLER_REVISION) == 2
    roll_to(stage, "web:3")
    assert images(stage) == ["web:3"] * 3
    assert stage.store.count(CONTROLLER_REVISION) == 2


@settings(max_examples=25)
@given(unavailable=some.sampled_from([1, 2, "50%"]), surge=some.sampled_from([0, 1, "100%"]))
def test_an_update_stays_within_its_bounds_and_ends(unavailable: int | str, surge: int | str) -> None:
    stage = Stage()
    rolling = {"maxUnavailable": 0 if surge else unavailable, "maxSurge": surge}
    stage.create(DAEMON_SET, "web", workload(updateStrategy={"rollingUpdate": rolling}))
    working: list[int] = []

    def count(_change: object) -> None:
        alive = [pod for pod in stage.pods() if pod.meta.deletion_timestamp is None]
        working.append(len({target_node(pod.view(Pod)) for pod in alive if pod.view(Pod).status.phase == "Running"}))

    stage.store.listeners.append(count)
    roll_to(stage, "web:2")
    most = {1: 1, 2: 2, "50%": 2}[unavailable]
    assert min(working) >= (3 if surge else 3 - most)
    assert images(stage) == ["web:2"] * 3
    assert not DaemonSetController().reconcile(("default", "web"), stage.store, stage.now).writes
