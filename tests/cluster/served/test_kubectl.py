"""A walk with the real kubectl through a served cluster."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

import pytest

from bayplan.cluster.lab.toolchain import LabUnavailableError, Toolchain

pytestmark = pytest.mark.slow


class Kubectl:
    """kubectl on one cluster."""

    def __init__(self, program: Path, kubeconfig: Path) -> None:
        self._command = (str(program), f"--kubeconfig={kubeconfig}")

    async def start(self, *arguments: str) -> asyncio.subprocess.Process:
        """A kubectl that runs on."""
        pipe = asyncio.subprocess.PIPE
        return await asyncio.create_subprocess_exec(*self._command, *arguments, stdin=pipe, stdout=pipe, stderr=pipe)

    async def __call__(self, *arguments: str, given: str = "", fails: bool = False) -> str:
        process = await self.start(*arguments)
        out, err = await asyncio.wait_for(process.communicate(given.encode()), 90)
        assert bool(process.returncode) == fails, f"{arguments}: {err.decode()}"
        return err.decode() if fails else out.decode()


@pytest.fixture(scope="session")
def kubectl_program() -> Path:
    """The lab's own kubectl."""
    try:
        return Toolchain().programs()["kubectl"]
    except LabUnavailableError as error:
        pytest.skip(f"no kubectl here: {error.message}")


@pytest.fixture
def kubectl(kubectl_program: Path, kubeconfig: Path) -> Kubectl:
    return Kubectl(kubectl_program, kubeconfig)


async def test_a_deployment_lives_and_goes(kubectl: Kubectl) -> None:
    watching = await kubectl.start("get", "pods", "-w", "-o", "name")
    assert "created" in await kubectl("create", "deployment", "web", "--image=nginx:1", "--replicas=3")
    assert "successfully rolled out" in await kubectl("rollout", "status", "deploy/web", "--timeout=60s")
    assert "web" in await kubectl("get", "deploy,rs,pods", "-o", "wide")
    assert "image updated" in await kubectl("set", "image", "deploy/web", "nginx=nginx:2")
    assert "successfully rolled out" in await kubectl("rollout", "status", "deploy/web", "--timeout=60s")
    assert "rolled back" in await kubectl("rollout", "undo", "deploy/web")
    history = await kubectl("rollout", "history", "deploy/web")
    assert [line.split()[0] for line in history.splitlines()[2:] if line] == ["2", "3"]
    assert "scaled" in await kubectl("scale", "deploy/web", "--replicas=5")
    await kubectl("wait", "--for=condition=Available", "deploy/web", "--timeout=60s")
    described = await kubectl("describe", "deploy", "web")
    assert "ScalingReplicaSet" in described
    assert "nginx starting" in await kubectl("logs", "deploy/web", "--tail=20")
    assert "deleted" in await kubectl("delete", "deploy", "web", "--wait=true")
    watching.terminate()
    seen, _ = await watching.communicate()
    assert seen.count(b"pod/web-") > 6


async def test_bayplan_up_is_a_cluster_to_kubectl(kubectl_program: Path, tmp_path: Path) -> None:
    target = tmp_path / "kubeconfig"
    flags = ("--empty", "--nodes", "2", "--startup-delay", "200ms", "--kubeconfig-out", str(target))
    up = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "bayplan", "up", *flags, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE
    )
    assert up.stderr is not None
    assert b"serving https://127.0.0.1:" in await asyncio.wait_for(up.stderr.readline(), 60)
    kubectl = Kubectl(kubectl_program, target)
    assert target.stat().st_mode & 0o777 == 0o600
    await kubectl("create", "deployment", "web", "--image=nginx:1", "--replicas=2")
    assert "successfully rolled out" in await kubectl("rollout", "status", "deploy/web", "--timeout=60s")
    assert "node-1" in await kubectl("get", "nodes")
    up.terminate()
    assert await asyncio.wait_for(up.wait(), 30) == 0
    assert not target.exists()


async def test_apply_validates_and_shares_fields(kubectl: Kubectl) -> None:
    good = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {k: v}\n"
    assert 'unknown field "bogus"' in await kubectl("apply", "-f", "-", given=good + "bogus: 1\n", fails=True)
    assert "created" in await kubectl("apply", "-f", "-", given=good)
    assert "unchanged" in await kubectl("apply", "-f", "-", given=good)
    assert "configured" in await kubectl("apply", "-f", "-", given=good.replace("k: v", "k: w"))
    other = await kubectl(
        "apply", "--server-side", "--field-manager=other", "-f", "-", given=good.replace("k: v", "k: x"), fails=True
    )
    assert "conflict" in other
    diff = await kubectl("get", "cm", "a", "-o", "json")
    assert json.loads(diff)["data"] == {"k": "w"}


async def test_a_node_is_drained_against_a_budget(kubectl: Kubectl) -> None:
    await kubectl("create", "deployment", "web", "--image=nginx:1", "--replicas=2")
    await kubectl("create", "pdb", "web", "--selector=app=web", "--min-available=1")
    await kubectl("rollout", "status", "deploy/web", "--timeout=60s")
    node = (await kubectl("get", "pods", "-o", "jsonpath={.items[0].spec.nodeName}")).strip()
    assert "drained" in await kubectl("drain", node, "--timeout=60s")
    assert "SchedulingDisabled" in await kubectl("get", "node", node)
    left = await kubectl("get", "pods", "-o", "jsonpath={.items[*].spec.nodeName}")
    assert node not in left.split()


async def test_the_rest_of_what_a_person_types(kubectl: Kubectl) -> None:
    assert "v1.36" in await kubectl("version")
    assert "deployments" in await kubectl("api-resources")
    assert "<[]Container>" in await kubectl("explain", "pod.spec.containers")
    assert "n0" in await kubectl("top", "nodes")
    assert (await kubectl("auth", "can-i", "create", "pods")).strip() == "yes"
    await kubectl("run", "x", "--image=nginx", "--restart=Never")
    await kubectl("wait", "--for=condition=Ready", "pod/x", "--timeout=60s")
    assert "Running" in await kubectl("get", "pod", "x")
    assert "Started" in await kubectl("get", "events")
    assert "labeled" in await kubectl("label", "pod", "x", "a=b")
    assert "annotated" in await kubectl("annotate", "pod", "x", "a=b")
    await kubectl("create", "namespace", "team")
    await kubectl("create", "job", "once", "--image=x", "-n", "team")
    assert "deleted" in await kubectl("delete", "namespace", "team", "--timeout=60s")
    assert "not found" in await kubectl("get", "namespace", "team", fails=True)


async def test_a_list_of_objects_is_applied_and_its_faults_are_found(kubectl: Kubectl) -> None:
    items = [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"k": "v"}} for name in "ab"]
    listed = json.dumps({"apiVersion": "v1", "kind": "List", "items": items})
    assert await kubectl("apply", "-f", "-", given=listed) == "configmap/a created\nconfigmap/b created\n"
    broken = listed.replace('"data"', '"dota"')
    assert 'unknown field "dota"' in await kubectl("apply", "-f", "-", given=broken, fails=True)
    unknown = '{"apiVersion": "example.com/v1", "kind": "Ship", "metadata": {"name": "a"}}'
    assert 'no matches for kind "Ship"' in await kubectl("apply", "-f", "-", given=unknown, fails=True)
