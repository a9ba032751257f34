"""Contract of `bind`, `evict`, `scale`, and of `logs` as far as no container runs."""

from __future__ import annotations

from typing import Any

import pytest

from bayplan.cluster.kinds import (
    CONFIG_MAP,
    DAEMON_SET,
    DEPLOYMENT,
    NODE,
    POD,
    POD_DISRUPTION_BUDGET,
    REPLICA_SET,
)
from bayplan.cluster.port import Cluster
from bayplan.model.errors import BadRequest, Conflict, Invalid, NotFound, TooManyRequests
from tests.cluster.contract.manifests import budget, config_map, deployment, pod

LABELS = {"app": "web"}


async def phase(cluster: Cluster, name: str, home: str, phase: str, **status: Any) -> None:
    ready = {"type": "Ready", "status": "True" if phase == "Running" else "False"}
    body = {"status": {"phase": phase, "conditions": [ready], **status}}
    await cluster.patch(POD, body, name, home, subresource="status")


async def allow(cluster: Cluster, name: str, home: str, disruptions: int) -> None:
    """Write a budget's status as its controller would."""
    found = (await cluster.get(POD_DISRUPTION_BUDGET, name, home)).doc()
    counts = {"disruptionsAllowed": disruptions, "currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 1}
    found["status"] = {"observedGeneration": found["metadata"]["generation"], **counts}
    await cluster.update(POD_DISRUPTION_BUDGET, found, name, home, subresource="status")


async def test_a_bound_pod_has_its_node_and_knows_it_is_scheduled(cluster: Cluster, home: str) -> None:
    first = await cluster.create(POD, pod("a"), home)
    await cluster.bind("a", "nowhere", home, uid=first.uid)
    after = (await cluster.get(POD, "a", home)).doc()
    assert after["spec"]["nodeName"] == "nowhere"
    assert [(each["type"], each["status"]) for each in after["status"]["conditions"]] == [("PodScheduled", "True")]


async def test_a_bound_pod_gets_its_nodes_zone_and_region(cluster: Cluster, home: str) -> None:
    zone = {"topology.kubernetes.io/zone": "z-1", "topology.kubernetes.io/region": "r-1"}
    await cluster.create(NODE, {"metadata": {"name": "zoned", "labels": {**zone, "other": "x"}}})
    await cluster.create(POD, pod("a", LABELS), home)
    await cluster.bind("a", "zoned", home)
    assert (await cluster.get(POD, "a", home)).meta.labels == {**LABELS, **zone}


async def test_binding_keeps_the_other_conditions_in_their_places(cluster: Cluster, home: str) -> None:
    await cluster.create(POD, pod("a"), home)
    waiting = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    conditions = [waiting, {"type": "example.com/gate", "status": "True"}]
    await cluster.patch(POD, {"status": {"conditions": conditions}}, "a", home, subresource="status")
    await cluster.bind("a", "nowhere", home)
    after = (await cluster.get(POD, "a", home)).doc()["status"]["conditions"]
    assert [(each["type"], each["status"]) for each in after] == [
        ("PodScheduled", "True"),
        ("example.com/gate", "True"),
    ]
    assert "reason" not in after[0]


async def test_a_pod_is_bound_once(cluster: Cluster, home: str) -> None:
    await cluster.create(POD, pod("a"), home)
    await cluster.bind("a", "one", home)
    for node in ("two", "one"):
        with pytest.raises(Conflict) as refusal:
            await cluster.bind("a", node, home)
        assert refusal.value.message == (
            'Operation cannot be fulfilled on pods/binding "a": pod a is already assigned to node "one"'
        )
    assert (await cluster.get(POD, "a", home)).doc()["spec"]["nodeName"] == "one"


async def test_a_gated_pod_is_not_bound(cluster: Cluster, home: str) -> None:
    await cluster.create(POD, pod("a", schedulingGates=[{"name": "example.com/wait"}]), home)
    with pytest.raises(Conflict, match=r"has non-empty \.spec\.schedulingGates"):
        await cluster.bind("a", "nowhere", home)


async def test_a_pod_that_is_going_is_not_bound(cluster: Cluster, home: str) -> None:
    body = pod("a")
    body["metadata"]["finalizers"] = ["example.com/hold"]
    await cluster.create(POD, body, home)
    await cluster.delete(POD, "a", home)
    with pytest.raises(Conflict, match="is being deleted, cannot be assigned to a host"):
        await cluster.bind("a", "nowhere", home)


async def test_another_incarnation_is_not_bound(cluster: Cluster, home: str) -> None:
    old = await cluster.create(POD, pod("a"), home)
    await cluster.delete(POD, "a", home)
    await cluster.create(POD, pod("a"), home)
    with pytest.raises(Conflict):
        await cluster.bind("a", "nowhere", home, uid=old.uid)


async def test_bind_and_evict_of_nothing_are_not_found(cluster: Cluster, home: str) -> None:
    with pytest.raises(NotFound):
        await cluster.bind("ghost", "nowhere", home)
    with pytest.raises(NotFound):
        await cluster.evict("ghost", home)


async def test_without_a_budget_eviction_deletes(cluster: Cluster, home: str) -> None:
    await cluster.create(POD, pod("a"), home)
    await cluster.bind("a", "nowhere", home)
    await cluster.evict("a", home, grace=7)
    after = await cluster.get(POD, "a", home)
    assert after.meta.deletion_grace_period_seconds == 7
    told = {each["type"]: each["reason"] for each in after.doc()["status"]["conditions"] if "reason" in each}
    assert told == {"DisruptionTarget": "EvictionByEvictionAPI"}


async def test_a_budget_that_allows_nothing_says_try_again(cluster: Cluster, home: str) -> None:
    await cluster.create(POD, pod("a", LABELS), home)
    await phase(cluster, "a", home, "Running")
    await cluster.create(POD_DISRUPTION_BUDGET, budget("guard", LABELS, minAvailable=1), home)
    await allow(cluster, "guard", home, 0)
    before = (await cluster.get(POD, "a", home)).doc()
    with pytest.raises(TooManyRequests) as refusal:
        await cluster.evict("a", home)
    assert (refusal.value.status, refusal.value.reason) == (429, "TooManyRequests")
    assert [cause.reason for cause in refusal.value.causes] == ["DisruptionBudget"]
    assert "guard" in refusal.value.causes[0].message
    assert (await cluster.get(POD, "a", home)).doc() == before


async def test_a_budget_pays_for_each_eviction(cluster: Cluster, home: str) -> None:
    for name in ("a", "b"):
        await cluster.create(POD, pod(name, LABELS), home)
        await phase(cluster, name, home, "Running")
    await cluster.create(POD_DISRUPTION_BUDGET, budget("guard", LABELS, minAvailable=1), home)
    await allow(cluster, "guard", home, 1)
    await cluster.evict("a", home)
    status = (await cluster.get(POD_DISRUPTION_BUDGET, "guard", home)).doc()["status"]
    assert status["disruptionsAllowed"] == 0
    assert list(status["disruptedPods"]) == ["a"]
    with pytest.raises(TooManyRequests):
        await cluster.evict("b", home)


async def test_a_dry_eviction_costs_nothing(cluster: Cluster, home: str) -> None:
    await cluster.create(POD, pod("a", LABELS), home)
    await phase(cluster, "a", home, "Running")
    await cluster.create(POD_DISRUPTION_BUDGET, budget("guard", LABELS, minAvailable=1), home)
    await allow(cluster, "guard", home, 1)
    before = [
        (await cluster.get(kind, name, home)).doc() for kind, name in ((POD, "a"), (POD_DISRUPTION_BUDGET, "guard"))
    ]
    await cluster.evict("a", home, dry_run=True)
    after = [
        (await cluster.get(kind, name, home)).doc() for kind, name in ((POD, "a"), (POD_DISRUPTION_BUDGET, "guard"))
    ]
    assert after == before


async def test_a_budget_of_other_pods_does_not_matter(cluster: Cluster, home: str) -> None:
    await cluster.create(POD, pod("a", {"app": "db"}), home)
    await phase(cluster, "a", home, "Running")
    await cluster.create(POD_DISRUPTION_BUDGET, budget("guard", LABELS, minAvailable=1), home)
    await allow(cluster, "guard", home, 0)
    await cluster.evict("a", home)
    assert (await cluster.list(POD, home)).items == ()


async def test_eviction_of_another_incarnation_is_a_conflict(cluster: Cluster, home: str) -> None:
    await cluster.create(POD, pod("a"), home)
    with pytest.raises(Conflict):
        await cluster.evict("a", home, uid="00000000-0000-4000-8000-000000000000")
    assert len((await cluster.list(POD, home)).items) == 1


@pytest.mark.parametrize("kind", [DEPLOYMENT, REPLICA_SET], ids=lambda kind: kind.name)
async def test_scale_sets_the_replicas_and_nothing_else(cluster: Cluster, home: str, kind: Any) -> None:
    body = deployment("a", 0)
    if kind is REPLICA_SET:
        del body["spec"]["paused"]
    before = (await cluster.create(kind, body, home)).doc()
    await cluster.scale(kind, "a", home, 0)
    same = (await cluster.get(kind, "a", home)).doc()
    assert (same["spec"], same["metadata"]["generation"]) == (before["spec"], 1)
    await cluster.scale(kind, "a", home, 4)
    after = (await cluster.get(kind, "a", home)).doc()
    assert (after["spec"].pop("replicas"), after["metadata"]["generation"]) == (4, 2)
    del before["spec"]["replicas"]
    assert after["spec"] == before["spec"]


async def test_less_than_none_is_invalid(cluster: Cluster, home: str) -> None:
    await cluster.create(DEPLOYMENT, deployment("a", 2), home)
    with pytest.raises(Invalid) as refusal:
        await cluster.scale(DEPLOYMENT, "a", home, -1)
    assert [cause.field for cause in refusal.value.causes] == ["spec.replicas"]
    assert (await cluster.get(DEPLOYMENT, "a", home)).doc()["spec"]["replicas"] == 2


async def test_scale_of_nothing_is_not_found(cluster: Cluster, home: str) -> None:
    with pytest.raises(NotFound):
        await cluster.scale(DEPLOYMENT, "ghost", home, 1)


async def test_what_has_no_replicas_cannot_be_scaled(cluster: Cluster, home: str) -> None:
    await cluster.create(CONFIG_MAP, config_map("a"), home)
    daemons = deployment("a", 1)
    for field in ("paused", "replicas"):
        del daemons["spec"][field]
    await cluster.create(DAEMON_SET, daemons, home)
    for kind in (CONFIG_MAP, DAEMON_SET):
        with pytest.raises(NotFound):
            await cluster.scale(kind, "a", home, 3)


async def test_a_pod_that_is_nowhere_has_written_nothing(cluster: Cluster, home: str) -> None:
    await cluster.create(POD, pod("a"), home)
    assert await cluster.logs("a", home) == await cluster.logs("a", home, container="main") == ""


async def test_logs_of_nothing_are_not_found(cluster: Cluster, home: str) -> None:
    with pytest.raises(NotFound):
        await cluster.logs("ghost", home)


async def test_a_container_must_be_known_and_named_where_there_are_several(cluster: Cluster, home: str) -> None:
    body = pod("a")
    body["spec"]["containers"].append({"name": "side", "image": "registry.example/side:1"})
    await cluster.create(POD, body, home)
    with pytest.raises(BadRequest, match="container ghost is not valid for pod a"):
        await cluster.logs("a", home, container="ghost")
    with pytest.raises(BadRequest, match=r"a container name must be specified for pod a, choose one of: \[main side\]"):
        await cluster.logs("a", home)
