"""GPUs that are shared in time: a piece counts as its part of a device, for the ledger as for `up`'s own account."""

from __future__ import annotations

from typing import Any

import pytest

from bayplan.cluster.kinds import NODE, POD
from bayplan.cluster.live.reflector_core import Change
from bayplan.ledger.differ.gpus import GpuVendors
from bayplan.ledger.following import Following
from bayplan.ledger.recording import Recording, When
from bayplan.ledger.rows import GpuPeriod, NodePeriod, Rows
from bayplan.model.clock import SECOND
from bayplan.simulate.tally import Tally
from tests.ledger.differ.lives import at, condition, node, pod
from tests.ledger.shell.memory import MemoryStore
from tests.ledger.shell.scenes import CLUSTER, gpu_cluster, gpu_node, gpu_pod

HOUR = 3600 * SECOND
SHARED = "nvidia.com/gpu.shared"
PRODUCT, REPLICAS = "nvidia.com/gpu.product", "nvidia.com/gpu.replicas"
LABELS = {PRODUCT: "A100", REPLICAS: "4"}


@pytest.mark.parametrize(
    ("resource", "labels", "expected"),
    [
        pytest.param(SHARED, LABELS, 4, id="a resource with a name of its own"),
        pytest.param("nvidia.com/gpu", LABELS, 1, id="the whole devices beside it"),
        pytest.param("nvidia.com/gpu", {**LABELS, PRODUCT: "A100-SHARED"}, 4, id="shared under the usual name"),
        pytest.param("nvidia.com/mig-1g.5gb.shared", {"nvidia.com/mig-1g.5gb.replicas": "2"}, 2, id="shared instances"),
        pytest.param(SHARED, {}, 1, id="nothing says how often"),
        pytest.param(SHARED, {REPLICAS: "many"}, 1, id="a label that is no number"),
        pytest.param(SHARED, {REPLICAS: "0"}, 1, id="a label that is no sharing"),
    ],
)
def test_into_how_many_pieces_devices_are_cut(resource: str, labels: dict[str, str], expected: int) -> None:
    assert GpuVendors().pieces(resource, labels) == expected
    assert GpuVendors(shares={resource: 250}).pieces(resource, labels) == 1  # a configured share says it all


def shared(version: int, **fields: Any) -> Change:
    asked = [{"name": "main", "resources": {"requests": {SHARED: "2"}}}]
    bound = condition("PodScheduled", "True", 5)
    return Change("ADDED", pod(version, "Running", bound, node="a", spec={"containers": asked}, **fields))


@pytest.mark.parametrize("first", ["pod", "node"])
def test_the_order_in_which_pod_and_node_are_seen_does_not_matter(first: str) -> None:
    recording, rows = Recording(CLUSTER), Rows()
    seen = {"pod": (POD, shared(1)), "node": (NODE, Change("ADDED", node(1, {SHARED: "8"}, LABELS)))}
    for second, name in enumerate(sorted(seen, key=lambda each: each != first), 10):
        kind, change = seen[name]
        recording.take(kind, (change,), When(at(second)), rows)
    recording.settle(at(12), rows)
    periods = {row.start_at: row for row in rows.by_type[GpuPeriod] if isinstance(row, GpuPeriod)}
    assert [(row.start_at, row.gpus, row.gpu_model) for row in periods.values()] == [(at(5), 500, "A100")]
    assert [row.gpus for row in rows.by_type[NodePeriod] if isinstance(row, NodePeriod)] == [2000]


async def test_the_ledger_and_the_account_of_up_agree() -> None:
    cluster, store = await gpu_cluster(nodes=1), MemoryStore()
    machine = gpu_node("cut", 0)
    machine["metadata"]["labels"] = LABELS
    for amounts in machine["status"].values():
        amounts[SHARED] = "8"
    await cluster.create(NODE, machine)
    tally, start = Tally(cluster.clock.now()), cluster.clock.now()
    for each in cluster.world.store.objects(NODE):
        tally.meet(each, start)
    cluster.world.store.listeners.append(
        lambda change: tally.note(change.new, cluster.world.now, gone=change.type.value == "DELETED")
    )
    following = await Following.begin(cluster, store)
    for number in range(5):
        body = gpu_pod(f"p{number}", 0)
        amounts = body["spec"]["containers"][0]["resources"]
        for part in amounts.values():
            part.pop("nvidia.com/gpu", None)
            part[SHARED] = "1"
        await cluster.create(POD, body, "default")
    await cluster.create(POD, gpu_pod("whole", 3), "default")
    await cluster.advance(3600)
    for name in ("p0", "whole"):
        await cluster.delete(POD, name, "default", grace=0)
    await cluster.advance(3600)
    await following.flush()
    end = cluster.clock.now()
    held = sum(row.gpus * ((row.end_at or end) - row.start_at) for row in store.rows(GpuPeriod)) / 1000 / HOUR
    had = sum(row.gpus * ((row.end_at or end) - start) for row in store.rows(NodePeriod)) / 1000 / HOUR
    usage = tally.usage(end)
    assert held == pytest.approx(sum(usage.gpu_hours.values()), abs=0.01)
    assert had - held == pytest.approx(usage.idle_gpu_hours, abs=0.01)
    assert sum(row.gpus for row in store.rows(NodePeriod)) == 10_000
