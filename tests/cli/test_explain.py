"""`bayplan explain pod`: the pages, word for word, and the verb on a cluster."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from syrupy.assertion import SnapshotAssertion

from bayplan.cli.describe.page import Page
from bayplan.cli.explanation_page import Shown, explanation_document, explanation_page
from bayplan.cli.printers import document
from bayplan.cluster import kinds
from bayplan.cluster.kinds import Kind
from bayplan.cluster.live.cluster import LiveCluster
from bayplan.model.clock import parse_rfc3339
from bayplan.model.errors import Forbidden
from bayplan.scheduling.explanation import Explanation, Waiting, explain
from bayplan.scheduling.profiles import default_profile
from bayplan.scheduling.state import ClusterState
from bayplan.testing import Manifest, node, pod
from bayplan.testing.pods import PodManifest
from tests.cli.serving import Command, Serving

NOW = parse_rfc3339("2026-03-01T12:00:00Z")
QUEUE = Waiting("2026-03-01T11:48:00Z", 3, "0/4 nodes are available: 4 Insufficient cpu.")

NODES: list[Manifest[Any]] = [
    node("cpu-1").offers(cpu=16, memory="64Gi"),
    node("cpu-2").offers(cpu=16, memory="64Gi").cordoned(),
    node("gpu-1")
    .offers(cpu=32, memory="128Gi", gpu=8)
    .tainted("gpu", "yes")
    .labelled(disk="ssd")
    .having("metadata.managedFields", [{"manager": "kubelet"}]),
    node("gpu-2").offers(cpu=32, memory="128Gi", gpu=8).tainted("gpu", "yes"),
]
HOLDERS: list[Manifest[Any]] = [
    pod("web").requests(cpu=6, memory="8Gi").on("cpu-1"),
    pod("train").requests(cpu=30, gpu=6).on("gpu-1"),
    pod("tune").requests(cpu=8, gpu=2).on("gpu-2"),
]
TRAINER = pod("trainer", "vision").requests(cpu=4, gpu=8)


def explained(wanted: PodManifest, *more: Manifest[Any]) -> Explanation:
    return explain(ClusterState(each.view() for each in (*NODES, *HOLDERS, *more)), default_profile(), wanted.view())


def page_of(found: Explanation, queue: Waiting = QUEUE, shown: Shown | None = None) -> str:
    page = Page(NOW)
    explanation_page(found, queue, shown or Shown(), page)
    return page.text()


PLACED = pod("api").requests(cpu=2, memory="4Gi").tolerates("gpu")
EVICTED = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
URGENT = TRAINER.tolerates("gpu").pod_having("priority", 1000)


@pytest.mark.parametrize(
    ("wanted", "more", "shown"),
    [
        pytest.param(PLACED.on("gpu-2"), [PLACED.on("gpu-2")], Shown(), id="a pod on the node it would get"),
        pytest.param(PLACED.on("cpu-1"), [PLACED.on("cpu-1")], Shown(top=1), id="a pod that would go elsewhere now"),
        pytest.param(PLACED.on("cpu-2"), [PLACED.on("cpu-2")], Shown(), id="a pod on a node cordoned since"),
        pytest.param(pod("x").requests(cpu=60).on("cpu-1"), [], Shown(), id="a pod that would find no place any more"),
        pytest.param(PLACED, [], Shown(), id="a pending pod that fits by now"),
        pytest.param(PLACED, [], Shown(node="gpu-1"), id="one node that fits"),
        pytest.param(TRAINER, [], Shown(), id="a pending pod"),
        pytest.param(TRAINER, [], Shown(nodes=True), id="a pending pod and every refusal"),
        pytest.param(TRAINER, [], Shown(node="gpu-1"), id="a pending pod and one node"),
        pytest.param(URGENT, [], Shown(), id="a pending pod that may evict others"),
        pytest.param(TRAINER.gated("quota"), [], Shown(), id="a gated pod"),
        pytest.param(TRAINER, [], Shown(width=80), id="a pending pod on a terminal of 80 columns"),
        pytest.param(PLACED, [], Shown(top=1, width=80), id="a pod that fits on a terminal of 80 columns"),
        pytest.param(
            pod("x").requests(cpu=9).pod_having("priority", 9).having("status.nominatedNodeName", "cpu-1"),
            [
                pod("leaving")
                .requests(cpu=6)
                .on("cpu-1")
                .having("metadata.deletionTimestamp", "2026-03-01T11:59:00Z")
                .having("status.conditions", [EVICTED])
            ],
            Shown(),
            id="a pod whose victims are ending",
        ),
        pytest.param(
            pod("x").pod_having("volumes", [{"name": "v", "persistentVolumeClaim": {"claimName": "nowhere"}}]),
            [],
            Shown(),
            id="a pod that claims a volume that is not there",
        ),
        pytest.param(
            TRAINER.selecting(a="1", b="2", c="3", d="4"), [], Shown(), id="a pod that three changes do not help"
        ),
    ],
)
def test_a_page(wanted: PodManifest, more: list[Manifest[Any]], shown: Shown, snapshot: SnapshotAssertion) -> None:
    assert page_of(explained(wanted, *more), shown=shown) == snapshot


def test_a_pod_that_no_scheduler_has_tried() -> None:
    page = page_of(explained(PLACED.pod_having("schedulerName", "volcano")), Waiting("2026-03-01T11:48:00Z"))

    assert 'it fits, but no scheduler has tried it: check that "volcano" runs' in page


@pytest.mark.parametrize(
    ("wanted", "shown"),
    [
        pytest.param(PLACED.on("cpu-1"), Shown(top=2), id="a placed pod"),
        pytest.param(URGENT, Shown(nodes=True), id="a pending pod"),
    ],
)
def test_a_document(wanted: PodManifest, shown: Shown, snapshot: SnapshotAssertion) -> None:
    assert document(explanation_document(explained(wanted), QUEUE, shown), "json") == snapshot


# --- the verb


def test_a_pending_pod_on_a_cluster(command: Command) -> None:
    code, out, err = command("explain", "pod", "big")

    assert (code, err) == (0, "")
    assert "Message:     0/3 nodes are available: 3 Insufficient cpu. no new claims to deallocate" in out
    assert "NodeResourcesFit   3       3       Insufficient cpu (3)" in out
    assert "it asked for" in out


def test_a_placed_pod_on_a_cluster_in_all_ways_of_saying_it(command: Command) -> None:
    name = command("get", "pods", "-l", "app=web", "-o", "name").out.split()[0].removeprefix("pod/")
    code, out, _ = command("explain", "pod", name, "-o", "json")
    said = json.loads(out)

    assert code == 0
    assert said["outcome"] == "scheduled"
    assert len(said["scores"]) == 3
    assert all(sum(each["plugins"].values()) == each["total"] for each in said["scores"])
    for words in (["pods", name], ["po", name], [f"pod/{name}"]):
        assert json.loads(command("explain", *words, "-o", "json").out) == said
    assert yaml.safe_load(command("explain", "pod", name, "-o", "yaml").out) == said


def test_a_pod_that_is_not_there_yet(command: Command, tmp_path: Path) -> None:
    file = tmp_path / "later.yaml"
    container = {"name": "c", "image": "x", "resources": {"limits": {"cpu": "1", "nvidia.com/gpu": "2"}}}
    spec = {"containers": [container], "nodeSelector": {"zone": "z9"}, "priorityClassName": "system-node-critical"}
    file.write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "later"}, "spec": spec}))

    code, out, err = command("explain", "pod", "-f", str(file))

    assert (code, err) == (0, "")
    assert "Priority:    2000001000" in out  # as the API server would have stored it
    assert "its node selector did not ask for zone=z9: on" in out
    assert "Waiting" not in out
    assert command("get", "pod", "later").code == 1  # nothing was written


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        pytest.param(
            ["pod", "nope"], 1, 'error: pods "nope" not found in namespace "default"\n', id="a pod that is not there"
        ),
        pytest.param(["pod", "big", "--node", "n9"], 1, 'error: nodes "n9" not found\n', id="a node that is not there"),
        pytest.param(["pod"], 2, "error: expected the name of a pod, or -f with a file\n", id="no pod"),
        pytest.param(["pod", "big", "-f", "x"], 2, "error: expected the name of a pod, or -f", id="two pods"),
        pytest.param(["node", "n1"], 2, "error: No such command 'node'", id="another kind"),
        pytest.param(["pod", "-f", "/nowhere.yaml"], 1, "error: /nowhere.yaml: No such file", id="no such file"),
    ],
)
def test_what_cannot_be_explained(command: Command, arguments: list[str], code: int, said: str) -> None:
    told = command("explain", *arguments)

    assert (told.code, told.out) == (code, "")
    assert told.err.startswith(said)


def test_a_pod_that_has_run_its_course_is_not_explained(command: Command, serving: Serving) -> None:
    body = pod("done").behaves(pull="10ms", start="10ms", run_for="10ms").restarting("Never").document()
    serving.do(serving.cluster.create(kinds.POD, body, "default"))
    for _ in range(500):
        if "Completed" in command("get", "pod", "done").out:
            break

    told = command("explain", "pod", "done")

    assert told.code == 1
    assert told.err.startswith('error: pod "done" has run its course (Succeeded)')


def test_a_file_that_holds_no_pod_is_refused(command: Command, tmp_path: Path) -> None:
    file = tmp_path / "x.yaml"
    file.write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}}))

    assert command("explain", "pod", "-f", str(file)).err.startswith(
        f"error: {file}: expected one Pod; got 1 of kind ConfigMap"
    )


def _configuration(tmp_path: Path, **profile: Any) -> str:
    file = tmp_path / "scheduler.yaml"
    head = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    file.write_text(yaml.safe_dump({**head, "profiles": [profile]}))
    return str(file)


def test_the_scheduler_is_configured_as_the_file_says(command: Command, tmp_path: Path) -> None:
    name = command("get", "pods", "-l", "app=web", "-o", "name").out.split()[0]
    disabled = {"score": {"disabled": [{"name": "NodeResourcesFit"}]}}
    file = _configuration(tmp_path, schedulerName="default-scheduler", plugins=disabled)
    said = json.loads(command("explain", name, "--scheduler-config", file, "-o", "json").out)

    assert "NodeResourcesFit" not in said["scores"][0]["plugins"]

    other = command("explain", name, "--scheduler-config", _configuration(tmp_path, schedulerName="packing"))
    assert other.code == 1
    assert other.err.endswith(
        'scheduler.yaml has no profile "default-scheduler", which the pod asks for\nhint: it has packing\n'
    )


def test_what_is_wrong_with_the_file_is_told_with_its_line(command: Command, tmp_path: Path) -> None:
    file = _configuration(
        tmp_path, schedulerName="default-scheduler", plugins={"score": {"enabled": [{"name": "Fit"}]}}
    )
    code, out, err = command("explain", "pod", "big", "--scheduler-config", file)

    assert (code, out) == (1, "")
    assert f"{file}:7: profiles[0].plugins.score.enabled[0].name: unknown plugin" in err


def test_a_pod_in_another_namespace_is_pointed_out(command: Command) -> None:
    told = command("explain", "pod", "big", "-n", "kube-system")

    assert told.err == (
        'error: pods "big" not found in namespace "kube-system"\nhint: there is one in default: -n default\n'
    )


# --- rights


@pytest.fixture
def forbid(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Make the server refuse to list some kinds."""

    def forbid(*refused: Kind) -> None:
        real = LiveCluster.list

        async def listing(self: LiveCluster, kind: Kind, *args: Any, **others: Any) -> Any:
            if kind in refused:
                raise Forbidden(f'{kind.resource} is forbidden: User "reader" cannot list resource "{kind.plural}"')
            return await real(self, kind, *args, **others)

        monkeypatch.setattr(LiveCluster, "list", listing)

    return forbid


