"""The loads of the scheduling benchmark are what they say, each time."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from benchmarks.scheduling_load import HOSTNAME, SCENARIOS, ZONE, ZONES, Load, Object, load

from bayplan.cluster.lab.toolchain import LabUnavailableError
from benchmarks import scheduling_peer


def _pods(given: Load) -> list[Object]:
    return [step.create for step in given.steps if step.create is not None]


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_load_is_the_same_each_time_and_another_with_another_seed(scenario: str) -> None:
    assert load(scenario, 5, 30, 10) == load(scenario, 5, 30, 10)
    assert load(scenario, 5, 30, 10) != load(scenario, 5, 30, 10, seed=2)


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_pods_come_unplaced_with_requests_and_names_of_their_own(scenario: str) -> None:
    given = load(scenario, 5, 300, 20)
    pods = _pods(given)
    assert (len(given.nodes), given.warmup, len(given.steps)) == (5, 20, 320)
    assert len({pod["metadata"]["uid"] for pod in pods}) == len({pod["metadata"]["name"] for pod in pods}) == len(pods)
    assert not any("nodeName" in pod["spec"] for pod in pods)
    requests = [pod["spec"]["containers"][0]["resources"]["requests"] for pod in pods]
    assert {tuple(each) for each in requests} == {("cpu", "memory")}


def test_only_what_was_created_is_deleted_once_and_after_the_warm_up() -> None:
    given = load("interleaved", 5, 2_000, 200)
    present: set[str] = set()
    deleted = 0
    for number, step in enumerate(given.steps):
        if step.create is not None:
            present.add("load/" + step.create["metadata"]["name"])
        elif step.delete is not None:
            assert number >= given.warmup
            present.remove(step.delete)
            deleted += 1
    assert 150 < deleted < 250


def test_shapes() -> None:
    def shapes(scenario: str) -> int:
        return len({json.dumps(pod["spec"]) for pod in _pods(load(scenario, 1, 1_500))})

    assert {scenario: shapes(scenario) for scenario in ("recurring", "distinct", "spread", "affinity")} == {
        "recurring": 1,
        "distinct": 1_700,
        "spread": 20,
        "affinity": 20,
    }
    assert 290 < shapes("interleaved") <= 300


def test_nodes_are_of_many_kinds() -> None:
    nodes = load("recurring", 1_000, 1).nodes
    labels = [node["metadata"]["labels"] for node in nodes]
    assert {each[ZONE] for each in labels} == set(ZONES)
    assert len({each[HOSTNAME] for each in labels}) == 1_000
    assert {node["status"]["capacity"]["cpu"] for node in nodes} == {"8", "16", "32", "64"}
    effects = Counter(taint["effect"] for node in nodes for taint in node["spec"].get("taints", ()))
    assert all(10 < effects[effect] < 60 for effect in ("NoSchedule", "PreferNoSchedule"))


def test_without_go_the_error_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(LabUnavailableError, match="no Go here"):
        scheduling_peer.build()


@pytest.mark.slow
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_the_peer_decides_the_same_each_time(scenario: str, tmp_path: Path) -> None:
    try:
        scheduling_peer.build()
    except LabUnavailableError as error:
        pytest.skip(str(error))
    path = tmp_path / "load.json"
    given = load(scenario, 120, 60, 20)
    given.write(path)
    first, second = (scheduling_peer.run(path, 0, 1, 50, placements=True) for _ in range(2))
    assert first.node_of == second.node_of
    assert set(first.node_of.values()) <= {node["metadata"]["name"] for node in given.nodes}
    measured = given.steps[given.warmup :][:50]
    assert first.decisions == sum(step.create is not None for step in measured)
