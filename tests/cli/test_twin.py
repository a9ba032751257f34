"""`bayplan twin` and what asks it: on a served cluster, whose writes are counted."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from syrupy.assertion import SnapshotAssertion

from bayplan.cli.main import main
from bayplan.cluster.kinds import NODE, POD
from bayplan.cluster.served.app import Api
from bayplan.model.clock import Instant, rfc3339
from bayplan.simulate.recording.file import Writer
from bayplan.simulate.twin.snapshot import read_snapshot
from tests.cli.serving import Command, Serving, pod
from tests.simulate.twin.test_from_ledger import a_ledger


@pytest.fixture
def requests(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """Every request to a served API: method and query."""
    seen: list[tuple[str, str]] = []
    answer = Api.__call__

    async def counted(self: Api, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            seen.append((scope["method"], scope["query_string"].decode()))
        await answer(self, scope, receive, send)

    monkeypatch.setattr(Api, "__call__", counted)
    return seen


@pytest.fixture
def twin(command: Command, tmp_path: Path) -> Path:
    """A twin of the served cluster."""
    path = tmp_path / "prod.twin"
    told = command("twin", "from", "-o", str(path))
    assert told.code == 0, told.err
    return path


def test_a_twin_is_taken_with_lists_alone(
    command: Command, serving: Serving, requests: list[tuple[str, str]], tmp_path: Path
) -> None:
    before = serving.cluster.world.store.revision
    told = command("twin", "from", "-o", str(tmp_path / "prod.twin"))
    assert (told.code, told.out) == (0, "")
    assert "3 nodes, 3 pods placed, 1 pending" in told.err
    command("simulate", "capacity")
    assert {method for method, _ in requests} == {"GET"}
    assert not [query for _, query in requests if "watch" in query]
    assert serving.cluster.world.store.revision == before


def test_the_file_has_what_the_cluster_has(twin: Path, serving: Serving) -> None:
    snapshot = read_snapshot(twin)
    assert [item.name for item in snapshot.of(NODE)] == ["n0", "n1", "n2"]
    assert {item.uid for item in snapshot.of(POD)} == {item.uid for item in serving.cluster.world.store.objects(POD)}


def test_a_twin_is_served_with_the_same_pods(
    twin: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "twin.kubeconfig"
    asked: list[str] = []

    async def show(stage: Any, service: Any, live: Any, **_: Any) -> None:
        """Instead of the picture: ask the served API."""
        from bayplan.cluster.live.cluster import LiveCluster
        from bayplan.cluster.live.config import find_access

        async with LiveCluster(find_access(config)) as cluster:
            asked.extend(item.name for item in (await cluster.list(POD)).items)

    monkeypatch.setattr("bayplan.cli.display.show.show", show)
    assert main(["twin", "serve", str(twin), "--kubeconfig-out", str(config)]) == 0
    assert "big" in asked
    assert len(asked) == 4
    assert "serving https://127.0.0.1:" in capfd.readouterr().err
    assert not config.exists()


def test_what_is_no_twin_is_refused_in_one_line(command: Command, tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("hello")
    told = command("twin", "serve", str(path))
    assert told.code == 1
    assert "is no recording" in told.err


def test_a_twin_of_the_past_comes_from_the_ledger_and_says_what_it_does_not_know(
    command: Command, requests: list[tuple[str, str]], tmp_path: Path
) -> None:
    url, then = asyncio.run(a_ledger(tmp_path / "day.db"))
    told = command("twin", "from", "--database", url, "--at", rfc3339(then), "-o", str(tmp_path / "then.twin"))
    assert told.code == 0, told.err
    assert "taints are not known" in told.err
    assert f"2 nodes, 1 pods placed, 1 pending, as of {rfc3339(then)}" in told.err
    assert not requests
    asked = command("simulate", "capacity", "--twin", str(tmp_path / "then.twin"), "-o", "json")
    assert [each["more"] for each in json.loads(asked.out)["byGpuModel"]] == [12, 6, 3, 1]


@pytest.mark.parametrize(
    "verb",
    [
        pytest.param(["twin", "serve", "FILE"], id="served"),
        pytest.param(["simulate", "capacity", "--twin", "FILE"], id="asked what fits"),
        pytest.param(["simulate", "run", "03-exhaustion", "--for", "1s", "--twin", "FILE"], id="put a scenario to"),
    ],
)
def test_a_twin_whose_file_was_cut_off_says_so(
    command: Command, verb: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def show(*_: Any, **__: Any) -> None:
        """Instead of the picture."""

    monkeypatch.setattr("bayplan.cli.display.show.show", show)
    path = tmp_path / "prod.twin"
    with Writer(path, "test", Instant(0)):
        pass
    told = command(*(str(path) if word == "FILE" else word for word in verb))
    assert told.code == 0, told.err
    assert "Warning: the file ends before all was read that was there" in told.err


# --- a scenario's events

_STORM = """\
duration: 10m
events:
  - {name: storm, at: 1m, do: {fail: {labels: {zone: z1}}}}
  - {name: rush, at: 2m, do: {scale: {workload: default/web, replicas: 6}}}
