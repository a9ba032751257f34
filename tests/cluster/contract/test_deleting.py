"""Contract of `delete`: preconditions, finalizers, grace, propagation, namespaces."""

from __future__ import annotations

import pytest

from bayplan.cluster.kinds import CONFIG_MAP, NAMESPACE, POD
from bayplan.cluster.port import Cluster, Propagation
from bayplan.model.errors import Conflict, Forbidden, Invalid, NotFound
from tests.cluster.contract.manifests import config_map, pod

HELD = {"metadata": {"name": "a", "finalizers": ["example.com/hold"]}}


async def is_there(cluster: Cluster, name: str, home: str) -> bool:
    return name in [item.name for item in (await cluster.list(CONFIG_MAP, home)).items]


async def test_a_deleted_object_is_gone_and_its_last_state_told(cluster: Cluster, home: str) -> None:
    await cluster.create(CONFIG_MAP, config_map("a", key="1"), home)
    last = await cluster.delete(CONFIG_MAP, "a", home)
    assert last.doc()["data"] == {"key": "1"}
    for call in (cluster.get, cluster.delete):
        with pytest.raises(NotFound):
            await call(CONFIG_MAP, "a", home)


async def test_a_dry_run_deletes_nothing(cluster: Cluster, home: str) -> None:
    first = await cluster.create(CONFIG_MAP, config_map("a"), home)
    await cluster.delete(CONFIG_MAP, "a", home, dry_run=True)
    assert (await cluster.get(CONFIG_MAP, "a", home)).doc() == first.doc()


async def test_another_uid_is_a_conflict(cluster: Cluster, home: str) -> None:
    first = await cluster.create(CONFIG_MAP, config_map("a"), home)
    with pytest.raises(Conflict, match="the UID in the precondition"):
        await cluster.delete(CONFIG_MAP, "a", home, uid="00000000-0000-4000-8000-000000000000")
    await cluster.delete(CONFIG_MAP, "a", home, uid=first.uid)
    assert not await is_there(cluster, "a", home)


async def test_another_version_is_a_conflict(cluster: Cluster, home: str) -> None:
    old = await cluster.create(CONFIG_MAP, config_map("a"), home)
    new = await cluster.update(CONFIG_MAP, config_map("a", key="1"), "a", home)
    with pytest.raises(Conflict, match="the ResourceVersion in the precondition"):
        await cluster.delete(CONFIG_MAP, "a", home, version=old.meta.resource_version)
    await cluster.delete(CONFIG_MAP, "a", home, version=new.meta.resource_version)
    assert not await is_there(cluster, "a", home)


async def test_a_finalizer_holds_an_object_until_it_is_taken_off(cluster: Cluster, home: str) -> None:
    await cluster.create(CONFIG_MAP, HELD, home)
    answer = await cluster.delete(CONFIG_MAP, "a", home)
    assert answer.meta.deletion_timestamp is not None
    again = await cluster.delete(CONFIG_MAP, "a", home)
    assert again.meta.deletion_timestamp == answer.meta.deletion_timestamp
    await cluster.patch(CONFIG_MAP, {"metadata": {"labels": {"a": "b"}}}, "a", home)
    assert await is_there(cluster, "a", home)
    await cluster.patch(CONFIG_MAP, {"metadata": {"finalizers": None}}, "a", home)
    assert not await is_there(cluster, "a", home)


async def test_a_dry_run_takes_no_finalizer_off(cluster: Cluster, home: str) -> None:
    await cluster.create(CONFIG_MAP, HELD, home)
    await cluster.delete(CONFIG_MAP, "a", home)
    await cluster.patch(CONFIG_MAP, {"metadata": {"finalizers": None}}, "a", home, dry_run=True)
    assert await is_there(cluster, "a", home)


async def test_an_object_on_its_way_out_gets_no_new_finalizer(cluster: Cluster, home: str) -> None:
    await cluster.create(CONFIG_MAP, HELD, home)
    await cluster.delete(CONFIG_MAP, "a", home)
    body = {"metadata": {"finalizers": ["example.com/hold", "example.com/more"]}}
    with pytest.raises(Invalid) as refusal:
        await cluster.patch(CONFIG_MAP, body, "a", home)
    assert {cause.field for cause in refusal.value.causes} == {"metadata.finalizers"}


