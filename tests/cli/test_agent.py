"""`bayplan agent` as a person, Prometheus and a service manager meet it."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import httpx2
import pytest
import yaml
from benchmarks.cpu_work import are_groups_writable
from syrupy.assertion import SnapshotAssertion

from bayplan.cli.main import main
from bayplan.model.errors import BayplanError
from bayplan.node.cgroup.detect import find_tree, survey
from tests.ledger.databases import having

Capture = pytest.CaptureFixture[str]


def _has_groups() -> bool:
    try:
        survey()
    except BayplanError:
        return False
    return True


def test_rules_for_prometheus(capsys: Capture, snapshot: SnapshotAssertion) -> None:
    assert main(["agent", "rules"]) == 0
    assert capsys.readouterr().out == snapshot


@pytest.mark.slow
def test_rules_are_such_that_prometheus_takes_them(capsys: Capture, tmp_path: Path) -> None:
    promtool = having("promtool", "prometheus")
    assert main(["agent", "rules"]) == 0
    (tmp_path / "rules.yaml").write_text(capsys.readouterr().out)
    done = subprocess.run([promtool, "check", "rules", tmp_path / "rules.yaml"], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert re.search(r"SUCCESS: \d+ rules found", done.stdout)


def test_rules_have_the_thresholds_of_the_settings(capsys: Capture) -> None:
    arguments = ["agent", "rules", "--set", "throttling.alert_percent=25", "--set", "throttling.hold=90s"]
    assert main(arguments) == 0
    groups = yaml.safe_load(capsys.readouterr().out)["groups"]
    alert = next(rule for group in groups for rule in group["rules"] if rule.get("alert") == "ContainerThrottled")
    assert alert["expr"].endswith("> 0.25")
    assert alert["for"] == alert["keep_firing_for"] == "90s"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param("--listen 8081", "expected an address and a port", id="a port alone"),
        pytest.param("--listen :8081", "or 0.0.0.0:8081 for all", id="a port on all addresses"),
        pytest.param("--listen localhost:http", "expected an address and a port", id="a port by name"),
        pytest.param("--system-reserved=cpu=1", "such stand after two dashes", id="a kubelet's flag as our own"),
        pytest.param("--wurst", "No such option", id="a flag of nobody"),
        pytest.param("-- --system-reserved=cpu=1", "expected --mode enforce", id="reservations that nobody keeps"),
        pytest.param("--beside-kubelet", "expected --mode enforce", id="rights without the mode that needs them"),
        pytest.param("--mode dream", "'dream' is not one of", id="an unknown mode"),
    ],
)
def test_bad_input(arguments: str, message: str, capsys: Capture) -> None:
    assert main(["agent", "run", *arguments.split()]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.skipif(not _has_groups(), reason="no control groups here")
def test_an_impossible_reservation_is_refused_before_anything_runs(capsys: Capture) -> None:
    assert main(["agent", "run", "--mode", "advise", "--", "--system-reserved=cpu=100000"]) == 1
    assert "has a reservation of 100k" in capsys.readouterr().err


@pytest.mark.skipif(not _has_groups(), reason="no control groups here")
def test_a_root_that_is_not_there_is_refused(capsys: Capture) -> None:
    assert main(["agent", "run", "--root", "/bayplan-no-such-group"]) == 1
    assert "group /bayplan-no-such-group is not there" in capsys.readouterr().err


@pytest.mark.skipif(not _has_groups(), reason="no control groups here")
def test_a_busy_port_names_the_flag() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        # a process of its own: a service takes over the logging of the one that it runs in
        command = [sys.executable, "-m", "bayplan", "agent", "run", "--listen", f"127.0.0.1:{port}"]
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert "hint: --listen ADDRESS:PORT" in ended.stderr


def test_no_groups_no_agent(tmp_path: Path, capsys: Capture) -> None:
    assert main(["agent", "run", "--cgroup-root", str(tmp_path)]) == 1
    assert f"no control groups are mounted below {tmp_path}" in capsys.readouterr().err


def test_no_kubelet_is_said(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bayplan.agent.kubelet.find_kubelet", lambda: None)
    assert main(["agent", "kubelet"]) == 0
    assert capsys.readouterr().err == "No kubelet found\n"
    assert main(["agent", "kubelet", "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out) is None


def test_a_kubelet_is_shown(capsys: Capture, monkeypatch: pytest.MonkeyPatch, snapshot: SnapshotAssertion) -> None:
    from bayplan.agent.kubelet import Kubelet
    from bayplan.model.quantity import Quantity
    from bayplan.node.configuration import NodeConfiguration, Threshold, read_configuration
    from bayplan.node.policies import NodePolicies, TopologyPolicies

    policies = NodePolicies(
        cpu="static",
        cpu_options={"full-pcpus-only": "true"},
        reserved=2,
        topology=TopologyPolicies("restricted", "pod"),
        memory="Static",
        reserved_memory={0: {"memory": 100 << 20}},
    )
    configuration = NodeConfiguration(
        policies,
        {"cpu": Quantity.of_milli(500)},
        {"cpu": Quantity.of_milli(1500)},
        eviction=Threshold(share=0.125),
        cgroup_driver="systemd",
    )
    found = Kubelet(42, configuration, "/var/lib/kubelet/config.yaml", "static", "Static")
    monkeypatch.setattr("bayplan.agent.kubelet.find_kubelet", lambda: found)
    assert main(["agent", "kubelet"]) == 0
    assert capsys.readouterr().out == snapshot
    assert main(["agent", "kubelet", "-o", "yaml"]) == 0
    text = capsys.readouterr().out
    assert text == snapshot
    read = read_configuration(yaml.safe_load(text)["configuration"])
    assert read == configuration


@pytest.mark.slow
@pytest.mark.skipif(not are_groups_writable(), reason="control groups are not writable here")
@pytest.mark.parametrize("mode", ["observe", "advise", "enforce"])
def test_it_runs_answers_and_ends_with_sigterm(mode: str, tmp_path: Path) -> None:
    """Below a group without limits it has nothing to write, so it can do no harm."""
    tree = find_tree()
    group = tree.create(f"/bayplan-test-agent-{os.getpid()}-{mode}")
    arguments = ["agent", "run", "--mode", mode, "--listen", "127.0.0.1:0", "--root", group.path]
    environment = {**os.environ, "XDG_STATE_HOME": str(tmp_path)}
    process = subprocess.Popen(
        [sys.executable, "-c", "import sys; from bayplan.cli.main import main; sys.exit(main())", *arguments],
        stderr=subprocess.PIPE,
        env=environment,
        text=True,
    )
    assert process.stderr is not None
    try:
        url = ""
        for line in process.stderr:
            if found := re.search(r"http://127\.0\.0\.1:\d+", line):
                url = found[0]
            if "watches groups" in line:
                break
        assert httpx2.get(f"{url}/livez").text == "ok"
        assert "bayplan_observed_groups 1.0" in httpx2.get(f"{url}/metrics").text
        process.send_signal(signal.SIGTERM)
        rest = process.stderr.read()
        assert process.wait() == 0, rest
    finally:
        process.kill()
        process.wait()
        process.stderr.close()
        tree.remove(group.path)
