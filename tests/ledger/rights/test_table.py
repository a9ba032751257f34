"""The table of rights, and what follows from it: the manifest, which people read, and the page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from syrupy.assertion import SnapshotAssertion

from bayplan.cli.main import main
from bayplan.cluster.kinds import KINDS
from bayplan.ledger.manifest import manifest
from bayplan.ledger.rights import OF_OWNERS, OWNERS, TABLE, Need, needs, rules
from bayplan.ledger.status.kinds import RULES
from bayplan.service.settings import LedgerSettings

Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def _nothing_set(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))


def _printed(capsys: Capture, *words: str) -> list[dict[str, Any]]:
    assert main(["ledger", "manifest", "--image", "registry.example.com/bayplan:1", *words]) == 0
    return list(yaml.safe_load_all(capsys.readouterr().out))


@pytest.mark.parametrize(
    "words",
    [
        pytest.param([], id="by default"),
        pytest.param(
            ["-n", "gpu", "--finalizers", "--kubelet-service", "--owners", "example.com/trainers,example.com/sweeps"],
            id="with everything",
        ),
    ],
)
def test_the_manifest(words: list[str], capsys: Capture, snapshot: SnapshotAssertion) -> None:
    assert main(["ledger", "manifest", "--image", "registry.example.com/bayplan:1", *words]) == 0
    assert capsys.readouterr().out == snapshot


def test_settings_that_hold_here_go_into_the_manifest_but_for_the_database(capsys: Capture) -> None:
    url = "postgresql://ledger:s3cret@db/ledger"
    sets = (f"ledger.database={url}", "ledger.retention=720h", "ledger.cluster=east", "ledger.spool_mib=1024")
    found = _printed(capsys, *(word for each in sets for word in ("--set", each)))
    assert "s3cret" not in str(found)
    (role,) = [each for each in found if each["kind"] == "ClusterRole"]
    assert not any("namespaces" in rule["resources"] for rule in role["rules"])  # its name need not be asked for
    pod = found[-1]["spec"]["template"]["spec"]
    told = {each["name"]: each.get("value") for each in pod["containers"][0]["env"]}
    assert told["BAYPLAN_LEDGER_DATABASE"] is None
    assert (told["BAYPLAN_LEDGER_RETENTION"], told["BAYPLAN_LEDGER_CLUSTER"]) == ("720h", "east")
    assert pod["volumes"] == [{"name": "spool", "emptyDir": {"sizeLimit": "2048Mi"}}]


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        pytest.param(
            "http://me:s3cret@prometheus:9090",
            {"valueFrom": {"secretKeyRef": {"name": "bayplan-ledger", "key": "prometheus"}}},
            id="with a password, from the Secret",
        ),
        pytest.param("http://prometheus:9090", {"value": "http://prometheus:9090"}, id="without, as it is"),
    ],
)
def test_where_the_pods_have_the_url_of_prometheus_from(url: str, expected: dict[str, Any], capsys: Capture) -> None:
    found = _printed(capsys, "--set", f"ledger.prometheus={url}")
    assert "s3cret" not in str(found)
    pod = found[-1]["spec"]["template"]["spec"]
    for each in (*pod["initContainers"], *pod["containers"]):
        assert {"name": "BAYPLAN_LEDGER_PROMETHEUS", **expected} in each["env"]


def test_a_lease_elsewhere_gets_its_role_there(capsys: Capture) -> None:
    found = _printed(capsys, "--set", "ledger.lease_namespace=leases")
    assert [each["metadata"]["namespace"] for each in found if each["kind"] == "Role"] == ["leases"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        pytest.param(["--owners", "trainers"], "expected GROUP/RESOURCE", id="an owner without group"),
        pytest.param(["--owners", "Example/trainers"], "expected GROUP/RESOURCE", id="an owner that RBAC cannot name"),
        pytest.param(["--owners", "*/*", "--finalizers"], "name the kinds in --owners", id="writing to everything"),
        pytest.param(["-n", "Two Words"], "expected the name of a namespace", id="no namespace"),
    ],
)
def test_what_is_refused(words: list[str], message: str, capsys: Capture) -> None:
    assert main(["ledger", "manifest", *words]) == 2
    told = capsys.readouterr()
    assert (told.out, message in told.err) == ("", True)


def test_every_kind_may_be_read_if_that_is_wanted(capsys: Capture) -> None:
    (role,) = [each for each in _printed(capsys, "--owners", "*/*") if each["kind"] == "ClusterRole"]
    assert {"apiGroups": ["*"], "resources": ["*"], "verbs": ["list", "watch"]} in role["rules"]


def test_nothing_is_granted_for_what_is_off() -> None:
    quiet = LedgerSettings(election="off", cluster="east")
    lines = needs(quiet, ())
    assert {verb for line in lines for verb in line.verbs.split()} == {"list", "watch"}
    assert [each["kind"] for each in manifest(lines, quiet, "x", "i")] == [
        "ServiceAccount",
        "ClusterRole",
        "ClusterRoleBinding",
        "Deployment",
    ]


def test_a_rule_holds_for_resources_with_the_same_verbs() -> None:
    lines = [Need("", "pods", "list watch", ""), Need("", "nodes", "list watch", ""), Need("", "pods", "patch", "")]
    assert rules(lines) == [
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["list", "watch", "patch"]},
        {"apiGroups": [""], "resources": ["nodes"], "verbs": ["list", "watch"]},
    ]


def test_owners_are_those_with_rules_and_named_as_the_server_names_them() -> None:
    assert len(OWNERS) == len(RULES)
    for kind, owner in zip(RULES, OWNERS, strict=True):
        known = KINDS.get(kind.kind)
        if known is not None and known.group == kind.group:
            assert owner.resource == known.plural


def _row(line: Need) -> str:
    name = f"{line.resource}.{line.group}" if line.group not in ("", "GROUP") else line.resource
    what = "owners" if line.group == "GROUP" else f"`{name}`"
    place = f" {line.name}" * bool(line.name) + f" in {line.namespace}" * bool(line.namespace)
    when = f"`ledger.{line.when.replace('=', '` is `')}`" if line.when else "always"
    return f"| {what}{place} | {line.verbs.replace(' ', ', ')} | {when} | {line.why} |"


def test_the_page_has_the_table() -> None:
    page = (Path(__file__).parents[3] / "docs/ledger-deployment.md").read_text()
    assert [row for row in map(_row, (*TABLE, *OF_OWNERS)) if row not in page] == []