async def test_nobody_takes_a_deletion_back(cluster: Cluster, home: str) -> None:
    await cluster.create(CONFIG_MAP, HELD, home)
    marked = await cluster.delete(CONFIG_MAP, "a", home)
    answer = await cluster.patch(CONFIG_MAP, {"metadata": {"deletionTimestamp": None}}, "a", home)
    assert answer.meta.deletion_timestamp == marked.meta.deletion_timestamp


@pytest.mark.parametrize(
    ("propagation", "finalizer"),
    [
        pytest.param("Foreground", "foregroundDeletion", id="dependents first"),
        pytest.param("Orphan", "orphan", id="dependents stay"),
    ],
)
async def test_propagation_is_left_to_a_finalizer(
    cluster: Cluster, home: str, propagation: Propagation, finalizer: str
) -> None:
    await cluster.create(CONFIG_MAP, HELD, home)
    answer = await cluster.delete(CONFIG_MAP, "a", home, propagation=propagation)
    assert set(answer.meta.finalizers) == {"example.com/hold", finalizer}


async def test_a_pod_without_a_node_goes_at_once(cluster: Cluster, home: str) -> None:
    await cluster.create(POD, pod("a"), home)
    await cluster.delete(POD, "a", home)
    assert (await cluster.list(POD, home)).items == ()


async def test_a_pod_on_a_node_stays_for_its_grace(cluster: Cluster, home: str) -> None:
    await cluster.create(POD, pod("a", terminationGracePeriodSeconds=40), home)
    await cluster.bind("a", "nowhere", home)
    answer = await cluster.delete(POD, "a", home)
    assert answer.meta.deletion_grace_period_seconds == 40
    assert answer.meta.deletion_timestamp is not None
    longer = await cluster.delete(POD, "a", home, grace=90)
    assert longer.meta.deletion_grace_period_seconds == 40
    shorter = await cluster.delete(POD, "a", home, grace=10)
    assert shorter.meta.deletion_grace_period_seconds == 10
    assert shorter.meta.deletion_timestamp is not None
    assert shorter.meta.deletion_timestamp < answer.meta.deletion_timestamp
    await cluster.delete(POD, "a", home, grace=0)
    assert (await cluster.list(POD, home)).items == ()


async def test_no_grace_does_not_pass_by_a_finalizer(cluster: Cluster, home: str) -> None:
    body = pod("a")
    body["metadata"]["finalizers"] = ["example.com/hold"]
    await cluster.create(POD, body, home)
    await cluster.bind("a", "nowhere", home)
    await cluster.delete(POD, "a", home, grace=0)
    assert len((await cluster.list(POD, home)).items) == 1
    await cluster.patch(POD, {"metadata": {"finalizers": None}}, "a", home)
    assert (await cluster.list(POD, home)).items == ()


async def test_a_namespace_ends_by_terminating_and_takes_nothing_new(cluster: Cluster, home: str) -> None:
    await cluster.create(CONFIG_MAP, HELD, home)
    answer = await cluster.delete(NAMESPACE, home)
    assert answer.doc()["status"]["phase"] == "Terminating"
    with pytest.raises(Forbidden) as refusal:
        await cluster.create(CONFIG_MAP, config_map("late"), home)
    assert [cause.reason for cause in refusal.value.causes] == ["NamespaceTerminating"]
    assert refusal.value.status == 403


async def test_a_terminating_namespace_stays_whatever_is_written_to_it(cluster: Cluster, home: str) -> None:
    await cluster.create(CONFIG_MAP, HELD, home)
    await cluster.delete(NAMESPACE, home)
    answer = await cluster.patch(NAMESPACE, {"metadata": {"labels": {"a": "b"}}}, home)
    assert answer.meta.labels["a"] == "b"
    assert (await cluster.get(NAMESPACE, home)).meta.deletion_timestamp is not None


async def test_some_namespaces_may_not_go(cluster: Cluster) -> None:
    with pytest.raises(Forbidden, match="this namespace may not be deleted"):
        await cluster.delete(NAMESPACE, "kube-system")
