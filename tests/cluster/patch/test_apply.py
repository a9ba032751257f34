"""Server-side apply and the ownership of fields, told as short histories of one object."""

from __future__ import annotations

from typing import Any

import pytest

from bayplan.cluster.embedded.admission.fields import Doc
from bayplan.cluster.embedded.patch.apply import apply
from bayplan.cluster.embedded.patch.fieldsets import decode, path_text, paths
from bayplan.cluster.embedded.patch.managed_fields import LAST_APPLIED, MOST_UPDATERS, update
from bayplan.model.errors import ApiError, BadRequest, Cause, Conflict, ServerError


class Story:
    """One ConfigMap or Deployment and what was done to it. Every step takes a second."""

    def __init__(self, kind_type: str = "core.v1.ConfigMap", api_version: str = "v1") -> None:
        self.kind_type, self.api_version = kind_type, api_version
        self.doc: Doc | None = None
        self.entries: list[Doc] = []
        self.seconds = 0

    def _common(self, manager: str, subresource: str) -> dict[str, str]:
        self.seconds += 1
        now = f"2001-02-03T04:05:{self.seconds:02}Z"
        place = {"kind_type": self.kind_type, "api_version": self.api_version, "subresource": subresource}
        return {"manager": manager, "now": now, **place}

    def config(self, content: Doc) -> Doc:
        return {"apiVersion": self.api_version, "kind": self.kind_type.rpartition(".")[2], "metadata": {}, **content}

    def apply(self, manager: str, *, force: bool = False, subresource: str = "", **content: Any) -> Story:
        common = self._common(manager, subresource)
        self.doc, self.entries = apply(self.doc, self.entries, self.config(content), force=force, **common)
        return self

    def update(self, manager: str, *, subresource: str = "", sent: list[Doc] | None = None, **content: Any) -> Story:
        new = {**(self.doc or self.config({})), **content}
        self.entries = update(self.doc, new, self.entries, sent=sent, **self._common(manager, subresource))
        self.doc = new
        return self

    def owners(self) -> dict[str, list[str]]:
        return {e["manager"]: [path_text(path) for path in paths(decode(e["fieldsV1"]))] for e in self.entries}


def refused(error: type[ApiError], story: Story, manager: str, **content: Any) -> ApiError:
    before = (story.doc, story.entries)
    with pytest.raises(error) as caught:
        story.apply(manager, **content)
    assert (story.doc, story.entries) == before
    return caught.value


def test_an_applier_owns_what_it_names() -> None:
    story = Story().apply("alice", data={"a": "1"}, immutable=None)
    assert story.owners() == {"alice": [".immutable", ".data.a"]}


def test_an_updater_owns_what_it_adds_maps_included() -> None:
    assert Story().update("creator", data={"a": "1"}).owners() == {"creator": [".data", ".data.a"]}


def test_the_same_value_is_shared() -> None:
    story = Story().apply("alice", data={"a": "1"}).apply("bob", data={"a": "1"})
    assert story.owners() == {"alice": [".data.a"], "bob": [".data.a"]}


def test_another_value_is_a_conflict() -> None:
    error = refused(Conflict, Story().apply("alice", data={"a": "1"}), "bob", data={"a": "2"})
    assert error.message == 'Apply failed with 1 conflict: conflict with "alice": .data.a'
    assert error.causes == (Cause(".data.a", "FieldManagerConflict", 'conflict with "alice"'),)


def test_conflicts_are_listed_by_manager() -> None:
    story = Story().update("creator", data={"b": "1"}).apply("alice", data={"a": "1"})
    assert refused(Conflict, story, "bob", data={"a": "2", "b": "2"}).message == (
        'Apply failed with 2 conflicts: conflicts with "alice":\n- .data.a\n'
        'conflicts with "creator" using v1:\n- .data.b'
    )


def test_force_takes_the_field_over() -> None:
    story = Story().apply("alice", data={"a": "1", "b": "1"}).apply("bob", force=True, data={"a": "2"})
    assert story.owners() == {"alice": [".data.b"], "bob": [".data.a"]}


