"""`bayplan describe`: the pages, word for word, and the verb on a cluster."""

from __future__ import annotations

from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from bayplan.cli.describe.nodes import Holder, node_page
from bayplan.cli.describe.others import other_page
from bayplan.cli.describe.page import Page, head
from bayplan.cli.describe.pods import pod_page
from bayplan.cli.describe.workloads import workload_page
from bayplan.model.clock import parse_rfc3339
from tests.cli.serving import Command

Doc = dict[str, Any]

NOW = parse_rfc3339("2026-03-01T12:00:00Z")
CREATED = "2026-03-01T10:30:00Z"

_CONTAINER: Doc = {
    "name": "train",
    "image": "trainer:7",
    "args": ["--epochs", "3"],
    "ports": [{"containerPort": 8080}],
    "resources": {"requests": {"cpu": "4", "memory": "16Gi"}, "limits": {"nvidia.com/gpu": "2"}},
    "env": [
        {"name": "MODE", "value": "fast"},
        {"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "hub", "key": "token"}}},
        {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
    ],
    "envFrom": [{"configMapRef": {"name": "common"}}],
    "volumeMounts": [{"name": "data", "mountPath": "/data", "readOnly": True}],
    "readinessProbe": {"httpGet": {"path": "/", "port": 8080}, "periodSeconds": 10, "timeoutSeconds": 1},
}
_SPEC: Doc = {
    "containers": [_CONTAINER],
    "nodeName": "a100-1",
    "priority": 100,
    "priorityClassName": "research",
    "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "set"}}, {"name": "tmp", "emptyDir": {}}],
    "nodeSelector": {"gpu": "a100"},
    "tolerations": [
        {"key": "gpu", "operator": "Exists", "effect": "NoSchedule"},
        {"key": "a", "value": "b", "effect": "NoExecute", "tolerationSeconds": 30},
        {"operator": "Exists"},
    ],
}
POD: Doc = {
    "kind": "Pod",
    "apiVersion": "v1",
    "metadata": {
        "name": "trainer-3",
        "namespace": "vision",
        "creationTimestamp": CREATED,
        "labels": {"app": "trainer", "team": "vision"},
        "annotations": {"note": "x" * 200, "kubectl.kubernetes.io/last-applied-configuration": "{}"},
        "ownerReferences": [{"kind": "Job", "name": "trainer", "controller": True}],
    },
    "spec": _SPEC,
    "status": {
        "phase": "Running",
        "hostIP": "10.0.0.7",
        "podIPs": [{"ip": "10.244.1.9"}],
        "qosClass": "Burstable",
        "startTime": CREATED,
        "conditions": [
            {"type": "PodScheduled", "status": "True", "lastTransitionTime": CREATED},
            {"type": "Ready", "status": "False", "reason": "ContainersNotReady", "lastTransitionTime": CREATED},
        ],
        "containerStatuses": [
            {
                "name": "train",
                "ready": False,
                "restartCount": 2,
                "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 20s"}},
                "lastState": {
                    "terminated": {
                        "reason": "OOMKilled",
                        "exitCode": 137,
                        "startedAt": "2026-03-01T11:50:00Z",
                        "finishedAt": "2026-03-01T11:58:00Z",
                    }
                },
            }
        ],
    },
}
EVENTS: list[Doc] = [
    {
        "type": "Warning",
        "reason": "BackOff",
        "message": "Back-off restarting failed container\n",
        "source": {"component": "kubelet"},
        "firstTimestamp": "2026-03-01T11:30:00Z",
        "lastTimestamp": "2026-03-01T11:59:30Z",
        "count": 4,
    },
    {
        "type": "Normal",
        "reason": "Scheduled",
        "message": "Successfully assigned \x1b[31mvision/trainer-3 to a100-1",
        "reportingComponent": "default-scheduler",
        "eventTime": "2026-03-01T10:30:01.000002Z",
    },
]
DEPLOYMENT: Doc = {
    "kind": "Deployment",
    "apiVersion": "apps/v1",
    "metadata": {
        "name": "web",
        "namespace": "vision",
        "creationTimestamp": CREATED,
        "annotations": {"deployment.kubernetes.io/revision": "2"},
    },
    "spec": {
        "replicas": 3,
        "selector": {"matchLabels": {"app": "web"}},
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": 1}},
        "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "w", "image": "w:2"}]}},
    },
    "status": {
        "replicas": 4,
        "updatedReplicas": 2,
        "availableReplicas": 3,
        "unavailableReplicas": 1,
        "conditions": [
            {"type": "Available", "status": "True", "reason": "MinimumReplicasAvailable", "lastUpdateTime": CREATED}
        ],
    },
}
NODE: Doc = {
    "kind": "Node",
    "apiVersion": "v1",
    "metadata": {"name": "a100-1", "creationTimestamp": CREATED, "labels": {"gpu": "a100"}},
    "spec": {"taints": [{"key": "gpu", "effect": "NoSchedule"}, {"key": "a", "value": "b", "effect": "NoExecute"}]},
    "status": {
        "addresses": [{"type": "InternalIP", "address": "10.0.0.7"}],
        "capacity": {"cpu": "64", "memory": "512Gi", "nvidia.com/gpu": "8", "pods": "110"},
        "allocatable": {"cpu": "63", "memory": "500Gi", "nvidia.com/gpu": "8", "pods": "110"},
        "nodeInfo": {"kubeletVersion": "v1.36.4", "machineID": ""},
        "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady", "lastTransitionTime": CREATED}],
    },
}


