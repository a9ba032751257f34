"""Which cluster is meant, and what is said when it cannot be reached: one line, what to do, exit code 1."""

from __future__ import annotations

import base64
import json
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from bayplan.cli.main import main
from bayplan.cluster.credentials import Authority
from tests.cli.serving import Command, Serving

Doc = dict[str, Any]
Capture = pytest.CaptureFixture[str]


def _changed(serving: Serving, path: Path, change: Callable[[Doc], None]) -> str:
    document = yaml.safe_load(serving.kubeconfig.read_text())
    change(document)
    path.write_text(yaml.safe_dump(document))
    return str(path)


def _talk(capfd: Capture, *arguments: str) -> str:
    assert main(arguments) == 1
    out, err = capfd.readouterr()
    assert out == ""
    lines = err.splitlines()
    assert [line.split(":")[0] for line in lines] in (["error", "hint"], ["error"]), err
    return err


def test_a_running_up_is_taken_when_nothing_is_named_and_said_so(
    serving: Serving, away: Path, capfd: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = away / "xdg_state_home" / "bayplan" / "kubeconfig"
    state.parent.mkdir(parents=True)
    state.write_bytes(serving.kubeconfig.read_bytes())
    assert main(["get", "nodes", "-o", "name"]) == 0
    assert capfd.readouterr() == (
        "node/n0\nnode/n1\nnode/n2\n",
        f"using the cluster of the running bayplan up ({state})\n",
    )
    monkeypatch.setenv("KUBECONFIG", str(serving.kubeconfig))
    assert main(["get", "nodes", "-o", "name"]) == 0
    assert capfd.readouterr().err == ""


def test_one_that_no_longer_runs_is_passed_over(serving: Serving, away: Path, capfd: Capture) -> None:
    state = away / "xdg_state_home" / "bayplan" / "kubeconfig"
    state.parent.mkdir(parents=True)
    _changed(serving, state, _server(f"https://127.0.0.1:{_closed_port()}"))
    usual = away / "home" / ".kube" / "config"
    usual.parent.mkdir(parents=True)
    usual.write_bytes(serving.kubeconfig.read_bytes())
    assert main(["get", "node/n0", "-o", "name"]) == 0
    assert capfd.readouterr() == ("node/n0\n", f"{state} is left of a bayplan up that no longer runs: ignored\n")


def _server(url: str) -> Callable[[Doc], None]:
    def change(document: Doc) -> None:
        document["clusters"][0]["cluster"]["server"] = url

    return change


def _closed_port() -> int:
    with socket.socket() as once:
        once.bind(("127.0.0.1", 0))
        port: int = once.getsockname()[1]
        return port


def test_nothing_to_be_found_says_what_to_do(away: Path, capfd: Capture) -> None:
    talk = _talk(capfd, "get", "pods")
    assert talk.startswith(f"error: no kubeconfig: {away / 'home'}/.kube/config is not there\n")
    assert "bayplan up" in talk


def _wrong_token(document: Doc) -> None:
    document["users"][0]["user"]["token"] = "wrong"


def _no_context(document: Doc) -> None:
    document["current-context"] = "gone"


def _no_server(document: Doc) -> None:
    document["clusters"][0]["cluster"]["server"] = "nonsense"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        pytest.param(_wrong_token, "does not accept the credentials", id="a wrong token"),
        pytest.param(_no_context, 'there is no context "gone"', id="a context that is not there"),
        pytest.param(_no_server, 'expected a URL; got "nonsense"', id="an address that is none"),
        pytest.param(_server("https://127.0.0.1:1"), "connection refused", id="nobody there"),
        pytest.param(_server("https://no.such.host.invalid"), "no such host", id="a host that is not there"),
    ],
)
def test_a_cluster_that_cannot_be_used_is_one_line(
    serving: Serving, away: Path, capfd: Capture, change: Callable[[Doc], None], words: str
) -> None:
    file = _changed(serving, away / "config", change)
    assert words in _talk(capfd, "get", "pods", "--kubeconfig", file)


def test_a_kubeconfig_that_is_no_yaml_is_one_line(away: Path, capfd: Capture) -> None:
    file = away / "config"
    file.write_text("clusters: [\n")
    assert _talk(capfd, "get", "pods", "--kubeconfig", str(file)).startswith(f"error: {file}:2: not YAML")


