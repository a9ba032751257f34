"""GPUs by ResourceClaims: whole devices, partitions, shares, and claims that several pods use."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import pytest

from bayplan.cluster.kinds import RESOURCE_CLAIM, RESOURCE_SLICE
from bayplan.cluster.objects import Object
from bayplan.ledger.differ import nodes
from bayplan.ledger.differ.claims import DRIVERS, Pools, read_slice
from bayplan.ledger.differ.devices import Claimed, Devices
from bayplan.ledger.differ.pods import concerning
from bayplan.ledger.differ.reading import Odd
from bayplan.ledger.rows import GpuPeriod, GpuPod, GpuPodsEvent, NodePeriod, PodResource, RunningPeriod
from tests.ledger.differ.lives import GPU, Watcher, at, condition, node, pod, seen, spans

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


def pools(*slices: Object) -> Pools:
    return Pools([read_slice(each, []) for each in slices])


def known(slices: Sequence[Object], claims: Sequence[Object], odd: list[Odd]) -> Devices:
    """What is known once all are read."""
    devices = Devices()
    for each in slices:
        devices.slice(each, odd, gone=False)
    for each in claims:
        devices.claim(each, at(0), nobody, odd, gone=False)
    for kind in (RESOURCE_CLAIM, RESOURCE_SLICE):
        assert devices.changed() == ([], [])  # nothing is said by halves
        devices.complete(kind.name)
    devices.changed()
    return devices


def nobody(_uid: str) -> None:
    return None


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
    devices = known(slices, claims, odd)
    found = {uid: told.devices[DRIVER] for uid in ("u1", "u2") if (told := devices.claimed(uid)) is not None}
    assert {uid: amount for uid, amount in found.items() if amount} == expected
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
    assert pools(*slices).capacity == expected


def test_a_nodes_drivers_stand_in_the_order_of_their_slices() -> None:
    found = pools(*(offered(device("0"), device("1"), driver=driver) for driver in DRIVERS))
    assert list(found.capacity["a"]) == list(DRIVERS)  # not in that of a set, which is another in every process


def have(amount: int, since: float | None = None) -> Callable[[str], Claimed]:
    return lambda _: Claimed({DRIVER: amount}, None if since is None else at(since))


BOUND = condition("PodScheduled", "True", 5)


def with_claims(version: int, phase: str = "Pending", *conditions: dict[str, Any], **fields: Any) -> Object:
    return pod(version, phase, *conditions, gpus=0, spec={"resourceClaims": [{"name": "gpu"}]}, **fields)


def test_a_pod_with_claims_is_kept_from_its_first_version_on() -> None:
    assert concerning(with_claims(1), seen(6))
    assert not concerning(pod(1, gpus=0), seen(6))


def test_a_claim_heard_of_late_is_held_since_the_binding() -> None:
    watcher = Watcher()
    watcher.see(6, with_claims(1, "Pending", BOUND, node="a"))
    watcher.refresh(8, claimed=have(500))
    watcher.restart()
    watcher.see(30, with_claims(2, "Running", BOUND, node="a"))
    watcher.lose(40)
    assert spans(watcher.all(GpuPeriod), "resource", "gpus") == [(5, 40, DRIVER, 500)]
    assert [row.gpu_allocated for row in watcher.all(GpuPod)] == [500]
    assert [(row.resource, row.gpu_allocated) for row in watcher.all(PodResource)] == [(DRIVER, 500)]
    assert "Resized" not in {row.event_type for row in watcher.all(GpuPodsEvent)}


def test_a_slice_heard_of_late_corrects_what_its_device_counted_for() -> None:
    watcher = Watcher()
    watcher.see(6, with_claims(1, "Running", BOUND, node="a"), claimed=have(1000))
    watcher.refresh(20, claimed=have(500))
    watcher.lose(40)
    assert spans(watcher.all(GpuPeriod), "gpus") == [(5, 40, 500)]
    assert {row.gpus for row in watcher.all(RunningPeriod)} == {500}


def test_what_is_heard_of_after_the_end_still_counts_until_then() -> None:
    watcher = Watcher()
    watcher.see(6, with_claims(1, "Running", BOUND, node="a"))
    watcher.see(30, with_claims(2, "Succeeded", BOUND, node="a"))
    watcher.refresh(31, claimed=have(1000))
    assert spans(watcher.all(GpuPeriod), "gpus") == [(5, 30, 1000)]


def test_a_shared_claim_passes_on_when_its_holder_ends() -> None:
    watcher = Watcher()
    watcher.see(6, with_claims(1, "Running", BOUND, node="a"), claimed=have(0))
    assert spans(watcher.all(GpuPeriod)) == []
    watcher.refresh(21, claimed=have(1000, since=20))
    watcher.lose(40)
    assert spans(watcher.all(GpuPeriod), "gpus") == [(20, 40, 1000)]


def test_whose_a_shared_claim_is() -> None:
    ends = {"u1": at(20)}
    devices = known([TWO], [claim({"device": "0"}, pods=("u1", "u2"))], [])
    assert [devices.claimed(uid) for uid in ("u1", "u2")] == [Claimed({DRIVER: 1000}), Claimed({DRIVER: 0})]
    devices.claim(claim({"device": "0"}, pods=("u2", "u3")), at(21), ends.get, [], gone=False)
    assert devices.changed() == (["u1", "u2", "u3"], [])
    assert devices.claimed("u1") is None
    assert devices.claimed("u2") == Claimed({DRIVER: 1000}, at(20))
    devices.claim(claim({"device": "0"}, pods=("u3", "u2")), at(22), ends.get, [], gone=False)
    assert devices.claimed("u2") == Claimed({DRIVER: 1000}, at(20))
    devices.claim(claim(), at(30), ends.get, [], gone=True)
    assert (devices.claimed("u2"), devices.changed()) == (None, (["u2", "u3"], []))


def test_after_a_restart_what_a_known_pod_has_got_began_after_the_last_run() -> None:
    devices = Devices(frozenset({"u1"}), at(50))
    for uid in ("u1", "u2"):
        obj = claim({"device": "0"}, pods=(uid,))
        obj.meta = msgspec.structs.replace(obj.meta, name=uid)
        devices.claim(obj, at(60), nobody, [], gone=False)
    for kind in (RESOURCE_CLAIM, RESOURCE_SLICE):
        devices.complete(kind.name)
    devices.changed()
    told = {uid: devices.claimed(uid) for uid in ("u1", "u2")}
    assert {uid: each and each.since for uid, each in told.items()} == {"u1": at(50), "u2": None}


def test_a_driver_that_publishes_its_slices_anew_changes_nobodys_gpus() -> None:
    devices = known([CUT], [claim({"device": "half"})], [])
    devices.slice(CUT, [], gone=True)
    devices.changed()
    assert devices.pools is not None
    assert (devices.pools.capacity, devices.claimed("u1")) == ({}, Claimed({DRIVER: 500}))


def test_what_slices_offer_is_a_nodes_too() -> None:
    found, _ = nodes.changed(None, node(1, {GPU: "1"}), seen(1))
    found, rows = nodes.refreshed(found, seen(9, pools=pools(TWO)))
    assert spans([row for row in rows if isinstance(row, NodePeriod)], "resource", "gpus", "gpu_model") == [
        (9, None, DRIVER, 2000, "H100")
    ]
    assert (found.row.gpu_capacity, found.row.gpu_model) == (3000, "H100")
    found, rows = nodes.changed(found, node(2, {GPU: "1"}), seen(15))
    assert (len(rows), found.row.gpu_capacity) == (0, 3000)  # slices are not known yet: what was stays
    found, rows = nodes.refreshed(found, seen(20, pools=pools()))
    assert spans([row for row in rows if isinstance(row, NodePeriod)]) == [(9, 20)]
    assert found.row.gpu_capacity == 1000