"""


def test_a_scenarios_events_are_put_to_a_twin_and_nothing_is_asked_of_the_cluster(
    command: Command, twin: Path, requests: list[tuple[str, str]], tmp_path: Path
) -> None:
    (tmp_path / "storm.yaml").write_text(_STORM)
    requests.clear()
    told = command("simulate", "run", str(tmp_path / "storm.yaml"), "--twin", str(twin), "-o", "json")
    assert (told.code, told.err) == (0, "")
    found = json.loads(told.out)
    assert (found["scenario"], found["nodes"], found["events"]) == ("storm on prod", 3, {"rush": 1, "storm": 1})
    assert found["created"] == 3 + 1  # three more, and one for that on the node that failed
    assert found["samples"][-1]["nodes"] == 2
    checked = command("simulate", "validate", "--twin", str(twin), str(tmp_path / "storm.yaml"))
    assert checked.out == f"{tmp_path / 'storm.yaml'}: valid: 0 nodes, 0 workloads, 0 groups of VMs, 2 events\n"
    assert not requests


def test_policies_are_compared_on_a_twin(command: Command, twin: Path, tmp_path: Path) -> None:
    (tmp_path / "storm.yaml").write_text(_STORM)
    flags = [
        "--twin",
        str(twin),
        "--policy",
        "default",
        "--policy",
        "mostallocated",
        "--seeds",
        "1",
        "--processes",
        "1",
    ]
    told = command("simulate", "compare", str(tmp_path / "storm.yaml"), *flags, "-o", "json")
    assert told.code == 0, told.err
    placed = next(each for each in json.loads(told.out)["measures"] if each["measure"] == "placed")
    assert placed["values"]["default"]["mean"] == 4


def test_a_scenario_without_nodes_needs_a_twin(command: Command, tmp_path: Path) -> None:
    (tmp_path / "storm.yaml").write_text(_STORM)
    told = command("simulate", "run", str(tmp_path / "storm.yaml"))
    assert told.code == 1
    assert "nodes: expected nodes, unless the scenario is put to a twin (--twin)" in told.err


def test_a_twin_is_not_for_the_lab(command: Command, twin: Path) -> None:
    told = command("simulate", "run", "03-exhaustion", "--twin", str(twin), "--engine", "lab")
    assert told.code == 2
    assert "--twin is a copy in the embedded engine" in told.err


# --- capacity


def _without_address(text: str) -> str:
    import re

    text = re.sub(r"https://127.0.0.1:\d+", "https://cluster", text)
    text = re.sub(r"web-[0-9a-z]+(-[0-9a-z]+)?", "web-HASH", text)
    return re.sub(r"as of \S+", "as of TIME", text)


def test_what_else_fits(command: Command, twin: Path, snapshot: SnapshotAssertion) -> None:
    told = command("simulate", "capacity", "--twin", str(twin))
    assert (told.code, told.err) == (0, "")
    assert _without_address(told.out) == snapshot


def test_how_many_more_of_a_pod_and_which_nodes_to_add(
    command: Command, twin: Path, tmp_path: Path, snapshot: SnapshotAssertion
) -> None:
    path = tmp_path / "train.yaml"
    path.write_text(yaml.safe_dump(pod("train", {"cpu": "4", "memory": "16Gi"})))
    told = command("simulate", "capacity", "--twin", str(twin), "--pod", str(path), "--replicas", "9")
    assert told.code == 0, told.err
    assert _without_address(told.out) == snapshot


def test_a_pod_that_fits_nowhere_is_told_what_would_help(
    command: Command, twin: Path, tmp_path: Path, snapshot: SnapshotAssertion
) -> None:
    path = tmp_path / "wide.yaml"
    path.write_text(yaml.safe_dump(pod("wide", {"cpu": "9"})))
    told = command("simulate", "capacity", "--twin", str(twin), "--pod", str(path), "--replicas", "1")
    assert _without_address(told.out) == snapshot


def test_the_answer_for_programs(command: Command, twin: Path) -> None:
    told = command("simulate", "capacity", "--twin", str(twin), "-o", "json")
    found = json.loads(told.out)
    assert found["kind"] == "Capacity"
    assert (found["nodes"], found["placed"], found["pending"]) == (3, 3, 1)
    assert all(each["verified"] for each in (*found["byGpuModel"], *found["byPod"]))
    assert found["waiting"][0]["pod"] == "big"


def test_a_node_shape_of_ones_own_may_be_added(command: Command, twin: Path, tmp_path: Path) -> None:
    shape = {"apiVersion": "v1", "kind": "Node", "status": {"capacity": {"cpu": "64", "memory": "1Ti", "pods": "110"}}}
    (tmp_path / "huge.yaml").write_text(yaml.safe_dump(shape))
    (tmp_path / "wide.yaml").write_text(yaml.safe_dump(pod("wide", {"cpu": "30"})))
    flags = ["--pod", str(tmp_path / "wide.yaml"), "--replicas", "4", "--node-shape", str(tmp_path / "huge.yaml")]
    told = command("simulate", "capacity", "--twin", str(twin), *flags, "-o", "json")
    found = json.loads(told.out)
    assert found["addition"] == {
        "wanted": 4,
        "enough": True,
        "exact": True,
        "nodes": {"huge": 2},
        "oneTakes": {"huge": 2},
        "verified": True,
    }
    assert found["rerun"]["placed"] == 4


def test_a_scenario_that_ships_is_asked_by_its_name(command: Command) -> None:
    told = command("simulate", "capacity", "--scenario", "05-gpu-shares", "-o", "json")
    assert told.code == 0, told.err
    assert json.loads(told.out)["nodes"] == 6


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        pytest.param(["--replicas", "3"], "add --pod FILE", id="replicas of nothing"),
        pytest.param(["--pod", "x.yaml", "--node-shape", "n.yaml"], "add --replicas N", id="a shape for no nodes"),
        pytest.param(["--twin", "a", "--scenario", "b"], "expected one of them", id="two things to ask"),
    ],
)
def test_flags_that_do_not_go_together(command: Command, flags: list[str], words: str) -> None:
    told = command("simulate", "capacity", *flags)
    assert told.code == 2
    assert words in told.err
