"""Contract of `create`: what is stored, what is refused, and that a refusal stores nothing."""

from __future__ import annotations

import json

import pytest

from bayplan.cluster.kinds import CONFIG_MAP, DEPLOYMENT, POD
from bayplan.cluster.port import Cluster
from bayplan.model.errors import AlreadyExists, ApiError, BadRequest, Invalid, NotFound
from tests.cluster.contract.manifests import Doc, config_map, deployment, pod


async def test_the_answer_is_what_was_stored_with_its_defaults(cluster: Cluster, home: str) -> None:
    created = await cluster.create(POD, pod("a"), home)
    assert created.key == (home, "a")
    assert created.uid
    assert created.meta.resource_version
    assert created.meta.creation_timestamp is not None
    document = created.doc()
    assert document["spec"]["restartPolicy"] == "Always"
    assert document["status"]["phase"] == "Pending"
    assert (await cluster.get(POD, "a", home)).doc() == document


async def test_bytes_and_values_are_the_same_body(cluster: Cluster, home: str) -> None:
    one = await cluster.create(CONFIG_MAP, config_map("values", key="ä"), home)
    two = await cluster.create(CONFIG_MAP, json.dumps(config_map("bytes", key="ä")).encode(), home)
    assert one.doc()["data"] == two.doc()["data"] == {"key": "ä"}


async def test_a_generated_name_has_the_prefix_and_five_characters(cluster: Cluster, home: str) -> None:
    body = {"metadata": {"generateName": "run-"}}
    names = [(await cluster.create(CONFIG_MAP, body, home)).name for _ in range(5)]
    assert all(name.startswith("run-") and len(name) == len("run-") + 5 for name in names)
    assert len(set(names)) == 5


async def test_a_name_wins_over_a_prefix(cluster: Cluster, home: str) -> None:
    created = await cluster.create(CONFIG_MAP, {"metadata": {"name": "mine", "generateName": "run-"}}, home)
    assert created.name == "mine"


async def test_a_taken_name_is_refused_and_the_holder_stays(cluster: Cluster, home: str) -> None:
    first = await cluster.create(CONFIG_MAP, config_map("a", key="1"), home)
    with pytest.raises(AlreadyExists) as refusal:
        await cluster.create(CONFIG_MAP, config_map("a", key="2"), home)
    assert refusal.value.status == 409
    assert refusal.value.message == 'configmaps "a" already exists'
    assert (refusal.value.details.name, refusal.value.details.kind) == ("a", "configmaps")
    assert (await cluster.get(CONFIG_MAP, "a", home)).doc() == first.doc()


async def test_a_name_is_free_again_once_its_holder_is_gone(cluster: Cluster, home: str) -> None:
    first = await cluster.create(CONFIG_MAP, config_map("a"), home)
    await cluster.delete(CONFIG_MAP, "a", home)
    second = await cluster.create(CONFIG_MAP, config_map("a"), home)
    assert first.uid != second.uid


async def test_the_server_decides_on_identity(cluster: Cluster, home: str) -> None:
    meta = {"name": "a", "uid": "mine", "creationTimestamp": "2001-01-01T00:00:00Z", "selfLink": "/here"}
    created = await cluster.create(CONFIG_MAP, {"metadata": meta}, home)
    assert created.uid != "mine"
    assert created.meta.creation_timestamp != "2001-01-01T00:00:00Z"


async def test_a_dry_run_answers_and_stores_nothing(cluster: Cluster, home: str) -> None:
    answer = await cluster.create(POD, pod("a"), home, dry_run=True)
    assert answer.doc()["spec"]["restartPolicy"] == "Always"
    assert (await cluster.list(POD, home)).items == ()


async def test_a_dry_run_is_refused_like_the_real_thing(cluster: Cluster, home: str) -> None:
    await cluster.create(CONFIG_MAP, config_map("a"), home)
    with pytest.raises(AlreadyExists):
        await cluster.create(CONFIG_MAP, config_map("a"), home, dry_run=True)


