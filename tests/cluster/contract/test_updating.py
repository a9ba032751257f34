"""Contract of `update`: versions, preconditions, the status apart, and updates that change nothing."""

from __future__ import annotations

import pytest

from bayplan.cluster.kinds import CONFIG_MAP, DEPLOYMENT, LEASE, POD
from bayplan.cluster.port import Cluster
from bayplan.model.errors import BadRequest, Conflict, Invalid, NotFound
from tests.cluster.contract.manifests import config_map, deployment, pod


async def test_an_update_replaces_the_whole_object(cluster: Cluster, home: str) -> None:
    first = await cluster.create(CONFIG_MAP, config_map("a", {"app": "x"}, one="1"), home)
    second = await cluster.update(CONFIG_MAP, config_map("a", two="2"), "a", home)
    assert second.doc()["data"] == {"two": "2"}
    assert second.meta.labels == {}
    assert second.uid == first.uid
    assert second.meta.creation_timestamp == first.meta.creation_timestamp
    assert second.meta.resource_version != first.meta.resource_version


async def test_of_two_writers_who_read_the_same_version_one_is_refused(cluster: Cluster, home: str) -> None:
    read = (await cluster.create(CONFIG_MAP, config_map("a"), home)).doc()
    winner = await cluster.update(CONFIG_MAP, {**read, "data": {"by": "first"}}, "a", home)
    with pytest.raises(Conflict) as refusal:
        await cluster.update(CONFIG_MAP, {**read, "data": {"by": "second"}}, "a", home)
    assert refusal.value.status == 409
    assert refusal.value.message == (
        'Operation cannot be fulfilled on configmaps "a": the object has been modified; '
        "please apply your changes to the latest version and try again"
    )
    assert (await cluster.get(CONFIG_MAP, "a", home)).doc() == winner.doc()


async def test_the_refused_writer_reads_anew_and_succeeds(cluster: Cluster, home: str) -> None:
    await cluster.create(CONFIG_MAP, config_map("a"), home)
    await cluster.update(CONFIG_MAP, config_map("a", by="first"), "a", home)
    read = (await cluster.get(CONFIG_MAP, "a", home)).doc()
    assert (await cluster.update(CONFIG_MAP, {**read, "data": {}}, "a", home)).doc().get("data", {}) == {}


async def test_without_a_version_the_present_one_is_replaced(cluster: Cluster, home: str) -> None:
    await cluster.create(CONFIG_MAP, config_map("a"), home)
    for value in ("1", "2"):
        answer = await cluster.update(CONFIG_MAP, config_map("a", key=value), "a", home)
        assert answer.doc()["data"] == {"key": value}


async def test_some_kinds_refuse_an_update_without_a_version(cluster: Cluster, home: str) -> None:
    lease = {"metadata": {"name": "a"}, "spec": {"holderIdentity": "me"}}
    await cluster.create(LEASE, lease, home)
    with pytest.raises(Invalid) as refusal:
        await cluster.update(LEASE, lease, "a", home)
    assert [cause.field for cause in refusal.value.causes] == ["metadata.resourceVersion"]


async def test_an_update_for_another_incarnation_is_refused(cluster: Cluster, home: str) -> None:
    read = (await cluster.create(CONFIG_MAP, config_map("a"), home)).doc()
    await cluster.delete(CONFIG_MAP, "a", home)
    await cluster.create(CONFIG_MAP, config_map("a"), home)
    del read["metadata"]["resourceVersion"]
    with pytest.raises(Conflict):
        await cluster.update(CONFIG_MAP, read, "a", home)


async def test_an_update_that_changes_nothing_makes_no_new_version(cluster: Cluster, home: str) -> None:
    first = await cluster.create(POD, pod("a"), home)
    second = await cluster.update(POD, first.doc(), "a", home)
    assert second.meta.resource_version == first.meta.resource_version