def _set(name: str, revision: str, wanted: int) -> Doc:
    meta = {"name": name, "annotations": {"deployment.kubernetes.io/revision": revision}}
    return {"metadata": meta, "spec": {"replicas": wanted}, "status": {"replicas": wanted}}


def test_an_annotation_of_several_lines_stays_in_its_column() -> None:
    page = Page(NOW)
    page.pairs(head({"metadata": {"name": "n", "annotations": {"b": "x: 1\ny: 2\n", "a": "short"}}}, NOW))
    lines = page.text().splitlines()
    start = next(at for at, line in enumerate(lines) if line.startswith("Annotations:"))
    assert [line.removeprefix("Annotations:").strip() for line in lines[start:]] == ["a: short", "b:", "x: 1", "y: 2"]
    column = lines[start].index("a: short")
    assert [line.index(line.strip()) for line in lines[start + 1 :]] == [column, column + 2, column + 2]


def test_a_pod(snapshot: SnapshotAssertion) -> None:
    page = Page(NOW)
    pod_page(POD, "2", EVENTS, page)
    assert page.text() == snapshot


def test_a_pod_that_waits(snapshot: SnapshotAssertion) -> None:
    page = Page(NOW)
    spec = {"containers": [{"name": "a", "image": "a"}], "initContainers": [{"name": "i", "image": "i"}]}
    meta = {"name": "waiting", "namespace": "default", "creationTimestamp": CREATED, "deletionTimestamp": CREATED}
    pod_page({"kind": "Pod", "metadata": meta, "spec": spec, "status": {"phase": "Pending"}}, "<none>", [], page)
    assert page.text() == snapshot


def test_a_node(snapshot: SnapshotAssertion) -> None:
    page = Page(NOW)
    allocatable = {"cpu": 63_000, "memory": 500 << 30, "nvidia.com/gpu": 8, "pods": 110}
    holders = [
        Holder("vision", "trainer-3", CREATED, {"cpu": 4000, "memory": 16 << 30, "nvidia.com/gpu": 2}, {}),
        Holder("nlp", "chat", CREATED, {"cpu": 500, "nvidia.com/gpu": 4}, {"nvidia.com/gpu": 4}),
    ]
    node_page(NODE, allocatable, holders, [], page)
    assert page.text() == snapshot


def test_a_deployment(snapshot: SnapshotAssertion) -> None:
    page = Page(NOW)
    workload_page(DEPLOYMENT, [_set("web-old", "1", 2), _set("web-new", "2", 2), _set("web-older", "0", 0)], [], page)
    assert page.text() == snapshot


def test_a_secret_keeps_its_values(snapshot: SnapshotAssertion) -> None:
    page = Page(NOW)
    meta = {"name": "hub", "namespace": "vision", "creationTimestamp": CREATED}
    secret = {"kind": "Secret", "apiVersion": "v1", "metadata": meta, "type": "Opaque", "data": {"token": "c2VjcmV0"}}
    other_page(secret, EVENTS[:1], page)
    assert "c2VjcmV0" not in page.text()
    assert page.text() == snapshot


@pytest.mark.parametrize(
    ("arguments", "lines"),
    [
        pytest.param(["node", "n0"], ["Name:           n0", "Allocated resources:"], id="a node"),
        pytest.param(
            ["deploy/web"],
            ["Replicas:           3 desired | 3 updated | 3 total | 3 available | 0 unavailable"],
            id="a deployment",
        ),
        pytest.param(["pod", "big"], ["Status:           Pending", "Events:"], id="a pod"),
        pytest.param(["svc", "kubernetes"], ["Spec:", "Events:  <none>"], id="a kind without a page of its own"),
        pytest.param(["rs", "-l", "app=web"], ["Controlled By:  Deployment/web"], id="by label"),
    ],
)
def test_objects_of_a_cluster_are_described(command: Command, arguments: list[str], lines: list[str]) -> None:
    code, out, err = command("describe", *arguments)
    assert (code, err) == (0, "")
    assert set(lines) <= set(out.splitlines())


def test_an_object_that_is_not_there_is_one_line(command: Command) -> None:
    assert command("describe", "pod", "nope") == (1, "", 'error: pods "nope" not found\n')
