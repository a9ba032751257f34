"""Builders: every one makes what the API server takes, and none changes another."""

from __future__ import annotations

from typing import Any

import pytest

from bayplan.cluster.embedded.world import World
from bayplan.cluster.kinds import SERVICE
from bayplan.model.clock import Instant
from bayplan.model.nodes import Node
from bayplan.model.pods import Pod
from bayplan.model.taints import NO_SCHEDULE, first_untolerated
from bayplan.testing import (
    Manifest,
    config_map,
    daemon_set,
    deployment,
    disruption_budget,
    job,
    manifest,
    namespace,
    node,
    pod,
    priority_class,
    quota,
    replica_set,
    stateful_set,
)

WHOLE_POD = (
    pod("trainer")
    .labelled(team="vision")
    .annotated({"example.com/note": "x"})
    .image("registry.example/train:2")
    .requests({"example.com/fpga": "1"}, cpu="1", memory="2Gi", gpu=2)
    .limits(memory="4Gi")
    .probed("readiness", httpGet={"port": 8080}, periodSeconds=5)
    .init_container("fetch")
    .requests(cpu="100m")
    .sidecar("logs")
    .container("metrics")
    .limits(cpu="50m")
    .tolerates("gpu", effect="NoSchedule")
    .tolerates("zone", "a")
    .tolerates("node.kubernetes.io/unreachable", effect="NoExecute", seconds=30)
    .selecting({"topology.kubernetes.io/zone": "a"}, disk="ssd")
    .spread("topology.kubernetes.io/zone", team="vision")
    .apart_from(team="speech")
    .prioritized("system-node-critical")
    .restarting("OnFailure")
    .pod_having("terminationGracePeriodSeconds", 5)
    .behaves(run_for="90s", exit_code=1)
)


@pytest.mark.parametrize(
    "made",
    [
        pytest.param(pod(), id="a pod with nothing said"),
        pytest.param(WHOLE_POD, id="a pod with everything said"),
        pytest.param(pod("gated").gated("example.com/wait"), id="a gated pod"),
        pytest.param(pod("bound").on("node-1"), id="a pod bound from the start"),
        pytest.param(node("gpu-1").offers(cpu=64, gpu=8).tainted("gpu").cordoned(), id="a node"),
        pytest.param(deployment("web").replicas(3).rolling(surge=1, unavailable=0), id="a deployment"),
        pytest.param(replica_set("web").replicas(2), id="a replica set"),
        pytest.param(stateful_set("db").replicas(3).in_parallel().partitioned(1), id="a stateful set"),
        pytest.param(daemon_set("agent").tolerates(), id="a daemon set"),
        pytest.param(job("array").runs(4, at_once=2, indexed=True).backoff_limit(1).kept_for(60), id="a job"),
        pytest.param(namespace("shop"), id="a namespace"),
        pytest.param(quota().allows({"requests.storage": "1Ti"}, gpu=8, pods=10), id="a quota"),
        pytest.param(disruption_budget().covering(app="web").at_least("50%"), id="a disruption budget"),
        pytest.param(priority_class("high", 1000), id="a priority class"),
        pytest.param(config_map("settings", color="red"), id="a config map"),
        pytest.param(manifest(SERVICE, "web", spec={"ports": [{"port": 80}]}), id="a kind without a builder"),
    ],
)
def test_the_api_server_takes_it_whole_and_unwarned(made: Manifest[Any]) -> None:
    server = World([], seed=0, start=Instant(0)).server

    answer = server.create(made.kind, made.namespace, made.document())

    assert answer.warnings == ()
    assert answer.object.key == (made.namespace, made.name)
    _contains(answer.object.doc(), made.document())


def _contains(stored: object, asked: object) -> None:
    """Whatever was asked for is there; defaults may be there beside it."""
    if isinstance(asked, dict):
        assert isinstance(stored, dict)
        for key, value in asked.items():
            _contains(stored[key], value)
    elif isinstance(asked, list):
        assert isinstance(stored, list)
        for one, value in zip(stored, asked, strict=False):
            _contains(one, value)
    else:
        assert stored == asked


def test_a_sentence_never_changes_the_builder_it_is_said_to() -> None:
    base = pod("x").requests(cpu="1").tolerates("a")
    before = base.document()

    base.requests(cpu="2").tolerates("b").container("other").labelled(a="b").having("spec.nodeName", "n")
    base.document()["spec"].clear()

    assert base.document() == before


def test_a_view_is_what_a_pure_core_reads() -> None:
    view = pod("x").requests(cpu="1", gpu=2).tolerates("gpu").phase("Running").view()

    assert isinstance(view, Pod)
    assert view.spec.containers[0].resources.limits == {"nvidia.com/gpu": "2"}
    assert view.spec.containers[0].resources.requests == {"cpu": "1", "nvidia.com/gpu": "2"}
    assert view.status.phase == "Running"
    tainted: Node = node().tainted("gpu").view()
    assert first_untolerated(tainted.spec.taints, view.spec.tolerations, {NO_SCHEDULE}) is None


def test_sentences_about_a_container_speak_of_the_one_named_last() -> None:
    spec = pod("x").requests(cpu="1").sidecar("logs").requests(cpu="2").container("b").requests(cpu="3").view().spec

    asked = {each.name: each.resources.requests["cpu"] for each in (*spec.containers, *spec.init_containers)}
    assert asked == {"x": "1", "logs": "2", "b": "3"}


def test_a_workload_is_told_about_its_pods_in_the_same_words() -> None:
    spec = deployment("web").requests(cpu="1").pod_labelled(tier="front").on("n").document()["spec"]

    assert spec["template"]["metadata"]["labels"] == {"app": "web", "tier": "front"}
    assert spec["template"]["spec"]["nodeName"] == "n"
    assert spec["template"]["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "1"}


def test_a_node_may_say_how_it_is() -> None:
    assert node().condition("Ready", "False").view().status.conditions[0].status == "False"
