"""Contract of `patch`: the four types, versions, dry runs, ownership of fields."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest

from bayplan.cluster.kinds import CONFIG_MAP, DEPLOYMENT, POD
from bayplan.cluster.port import Cluster, PatchType
from bayplan.model.errors import ApiError, BadRequest, Conflict, Invalid, NotFound
from tests.cluster.contract.manifests import config_map, deployment, pod

APPLY = PatchType.APPLY


def applied(name: str, **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", **config_map(name, **data)}


async def test_a_merge_patch_sets_and_removes(cluster: Cluster, home: str) -> None:
    await cluster.create(CONFIG_MAP, config_map("a", {"app": "x"}, keep="1", drop="2"), home)
    answer = await cluster.patch(CONFIG_MAP, {"data": {"drop": None, "new": "3"}}, "a", home)
    assert answer.doc()["data"] == {"keep": "1", "new": "3"}
    assert answer.meta.labels == {"app": "x"}
    assert (await cluster.get(CONFIG_MAP, "a", home)).doc() == answer.doc()


async def test_a_merge_patch_replaces_lists_whole(cluster: Cluster, home: str) -> None:
    await cluster.create(DEPLOYMENT, deployment("a", 1), home)
    other = {"name": "other", "image": "registry.example/other:1"}
    body = {"spec": {"template": {"spec": {"containers": [other]}}}}
    answer = (await cluster.patch(DEPLOYMENT, body, "a", home)).doc()
    assert [each["name"] for each in answer["spec"]["template"]["spec"]["containers"]] == ["other"]


async def test_a_strategic_patch_merges_lists_by_key(cluster: Cluster, home: str) -> None:
    await cluster.create(DEPLOYMENT, deployment("a", 1), home)
    other = {"name": "other", "image": "registry.example/other:1"}
    body = {
        "spec": {"template": {"spec": {"containers": [other, {"name": "main", "image": "registry.example/app:2"}]}}}
    }
    answer = (await cluster.patch(DEPLOYMENT, body, "a", home, type=PatchType.STRATEGIC)).doc()
    images = {each["name"]: each["image"] for each in answer["spec"]["template"]["spec"]["containers"]}
    assert images == {"main": "registry.example/app:2", "other": "registry.example/other:1"}


async def test_a_json_patch_does_its_operations_in_order(cluster: Cluster, home: str) -> None:
    await cluster.create(CONFIG_MAP, config_map("a", one="1"), home)
    operations = [
        {"op": "test", "path": "/data/one", "value": "1"},
        {"op": "add", "path": "/data/two", "value": "2"},
        {"op": "move", "from": "/data/one", "path": "/data/three"},
        {"op": "copy", "from": "/data/two", "path": "/data/four"},
        {"op": "replace", "path": "/data/two", "value": "5"},
    ]
    answer = await cluster.patch(CONFIG_MAP, operations, "a", home, type=PatchType.JSON)
    assert answer.doc()["data"] == {"two": "5", "three": "1", "four": "2"}


@pytest.mark.parametrize(
    "operation",
    [
        pytest.param({"op": "test", "path": "/data/one", "value": "2"}, id="a test that fails"),
        pytest.param({"op": "remove", "path": "/data/ghost"}, id="nothing to remove"),
    ],
)
async def test_a_json_patch_is_done_whole_or_not_at_all(cluster: Cluster, home: str, operation: dict[str, str]) -> None:
    first = await cluster.create(CONFIG_MAP, config_map("a", one="1"), home)
    body = [{"op": "add", "path": "/data/two", "value": "2"}, operation]
    with pytest.raises(ApiError) as refusal:
        await cluster.patch(CONFIG_MAP, body, "a", home, type=PatchType.JSON)
    assert refusal.value.status in (400, 422)
    assert (await cluster.get(CONFIG_MAP, "a", home)).doc() == first.doc()


@pytest.mark.parametrize("type_", [PatchType.MERGE, PatchType.STRATEGIC])
async def test_a_patch_may_name_the_version_it_is_for(cluster: Cluster, home: str, type_: PatchType) -> None:
    old = await cluster.create(CONFIG_MAP, config_map("a"), home)
    new = await cluster.patch(CONFIG_MAP, {"data": {"key": "1"}}, "a", home, type=type_)
    body = {"metadata": {"resourceVersion": old.meta.resource_version}, "data": {"key": "2"}}
    with pytest.raises(Conflict):
        await cluster.patch(CONFIG_MAP, body, "a", home, type=type_)
    body["metadata"]["resourceVersion"] = new.meta.resource_version
    assert (await cluster.patch(CONFIG_MAP, body, "a", home, type=type_)).doc()["data"] == {"key": "2"}


@pytest.mark.parametrize(
    ("type_", "body"),
    [
        pytest.param(PatchType.MERGE, {"data": {"key": "1"}}, id="merge"),
        pytest.param(PatchType.STRATEGIC, {"data": {"key": "1"}}, id="strategic"),
        pytest.param(PatchType.JSON, [{"op": "add", "path": "/data", "value": {"key": "1"}}], id="JSON"),
    ],
)
class TestEveryTypeButApply:
    async def test_needs_the_object(self, cluster: Cluster, home: str, type_: PatchType, body: Any) -> None:
        with pytest.raises(NotFound):
            await cluster.patch(CONFIG_MAP, body, "a", home, type=type_)
        assert (await cluster.list(CONFIG_MAP, home)).items == ()

    async def test_changes_nothing_on_a_dry_run(self, cluster: Cluster, home: str, type_: PatchType, body: Any) -> None:
        first = await cluster.create(CONFIG_MAP, config_map("a"), home)
        answer = await cluster.patch(CONFIG_MAP, body, "a", home, type=type_, dry_run=True)
        assert answer.doc()["data"] == {"key": "1"}
        assert (await cluster.get(CONFIG_MAP, "a", home)).doc() == first.doc()

    async def test_makes_no_version_when_done_again(
        self, cluster: Cluster, home: str, type_: PatchType, body: Any
    ) -> None:
        await cluster.create(CONFIG_MAP, config_map("a"), home)
        first = await cluster.patch(CONFIG_MAP, body, "a", home, type=type_)
        second = await cluster.patch(CONFIG_MAP, body, "a", home, type=type_)
        assert second.meta.resource_version == first.meta.resource_version

    async def test_takes_no_force(self, cluster: Cluster, home: str, type_: PatchType, body: Any) -> None:
        await cluster.create(CONFIG_MAP, config_map("a"), home)
        with pytest.raises(Invalid, match="force: Forbidden"):
            await cluster.patch(CONFIG_MAP, body, "a", home, type=type_, force=True)


async def test_a_patch_to_an_invalid_object_is_refused_with_its_causes(cluster: Cluster, home: str) -> None:
    first = await cluster.create(DEPLOYMENT, deployment("a", 1), home)
    with pytest.raises(Invalid) as refusal:
        await cluster.patch(DEPLOYMENT, {"spec": {"replicas": -3, "minReadySeconds": -1}}, "a", home)
    assert {cause.field for cause in refusal.value.causes} == {"spec.replicas", "spec.minReadySeconds"}
    assert (await cluster.get(DEPLOYMENT, "a", home)).doc() == first.doc()


async def test_a_patch_cannot_rename(cluster: Cluster, home: str) -> None:
    await cluster.create(CONFIG_MAP, config_map("a"), home)
    with pytest.raises(BadRequest):
        await cluster.patch(CONFIG_MAP, {"metadata": {"name": "b"}}, "a", home)


@pytest.mark.parametrize("depth", [300, 500, 900, 20_000])
@pytest.mark.parametrize("type_", [PatchType.MERGE, PatchType.STRATEGIC, PatchType.JSON], ids=lambda type_: type_.name)
async def test_a_patch_that_is_too_deep_breaks_nothing(
    cluster: Cluster, home: str, type_: PatchType, depth: int
) -> None:
    first = await cluster.create(CONFIG_MAP, config_map("a"), home)
    deep = b'{"x":' * depth + b"1" + b"}" * depth
    body = b'[{"op":"add","path":"/x","value":' + deep + b"}]" if type_ is PatchType.JSON else deep
    with contextlib.suppress(BadRequest):  # how deep is too deep is the server's own affair
        await cluster.patch(CONFIG_MAP, body, "a", home, type=type_)
    assert (await cluster.get(CONFIG_MAP, "a", home)).doc() == first.doc()


async def test_the_status_is_patched_apart(cluster: Cluster, home: str) -> None:
    await cluster.create(POD, pod("a"), home)
    body = {"metadata": {"labels": {"a": "b"}}, "status": {"phase": "Running", "message": "hello"}}
    main = (await cluster.patch(POD, body, "a", home)).doc()
    assert (main["status"]["phase"], main["metadata"]["labels"]) == ("Pending", {"a": "b"})
    answer = (await cluster.patch(POD, body, "a", home, subresource="status")).doc()
    assert (answer["status"]["phase"], answer["status"]["message"]) == ("Running", "hello")


async def test_apply_creates_and_then_changes(cluster: Cluster, home: str) -> None:
    first = await cluster.patch(CONFIG_MAP, applied("a", one="1", two="2"), "a", home, type=APPLY, manager="me")
    second = await cluster.patch(CONFIG_MAP, applied("a", one="3"), "a", home, type=APPLY, manager="me")
    assert second.uid == first.uid
    assert second.doc()["data"] == {"one": "3"}  # what its manager no longer applies goes
    again = await cluster.patch(CONFIG_MAP, applied("a", one="3"), "a", home, type=APPLY, manager="me")
    assert again.meta.resource_version == second.meta.resource_version


async def test_apply_needs_a_manager(cluster: Cluster, home: str) -> None:
    with pytest.raises(Invalid, match="fieldManager: Required value"):
        await cluster.patch(CONFIG_MAP, applied("a"), "a", home, type=APPLY)


async def test_apply_leaves_what_others_own(cluster: Cluster, home: str) -> None:
    await cluster.patch(CONFIG_MAP, applied("a", one="1"), "a", home, type=APPLY, manager="first")
    answer = await cluster.patch(CONFIG_MAP, applied("a", two="2"), "a", home, type=APPLY, manager="second")
    assert answer.doc()["data"] == {"one": "1", "two": "2"}


async def test_apply_over_a_field_of_another_is_a_conflict_naming_the_owner(cluster: Cluster, home: str) -> None:
    first = await cluster.patch(CONFIG_MAP, applied("a", one="1"), "a", home, type=APPLY, manager="first")
    with pytest.raises(Conflict) as refusal:
        await cluster.patch(CONFIG_MAP, applied("a", one="2"), "a", home, type=APPLY, manager="second")
    (cause,) = refusal.value.causes
    assert (cause.field, cause.reason) == (".data.one", "FieldManagerConflict")
    assert cause.message == 'conflict with "first"'
    assert (await cluster.get(CONFIG_MAP, "a", home)).doc() == first.doc()


async def test_force_takes_the_field_over(cluster: Cluster, home: str) -> None:
    await cluster.patch(CONFIG_MAP, applied("a", one="1"), "a", home, type=APPLY, manager="first")
    taken = await cluster.patch(CONFIG_MAP, applied("a", one="2"), "a", home, type=APPLY, manager="second", force=True)
    assert taken.doc()["data"] == {"one": "2"}
    with pytest.raises(Conflict, match="second"):
        await cluster.patch(CONFIG_MAP, applied("a", one="1"), "a", home, type=APPLY, manager="first")


async def test_two_managers_may_own_the_same_value(cluster: Cluster, home: str) -> None:
    for manager in ("first", "second"):
        await cluster.patch(CONFIG_MAP, applied("a", one="1"), "a", home, type=APPLY, manager=manager)
    answer = await cluster.patch(CONFIG_MAP, applied("a"), "a", home, type=APPLY, manager="first")
    assert answer.doc()["data"] == {"one": "1"}


async def test_a_dry_apply_stores_nothing(cluster: Cluster, home: str) -> None:
    await cluster.patch(CONFIG_MAP, applied("a", one="1"), "a", home, type=APPLY, manager="me", dry_run=True)
    assert (await cluster.list(CONFIG_MAP, home)).items == ()


async def test_an_update_owns_what_it_changed(cluster: Cluster, home: str) -> None:
    await cluster.create(CONFIG_MAP, config_map("a", one="1"), home, manager="creator")
    with pytest.raises(Conflict, match="creator"):
        await cluster.patch(CONFIG_MAP, applied("a", one="2"), "a", home, type=APPLY, manager="me")
