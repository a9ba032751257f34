"""`bayplan explain pod` on nodes that have a machine: the sections, word for word, and the verb on a cluster."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from bayplan.cli.describe.page import Page
from bayplan.cli.explain_holdings import (
    possession,
    possession_document,
    possession_page,
    refusal_document,
    refusal_page,
)
from bayplan.cli.printers import document
from bayplan.cluster.embedded.engine import EmbeddedCluster
from bayplan.cluster.kinds import NODE, POD
from bayplan.model.nodes import Node
from bayplan.model.pods import Pod
from bayplan.node.annotations.equipment import CONFIGURATION, MACHINE
from bayplan.node.annotations.holdings import HOLDINGS
from bayplan.testing import fake_cluster, node, pod
from bayplan.testing.nodes import NodeManifest
from bayplan.testing.pods import PodManifest
from tests.cli.serving import Command, Serving

Doc = dict[str, Any]

STATIC: Doc = {
    "cpuManagerPolicy": "static",
    "topologyManagerPolicy": "single-numa-node",
    "memoryManagerPolicy": "Static",
    "systemReserved": {"cpu": "2", "memory": "1Gi"},
    "reservedMemory": [{"numaNode": 0, "limits": {"memory": "1124Mi"}}],
}


def dgx(configuration: Doc, machine: str = "dgx-h100") -> NodeManifest:
    said = {MACHINE: machine, CONFIGURATION: json.dumps(configuration)}
    return node("dgx").having("metadata.annotations", said).having("status", {})


def guaranteed(name: str, cpu: str, memory: str = "64Gi", gpu: int | None = None) -> PodManifest:
    return pod(name).requests(cpu=cpu, memory=memory, gpu=gpu).limits(cpu=cpu, memory=memory).on("dgx")


TRAINER = guaranteed("trainer", "16", gpu=2).container("proxy", resources={"limits": {"cpu": "1500m", "memory": "1Gi"}})
WIDE = {**STATIC, "cpuManagerPolicyOptions": {"full-pcpus-only": "true"}, "topologyManagerScope": "pod"}


def after(*given: PodManifest, configuration: Doc = STATIC, machine: str = "dgx-h100") -> EmbeddedCluster:
    cluster = fake_cluster(dgx(configuration, machine), *given)
    asyncio.run(cluster.advance(10))
    return cluster


def page_of(cluster: EmbeddedCluster, name: str) -> str:
    """The sections that are added, or the page of a refused pod."""
    pods = [item.view(Pod) for item in cluster.world.store.objects(POD)]
    wanted = next(each for each in pods if each.metadata.name == name)
    page = Page(cluster.clock.now())
    if wanted.is_terminal:
        refusal_page(wanted, page)
    else:
        found = possession(wanted, cluster.world.server.get(NODE, "", "dgx").view(Node), pods)
        assert found is not None
        possession_page(found, page)
    return page.text()


@pytest.mark.parametrize(
    ("name", "given", "configuration"),
    [
        pytest.param("trainer", [TRAINER], STATIC, id="CPUs of its own and shared ones, memory and devices"),
        pytest.param("trainer", [TRAINER], {}, id="devices alone, where the CPU manager has no policy"),
        pytest.param("web", [TRAINER, pod("web").requests(cpu=2).on("dgx")], STATIC, id="a Burstable pod"),
        pytest.param(
            "whole",
            [pod("whole").pod_having("resources", {"limits": {"cpu": "2", "memory": "1Gi"}}).on("dgx")],
            STATIC,
            id="a pod with resources as a whole",
        ),
        pytest.param("wide", [guaranteed("wide", "8")], WIDE, id="whole cores, decided for the pod at once"),
        pytest.param(
            "b", [guaranteed("a", "100"), guaranteed("b", "150")], STATIC, id="refused by the topology manager"
        ),
        pytest.param("odd", [guaranteed("odd", "7")], WIDE, id="refused for half a core"),
        pytest.param(
            "b",
            [guaranteed("a", "4", gpu=6), guaranteed("b", "4", gpu=4)],
            {},
            id="refused for devices that are not there any more",
        ),
    ],
)
def test_a_page(name: str, given: list[PodManifest], configuration: Doc, snapshot: SnapshotAssertion) -> None:
    assert page_of(after(*given, configuration=configuration), name) == snapshot


def test_the_same_for_programs(snapshot: SnapshotAssertion) -> None:
    cluster = after(TRAINER, guaranteed("b", "150"))
    pods = {item.name: item.view(Pod) for item in cluster.world.store.objects(POD)}
    holds = possession(pods["trainer"], cluster.world.server.get(NODE, "", "dgx").view(Node), pods.values())

    assert holds is not None
    assert document(possession_document(holds), "json") == snapshot
    assert document(refusal_document(pods["b"]), "json") == snapshot


def test_a_real_kubelet_does_not_tell() -> None:
    assert possession(guaranteed("a", "500m").view(), None, []) is None
    found = possession(guaranteed("a", "2").view(), node("dgx").view(), [])

    assert found is not None
    assert possession_document(found)["unknown"].startswith("its node's kubelet does not tell which it holds")
    page = Page(fake_cluster().clock.now())
    possession_page(found, page)
    assert page.text().startswith("CPUs:  its node's kubelet does not tell")


def test_a_record_that_somebody_wrote_into_is_told() -> None:
    broken = guaranteed("a", "2").having("metadata.annotations", {HOLDINGS: "{"}).having("metadata.uid", "u")
    found = possession(broken.view(), dgx(STATIC).view(), [])

    assert found is not None
    assert found.unknown == (
        f"nobody knows what pod default/a holds: annotation {HOLDINGS} cannot be read: Input data was truncated"
    )


def test_a_refused_pod_of_a_real_cluster_is_told_as_far_as_it_goes() -> None:
    refused = guaranteed("a", "2").phase("Failed", reason="SMTAlignmentError", message="Pod was rejected: SMT")
    page = Page(fake_cluster().clock.now())
    refusal_page(refused.view(), page)

    assert "Refused:    by the node's kubelet: SMTAlignmentError\n" in page.text()
    assert "Free Then:  not known" in page.text()
    assert refusal_document(refused.view())["then"] is None


def test_the_verb(command: Command, serving: Serving) -> None:
    restricted = {**STATIC, "topologyManagerPolicy": "restricted"}
    serving.do(serving.cluster.create(NODE, dgx(restricted).document()))
    for each in (TRAINER, guaranteed("wide", "100"), guaranteed("late", "100")):
        serving.do(serving.cluster.create(POD, each.document(), "default"))
    told = command("explain", "pod", "trainer")
    for _ in range(500):
        if "TopologyAffinityError" in command("get", "pod", "late").out:
            break

    assert (told.code, told.err) == (0, "")
    assert "exclusive   Guaranteed, and 16 is a whole number of CPUs" in told.out
    assert json.loads(command("explain", "pod", "trainer", "-o", "json").out)["holdings"]["containers"][0]["exclusive"]
    refused = command("explain", "pod", "late")
    assert (refused.code, refused.err) == (0, "")
    assert "Refused:     by the node's kubelet: TopologyAffinityError" in refused.out
    assert json.loads(command("explain", "pod", "late", "-o", "json").out)["reason"] == "TopologyAffinityError"


def test_what_a_kubelet_would_say_is_told_beforehand(command: Command, serving: Serving, tmp_path: Path) -> None:
    strict = dgx(STATIC).having("metadata.name", "strict")
    serving.do(serving.cluster.create(NODE, strict.document()))
    asker, scheduler = tmp_path / "pod.json", tmp_path / "scheduler.json"
    free = pod("wide").requests(cpu="120", memory="64Gi").limits(cpu="120", memory="64Gi")
    asker.write_text(json.dumps(free.document()))
    configuration = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"plugins": {"filter": {"enabled": [{"name": "NodeTopology"}]}}}],
    }
    scheduler.write_text(json.dumps(configuration))
    for _ in range(500):  # until it is ready
        told = command("explain", "pod", "-f", str(asker), "--scheduler-config", str(scheduler), "--nodes")
        if "not-ready" not in told.out:
            break

    assert (told.code, told.err) == (0, "")
    assert "node(s) would refuse the pod: TopologyAffinityError" in told.out
    assert "NodeTopology" in told.out