async def test_a_dry_run_answers_and_changes_nothing(cluster: Cluster, home: str) -> None:
    first = await cluster.create(CONFIG_MAP, config_map("a"), home)
    answer = await cluster.update(CONFIG_MAP, config_map("a", key="1"), "a", home, dry_run=True)
    assert answer.doc()["data"] == {"key": "1"}
    assert (await cluster.get(CONFIG_MAP, "a", home)).doc() == first.doc()


async def test_an_invalid_update_leaves_the_object_as_it_was(cluster: Cluster, home: str) -> None:
    first = await cluster.create(DEPLOYMENT, deployment("a", 1), home)
    body = deployment("a", -1)
    body["spec"]["selector"]["matchLabels"] = {"app": "other"}
    with pytest.raises(Invalid) as refusal:
        await cluster.update(DEPLOYMENT, body, "a", home)
    assert {"spec.replicas", "spec.selector"} <= {cause.field for cause in refusal.value.causes}
    assert (await cluster.get(DEPLOYMENT, "a", home)).doc() == first.doc()


async def test_generation_counts_changes_of_the_spec_alone(cluster: Cluster, home: str) -> None:
    first = await cluster.create(DEPLOYMENT, deployment("a", 1), home)
    assert first.meta.generation == 1
    relabelled = first.doc()
    relabelled["metadata"]["labels"] = {"a": "b"}
    second = await cluster.update(DEPLOYMENT, relabelled, "a", home)
    assert second.meta.generation == 1
    grown = second.doc()
    grown["spec"]["replicas"] = 2
    assert (await cluster.update(DEPLOYMENT, grown, "a", home)).meta.generation == 2


async def test_the_main_resource_does_not_write_the_status(cluster: Cluster, home: str) -> None:
    read = (await cluster.create(POD, pod("a"), home)).doc()
    read["status"]["phase"] = "Running"
    assert (await cluster.update(POD, read, "a", home)).doc()["status"]["phase"] == "Pending"


async def test_the_status_subresource_writes_the_status_alone(cluster: Cluster, home: str) -> None:
    read = (await cluster.create(DEPLOYMENT, deployment("a", 1), home)).doc()
    read["spec"]["replicas"] = 5
    read["status"] = {"observedGeneration": 1, "replicas": 1}
    answer = (await cluster.update(DEPLOYMENT, read, "a", home, subresource="status")).doc()
    assert answer["status"] == {"observedGeneration": 1, "replicas": 1}
    assert answer["spec"]["replicas"] == 1
    assert answer["metadata"]["generation"] == 1


async def test_a_status_of_an_old_version_is_a_conflict(cluster: Cluster, home: str) -> None:
    read = (await cluster.create(POD, pod("a"), home)).doc()
    await cluster.patch(POD, {"metadata": {"labels": {"a": "b"}}}, "a", home)
    with pytest.raises(Conflict):
        await cluster.update(POD, {**read, "status": {"phase": "Running"}}, "a", home, subresource="status")


@pytest.mark.parametrize("subresource", ["status", "nonsense"])
async def test_a_subresource_that_is_not_there_is_not_found(cluster: Cluster, home: str, subresource: str) -> None:
    first = await cluster.create(CONFIG_MAP, config_map("a"), home)
    with pytest.raises(NotFound):
        await cluster.update(CONFIG_MAP, config_map("a", key="1"), "a", home, subresource=subresource)
    with pytest.raises(NotFound):
        await cluster.patch(CONFIG_MAP, {"data": {"key": "1"}}, "a", home, subresource=subresource)
    assert (await cluster.get(CONFIG_MAP, "a", home)).doc() == first.doc()


async def test_update_of_nothing_is_not_found(cluster: Cluster, home: str) -> None:
    with pytest.raises(NotFound):
        await cluster.update(CONFIG_MAP, config_map("a"), "a", home)
    assert (await cluster.list(CONFIG_MAP, home)).items == ()


async def test_the_body_must_be_of_the_name_asked_for(cluster: Cluster, home: str) -> None:
    await cluster.create(CONFIG_MAP, config_map("a"), home)
    with pytest.raises(BadRequest, match="does not match the name on the URL"):
        await cluster.update(CONFIG_MAP, config_map("b"), "a", home)
