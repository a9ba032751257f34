"""GPUs by ResourceClaims through the recorder: whatever comes first, the same is held by the same pods."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest

from bayplan.cluster.embedded.engine import EmbeddedCluster
from bayplan.cluster.kinds import DEVICE_CLASS, NAMESPACE, NODE, POD, RESOURCE_CLAIM, RESOURCE_SLICE
from bayplan.cluster.lab.lab import Lab
from bayplan.cluster.live.cluster import LiveCluster
from bayplan.cluster.port import Cluster
from bayplan.ledger.following import Following
from bayplan.ledger.rows import GpuNode, GpuPeriod, GpuPod, GpuWorkload, NodePeriod
from bayplan.model.clock import SECOND, SystemClock
from tests.cluster.lab_fixture import lab
from tests.ledger.shell.memory import MemoryStore
from tests.ledger.shell.scenes import GPU, caught_up, gpu_cluster, gpu_node, recorded, until
from tests.ledger.shell.test_served import recording_of

__all__ = ["lab"]

DRIVER = "gpu.example.com"
NODE_NAME = "n0"


def offered(node: str = NODE_NAME) -> dict[str, Any]:
    """Two devices; the second may be had by halves."""

    def device(name: str, **fields: Any) -> dict[str, Any]:
        return {"name": name, "attributes": {"productName": {"string": "B200"}, "size": {"string": name}}, **fields}

    taken = [{"counterSet": "second", "counters": {"memory": {"value": "40Gi"}}}]

    return {
        "metadata": {"name": f"{node}-devices"},
        "spec": {
            "driver": DRIVER,
            "nodeName": node,
            "pool": {"name": node, "generation": 1, "resourceSliceCount": 2},
            "devices": [
                device("whole"),
                device("half", consumesCounters=taken),
                device("rest", consumesCounters=taken),
            ],
        },
    }


def counters(node: str = NODE_NAME) -> dict[str, Any]:
    """Counters are published in a slice of their own."""
    return {
        "metadata": {"name": f"{node}-counters"},
        "spec": {
            "driver": DRIVER,
            "nodeName": node,
            "pool": {"name": node, "generation": 1, "resourceSliceCount": 2},
            "sharedCounters": [{"name": "second", "counters": {"memory": {"value": "80Gi"}}}],
        },
    }


def claiming(name: str, claim: str) -> dict[str, Any]:
    return {
        "metadata": {"name": name},
        "spec": {
            "restartPolicy": "Never",
            "resourceClaims": [{"name": "gpu", "resourceClaimName": claim}],
            "containers": [{"name": "main", "image": "train:1", "resources": {"claims": [{"name": "gpu"}]}}],
        },
    }


def claim(name: str) -> dict[str, Any]:
    """It asks for the device of its name."""
    chosen = [{"cel": {"expression": f'device.attributes["{DRIVER}"].size == "{name}"'}}]
    request = {"name": "gpu", "exactly": {"deviceClassName": DRIVER, "selectors": chosen}}
    return {"metadata": {"name": name}, "spec": {"devices": {"requests": [request]}}}


def allocated(device: str, pods: dict[str, str], node: str = NODE_NAME) -> dict[str, Any]:
    result = {"request": "gpu", "driver": DRIVER, "pool": node, "device": device}
    reserved = [{"resource": "pods", "name": name, "uid": uid} for name, uid in pods.items()]
    return {"status": {"allocation": {"devices": {"results": [result]}}, "reservedFor": reserved}}


class Scene:
    """Two pods share a claim, a third has half a device."""

    def __init__(self, cluster: Cluster, namespace: str = "default", node: str = NODE_NAME) -> None:
        self.cluster, self.namespace, self.node = cluster, namespace, node
        self.uids: dict[str, str] = {}

    async def pods(self) -> None:
        for name, of in (("one", "whole"), ("two", "whole"), ("three", "half")):
            self.uids[name] = (await self.cluster.create(POD, claiming(name, of), self.namespace)).uid
            if isinstance(self.cluster, EmbeddedCluster):  # its scheduler allocates nothing
                await self.cluster.bind(name, self.node, self.namespace)

    async def claims(self) -> None:
        for name in ("whole", "half"):
            await self.cluster.create(RESOURCE_CLAIM, claim(name), self.namespace)

    async def allocations(self) -> None:
        await self.allocate("whole", "one", "two")
        await self.allocate("half", "three")

    async def allocate(self, name: str, *pods: str) -> None:
        status = allocated(name, {pod: self.uids[pod] for pod in pods}, self.node)
        await self.cluster.patch(RESOURCE_CLAIM, status, name, self.namespace, subresource="status")

    async def slices(self) -> None:
        await self.cluster.create(RESOURCE_SLICE, counters(self.node))
        await self.cluster.create(RESOURCE_SLICE, offered(self.node))


ORDERS = [
    order
    for order in itertools.permutations(("pods", "claims", "allocations", "slices"))
    if order.index("allocations") > max(order.index("pods"), order.index("claims"))
]


@pytest.mark.parametrize("order", [pytest.param(each, id=" then ".join(each)) for each in ORDERS])
async def test_the_order_in_which_they_become_known_does_not_matter(order: tuple[str, ...]) -> None:
    cluster, store = await gpu_cluster(nodes=1), MemoryStore()
    scene = Scene(cluster)
    async with recorded(cluster, store) as recorder:
        await until(lambda: {NODE.resource, POD.resource} <= recorder.told.keys())
        for step in order:
            await getattr(scene, step)()
            await caught_up(cluster, recorder, NODE, POD, RESOURCE_CLAIM, RESOURCE_SLICE)
            await cluster.advance(5)
        await caught_up(cluster, recorder, NODE, POD, RESOURCE_CLAIM, RESOURCE_SLICE)
    bound = {row.uid: row.bound_at for row in store.rows(GpuPod)}
    held = {row.pod_uid: (row.start_at, row.gpus, row.gpu_model, row.end_at) for row in store.rows(GpuPeriod)}
    assert held == {
        scene.uids["one"]: (bound[scene.uids["one"]], 1000, "B200", None),
        scene.uids["three"]: (bound[scene.uids["three"]], 500, "B200", None),
    }
    assert [row.gpu_capacity for row in store.rows(GpuNode)] == [10_000]
    assert {row.name: row.gpu_allocated for row in store.rows(GpuPod)} == {"one": 1000, "two": 0, "three": 500}


async def test_a_shared_claim_is_held_by_one_pod_after_the_other_and_a_restart_changes_nothing() -> None:
    cluster, store = await gpu_cluster(nodes=1), MemoryStore()
    scene, start = Scene(cluster), cluster.clock.now()
    async with recorded(cluster, store) as recorder:
        await until(lambda: {NODE.resource, POD.resource} <= recorder.told.keys())
        for step in ("slices", "claims", "pods", "allocations"):
            await getattr(scene, step)()
        await cluster.advance(10)
        await caught_up(cluster, recorder, NODE, POD, RESOURCE_CLAIM, RESOURCE_SLICE)
    before = store.rows(GpuPeriod), store.rows(NodePeriod)
    for _ in range(2):
        async with recorded(cluster, store) as recorder:
            await until(lambda: recorder.changes[RESOURCE_CLAIM.resource] >= 2)
            await caught_up(cluster, recorder, NODE, POD, RESOURCE_CLAIM, RESOURCE_SLICE)
            assert (store.rows(GpuPeriod), store.rows(NodePeriod)) == before
    async with recorded(cluster, store) as recorder:
        await until(lambda: recorder.changes[RESOURCE_CLAIM.resource] >= 2)
        await cluster.advance(20)
        await cluster.delete(POD, "one", "default", grace=0)
        await caught_up(cluster, recorder, POD)
        await cluster.advance(3)
        await scene.allocate("whole", "two")
        await caught_up(cluster, recorder, RESOURCE_CLAIM)
    ends = {row.pod_uid: row.end_at for row in store.rows(GpuPeriod)}
    starts = {row.pod_uid: row.start_at for row in store.rows(GpuPeriod)}
    assert ends[scene.uids["one"]] == starts[scene.uids["two"]] == start + 30 * SECOND
    assert len(starts) == 3


async def test_from_inside_claims_count_as_well() -> None:
    cluster, store = await gpu_cluster(nodes=1), MemoryStore()
    following = await Following.begin(cluster, store)
    scene = Scene(cluster)
    for step in ("pods", "claims", "allocations", "slices"):
        await getattr(scene, step)()
        await cluster.advance(5)
    await following.flush()
    assert {row.pod_uid: row.gpus for row in store.rows(GpuPeriod)} == {
        scene.uids["one"]: 1000,
        scene.uids["three"]: 500,
    }


async def test_a_cluster_without_these_kinds_is_recorded_all_the_same() -> None:
    cluster, store = await gpu_cluster(nodes=1), MemoryStore()
    known = cluster.world.store.registry.find

    def find(api_version: str, name: str) -> Any:
        return None if api_version.startswith("resource.k8s.io/") else known(api_version, name)

    cluster.world.store.registry.find = find  # type: ignore[method-assign]  # an older server
    await cluster.create(POD, claiming("one", "whole"), "default")
    await cluster.advance(5)
    async with recorded(cluster, store) as recorder:
        await caught_up(cluster, recorder, NODE, POD)
        await until(lambda: recorder.recording.devices.pools is not None)
    assert RESOURCE_CLAIM.resource not in recorder.told
    assert [row.gpu_allocated for row in store.rows(GpuPod)] == [0]


@pytest.mark.slow
async def test_claims_of_a_real_api_server_are_counted(lab: Lab) -> None:
    store, namespace, node = MemoryStore(), "ledger-devices", "ledger-devices"
    async with LiveCluster.find(lab.kubeconfig) as cluster:
        await cluster.create(NAMESPACE, {"metadata": {"name": namespace}})
        machine = gpu_node(node, 4)
        machine["metadata"]["annotations"] = {"kwok.x-k8s.io/node": "fake"}
        await cluster.create(NODE, machine)
        await cluster.create(DEVICE_CLASS, {"metadata": {"name": DRIVER}, "spec": {}})
        scene = Scene(cluster, namespace, node)
        async with recording_of(Path(lab.kubeconfig), store, SystemClock()) as recorder:
            await until(lambda: {NODE.resource, POD.resource} <= recorder.told.keys())
            await scene.claims()
            await scene.pods()
            await scene.slices()  # now the scheduler allocates
            await until(lambda: [name for _, name in _held(store, scene).values()] == ["B200", "B200"])
            held = _held(store, scene)
        async with recording_of(Path(lab.kubeconfig), store, SystemClock()) as recorder:
            await until(lambda: recorder.changes[RESOURCE_CLAIM.resource] >= 2)
            await until(lambda: recorder.recording.devices.pools is not None)
            assert _held(store, scene) == held
        for name in scene.uids:
            await cluster.delete(POD, name, namespace, grace=0)
        for name in ("devices", "counters"):
            await cluster.delete(RESOURCE_SLICE, f"{node}-{name}")
        await cluster.delete(NODE, node)
        await cluster.delete(DEVICE_CLASS, DRIVER)
        await cluster.delete(NAMESPACE, namespace)
    # 1.35 drops counters (DRAPartitionableDevices is off), so there a part is a device like any other
    part, all_of_them = (1000, 3000) if lab.options.kubernetes == "1.35" else (500, 2000)
    assert sorted(held.values()) == [(part, "B200"), (1000, "B200")]
    offers = {row.resource: row.gpus for row in store.rows(NodePeriod) if row.node_name == node and row.end_at is None}
    assert offers == {GPU: 4000, DRIVER: all_of_them}
    assert store.rows(GpuWorkload) == [] or all(row.namespace != namespace for row in store.rows(GpuWorkload))


def _held(store: MemoryStore, scene: Scene) -> dict[str, tuple[int, str]]:
    uids = set(scene.uids.values())
    return {row.pod_uid: (row.gpus, row.gpu_model) for row in store.rows(GpuPeriod) if row.pod_uid in uids}