def test_a_class_that_may_not_be_read_is_left_out(
    command: Command, forbid: Callable[..., None], tmp_path: Path
) -> None:
    file = tmp_path / "later.yaml"
    file.write_text(yaml.safe_dump(pod("later").pod_having("priorityClassName", "high").document()))
    forbid(kinds.PRIORITY_CLASS)
    code, out, err = command("explain", "pod", "-f", str(file))

    assert (code, "Priority:    0" in out) == (0, True)
    assert err == "Warning: lacking the right to list priorityclasses: the pod's priority is not known.\n"


def test_what_may_not_be_read_is_said_and_left_out(command: Command, forbid: Callable[..., None]) -> None:
    forbid(kinds.POD_DISRUPTION_BUDGET, kinds.SERVICE, kinds.REPLICA_SET, kinds.EVENT)
    code, out, err = command("explain", "pod", "big")

    assert code == 0
    assert "Would Fit If:" in out
    assert err == (
        "Warning: lacking the right to list services, replicasets.apps, poddisruptionbudgets.policy\n"
        "Warning: not considered: spreading by default, which goes by a pod's services and owners; "
        "disruption budgets in preemption\n"
        "Warning: lacking the right to list events: how often the pod was tried is not known.\n"
    )


@pytest.mark.parametrize(
    ("refused", "lacking"),
    [
        pytest.param([kinds.NODE], "nodes", id="nodes"),
        pytest.param([kinds.POD], "pods", id="pods"),
        pytest.param([kinds.NODE, kinds.POD], "nodes, pods", id="both"),
    ],
)
def test_without_nodes_and_pods_nothing_can_be_decided(
    command: Command, forbid: Callable[..., None], refused: list[Kind], lacking: str
) -> None:
    forbid(*refused)
    code, out, err = command("explain", "pod", "big")

    assert (code, out) == (1, "")
    first, hint = err.splitlines()
    assert first == f"error: decisions need to list nodes and pods in all namespaces; lacking: {lacking}"
    assert hint.startswith("hint: ask for a ClusterRole")
