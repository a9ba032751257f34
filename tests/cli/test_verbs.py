"""The small verbs on a cluster: delete, scale, logs, events, top."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
import yaml

from bayplan.cluster import kinds
from bayplan.cluster.embedded.kubelet.behaviour import PREFIX
from bayplan.cluster.served.following import news
from tests.cli.serving import QUICK, Command, Serving, deployment, pod, until


def _make(serving: Serving, *names: str) -> None:
    for name in names:
        body = {"metadata": {"name": name, "labels": {"made": "here"}}, "data": {"a": "1"}}
        serving.do(serving.cluster.create(kinds.CONFIG_MAP, body, "default"))


def test_objects_are_deleted_by_name_label_and_file(command: Command, serving: Serving, tmp_path: Path) -> None:
    _make(serving, "a", "b", "c", "d")
    file = tmp_path / "c.yaml"
    file.write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}))
    told = 'configmap "{}" deleted from default namespace\n'
    assert command("delete", "cm", "a", "--dry-run") == (0, told.format("a").replace("\n", " (dry run)\n"), "")
    assert command("delete", "cm/a") == (0, told.format("a"), "")
    assert command("delete", "-f", str(file)) == (0, told.format("c"), "")
    assert command("delete", "cm", "-l", "made=here") == (0, told.format("b") + told.format("d"), "")
    assert command("delete", "cm", "-l", "made=here") == (0, "", "No resources found\n")
    assert command("delete", "cm", "a") == (1, "", 'error: configmaps "a" not found\n')
    assert command("delete", "cm", "a", "--ignore-not-found").code == 0


def test_a_deletion_waits_for_the_end_and_can_be_hurried(command: Command, serving: Serving) -> None:
    for name in ("slow", "hurried", "forced"):
        serving.do(serving.cluster.create(kinds.POD, pod(name), "default"))
    assert command("delete", "pod", "slow", "--timeout=60s").out == 'pod "slow" deleted from default namespace\n'
    assert command("delete", "pod", "hurried", "--now").code == 0
    forced = command("delete", "pod", "forced", "--force")
    assert forced.out == 'pod "forced" force deleted from default namespace\n'
    assert forced.err.startswith("Warning: immediate deletion")
    assert command("get", "pods", "slow", "hurried", "forced", "--ignore-not-found").out == ""


def test_dependents_stay_when_orphaned(command: Command, serving: Serving) -> None:
    serving.do(serving.cluster.create(kinds.DEPLOYMENT, deployment("parent", 1), "default"))
    serving.do(until(serving.cluster, "parent", 1))
    assert command("delete", "deploy/parent", "--cascade=orphan").code == 0
    assert command("get", "rs", "-l", "app=parent", "-o", "name").out.startswith("replicaset.apps/parent-")
    assert command("delete", "rs", "-l", "app=parent", "--cascade=foreground").code == 0
    assert command("get", "pods", "-l", "app=parent").out == ""


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param([], id="nothing"),
        pytest.param(["cm"], id="a type alone"),
        pytest.param(["cm", "a", "-l", "x=y"], id="a name and labels"),
        pytest.param(["cm", "a", "-f", "x.yaml"], id="a name and a file"),
        pytest.param(["cm", "a", "--now", "--grace-period=3"], id="two graces"),
        pytest.param(["cm", "a", "--timeout=soon"], id="a time that is none"),
    ],
)
def test_a_deletion_that_is_not_clear_is_a_usage_error(command: Command, arguments: list[str]) -> None:
    code, out, err = command("delete", *arguments)
    assert (code, out) == (2, "")
    assert err.startswith("error: ")


def test_workloads_are_scaled(command: Command, serving: Serving) -> None:
    serving.do(serving.cluster.create(kinds.DEPLOYMENT, deployment("sized", 1), "default"))
    assert command("scale", "deploy/sized", "--replicas=2") == (0, "deployment.apps/sized scaled\n", "")
    serving.do(until(serving.cluster, "sized", 2))
    wrong = command("scale", "deploy", "sized", "--replicas=0", "--current-replicas=9")
    assert wrong[::2] == (
        1,
        "error: deployment.apps/sized: expected 9 replicas; there are 2\nhint: look and decide anew\n",
    )
    assert command("scale", "pod/big", "--replicas=1").err.startswith("error: pods cannot be scaled\n")
    assert command("scale", "deploy/sized", "--replicas=-1").code == 2
    command("delete", "deploy", "sized")


def test_logs_of_a_pod_a_workload_and_a_selection(command: Command) -> None:
    name = command("get", "pods", "-l", "app=web", "-o", "name").out.split()[0].removeprefix("pod/")
    whole = command("logs", name)
    assert (whole.code, bool(whole.out)) == (0, True)
    assert command("logs", name, "--tail=1").out == whole.out.splitlines(keepends=True)[-1]
    assert command("logs", "deploy/web", "--tail=1").err.startswith("Found 3 pods, using pod/web-")
    selected = command("logs", "-l", "app=web", "--prefix", "--tail=1").out.splitlines()
    assert len(selected) == 3
    assert all(line.startswith("[pod/web-") for line in selected)
    assert command("logs", name, "-c", "nope").code == 1
    assert command("logs", name, "-p").code == 1
    assert command("logs").code == 2
    assert command("logs", "nope") == (1, "", 'error: pods "nope" not found\n')


def test_events_are_told_the_latest_last(command: Command) -> None:
    head, *rows = command("events").out.splitlines()
    assert head.split() == ["LAST", "SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE"]
    assert any("Deployment/web" in row for row in rows)
    only = command("events", "--for", "pod/big", "--types=warning", "--no-headers").out.splitlines()
    assert {row.split()[1:4][1] for row in only} == {"FailedScheduling"}
    assert command("events", "--for", "pod/none").err == "No events found in default namespace.\n"
    assert command("events", "-n", "kube-system", "--types", "Nope").code == 2
    assert command("events", "-A", "-o", "csv").out.startswith("NAMESPACE,LAST SEEN,TYPE,REASON,OBJECT,MESSAGE\n")
    assert '"kind": "List"' in command("events", "-o", "json").out


def test_top_shows_usage_and_gpus(command: Command) -> None:
    head, *rows = command("top", "nodes", "--sort-by=cpu").out.splitlines()
    assert head.split() == ["NAME", "CPU(cores)", "CPU(%)", "MEMORY(bytes)", "MEMORY(%)", "GPUS"]
    assert sum(int(row.split()[-1].partition("/")[0]) for row in rows) == 3
    used = [int(row.split()[1].removesuffix("m")) for row in rows]
    assert used == sorted(used, reverse=True)
    head, *rows = command("top", "pod", "-A", "-l", "app=web").out.splitlines()
    assert head.split() == ["NAMESPACE", "NAME", "CPU(cores)", "MEMORY(bytes)", "GPUS"]
    assert [row.split()[-1] for row in rows] == ["1"] * 3
    assert command("top", "po", "--containers", "-l", "app=web", "--no-headers").out.split()[1] == "main"
    assert command("top", "node", "n0", "--no-headers").out.startswith("n0 ")
    assert command("top", "node", "nope").code == 1


def test_a_log_is_followed_to_the_end_of_the_container(command: Command, serving: Serving) -> None:
    body = pod("brief")
    body["metadata"]["annotations"] = {**QUICK, f"{PREFIX}run-for": "1s", f"{PREFIX}log-every": "1s"}
    body["spec"]["restartPolicy"] = "Never"
    serving.do(serving.cluster.create(kinds.POD, body, "default"))
    serving.do(_started(serving, "brief"))
    code, out, err = command("logs", "brief", "-f", "--prefix")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert len(set(lines)) == len(lines) >= 3
    assert {line.split()[0] for line in lines} == {"[pod/brief/main]"}


async def _started(serving: Serving, name: str) -> None:
    async with asyncio.timeout(30):
        fields = f"metadata.name={name},status.phase!=Pending"
        async for _ in serving.cluster.watch(kinds.POD, "default", fields=fields):
            return


@pytest.mark.parametrize(
    ("text", "sent", "new"),
    [
        pytest.param("a\nb\n", "a\n", "b\n", id="a line more"),
        pytest.param("a\nb\n", "a\nb\n", "", id="nothing more"),
        pytest.param("c\nd\n", "a\nb\n", "c\nd\n", id="too much since"),
        pytest.param("a\n", "", "a\n", id="the first"),
    ],
)
def test_only_what_is_new_is_sent_on(text: str, sent: str, new: str) -> None:
    assert news(text, sent) == new
