"""`bayplan up` as a person and a pipe meet it."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from bayplan.cli.main import main

Capture = pytest.CaptureFixture[str]

_SMALL = """\
warmUp: 5m
nodes:
  - {name: gpu, count: 2, capacity: {cpu: 16, memory: 64Gi, nvidia.com/gpu: 8}}
teams:
  - name: vision
workloads:
  - name: serve
    namespace: vision
    kind: Deployment
    spec:
      replicas: 3
      template:
        spec:
          containers:
            - {name: main, image: serve, resources: {limits: {nvidia.com/gpu: 2}}}
"""
_SCHEDULER = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


@pytest.fixture
def small(tmp_path: Path) -> str:
    """A scenario that needs no time to be ready."""
    file = tmp_path / "small.yaml"
    file.write_text(_SMALL)
    return str(file)


@pytest.fixture(autouse=True)
def _state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


_SERVING = re.compile(rb"serving https://127\.0\.0\.1:\d+; kubeconfig \S+/state/bayplan/kubeconfig\n")


def _environment(**more: str) -> dict[str, str]:
    plain = {name: value for name, value in os.environ.items() if not name.startswith(("BAYPLAN_", "NO_COLOR"))}
    return {**plain, "XDG_CONFIG_HOME": "/nonexistent", "TERM": "xterm-256color", **more}


def _command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "bayplan", "up", *arguments]


def _ran(*arguments: str, **more: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(_command(*arguments), capture_output=True, check=False, env=_environment(**more))


def _on_a_terminal(*arguments: str, **more: str) -> tuple[int, str]:
    """The exit code and what the terminal got."""
    ours, theirs = pty.openpty()
    running = subprocess.Popen(_command(*arguments), stdout=theirs, stderr=theirs, env=_environment(**more))
    os.close(theirs)
    got = b""
    while select.select([ours], [], [])[0]:
        try:
            got += os.read(ours, 65536)
        except OSError:  # Linux's way of saying that the other side is closed
            break
    os.close(ours)
    return running.wait(), got.decode()


@pytest.mark.parametrize(
    ("arguments", "code", "error"),
    [
        pytest.param(
            ["--for", "1s", "--virtual", "1h"],
            2,
            "--for is about your time and --virtual about the cluster's: expected one of them",
            id="two ends",
        ),
        pytest.param(
            ["--for", "soon"],
            2,
            'Invalid value for \'--for\': expected a duration such as "250ms", "5m" or "1h30m"; got "soon"',
            id="no duration",
        ),
        pytest.param(
            ["--virtual", "0s"], 2, "Invalid value for '--virtual': expected some time; got \"0s\"", id="no time at all"
        ),
        pytest.param(
            ["--nodes", "0"],
            2,
            "--node-shape, --machine and --nodes 0 are for a bare cluster: add --empty",
            id="no nodes",
        ),
        pytest.param(
            ["--kubelet-config", "x.yaml"],
            2,
            "--node-shape, --machine and --nodes 0 are for a bare cluster: add --empty",
            id="a kubelet's configuration for the nodes of a scenario",
        ),
        pytest.param(
            ["--empty", "--kubelet-config", "x.yaml"],
            2,
            "--kubelet-config is for nodes that have a machine: add --machine",
            id="a kubelet's configuration without a machine",
        ),
        pytest.param(
            ["--empty", "--machine", "vm-8", "--node-shape", "x.yaml"],
            2,
            "--node-shape and --machine both say what a node has: expected one of them",
            id="two kinds of nodes",
        ),
        pytest.param(["--empty", "--machine", "epyc-42"], 1, 'no machine is named "epyc-42"', id="no such machine"),
        pytest.param(
            ["--scenario", "/nonexistent/x.yaml"], 1, "/nonexistent/x.yaml: No such file or directory", id="no file"
        ),
    ],
)
def test_what_cannot_be_done_is_refused(capsys: Capture, arguments: list[str], code: int, error: str) -> None:
    assert main(["up", *arguments]) == code
    out, err = capsys.readouterr()
    assert (out, err.splitlines()[0]) == ("", f"error: {error}")


def test_a_broken_scenario_is_refused_with_its_line(capsys: Capture, tmp_path: Path) -> None:
    file = tmp_path / "broken.yaml"
    file.write_text(_SMALL.replace("namespace: vision", "namespace: sight"))
    assert main(["up", "--scenario", str(file)]) == 1
    assert capsys.readouterr().err == (
        f'error: {file}:8: workloads[0].namespace: expected a team (vision), got "sight"\n'
    )


def test_a_broken_scheduler_configuration_is_refused_with_its_line(capsys: Capture, tmp_path: Path) -> None:
    file = tmp_path / "scheduler.yaml"
    file.write_text(f"{_SCHEDULER}podInitialBackoffSeconds: 0\n")
    assert main(["up", "--scheduler-config", str(file)]) == 1
    assert capsys.readouterr().err.splitlines()[0] == (
        f"error: {file}:3: podInitialBackoffSeconds: Invalid value: 0: must be greater than 0"
    )


def test_another_scheduler_places_otherwise(small: str, tmp_path: Path) -> None:
    file = tmp_path / "scheduler.yaml"
    file.write_text(f"{_SCHEDULER}profiles: [{{schedulerName: another}}]\n")
    ran = _ran("--scenario", small, "--virtual", "2h", "--scheduler-config", str(file))
    assert "running 0  pending 3" in ran.stdout.decode()  # all pods are the default scheduler's, and there is none


@pytest.mark.slow
def test_virtual_time_ends_with_the_same_bytes_whatever_the_hash_seed() -> None:
    runs = [_ran("--virtual", "90m", "--seed", "7", "-o", "json", PYTHONHASHSEED=seed) for seed in ("1", "2")]
    assert [run.returncode for run in runs] == [0, 0]
    assert runs[0].stdout == runs[1].stdout
    assert runs[0].stderr == b""
    document = json.loads(runs[0].stdout)
    assert (document["apiVersion"], document["kind"]) == ("v1", "List")
    assert {"Node", "Pod", "Job", "Deployment", "Event"} <= {item["kind"] for item in document["items"]}
    names = [
        (item["kind"], item["metadata"].get("namespace", ""), item["metadata"]["name"]) for item in document["items"]
    ]
    assert len(names) == len(set(names))


@pytest.mark.slow
def test_another_seed_is_another_day() -> None:
    runs = [_ran("--virtual", "30m", "--seed", seed, "-o", "json").stdout for seed in ("1", "2")]
    assert runs[0] != runs[1]


def test_virtual_time_without_output_ends_with_the_summary(small: str) -> None:
    ran = _ran("--scenario", small, "--virtual", "2h", "--nodes", "4")
    assert (ran.returncode, ran.stderr) == (0, b"")
    assert ran.stdout.decode().splitlines() == [
        "120m of cluster time",
        "pods      created 3  succeeded 0  failed 0  running 3  pending 0",
        "wait      median 0s  longest 0s  over 3 placed pods",
        "gpu-hours 64.0: allocated 12.0 (19%)  idle 52.0",
        "  vision      12.0   19%",
    ]


def test_a_scenarios_events_happen_and_are_told_at_the_end(small: str) -> None:
    file = Path(small)
    file.write_text(_SMALL + "events: [{name: less, at: 1h, do: {scale: {workload: serve, replicas: 1}}}]\n")
    ran = _ran("--scenario", small, "--virtual", "2h")
    lines = ran.stdout.decode().splitlines()
    assert lines[1].endswith("running 1  pending 0")
    assert lines[-1] == "events    less"


@pytest.mark.slow
def test_elsewhere_than_on_a_terminal_there_are_plain_lines_and_a_summary(small: str) -> None:
    ran = _ran("--scenario", small, "--for", "1s")
    lines = ran.stdout.decode().splitlines()
    assert ran.returncode == 0
    assert _SERVING.fullmatch(ran.stderr)
    assert re.fullmatch(r"\d\d:\d\d:\d\d  nodes 2/2  gpus 6/16 \(38%\)  running 3  .*", lines[0])
    assert any(line.endswith("running 3  pending 0") for line in lines)
    assert "\x1b" not in ran.stdout.decode()


@pytest.mark.slow
def test_with_output_the_lines_go_to_standard_error(small: str) -> None:
    ran = _ran("--scenario", small, "--for", "500ms", "-o", "json")
    assert json.loads(ran.stdout)["kind"] == "List"
    assert b"nodes 2/2" in ran.stderr


@pytest.mark.slow
def test_ctrl_c_ends_it_cleanly_with_the_summary(small: str) -> None:
    with subprocess.Popen(
        _command("--scenario", small), stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=_environment()
    ) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        running.stdout.readline()
        running.send_signal(signal.SIGINT)
        rest, err = running.communicate()
    assert running.returncode == 130
    assert _SERVING.fullmatch(err)
    assert b"of cluster time at 60 times its speed" in rest


@pytest.mark.slow
def test_ctrl_c_in_virtual_time_leaves_a_valid_partial_result() -> None:
    with subprocess.Popen(
        _command("--virtual", "10000h", "-o", "json"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=_environment(BAYPLAN_LOG="info"),
    ) as running:
        assert running.stderr is not None
        assert b"started" in running.stderr.readline()
        running.send_signal(signal.SIGINT)
        out, _ = running.communicate()
    assert running.returncode == 130
    assert json.loads(out)["kind"] == "List"


@pytest.mark.slow
def test_on_a_terminal_it_is_refreshed_in_place_and_leaves_the_terminal_as_it_was(small: str) -> None:
    code, got = _on_a_terminal("--scenario", small, "--for", "1s")
    assert code == 0
    shown, _, after = got.rpartition("\x1b[?1049l")
    assert shown.count("NODE") > 1
    assert re.search(r"scenario \S*small", shown)
    assert "\x1b[?1049h" in shown
    assert "running 3  pending 0" in after


@pytest.mark.slow
def test_no_colour_where_it_is_not_wanted(small: str) -> None:
    _, coloured = _on_a_terminal("--scenario", small, "--for", "300ms")
    _, plain = _on_a_terminal("--scenario", small, "--for", "300ms", NO_COLOR="1")
    colour = re.compile(r"\x1b\[(\d+;)*[34]\d(;\d+)*m")
    assert colour.search(coloured)
    assert not colour.search(plain)


@pytest.mark.slow
def test_a_bare_cluster_has_the_nodes_that_were_asked_for(tmp_path: Path) -> None:
    shape = tmp_path / "shape.yaml"
    shape.write_text("kind: Node\nmetadata: {labels: {zone: a}}\nstatus: {capacity: {cpu: 4, memory: 8Gi, pods: 10}}\n")
    ran = _ran("--empty", "--nodes", "2", "--node-shape", str(shape), "--for", "500ms", "-o", "json")
    nodes = [item for item in json.loads(ran.stdout)["items"] if item["kind"] == "Node"]
    assert [node["metadata"]["name"] for node in nodes] == ["node-1", "node-2"]
    assert nodes[0]["metadata"]["labels"] == {"zone": "a", "kubernetes.io/hostname": "node-1"}
    assert nodes[0]["status"]["allocatable"]["cpu"] == "4"


@pytest.mark.slow
def test_a_bare_cluster_has_the_machines_that_were_asked_for(tmp_path: Path) -> None:
    machine, kubelet = tmp_path / "machine.yaml", tmp_path / "kubelet.yaml"
    machine.write_text("{name: small, layout: {coresPerSocket: 4, memoryPerNode: 8Gi}}")
    kubelet.write_text("{cpuManagerPolicy: static, reservedSystemCPUs: '0'}")
    flags = ("--machine", str(machine), "--kubelet-config", str(kubelet))
    ran = _ran("--empty", "--nodes", "1", *flags, "--for", "500ms", "-o", "json")
    node = next(item for item in json.loads(ran.stdout)["items"] if item["kind"] == "Node")
    assert node["metadata"]["annotations"] == {
        "bayplan.dev/machine": machine.read_text(),
        "bayplan.dev/kubelet-config": kubelet.read_text(),
    }
    assert (node["status"]["capacity"]["cpu"], node["status"]["allocatable"]["cpu"]) == ("4", "3")


def test_a_kubelet_configuration_that_the_machine_cannot_have_is_refused(capsys: Capture, tmp_path: Path) -> None:
    kubelet = tmp_path / "kubelet.yaml"
    kubelet.write_text("kind: KubeletConfiguration\ncpuManagerPolicy: statik\n")
    assert main(["up", "--empty", "--machine", "vm-8", "--kubelet-config", str(kubelet)]) == 1
    assert f'error: {kubelet}:2: cpuManagerPolicy: unknown policy: "statik"' in capsys.readouterr().err


def test_a_shape_without_capacity_is_refused_with_its_line(capsys: Capture, tmp_path: Path) -> None:
    shape = tmp_path / "shape.yaml"
    shape.write_text("kind: Node\nmetadata: {}\n")
    assert main(["up", "--empty", "--node-shape", str(shape)]) == 1
    assert "shape.yaml:1: status.capacity: expected the node's capacity" in capsys.readouterr().err