def test_a_field_goes_with_its_last_owner() -> None:
    story = Story().apply("alice", data={"a": "1", "b": "1"}).apply("bob", data={"b": "1"}).apply("alice", data={})
    assert story.doc is not None
    assert story.doc["data"] == {"b": "1"}
    assert story.owners() == {"alice": [".data"], "bob": [".data.b"]}


def test_an_update_takes_a_field_from_an_applier() -> None:
    story = Story().apply("alice", data={"a": "1"}).update("kubectl-edit", data={"a": "2"})
    assert story.owners() == {"kubectl-edit": [".data.a"]}


def test_an_update_that_changes_nothing_takes_nothing() -> None:
    story = Story().apply("alice", data={"a": "1"})
    before = story.entries
    assert story.update("bob", data={"a": "1"}).entries == before


def test_a_reset_forgets_all_and_the_next_apply_finds_the_past() -> None:
    story = Story().apply("alice", data={"a": "1"}).update("x", sent=[{}])
    assert story.entries == []
    error = refused(Conflict, story, "alice", data={"a": "2"})
    assert error.causes[0].message == 'conflict with "before-first-apply" using v1'


def test_entries_that_cannot_be_read_count_as_none_sent() -> None:
    story = Story().apply("alice", data={"a": "1"})
    before = story.entries
    assert story.update("x", sent=[{"operation": "Foo"}]).entries == before


def test_the_time_is_that_of_the_last_change() -> None:
    story = Story().apply("alice", data={"a": "1"}).apply("alice", data={"a": "1"})
    assert [entry["time"][-3:] for entry in story.entries] == ["01Z"]
    story.apply("alice", data={"a": "2"})
    assert [entry["time"][-3:] for entry in story.entries] == ["03Z"]


def test_an_item_without_its_key_passes_in_an_update_and_stops_an_apply() -> None:
    story = Story("core.v1.ServiceAccount").update("creator", secrets=[{"namespace": "n"}])
    assert story.entries == []
    assert "omits all key fields" in refused(ServerError, story, "alice", imagePullSecrets=[]).message


def test_old_updaters_are_put_together() -> None:
    story = Story()
    for number in range(MOST_UPDATERS + 2):
        data = (story.doc or {}).get("data", {})
        story.update(f"m{number:02}", data={**data, f"k{number:02}": "1"})
    assert len(story.entries) == MOST_UPDATERS
    assert story.owners()["ancient-changes"] == [".data", ".data.k00", ".data.k01", ".data.k02"]


def deployment() -> Story:
    return Story("apps.v1.Deployment", "apps/v1")


def pod_spec(*containers: Doc) -> Doc:
    return {"template": {"spec": {"containers": list(containers)}}}


def test_an_item_of_a_list_goes_with_its_applier() -> None:
    both = pod_spec({"name": "a", "image": "i"}, {"name": "b", "image": "i"})
    story = deployment().apply("alice", spec=both).apply("alice", spec=pod_spec({"name": "a", "image": "i"}))
    assert story.doc is not None
    assert [c["name"] for c in story.doc["spec"]["template"]["spec"]["containers"]] == ["a"]


def test_the_order_is_the_appliers_and_other_items_keep_their_places() -> None:
    story = deployment().apply("alice", spec=pod_spec({"name": "a"}, {"name": "b"}, {"name": "c"}))
    story.apply("bob", spec=pod_spec({"name": "c"}, {"name": "n"}, {"name": "a"}))
    assert story.doc is not None
    assert [c["name"] for c in story.doc["spec"]["template"]["spec"]["containers"]] == ["b", "c", "n", "a"]


def test_ports_are_told_apart_by_protocol_which_has_a_default() -> None:
    ports = [{"containerPort": 80}, {"containerPort": 80, "protocol": "UDP"}]
    story = deployment().apply("alice", spec=pod_spec({"name": "a", "ports": ports}))
    prefix = '.spec.template.spec.containers[name="a"].ports'
    assert [path.removeprefix(prefix) for path in story.owners()["alice"] if path.startswith(prefix)] == [
        '[containerPort=80,protocol="TCP"]',
        '[containerPort=80,protocol="UDP"]',
        '[containerPort=80,protocol="TCP"].containerPort',
        '[containerPort=80,protocol="UDP"].containerPort',
        '[containerPort=80,protocol="UDP"].protocol',
    ]


