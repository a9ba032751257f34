"""`bayplan explain` beside a real kube-scheduler: the same sentence, suggestions that come true, read rights alone."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bayplan.cluster.lab.lab import Lab
from tests.ledger.rights.accounts import as_account, kubectl

pytestmark = pytest.mark.slow

Doc = dict[str, Any]

SPACE = "explaining"
READER: Doc = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "reader"}}
RULES = [{"apiGroups": [""], "resources": ["nodes", "pods"], "verbs": ["list"]}]
RBAC = "rbac.authorization.k8s.io"


def _node(name: str, **spec: Any) -> Doc:
    offers = {"cpu": "8", "memory": "32Gi", "pods": "110"}
    meta = {"name": name, "labels": {"for": SPACE}, "annotations": {"kwok.x-k8s.io/node": "fake"}}
    status = {"capacity": offers, "allocatable": offers}
    return {"apiVersion": "v1", "kind": "Node", "metadata": meta, "spec": spec, "status": status}


def _pod(name: str, cpu: str) -> Doc:
    container = {"name": "c", "image": "c:1", "resources": {"requests": {"cpu": cpu}}}
    spec = {"containers": [container], "nodeSelector": {"for": SPACE}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def _kubectl(lab: Lab, *arguments: str, given: str = "") -> str:
    return kubectl(lab, *arguments, "-n", SPACE, given=given)


def _apply(lab: Lab, *objects: Doc) -> None:
    _kubectl(lab, "apply", "-f", "-", given=json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))


def _explain(kubeconfig: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "bayplan", "explain", "pod", *arguments, "-n", SPACE]
    return subprocess.run([*command, "--kubeconfig", str(kubeconfig)], capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def filled(lab: Lab) -> Iterator[Lab]:
    """Two nodes of our own, one of them tainted, and pods that only these may take."""
    kubectl(lab, "create", "namespace", SPACE)
    role = {"apiVersion": f"{RBAC}/v1", "kind": "ClusterRole", "metadata": {"name": SPACE}, "rules": RULES}
    binding = {
        "apiVersion": f"{RBAC}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": SPACE},
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": SPACE},
        "subjects": [{"kind": "ServiceAccount", "name": "reader", "namespace": SPACE}],
    }
    tainted = _node("e1", taints=[{"key": "gpu", "value": "yes", "effect": "NoSchedule"}])
    _apply(lab, _node("e0"), tainted, READER, role, binding, _pod("small", "3"))
    _kubectl(lab, "wait", "pod/small", "--for=condition=PodScheduled", "--timeout=30s")
    _apply(lab, _pod("big", "7"))
    yield lab
    _kubectl(lab, "delete", "pod", "--all", "--force", "--grace-period=0")
    _kubectl(lab, "delete", f"clusterrole/{SPACE}", "node/e0", "node/e1", f"namespace/{SPACE}")


def _explained(lab: Lab, name: str) -> Doc:
    told = _explain(lab.kubeconfig, name, "-o", "json")
    assert told.returncode == 0, told.stderr
    found: Doc = json.loads(told.stdout)
    return found


def _told(lab: Lab) -> str:
    found = json.loads(_kubectl(lab, "get", "pod", "big", "-o", "json"))["status"].get("conditions") or []
    return "".join(each["message"] for each in found if each["type"] == "PodScheduled")


def test_the_sentence_is_that_of_the_real_scheduler(filled: Lab) -> None:
    if filled.options.kubernetes == "1.37":
        pytest.skip('our sentence is that of 1.36; 1.37 leaves out "no new claims to deallocate"')
    for _ in range(60):  # it speaks when it has tried, and again when nodes have changed
        ours = _explained(filled, "big")
        if ours["message"] == _told(filled):
            break
        time.sleep(0.5)

    assert ours["message"] == _told(filled)
    assert [each["wouldFitIf"] for each in ours["suggestions"][:2]] == [
        "it asked for 5 cpu instead of 7 (e0 has 5 left)",
        "it tolerated the taint gpu=yes:NoSchedule",
    ]


def test_a_suggestion_comes_true(filled: Lab) -> None:
    changed = _pod("tolerant", "7")
    changed["spec"]["tolerations"] = [{"key": "gpu", "value": "yes", "effect": "NoSchedule"}]
    _apply(filled, changed)
    _kubectl(filled, "wait", "pod/tolerant", "--for=condition=PodScheduled", "--timeout=30s")

    found = _explained(filled, "tolerant")
    assert found["node"] == found["decision"]["node"] == "e1"
    assert found["compared"] == "same"


def test_the_right_to_list_nodes_and_pods_is_enough(filled: Lab, tmp_path: Path) -> None:
    kubeconfig = as_account(filled, tmp_path, SPACE, "reader")

    told = _explain(kubeconfig, "small")
    assert told.returncode == 0
    assert "Because:" in told.stdout
    assert told.stderr.startswith("Warning: lacking the right to list namespaces, services, ")

    _kubectl(filled, "delete", "clusterrolebinding", SPACE)
    refused = _explain(kubeconfig, "small")
    assert refused.returncode == 1
    assert "lacking: nodes, pods\n" in refused.stderr
