"""On a real control plane `bayplan get` prints what the real kubectl prints, byte for byte but for passing time."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from typing import Any

import pytest

from bayplan.cluster.lab.lab import Lab
from tests.cli.serving import deployment

pytestmark = pytest.mark.slow

Doc = dict[str, Any]

_JOB: Doc = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": {"name": "once"},
    "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "c:1"}]}}},
}
_CONFIG: Doc = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "conf"},
    "data": {"a": "1", "b": "2\n3\n"},
}


def _node(name: str) -> Doc:
    capacity = {"cpu": "8", "memory": "32Gi", "pods": "110", "nvidia.com/gpu": "8"}
    status = {"capacity": capacity, "allocatable": capacity}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": {"z": name}}, "status": status}


def _run(command: list[str], stdin: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, input=stdin, capture_output=True, text=True, check=False)


def _ours(lab: Lab, *arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    return _run([sys.executable, "-m", "bayplan", *arguments, "--kubeconfig", str(lab.kubeconfig)], stdin)


@pytest.fixture(scope="module")
def filled(lab: Lab) -> Lab:
    """Things of every sort, made by ourselves."""
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "parity"}}
    objects = [namespace, _node("p0"), _node("p1"), deployment("web", 2), _JOB, _CONFIG]
    whole = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
    made = _ours(lab, "apply", "-f", "-", "-n", "parity", stdin=whole)
    assert made.returncode == 0, made.stderr
    rolled = _ours(lab, "rollout", "status", "deploy/web", "-n", "parity", "--timeout=60s")
    assert rolled.returncode == 0, rolled.stderr
    return lab


def _timeless(text: str) -> str:
    """Without the seconds that pass between two commands, and the width they give a column."""
    text = re.sub(r"\b(AGE|DURATION|LAST SEEN) +", r"\1 ", text)
    return re.sub(r"(?<![\w-])(?:\d+[dhms])+(?![\w-]) *", "<age> ", text)


def _both(filled: Lab, *arguments: str) -> tuple[str, str]:
    theirs = _run(filled.kubectl_command(*arguments, "-n", "parity"))
    ours = _ours(filled, *arguments, "-n", "parity")
    return _timeless(ours.stdout + ours.stderr), _timeless(theirs.stdout + theirs.stderr)


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(["get", "pods"], id="pods"),
        pytest.param(["get", "pods", "--show-labels"], id="pods with labels"),
        pytest.param(["get", "pods", "-A"], id="pods everywhere"),
        pytest.param(["get", "deployments", "-o", "wide"], id="deployments, wide"),
        pytest.param(["get", "nodes", "-o", "wide"], id="nodes, wide"),
        pytest.param(["get", "nodes", "--sort-by=.metadata.labels.z", "--no-headers"], id="nodes sorted"),
        pytest.param(["get", "jobs", "-o", "wide"], id="jobs, wide"),
        pytest.param(["get", "deploy,rs,job,svc"], id="several types"),
        pytest.param(["get", "deploy/web", "cm/conf"], id="several objects"),
        pytest.param(["get", "all"], id="all"),
        pytest.param(["get", "all", "-o", "name"], id="names"),
        pytest.param(["get", "cm/conf", "-o", "json"], id="an object as JSON"),
        pytest.param(["get", "deploy", "-o", "json"], id="a list as JSON"),
        pytest.param(["get", "clusterroles"], id="a kind that only the server knows"),
        pytest.param(["get", "sts"], id="nothing"),
        pytest.param(["rollout", "status", "deploy/web"], id="a rollout that is done"),
    ],
)
def test_both_say_the_same(filled: Lab, arguments: list[str]) -> None:
    ours, theirs = _both(filled, *arguments)
    assert ours == theirs


def test_both_tell_the_same_events(filled: Lab) -> None:
    """kubectl leaves those of one second in any order."""
    ours, theirs = _both(filled, "events")
    assert sorted(ours.splitlines()) == sorted(theirs.splitlines())


def test_what_we_applied_is_unchanged_to_kubectl_and_the_other_way(filled: Lab) -> None:
    theirs = filled.kubectl_command("apply", "-f", "-", "-n", "parity")
    assert _run(theirs, json.dumps(_CONFIG)).stdout == "configmap/conf unchanged\n"
    changed = {**_CONFIG, "data": {"a": "2"}}
    assert _run(theirs, json.dumps(changed)).stdout == "configmap/conf configured\n"
    ours = _ours(filled, "apply", "-f", "-", "-n", "parity", stdin=json.dumps(changed))
    assert ours.stdout == "configmap/conf unchanged\n"


def test_a_real_node_is_drained(filled: Lab) -> None:
    node = _ours(filled, "get", "pods", "-n", "parity", "-l", "app=web", "-o", "wide", "--no-headers").stdout.split()[6]
    drained = _ours(filled, "drain", node, "--ignore-daemonsets", "--force", "--timeout=60s")
    assert drained.returncode == 0, drained.stderr
    assert (
        _ours(filled, "get", "pods", "-n", "parity", "-o", "name", f"--field-selector=spec.nodeName={node}").stdout
        == ""
    )
    assert _ours(filled, "uncordon", node).stdout == f"node/{node} uncordoned\n"