async def test_every_broken_rule_is_a_cause_of_its_own(cluster: Cluster, home: str) -> None:
    body = deployment("a", -1)
    body["spec"]["template"]["spec"]["containers"][0] |= {"name": "No", "imagePullPolicy": "Sometimes"}
    with pytest.raises(Invalid) as refusal:
        await cluster.create(DEPLOYMENT, body, home)
    assert refusal.value.status == 422
    assert refusal.value.reason == "Invalid"
    where = "spec.template.spec.containers[0]"
    assert {(cause.field, cause.reason) for cause in refusal.value.causes} == {
        ("spec.replicas", "FieldValueInvalid"),
        (f"{where}.name", "FieldValueInvalid"),
        (f"{where}.imagePullPolicy", "FieldValueNotSupported"),
    }
    assert (await cluster.list(DEPLOYMENT, home)).items == ()


@pytest.mark.parametrize(
    ("body", "error", "told"),
    [
        pytest.param(b"{", BadRequest, "unexpected end of JSON input", id="a text that is no JSON"),
        pytest.param(b'{"metadata":', BadRequest, "unexpected end", id="a text that breaks off"),
        pytest.param(b"[]", BadRequest, "cannot unmarshal array", id="a list instead of an object"),
        pytest.param({"kind": "Secret", "metadata": {"name": "a"}}, BadRequest, "Secret", id="another kind"),
        pytest.param({"metadata": {"name": 5}}, BadRequest, "cannot unmarshal number", id="a number for a text"),
        pytest.param({"metadata": {"name": "a", "namespace": "other"}}, BadRequest, "does not match", id="elsewhere"),
        pytest.param({"metadata": {}}, Invalid, "name or generateName is required", id="no name"),
        pytest.param({"metadata": {"name": "A_b"}}, Invalid, "metadata.name", id="a name with a capital"),
        pytest.param({"metadata": {"name": "a", "labels": {"k": "-"}}}, Invalid, "metadata.labels", id="a bad label"),
        pytest.param({"metadata": {"name": "a", "finalizers": ["mine"]}}, Invalid, "finalizer", id="a bare finalizer"),
    ],
)
async def test_what_is_refused_stores_nothing(
    cluster: Cluster, home: str, body: bytes | Doc, error: type[ApiError], told: str
) -> None:
    before = (await cluster.list(CONFIG_MAP, home)).revision
    with pytest.raises(error) as refusal:
        await cluster.create(CONFIG_MAP, body, home)
    assert told in refusal.value.message
    after = await cluster.list(CONFIG_MAP, home)
    assert (after.items, after.revision) == ((), before)


async def test_a_missing_namespace_is_not_found_whatever_the_body_is(cluster: Cluster) -> None:
    with pytest.raises(NotFound) as refusal:
        await cluster.create(CONFIG_MAP, config_map("Bad Name"), "no-such-namespace")
    assert refusal.value.message == 'namespaces "no-such-namespace" not found'


async def test_unknown_fields_are_dropped(cluster: Cluster, home: str) -> None:
    created = await cluster.create(CONFIG_MAP, {**config_map("a"), "colour": "red"}, home)
    assert "colour" not in created.doc()


@pytest.mark.parametrize(
    ("body", "told"),
    [
        pytest.param({**config_map("a"), "colour": 1}, 'unknown field "colour"', id="an unknown field"),
        pytest.param(b'{"metadata":{"name":"a","name":"b"}}', 'duplicate field "metadata.name"', id="a repeated field"),
    ],
)
async def test_a_strict_reader_refuses(cluster: Cluster, home: str, body: bytes | Doc, told: str) -> None:
    with pytest.raises(BadRequest) as refusal:
        await cluster.create(CONFIG_MAP, body, home, strict=True)
    assert f"strict decoding error: {told}" in refusal.value.message
    assert (await cluster.list(CONFIG_MAP, home)).items == ()


async def test_get_of_nothing_is_not_found(cluster: Cluster, home: str) -> None:
    with pytest.raises(NotFound) as refusal:
        await cluster.get(DEPLOYMENT, "ghost", home)
    assert refusal.value.message == 'deployments.apps "ghost" not found'
    assert (refusal.value.details.group, refusal.value.details.kind) == ("apps", "deployments")