def test_status_is_owned_through_its_subresource_only() -> None:
    both: Doc = {"spec": {"replicas": 3}, "status": {"replicas": 3}}
    assert deployment().apply("alice", **both).owners() == {"alice": [".spec.replicas"]}
    story = deployment().update("creator", spec={"replicas": 1}).apply("alice", subresource="status", **both)
    assert story.owners()["alice"] == [".status.replicas"]
    assert [entry.get("subresource") for entry in story.entries] == ["status", None]


def test_resizing_owns_resources_only() -> None:
    story = Story("core.v1.Pod").update("creator", spec={"containers": [{"name": "a", "image": "i"}]})
    resized = {"containers": [{"name": "a", "image": "j", "resources": {"limits": {"cpu": "1"}}}]}
    owned = story.update("me", subresource="resize", spec=resized).owners()["me"]
    assert '.spec.containers[name="a"].resources.limits.cpu' in owned
    assert '.spec.containers[name="a"].image' not in owned


def test_kubectl_takes_over_what_its_annotation_says() -> None:
    text = '{"apiVersion":"v1","kind":"ConfigMap","data":{"a":"1"}}'
    story = Story().update("kubectl-client-side-apply", metadata={"annotations": {LAST_APPLIED: text}}, data={"a": "1"})
    assert refused(Conflict, story, "bob", data={"a": "2"}).status == 409
    story.apply("kubectl", data={"a": "2"})
    assert story.doc is not None
    assert story.owners()["kubectl"] == [".data.a"]
    assert '"a":"2"' in story.doc["metadata"]["annotations"][LAST_APPLIED]


TYPED = "failed to create typed patch object (/; apps/v1, Kind=Deployment): "
REPEATED = [{"containerPort": 80}, {"containerPort": 80}]


@pytest.mark.parametrize(
    ("content", "error", "message"),
    [
        pytest.param({"kind": "Pod"}, BadRequest, "invalid object type: apps/v1, Kind=Pod", id="another kind"),
        pytest.param({"apiVersion": None}, BadRequest, "invalid object type: /, Kind=Deployment", id="no version"),
        pytest.param(
            {"metadata": {"managedFields": []}}, BadRequest, "metadata.managedFields must be nil", id="managedFields"
        ),
        pytest.param(
            {"spec": {"bogus": 1}}, ServerError, f"{TYPED}.spec.bogus: field not declared in schema", id="unknown field"
        ),
        pytest.param(
            {"spec": {"replicas": "x"}},
            ServerError,
            f"{TYPED}.spec.replicas: expected numeric (int or float), got string",
            id="a wrong type",
        ),
        pytest.param(
            {"metadata": {"labels": {"a": 1}}, "spec": []},
            ServerError,
            f"{TYPED}errors:\n  .metadata.labels.a: expected string, got <value>\n  .spec: expected map, got <value>",
            id="two wrong types",
        ),
        pytest.param(
            {"spec": pod_spec({"name": "a", "ports": REPEATED})},
            ServerError,
            f'{TYPED}.spec.template.spec.containers[name="a"].ports: '
            'duplicate entries for key [containerPort=80,protocol="TCP"]',
            id="an item twice",
        ),
        pytest.param(
            {"spec": pod_spec({"name": "a", "resources": {"limits": {"cpu": {}}}})},
            ServerError,
            "failed to convert new object (/; apps/v1, Kind=Deployment) to proper version: "
            "unable to convert unstructured object to apps/v1, Kind=Deployment: quantities must match the regular "
            "expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
            id="a quantity that is none",
        ),
    ],
)
def test_refusals(content: Doc, error: type[ApiError], message: str) -> None:
    assert refused(error, deployment(), "alice", **content).message == message
