"""The load of the binding benchmark can be placed at any size, and a machine without a lab gets a note."""

from __future__ import annotations

import json
from typing import Never

import pytest
from benchmarks.measure import Effort
from benchmarks.report import render

from bayplan.cluster.lab.toolchain import LabUnavailableError
from benchmarks import binding


def test_servers_grow_by_the_same_nodes_and_other_pods() -> None:
    assert binding.nodes_of(0, 6) == [*binding.nodes_of(0, 4), *binding.nodes_of(4, 6)]
    names = [json.loads(pod)["metadata"]["name"] for pod in (*binding.pods_of(0, 40), *binding.pods_of(40, 40))]
    assert len({*names}) == 80


def test_no_pod_needs_a_node_that_a_small_cluster_lacks() -> None:
    assert not any("nodeSelector" in json.loads(pod)["spec"] for pod in binding.pods_of(0, 500))
    assert any("taints" not in json.loads(node)["spec"] for node in binding.nodes_of(0, 2))


@pytest.mark.parametrize("pods", [1, 4, 12, 2_000])
def test_replica_sets_make_so_many_pods_in_all(pods: int) -> None:
    assert sum(json.loads(each)["spec"]["replicas"] for each in binding.sets_of(pods)) == pods


@pytest.mark.parametrize(
    "by_sets", [pytest.param(False, id="a client's pods are bound"), pytest.param(True, id="those of sets are bound")]
)
def test_in_process(by_sets: bool) -> None:
    assert binding.in_process(3, 8, by_sets) > 0


def test_without_a_lab_a_note_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def real(*_: object) -> Never:
        raise LabUnavailableError("no Go")

    def served(*_: object) -> list[binding.Speed]:
        return [binding.Speed(2.0, 3.0, 0.5)] * 3

    def ours(*_: object) -> float:
        return 1.0

    for name, stand_in in (("real", real), ("served", served), ("most", ours)):
        monkeypatch.setattr(binding, name, stand_in)
    printed = render(binding.run(Effort(0.002, 1)))
    assert "control plane " not in printed
    assert "  no lab here, so no figures of the real control plane: no Go\n" in printed
