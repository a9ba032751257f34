"""GPUs by ResourceClaims: whole devices, partitions, shares, and claims that several pods use."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bayplan.cluster.kinds import RESOURCE_CLAIM, RESOURCE_SLICE
from bayplan.cluster.objects import Object
from bayplan.ledger.differ import nodes
from bayplan.ledger.differ.claims import Pools
from bayplan.ledger.differ.pods import concerns, refreshed
from bayplan.ledger.differ.reading import Odd
from bayplan.ledger.rows import GpuPeriod, GpuPod, NodePeriod, PodResource
from tests.ledger.differ.lives import GPU, Watcher, condition, node, pod, seen, spans

DRIVER = "gpu.nvidia.com"


def device(name: str, memory: str = "", counters: str = "gpu-0", **fields: Any) -> dict[str, Any]:
    taken = [{"counterSet": counters, "counters": {"memory": {"value": memory}}}] if memory else []
    named = {"productName": {"string": "H100"}, "index": {"int": 0}}
    return {"name": name, "attributes": named, "consumesCounters": taken, **fields}


def offered(*devices: dict[str, Any], generation: int = 1, driver: str = DRIVER, **fields: Any) -> Object:
    pool = {"name": "a", "generation": generation}
    spec = {"driver": driver, "pool": pool, "nodeName": "a", "devices": devices, **fields}
    return Object.from_raw(RESOURCE_SLICE, json.dumps({"metadata": {"name": "s"}, "spec": spec}).encode())


def claim(*results: dict[str, Any], pods: tuple[str, ...] = ("u1",), mark: str = "") -> Object:
    found = [{"driver": DRIVER, "pool": "a", **result} for result in results]
    meta = {"name": "c", "annotations": {mark: "true"}}
    reserved = [{"resource": "pods", "name": uid, "uid": uid} for uid in pods]
    status = {"allocation": {"devices": {"results": found}}, "reservedFor": reserved}
    return Object.from_raw(RESOURCE_CLAIM, json.dumps({"metadata": meta, "status": status}).encode())


COUNTERS = [{"name": "gpu-0", "counters": {"memory": {"value": "80Gi"}}}]
CUT = offered(device("whole", "80Gi"), device("half", "40Gi"), sharedCounters=COUNTERS)
TWO = offered(device("0", capacity={"memory": {"value": "80Gi"}}), device("1"))


@pytest.mark.parametrize(
    ("slices", "claims", "expected"),
    [
        pytest.param([TWO], [claim({"device": "0"}, {"device": "1"})], {"u1": 2000}, id="whole devices add up"),
        pytest.param([CUT], [claim({"device": "half"})], {"u1": 500}, id="a partition counts by its share"),
        pytest.param([CUT], [claim({"device": "whole"})], {"u1": 1000}, id="the largest partition is the device"),
        pytest.param(
            [TWO],
            [claim({"device": "0", "consumedCapacity": {"memory": "20Gi"}})],
            {"u1": 250},
            id="consumed capacity counts by its share",
        ),
        pytest.param(
            [TWO], [claim({"device": "0"}, pods=("u1", "u2"))], {"u1": 1000}, id="a claim of two pods counts once"
        ),
        pytest.param([TWO], [claim({"device": "0", "adminAccess": True})], {}, id="who only looks holds nothing"),
        pytest.param([TWO], [claim({"device": "0"}, pods=())], {}, id="a claim that nobody uses is held by nobody"),
        pytest.param([TWO], [claim({"device": "0", "driver": "net.example.com"})], {}, id="a network card is no GPU"),
        pytest.param(
            [TWO],
            [claim({"device": "0"}, mark="resource.kubernetes.io/extended-resource-claim")],
            {},
            id="a claim made for a plain request is counted as the request",
        ),
        pytest.param([], [claim({"device": "0"})], {"u1": 1000}, id="a device of which no slice is known is whole"),
        pytest.param(
            [CUT, offered(device("half"), generation=2)],
            [claim({"device": "half"})],
            {"u1": 1000},
            id="only the newest generation of a pool counts",
        ),
    ],
)
def test_what_pods_hold(slices: list[Object], claims: list[Object], expected: dict[str, int]) -> None:
    odd: list[Odd] = []
    held = Pools(slices, odd).held(claims, odd)
    assert {uid: found[DRIVER] for uid, found in held.items()} == expected
    assert odd == []


@pytest.mark.parametrize(
    ("slices", "expected"),
    [
        pytest.param([TWO], {"a": {DRIVER: 2000}}, id="whole devices"),
        pytest.param([CUT], {"a": {DRIVER: 1000}}, id="one device, however it may be cut"),
        pytest.param([offered(device("0"), driver="net.example.com")], {}, id="no GPUs"),
    ],
)
def test_what_nodes_offer(slices: list[Object], expected: dict[str, Any]) -> None:
    assert Pools(slices, []).capacity == expected


def test_a_claim_heard_of_late_is_held_since_the_binding() -> None:
    bound = condition("PodScheduled", "True", 5)
    watcher = Watcher()
    assert concerns(None, pod(1, gpus=0), seen(6, claimed=lambda _: {DRIVER: 500}))
    watcher.see(6, pod(1, "Pending", bound, node="a", gpus=0))
    assert watcher.pod is not None
    watcher.pod, rows = refreshed(watcher.pod, seen(8, claimed=lambda _: {DRIVER: 500}))
    watcher.ledger.take(rows)
    watcher.restart()
    watcher.see(30, pod(2, "Pending", bound, node="a", gpus=0))
    watcher.lose(40)
    assert spans(watcher.all(GpuPeriod), "resource", "gpus") == [(5, 40, DRIVER, 500)]
    assert [row.gpu_allocated for row in watcher.all(GpuPod)] == [500]
    assert [(row.resource, row.gpu_allocated) for row in watcher.all(PodResource)] == [(DRIVER, 500)]


def test_what_slices_offer_is_a_nodes_too() -> None:
    known, _ = nodes.changed(None, node(1, {GPU: "1"}), seen(1))
    known, rows = nodes.refreshed(known, seen(9, pools=Pools([TWO], [])))
    assert spans([row for row in rows if isinstance(row, NodePeriod)], "resource", "gpus", "gpu_model") == [
        (9, None, DRIVER, 2000, "H100")
    ]
    assert (known.row.gpu_capacity, known.row.gpu_model) == (3000, "H100")
    known, rows = nodes.refreshed(known, seen(20))
    assert spans([row for row in rows if isinstance(row, NodePeriod)]) == [(9, 20)]
    assert known.row.gpu_capacity == 1000