@pytest.fixture
def answering(away: Path) -> Iterator[Callable[[datetime, bytes], str]]:
    """A server that says one thing to whoever asks, with a certificate of a given day; the answer is its kubeconfig."""
    sockets: list[socket.socket] = []

    def start(day: datetime, said: bytes) -> str:
        authority = Authority("test-ca", day)
        certificate, key = authority.serving("test")
        (away / "server.pem").write_bytes(certificate + key)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(away / "server.pem")
        listener = socket.create_server(("127.0.0.1", 0))
        sockets.append(listener)
        threading.Thread(target=_answer, args=(listener, context, said), daemon=True).start()
        cluster = {
            "server": f"https://127.0.0.1:{listener.getsockname()[1]}",
            "certificate-authority-data": base64.b64encode(authority.pem).decode(),
        }
        document = {
            "clusters": [{"name": "a", "cluster": cluster}],
            "users": [{"name": "a", "user": {"token": "t"}}],
            "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
            "current-context": "a",
        }
        (away / "config").write_text(yaml.safe_dump(document))
        return str(away / "config")

    yield start
    for each in sockets:
        each.close()


def _answer(listener: socket.socket, context: ssl.SSLContext, said: bytes) -> None:
    while True:
        try:
            peer, _ = listener.accept()
        except OSError:
            return
        try:
            with context.wrap_socket(peer, server_side=True) as secure:
                secure.recv(65536)
                secure.sendall(said)
        except OSError:  # the client did not trust us
            peer.close()


def _http(status: str, body: Doc) -> bytes:
    raw = json.dumps(body).encode()
    return f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {len(raw)}\r\n\r\n".encode() + raw


def test_an_expired_certificate_is_one_line(answering: Callable[[datetime, bytes], str], capfd: Capture) -> None:
    file = answering(datetime(2020, 1, 1, tzinfo=UTC), b"")
    assert "certificate has expired" in _talk(capfd, "get", "pods", "--kubeconfig", file)


def test_a_missing_permission_is_one_line(answering: Callable[[datetime, bytes], str], capfd: Capture) -> None:
    message = 'pods is forbidden: User "eve" cannot list resource "pods" in API group "" in the namespace "default"'
    status = {"kind": "Status", "status": "Failure", "message": message, "reason": "Forbidden", "code": 403}
    file = answering(datetime.now(UTC), _http("403 Forbidden", status))
    talk = _talk(capfd, "get", "pods", "--kubeconfig", file)
    assert talk == f"error: {message}\nhint: ask for a role that lets eve list pods in namespace default\n"


def test_the_namespace_is_that_of_the_flag(command: Command) -> None:
    assert command("get", "deploy", "-n", "kube-system").err == "No resources found in kube-system namespace.\n"


def _completed(monkeypatch: pytest.MonkeyPatch, capfd: Capture, line: str) -> list[str]:
    words = line.split()
    monkeypatch.setenv("COMP_WORDS", line)
    monkeypatch.setenv("COMP_CWORD", str(len(words) - (not line.endswith(" "))))
    monkeypatch.setenv("_BAYPLAN_COMPLETE", "bash_complete")
    main([])
    out, err = capfd.readouterr()
    assert err == ""
    return [each.removeprefix("plain,") for each in out.splitlines() if each]


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        pytest.param("bayplan get deploym", ["deployments"], id="a type"),
        pytest.param("bayplan get pods,deploym", ["pods,deployments"], id="a type after a comma"),
        pytest.param("bayplan get nodes n", ["n0", "n1", "n2"], id="names of the cluster"),
        pytest.param("bayplan get nodes n0 n", ["n1", "n2"], id="names that are not there yet"),
        pytest.param("bayplan describe node/n2", ["node/n2"], id="a name after a slash"),
        pytest.param("bayplan drain n1", ["n1"], id="nodes"),
        pytest.param("bayplan get pods -n kube-p", ["kube-public"], id="namespaces"),
        pytest.param("bayplan get pods --context b", ["bayplan"], id="contexts"),
        pytest.param("bayplan logs bi", ["big"], id="pods"),
        pytest.param("bayplan rollout status deploy/w", ["deploy/web"], id="below a group"),
        pytest.param("bayplan get nopes n", [], id="nothing for a type that is none"),
    ],
)
def test_completion_asks_the_cluster(
    command: Command, monkeypatch: pytest.MonkeyPatch, capfd: Capture, line: str, offered: list[str]
) -> None:
    assert _completed(monkeypatch, capfd, line) == offered


def test_completion_is_silent_where_no_cluster_is(away: Path, monkeypatch: pytest.MonkeyPatch, capfd: Capture) -> None:
    assert _completed(monkeypatch, capfd, "bayplan get nodes n") == []
    assert _completed(monkeypatch, capfd, "bayplan get pods --context b") == []
