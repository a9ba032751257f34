"""The server's own promises: whole or not at all, the same calls the same bytes, nothing copied that did not change."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from bayplan.cluster.embedded.bootstrap import bootstrap
from bayplan.cluster.embedded.requests import WriteOptions
from bayplan.cluster.embedded.server import Server
from bayplan.cluster.embedded.store import Store
from bayplan.cluster.kinds import (
    CONFIG_MAP,
    DEPLOYMENT,
    DEVICE_CLASS,
    LEASE,
    LIMIT_RANGE,
    NAMESPACE,
    NODE,
    POD,
    PRIORITY_CLASS,
    RESOURCE_QUOTA,
    SERVICE,
)
from bayplan.model.clock import Instant
from bayplan.model.errors import ApiError, BadRequest, Forbidden, Invalid, NotFound, ServerError, UnsupportedMediaType

MERGE = "application/merge-patch+json"


@pytest.fixture
def server() -> Server:
    return made(0)


def made(seed: int) -> Server:
    server = Server(Store(), lambda: Instant(10**15), random.Random(seed))
    bootstrap(server)
    return server


def pod(name: str, **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"containers": [{"name": "main", "image": "x:1"}], **spec}}


def everything(server: Server) -> list[bytes]:
    return [item.raw() for kind in [*server.store.kinds()] for item in server.store.objects(kind)]


def test_a_new_cluster_has_what_every_cluster_has(server: Server) -> None:
    assert [item.name for item in server.store.objects(NAMESPACE)] == [
        "default",
        "kube-node-lease",
        "kube-public",
        "kube-system",
    ]
    assert {item.name: item.doc()["value"] for item in server.store.objects(PRIORITY_CLASS)} == {
        "system-cluster-critical": 2_000_000_000,
        "system-node-critical": 2_000_001_000,
    }
    assert server.get(SERVICE, "default", "kubernetes").doc()["spec"]["clusterIP"] == "10.96.0.1"


def test_the_same_seed_and_calls_give_the_same_bytes() -> None:
    def story(seed: int) -> list[bytes]:
        server = made(seed)
        for number in range(5):
            server.create(POD, "default", {**pod(""), "metadata": {"generateName": "run-"}})
            server.create(CONFIG_MAP, "default", {"metadata": {"name": f"c{number}"}})
        return everything(server)

    assert story(3) == story(3)
    assert story(3) != story(4)


@pytest.mark.parametrize(
    "call",
    [
        pytest.param(lambda s: s.create(POD, "default", pod("Bad")), id="an invalid object"),
        pytest.param(lambda s: s.create(POD, "default", b"{"), id="no JSON"),
        pytest.param(lambda s: s.create(POD, "default", pod("there")), id="a taken name"),
        pytest.param(lambda s: s.create(POD, "nowhere", pod("a")), id="no namespace"),
        pytest.param(lambda s: s.create(POD, "small", pod("second")), id="a quota that is used up"),
        pytest.param(lambda s: s.create(POD, "default", pod("a", priorityClassName="ghost")), id="no such class"),
        pytest.param(
            lambda s: s.create(CONFIG_MAP, "default", {"metadata": {"name": "a", "resourceVersion": "5"}}),
            id="a version on creation",
        ),
        pytest.param(lambda s: s.update(POD, "default", "there", pod("there", hostPID=True)), id="an immutable field"),
        pytest.param(lambda s: s.update(POD, "default", "ghost", pod("ghost")), id="an update of nothing"),
        pytest.param(lambda s: s.patch(POD, "default", "there", MERGE, b'{"spec":5}'), id="a patch of a wrong type"),
        pytest.param(lambda s: s.patch(POD, "default", "there", "text/plain", b"{}"), id="a patch of no type"),
        pytest.param(lambda s: s.delete(POD, "default", "ghost"), id="a deletion of nothing"),
        pytest.param(lambda s: s.delete(NAMESPACE, "", "default"), id="a namespace that must stay"),
        pytest.param(lambda s: s.create(POD, "default", pod("a"), WriteOptions(validation="Maybe")), id="a bad option"),
        pytest.param(
            lambda s: s.create(POD, "default", pod("a"), WriteOptions(content_type="text/plain")), id="a bad type"
        ),
    ],
)
def test_a_refusal_leaves_everything_as_it_was(server: Server, call: Any) -> None:
    server.create(POD, "default", pod("there"))
    server.create(NAMESPACE, "", {"metadata": {"name": "small"}})
    server.create(RESOURCE_QUOTA, "small", {"metadata": {"name": "q"}, "spec": {"hard": {"pods": "1"}}})
    quota = server.get(RESOURCE_QUOTA, "small", "q")
    server.write_status(quota, {"hard": {"pods": "1"}, "used": {"pods": "0"}})
    server.create(POD, "small", pod("first"))
    before, revision = everything(server), server.store.revision
    with pytest.raises(ApiError):
        call(server)
    assert (everything(server), server.store.revision) == (before, revision)


def test_a_quota_is_charged_together_with_what_it_pays_for(server: Server) -> None:
    server.create(RESOURCE_QUOTA, "default", {"metadata": {"name": "q"}, "spec": {"hard": {"pods": "1"}}})
    server.write_status(server.get(RESOURCE_QUOTA, "default", "q"), {"hard": {"pods": "1"}, "used": {"pods": "0"}})
    server.create(POD, "default", pod("dry"), WriteOptions(dry_run=True))
    assert server.get(RESOURCE_QUOTA, "default", "q").doc()["status"]["used"] == {"pods": "0"}
    server.create(POD, "default", pod("a"))
    assert server.get(RESOURCE_QUOTA, "default", "q").doc()["status"]["used"] == {"pods": "1"}
    with pytest.raises(Forbidden, match="exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1"):
        server.create(POD, "default", pod("b"))


def test_versions_share_the_sections_that_did_not_change(server: Server) -> None:
    first = server.create(POD, "default", pod("a")).object
    body = json.dumps({"metadata": {"labels": {"a": "b"}}}).encode()
    second = server.patch(POD, "default", "a", MERGE, body).object
    assert second.sections["spec"] is first.sections["spec"]
    third = server.update(
        POD, "default", "a", {**second.doc(), "status": {"phase": "Running"}}, subresource="status"
    ).object
    assert third.sections["spec"] is first.sections["spec"]
    assert third.sections["status"] is not first.sections["status"]


@pytest.mark.parametrize("version", ["²", "٣", "9" * 30, "9" * 5000, "0x1", "1.0", "-1"])
def test_a_version_that_is_none_is_refused_not_tripped_over(server: Server, version: str) -> None:
    body = {"metadata": {"name": "a", "resourceVersion": version}}
    server.create(CONFIG_MAP, "default", {"metadata": {"name": "a"}})
    with pytest.raises(ServerError, match="invalid syntax"):
        server.update(CONFIG_MAP, "default", "a", body)


@pytest.mark.parametrize("version", ["²", "0", "00"])
def test_a_version_that_says_nothing_does_not_matter_on_creation(server: Server, version: str) -> None:
    created = server.create(CONFIG_MAP, "default", {"metadata": {"name": "a", "resourceVersion": version}}).object
    assert created.meta.resource_version == str(server.store.revision)


@pytest.mark.parametrize("version", ["5", "9" * 5000])
def test_a_version_on_creation_is_refused(server: Server, version: str) -> None:
    with pytest.raises(ServerError, match="should not be set"):
        server.create(CONFIG_MAP, "default", {"metadata": {"name": "a", "resourceVersion": version}})


def test_a_change_from_a_number_to_a_flag_is_a_change(server: Server) -> None:
    """Python holds 1, 1.0 and True for the same; JSON does not."""

    def device_class(value: object) -> dict[str, Any]:
        opaque = {"driver": "gpu.example.com", "parameters": {"share": value}}
        return {"metadata": {"name": "gpu"}, "spec": {"config": [{"opaque": opaque}]}}

    server.create(DEVICE_CLASS, "", device_class(1))
    for value in (True, 1.0, 1):
        changed = server.patch(DEVICE_CLASS, "", "gpu", MERGE, json.dumps(device_class(value)).encode()).object
        stored = changed.doc()["spec"]["config"][0]["opaque"]["parameters"]["share"]
        assert (stored, type(stored)) == (value, type(value))


def test_the_words_of_refusals(server: Server) -> None:
    with pytest.raises(NotFound, match='namespaces "nowhere" not found'):
        server.create(POD, "nowhere", pod("a"))
    with pytest.raises(Invalid, match=r"CreateOptions\.meta\.k8s\.io"):
        server.create(POD, "default", pod("a"), WriteOptions(validation="Maybe"))
    with pytest.raises(UnsupportedMediaType):
        server.create(POD, "default", pod("a"), WriteOptions(content_type="text/plain"))
    with pytest.raises(BadRequest, match="name must be provided"):
        server.update(POD, "default", "a", {"metadata": {}})


def test_metadata_written_by_a_controller_ends_a_deletion_when_nothing_holds_it(server: Server) -> None:
    item = server.create(CONFIG_MAP, "default", {"metadata": {"name": "a", "finalizers": ["example.com/hold"]}}).object
    server.delete(CONFIG_MAP, "default", "a")
    server.merge(item, {"metadata": {"finalizers": None}})
    assert server.store.get(CONFIG_MAP, "default", "a") is None


def test_metadata_written_by_a_controller_does_not_end_a_namespace_with_content(server: Server) -> None:
    item = server.create(NAMESPACE, "", {"metadata": {"name": "a"}}).object
    server.delete(NAMESPACE, "", "a")
    assert server.merge(item, {"metadata": {"labels": {"x": "y"}}}).meta.labels["x"] == "y"
    assert server.get(NAMESPACE, "", "a").meta.deletion_timestamp is not None


def test_an_update_creates_where_the_kind_lets_it(server: Server) -> None:
    for kind, body in ((NODE, {"metadata": {"name": "n"}}), (DEPLOYMENT, {"metadata": {"name": "n"}})):
        with pytest.raises(NotFound):
            server.update(kind, "default" if kind.namespaced else "", "n", body)
    lease = {"metadata": {"name": "l"}, "spec": {"holderIdentity": "me"}}
    assert server.update(LEASE, "default", "l", lease).status == 201


def test_a_pod_without_containers_is_invalid_also_where_there_are_limits(server: Server) -> None:
    limits = [{"type": "Container", "default": {"cpu": "1"}}]
    server.create(LIMIT_RANGE, "default", {"metadata": {"name": "l"}, "spec": {"limits": limits}})
    with pytest.raises(Invalid, match=r"spec\.containers: Required value"):
        server.create(POD, "default", {"metadata": {"name": "a"}, "spec": {}})


@pytest.mark.parametrize(
    "fields", [5, [], {"f:data": True}, {"f:data": {"k:5": {}}}, {"v:{": {}}, {"i:x": {}}], ids=json.dumps
)
def test_owners_that_cannot_be_read_are_those_that_were_there(server: Server, fields: object) -> None:
    body = {"metadata": {"name": "a"}, "data": {"k": "1"}}
    first = server.create(CONFIG_MAP, "default", body, WriteOptions(field_manager="me")).object.doc()
    entry = first["metadata"]["managedFields"][0]
    if fields != []:  # an empty one is readable: nothing is owned
        first["metadata"]["managedFields"] = [{**entry, "fieldsV1": fields}]
    after = server.update(CONFIG_MAP, "default", "a", first, WriteOptions(field_manager="me")).object.doc()
    assert after["metadata"]["managedFields"] == [entry]


def test_an_apply_whose_metadata_is_no_object_is_refused(server: Server) -> None:
    for body in (b'{"apiVersion":"v1","kind":"ConfigMap","metadata":5}', b'{"metadata":[]}', b"null"):
        with pytest.raises(ApiError):
            server.patch(
                CONFIG_MAP, "default", "a", "application/apply-patch+yaml", body, WriteOptions(field_manager="m")
            )
    assert server.store.get(CONFIG_MAP, "default", "a") is None
