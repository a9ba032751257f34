"""Twins and recordings beside a real control plane: nothing is written there, as its own audit tells."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from bayplan.cluster.kinds import POD
from bayplan.cluster.lab.lab import Lab, LabOptions
from bayplan.cluster.lab.toolchain import LabUnavailableError
from bayplan.cluster.live.cluster import LiveCluster
from bayplan.cluster.live.config import find_access
from bayplan.model.pods import Pod
from bayplan.simulate.recording.comparison import Comparison, compared
from bayplan.simulate.recording.file import Recording
from bayplan.simulate.recording.live import LiveReplay
from bayplan.simulate.recording.replay import EmbeddedReplay
from bayplan.simulate.recording.story import Story, story_of
from bayplan.simulate.twin.filling import twin_of
from bayplan.simulate.twin.snapshot import read_snapshot
from bayplan.testing import fake_cluster, pod
from tests.ledger.rights.accounts import as_account, kubectl
from tests.simulate.twin.clusters import Tape, gpu_node

pytestmark = pytest.mark.slow

Doc = dict[str, Any]
READER = "system:serviceaccount:default:reader"
RBAC = "rbac.authorization.k8s.io"
AUDIT = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "rules": [{"level": "Metadata", "omitStages": ["RequestReceived"]}],
}


@pytest.fixture(scope="module")
def audited(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """A lab of our own, that writes down who asked it what."""
    policy = tmp_path_factory.mktemp("audit") / "policy.yaml"
    policy.write_text(yaml.safe_dump(AUDIT))
    flags = (f"--audit-policy-file={policy}", "--audit-log-path=audit.log")
    try:
        running = Lab(LabOptions(apiserver_flags=flags), name="twin")
    except LabUnavailableError as error:
        pytest.skip(f"no lab here: {error.message}")
    with running:
        yield running


def _apply(lab: Lab, *objects: Doc) -> None:
    kubectl(lab, "apply", "-f", "-", given=json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))


def _asked(lab: Lab) -> Counter[str]:
    """How often the reader asked what, by verb."""
    found = [json.loads(line) for line in (lab.folder / "audit.log").read_text().splitlines()]
    return Counter(each["verb"] for each in found if each["user"]["username"] == READER)


def _reader(lab: Lab, folder: Path, *verbs: str) -> Path:
    """The kubeconfig of an account that may do so much and no more."""
    role: Doc = {"apiVersion": f"{RBAC}/v1", "kind": "ClusterRole", "metadata": {"name": "reader"}}
    role["rules"] = [{"apiGroups": ["*"], "resources": ["*"], "verbs": [*verbs]}]
    binding = {
        "apiVersion": f"{RBAC}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "reader"},
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": "reader"},
        "subjects": [{"kind": "ServiceAccount", "name": "reader", "namespace": "default"}],
    }
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "reader"}}
    _apply(lab, account, role, binding)
    return as_account(lab, folder, "default", "reader")


def _bayplan(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "bayplan", *arguments], capture_output=True, text=True, check=False)


def _node(name: str) -> Doc:
    offers = {"cpu": "8", "memory": "32Gi", "pods": "110"}
    meta = {"name": name, "labels": {"for": "twin"}}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": meta,
        "status": {"capacity": offers, "allocatable": offers},
    }


def _deployment(name: str, replicas: int, cpu: str) -> Doc:
    container = {"name": "c", "image": "c:1", "resources": {"requests": {"cpu": cpu}}}
    template = {
        "metadata": {"labels": {"app": name}},
        "spec": {"containers": [container], "nodeSelector": {"for": "twin"}},
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template},
    }


async def _story(path: Path) -> Story:
    """Pods arrive and go on an embedded cluster, some of which wait for others."""
    larger = {"cpu": "48", "memory": "384Gi", "pods": "110", "nvidia.com/gpu": "8"}  # else ties are drawn by lot
    cluster = fake_cluster(
        gpu_node("r0"), gpu_node("r1").having("status.capacity", larger).having("status.allocatable", larger)
    )
    await cluster.advance(5)
    with Tape(cluster, path):
        for number, gpus in enumerate((4, 3, 6, 2, 5, 1)):
            await pod(f"p{number}").requests(cpu=1, gpu=gpus).create(cluster)
            await cluster.advance(20)
        for name in ("p0", "p2"):
            await cluster.delete(POD, name, "default", grace=0)
            await cluster.advance(20)
        await pod("last").requests(gpu=3).create(cluster)
        await cluster.advance(60)
    recording = Recording(path)
    return story_of(recording.entries(), recording.began)


async def test_a_recording_is_replayed_by_the_real_scheduler(audited: Lab, tmp_path: Path) -> None:
    story = await _story(tmp_path / "day.rec")
    async with LiveCluster(find_access(audited.kubeconfig)) as cluster, asyncio.timeout(120):
        outcome = await LiveReplay(story, cluster).run()
    assert not outcome.refusals
    found = compared(outcome.pods, story.began, outcome.until)
    here = await _embedded(story)
    assert found.pods == here.pods == 7
    assert found.replayed.placed >= 6  # one may wait for the scheduler to try it again
    assert found.same_share is not None
    assert found.same_share > 0.8
    kubectl(audited, "delete", "pods", "--all", "--force", "--grace-period=0")
    kubectl(audited, "delete", "node", "r0", "r1")


async def _embedded(story: Story) -> Comparison:
    outcome = await EmbeddedReplay(story, None).run()
    return compared(outcome.pods, story.began, outcome.until)


def test_the_right_to_list_is_enough_for_a_twin_and_nothing_is_written(audited: Lab, tmp_path: Path) -> None:
    _apply(audited, _node("t0"), _node("t1"), _deployment("web", 3, "2"), _deployment("wide", 1, "9"))
    kubectl(audited, "wait", "deployment/web", "--for=condition=Available", "--timeout=60s")
    reader = _reader(audited, tmp_path, "list")
    file = tmp_path / "lab.twin"
    told = _bayplan("twin", "from", "--kubeconfig", str(reader), "-o", str(file))
    assert told.returncode == 0, told.stderr
    assert "lacking" not in told.stderr
    asked = _bayplan("simulate", "capacity", "--kubeconfig", str(reader), "-o", "json")
    assert asked.returncode == 0, asked.stderr
    assert _asked(audited).keys() == {"list"}

    found = json.loads(asked.stdout)
    assert all(each["verified"] for each in found["byPod"])
    (wide,) = [each for each in found["waiting"] if each["owner"].startswith("ReplicaSet/wide")]
    assert wide["proposals"]

    twin = twin_of(read_snapshot(file))
    before = _places_of(twin.world.store.objects(POD))
    asyncio.run(twin.advance(600))
    assert _places_of(twin.world.store.objects(POD)) == before
    real = json.loads(kubectl(audited, "get", "pods", "-A", "-o", "json"))["items"]
    assert before == {(each["metadata"]["uid"], each["spec"].get("nodeName", "")) for each in real}


def _places_of(pods: Any) -> set[tuple[str, str]]:
    return {(item.uid, item.view(Pod).spec.node_name) for item in pods}


def test_a_recording_survives_the_api_servers_restart_and_writes_nothing(audited: Lab, tmp_path: Path) -> None:
    reader = _reader(audited, tmp_path, "list", "watch")
    before = _asked(audited)
    out = tmp_path / "day.rec"

    def disturb() -> None:
        audited.restart_apiserver()
        _apply(audited, _deployment("late", 1, "1"))

    disturbing = threading.Timer(6, disturb)
    disturbing.start()
    told = _bayplan("simulate", "record", "--kubeconfig", str(reader), "--for", "45s", "--out", str(out))
    disturbing.join()
    assert told.returncode == 0, told.stderr
    recording = Recording(out)
    names = {each.object.name for each in recording.entries() if each.object and each.type == "ADDED"}
    assert "late" in names
    assert (_asked(audited) - before).keys() <= {
        "list",
        "watch",
        "get",
    }  # get: the server's time; refused, and told all the same
    assert json.loads(_bayplan("simulate", "replay", str(out), "-o", "json").stdout)["kind"] == "Replay"
