"""`bayplan get`: kubectl's rows, and everything around them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from bayplan.cluster import kinds
from tests.cli.serving import Command, Serving, deployment


def _columns(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines()]


def test_pods_are_shown_in_the_columns_of_kubectl(command: Command) -> None:
    code, out, err = command("get", "pods")
    head, *rows = _columns(out)
    assert (code, err) == (0, "")
    assert head == ["NAME", "READY", "STATUS", "RESTARTS", "AGE"]
    assert [row[1:4] for row in rows] == [["0/1", "Pending", "0"], *[["1/1", "Running", "0"]] * 3]


def test_wide_rows_of_pods_end_with_their_gpus(command: Command) -> None:
    head, big, *web = _columns(command("get", "pods", "-o", "wide").out)
    assert head[-1] == "GPUS"
    assert big[-1] == "<none>"
    assert {row[-1] for row in web} == {"1"}


def test_ages_count_from_the_clock_of_the_server(command: Command) -> None:
    assert "<invalid>" not in command("get", "nodes").out


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        pytest.param(["nodes"], ["node/n0", "node/n1", "node/n2"], id="all of a type"),
        pytest.param(["no", "n1", "n0"], ["node/n1", "node/n0"], id="names after a short type, in their order"),
        pytest.param(["node/n1", "deploy/web"], ["node/n1", "deployment.apps/web"], id="types with names"),
        pytest.param(["deployments,svc"], ["deployment.apps/web", "service/kubernetes"], id="types with a comma"),
        pytest.param(["nodes", "-l", "zone in (z0,z2)"], ["node/n0", "node/n2"], id="by label"),
        pytest.param(["pods", "--field-selector", "spec.nodeName="], ["pod/big"], id="by field"),
        pytest.param(["nodes", "--sort-by", ".metadata.labels.zone"], ["node/n0", "node/n1", "node/n2"], id="sorted"),
        pytest.param(["deploy", "-A"], ["deployment.apps/web"], id="in all namespaces"),
        pytest.param(
            ["deploy", "nope", "web", "--ignore-not-found"], ["deployment.apps/web"], id="a missing one ignored"
        ),
    ],
)
def test_what_is_named_is_shown(command: Command, arguments: list[str], names: list[str]) -> None:
    assert command("get", *arguments, "-o", "name") == (0, "".join(f"{name}\n" for name in names), "")


def test_one_named_object_is_shown_whole_and_several_as_a_list(command: Command) -> None:
    one = json.loads(command("get", "node/n0", "-o", "json").out)
    assert (one["kind"], one["metadata"]["name"], list(one)) == ("Node", "n0", sorted(one))
    assert "managedFields" not in one["metadata"]
    assert "managedFields" in command("get", "node/n0", "-o", "yaml", "--show-managed-fields").out
    many = yaml.safe_load(command("get", "nodes", "-o", "yaml").out)
    assert (many["kind"], len(many["items"])) == ("List", 3)


def test_csv_has_every_column(command: Command) -> None:
    head, *rows = command("get", "pods", "-o", "csv").out.splitlines()
    assert head == "NAME,READY,STATUS,RESTARTS,AGE,IP,NODE,NOMINATED NODE,READINESS GATES,GPUS"
    assert len(rows) == 4


def test_several_types_are_tables_whose_names_say_the_type(command: Command) -> None:
    out = command("get", "deploy,rs,job", "--no-headers", "--show-labels").out
    first, second = out.split("\n\n")
    assert first.startswith("deployment.apps/web ")
    assert first.endswith("app=web")
    assert second.startswith("replicaset.apps/web-")


@pytest.mark.parametrize(
    ("arguments", "code", "talk"),
    [
        pytest.param(["jobs"], 0, "No resources found in default namespace.\n", id="an empty type"),
        pytest.param(["jobs", "-A"], 0, "No resources found\n", id="an empty type everywhere"),
        pytest.param(["pod", "x"], 1, 'error: pods "x" not found\n', id="a missing name"),
        pytest.param(
            ["nope"],
            1,
            'error: the server doesn\'t have a resource type "nope"\nhint: bayplan get --help; is the word misspelt?\n',
            id="an unknown type",
        ),
        pytest.param(["pods", "-l", "a in"], 1, "error: ", id="a selector that cannot be read"),
        pytest.param([], 2, "error: expected a type and names", id="nothing"),
        pytest.param(["pods", "deploy/web"], 2, 'error: "deploy/web" names its type', id="both manners at once"),
        pytest.param(["pods", "--sort-by", "a b["], 2, "error: Invalid value for --sort-by", id="a bad path"),
        pytest.param(["pods", "big", "-l", "a"], 2, "error: names and -l", id="names and labels"),
        pytest.param(["pods", "-w", "a", "b"], 2, "error: -w follows one", id="a watch of two names"),
    ],
)
def test_what_cannot_be_shown_is_said(command: Command, arguments: list[str], code: int, talk: str) -> None:
    told = command("get", *arguments)
    assert (told.code, told.out) == (code, "")
    assert told.err.startswith(talk)


def test_what_is_found_is_shown_even_if_something_is_missing(command: Command) -> None:
    code, out, err = command("get", "node", "n0", "nope", "-o", "name")
    assert (code, out, err) == (1, "node/n0\n", 'error: nodes "nope" not found\n')


def test_a_watch_shows_what_is_there_and_every_change_below_it(serving: Serving, away: Path) -> None:
    environment = {**os.environ, "KUBECONFIG": str(serving.kubeconfig)}
    arguments = [sys.executable, "-m", "bayplan", "get", "deploy", "-l", "app=seen", "-w"]
    with subprocess.Popen(arguments, env=environment, stdout=subprocess.PIPE, text=True) as watching:
        assert watching.stdout is not None
        try:
            serving.do(serving.cluster.create(kinds.DEPLOYMENT, deployment("seen", 0), "default"))
            lines = [watching.stdout.readline() for _ in range(2)]
            serving.do(serving.cluster.delete(kinds.DEPLOYMENT, "seen", "default"))
            lines.append(watching.stdout.readline())
        finally:
            watching.terminate()
    head, *rows = lines
    assert head.split() == ["NAME", "READY", "UP-TO-DATE", "AVAILABLE", "AGE"]
    assert {row.split()[0] for row in rows} == {"seen"}


def test_getting_loads_neither_schema_nor_engine_nor_what_is_slow(serving: Serving, away: Path) -> None:
    program = (
        "import sys; from bayplan.cli.main import main; code = main(['get', 'pods']);"
        "print(code, sorted(m for m in sys.modules if 'embedded' in m or m.split('.')[0] in"
        " ('rich', 'starlette', 'uvicorn', 'cryptography', 'prometheus_client', 'lightkube')))"
    )
    environment = {**os.environ, "KUBECONFIG": str(serving.kubeconfig)}
    ran = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert ran.stdout.splitlines()[-1] == "0 []"
