"""Where the cluster is and who we are: kubectl's rules, and one clear line for whatever is wrong."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bayplan.cluster.live.config import ConfigError, find_access, read_kubeconfig

GOOD = """
apiVersion: v1
kind: Config
current-context: prod
clusters:
- name: prod
  cluster: {server: "https://prod.example:6443/", certificate-authority: ca/prod.pem}
- name: lab
  cluster: {server: "https://127.0.0.1:6443", insecure-skip-tls-verify: true, proxy-url: "http://proxy:3128"}
users:
- name: alice
  user: {tokenFile: token, as: bob, as-groups: [dev]}
- name: cloud
  user:
    exec: {apiVersion: client.authentication.k8s.io/v1, command: bin/login, args: [get], env: [{name: A, value: b}]}
contexts:
- name: prod
  context: {cluster: prod, user: alice, namespace: vision}
- name: lab
  context: {cluster: lab, user: cloud}
- name: nobody
  context: {cluster: lab}
- name: lost
  context: {cluster: gone, user: alice}
- name: stranger
  context: {cluster: lab, user: gone}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "config"
    path.write_text(GOOD)
    return path


def test_the_current_context_is_taken(file: Path) -> None:
    access = find_access(file)
    assert (access.context, access.server, access.namespace) == ("prod", "https://prod.example:6443", "vision")


def test_paths_are_relative_to_the_file(file: Path) -> None:
    access = find_access(file)
    assert access.cluster.certificate_authority == str(file.parent / "ca/prod.pem")
    assert access.user.token_file == str(file.parent / "token")
    plugin = find_access(file, "lab").user.exec
    assert plugin is not None
    assert plugin.command == str(file.parent / "bin/login")


def test_a_context_need_not_have_a_user(file: Path) -> None:
    access = find_access(file, "nobody")
    assert (access.user.token, access.namespace, access.cluster.proxy_url) == ("", "default", "http://proxy:3128")


def test_the_first_file_of_a_list_wins_and_missing_ones_are_passed_over(file: Path, tmp_path: Path) -> None:
    first = tmp_path / "first"
    first.write_text('clusters: [{name: lab, cluster: {server: "https://first:1"}}]\nusers:\ncontexts:\n')
    env = {"KUBECONFIG": os.pathsep.join(map(str, (tmp_path / "missing", first, file)))}
    config = read_kubeconfig(env=env)
    assert (config.current, config.clusters["lab"].server) == ("prod", "https://first:1")
    assert config.clusters["prod"].server == "https://prod.example:6443/"


def test_the_default_is_in_the_home_folder(file: Path, tmp_path: Path) -> None:
    (tmp_path / ".kube").mkdir()
    file.rename(tmp_path / ".kube" / "config")
    assert find_access(env={"HOME": str(tmp_path)}, service_account=tmp_path / "none").context == "prod"


@pytest.fixture
def account(tmp_path: Path) -> Path:
    for name, text in (("token", "t"), ("namespace", "agents\n"), ("ca.crt", "")):
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.mark.parametrize(
    ("host", "server"), [("10.0.0.1", "https://10.0.0.1:443"), ("fd00::1", "https://[fd00::1]:443")]
)
def test_in_a_pod_its_own_account_is_taken(account: Path, host: str, server: str) -> None:
    env = {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": "443"}
    access = find_access(env=env, service_account=account)
    assert (access.server, access.namespace) == (server, "agents")
    assert access.user.token_file == str(account / "token")


def test_in_a_pod_a_named_kubeconfig_still_wins(account: Path, file: Path) -> None:
    assert find_access(env={"KUBECONFIG": str(file)}, service_account=account).context == "prod"
    assert find_access(file, service_account=account).context == "prod"


def test_a_token_without_a_server_is_no_pod(account: Path) -> None:
    with pytest.raises(ConfigError, match="no KUBERNETES_SERVICE_HOST"):
        find_access(env={}, service_account=account)


@pytest.mark.parametrize(
    ("context", "message", "hint"),
    [
        pytest.param(
            "porod", 'there is no context "porod"', "known are lab, lost, nobody, prod, stranger", id="context"
        ),
        pytest.param("lost", 'context "lost" names the cluster "gone"', "known clusters are lab, prod", id="cluster"),
        pytest.param("stranger", 'context "stranger" names the user "gone"', "known users are alice, cloud", id="user"),
    ],
)
def test_what_is_not_there_is_named_with_what_is(file: Path, context: str, message: str, hint: str) -> None:
    with pytest.raises(ConfigError) as refusal:
        find_access(file, context)
    assert message in refusal.value.message
    assert refusal.value.hint == hint


CLUSTER = '\nclusters: [{name: a, cluster: {server: "https://a"}}]'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("a: b\nclusters: }", "config:2: not YAML", id="no YAML"),
        pytest.param(
            "clusters: {a: b}", "config:1: clusters: expected `array | null`, got `object`", id="a wrong shape"
        ),
        pytest.param("just words", "config:1: expected `object`, got `str`", id="no mapping"),
        pytest.param("", "no current context", id="nothing"),
        pytest.param(f"users: []{CLUSTER}", "no current context", id="no current context"),
        pytest.param(
            "\nclusters:\n- name: a\n  cluster: {server: 'a:6443'}",
            'config:4: clusters[0].cluster.server: expected a URL; got "a:6443"',
            id="a server that is no URL",
        ),
        pytest.param(
            "clusters:\n- name: a\n  cluster:\n    server: https://a\n    certificate-authority-data: '%'",
            "config:5: clusters[0].cluster.certificate-authority-data: not base64",
            id="an authority that is no base64",
        ),
        pytest.param(
            "users:\n- name: a\n  user:\n    auth-provider: {name: gcp}",
            'config:4: users[0].user.auth-provider: the auth provider "gcp" is not supported',
            id="an auth provider",
        ),
        pytest.param(
            "users:\n- name: a\n  user:\n    exec: {command: x}",
            "config:4: users[0].user.exec: object missing required field `apiVersion`",
            id="a plugin without a version",
        ),
        pytest.param("a: 1\na: 2", "config:2: a: expected once", id="a key twice"),
    ],
)
def test_a_broken_file_is_refused_in_one_line_with_its_place(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "config"
    path.write_text(text)
    with pytest.raises(ConfigError) as refusal:
        find_access(path)
    assert message in refusal.value.message
    assert "\n" not in refusal.value.message
    assert refusal.value.hint


def test_a_missing_or_unreadable_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"no kubeconfig: .*nowhere is not there"):
        find_access(tmp_path / "nowhere")
    with pytest.raises(ConfigError, match="Is a directory"):
        find_access(tmp_path)
