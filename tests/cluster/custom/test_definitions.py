"""A definition makes a kind: it can be created, changed, scaled, listed and collected like any other."""

from __future__ import annotations

import random
from typing import Any

import msgspec
import pytest

from bayplan.cluster.embedded.controllers.contract import Controller
from bayplan.cluster.embedded.controllers.garbage_collector import GarbageCollector
from bayplan.cluster.embedded.controllers.horizontal_autoscaler import HorizontalAutoscaler
from bayplan.cluster.embedded.controllers.namespace import NamespaceController
from bayplan.cluster.embedded.custom.controller import CustomResourceDefinitionController
from bayplan.cluster.embedded.engine import EmbeddedCluster
from bayplan.cluster.embedded.requests import WriteOptions
from bayplan.cluster.embedded.subresources import scale
from bayplan.cluster.embedded.world import World
from bayplan.cluster.kinds import (
    CONFIG_MAP,
    CUSTOM_RESOURCE_DEFINITION,
    HORIZONTAL_POD_AUTOSCALER,
    JOB,
    NAMESPACE,
    Kind,
)
from bayplan.model.clock import SECOND, Instant
from bayplan.model.errors import ApiError, BadRequest, Conflict, Invalid, NotFound, UnsupportedMediaType

from .definitions import Doc, definition, widget

START = Instant(1_767_225_600 * SECOND)
MERGE = "application/merge-patch+json"


def made(*more: Controller) -> World:
    own: tuple[Controller, ...] = (CustomResourceDefinitionController(), NamespaceController(), GarbageCollector())
    world = World([*own, *more], seed=1, start=START)
    world.server.create(CUSTOM_RESOURCE_DEFINITION, "", definition())
    world.settle()
    return world


@pytest.fixture
def world() -> World:
    return made()


def kind(world: World, word: str = "wd") -> Kind:
    return world.store.registry.named(word)


def status(world: World, name: str = "widgets.example.com") -> Doc:
    found: Doc = world.server.get(CUSTOM_RESOURCE_DEFINITION, "", name).sections["status"].plain()
    return found


# --- the definition itself


def test_a_definition_is_accepted_and_established(world: World) -> None:
    told = status(world)
    assert [(one["type"], one["status"], one["reason"]) for one in told["conditions"]] == [
        ("NamesAccepted", "True", "NoConflicts"),
        ("Established", "True", "InitialNamesAccepted"),
    ]
    assert told["acceptedNames"] == {
        "plural": "widgets",
        "singular": "widget",
        "shortNames": ["wd"],
        "kind": "Widget",
        "listKind": "WidgetList",
    }
    assert told["storedVersions"] == ["v1"]
    assert world.settle() == 0
    assert kind(world) == Kind("example.com", "v1", "Widget", "widgets", True, ("wd",), ("status", "scale"))


@pytest.mark.parametrize(
    ("document", "cause"),
    [
        pytest.param(
            {**definition(), "metadata": {"name": "other.example.com"}},
            'metadata.name: Invalid value: "other.example.com": must be spec.names.plural+"."+spec.group',
            id="a name that is not its own",
        ),
        pytest.param(definition(scope=""), "spec.scope: Required value", id="no scope"),
        pytest.param(
            definition(version={"storage": False}),
            "spec.versions: Invalid value: [...]: must have exactly one version marked as storage version",
            id="nothing stored",
        ),
        pytest.param(
            definition(version={"schema": {}}),
            "spec.versions[0].schema.openAPIV3Schema: Required value: schemas are required",
            id="no schema",
        ),
        pytest.param(
            definition(version={"schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {}}}}}),
            "spec.validation.openAPIV3Schema.properties[spec].type: Required value: "
            "must not be empty for specified object fields",
            id="a schema that is not structural",
        ),
    ],
)
def test_a_bad_definition_is_refused(document: Doc, cause: str) -> None:
    world = World([], seed=1, start=START)
    with pytest.raises(Invalid) as raised:
        world.server.create(CUSTOM_RESOURCE_DEFINITION, "", document)
    assert cause in [f"{each.field}: {each.message}" for each in raised.value.causes]


def test_names_that_are_taken_are_told(world: World) -> None:
    other = definition(names={"plural": "gadgets", "kind": "Widget", "shortNames": []})
    world.server.create(CUSTOM_RESOURCE_DEFINITION, "", other)
    world.settle()
    told = status(world, "gadgets.example.com")
    assert [(one["type"], one["status"], one["reason"], one["message"]) for one in told["conditions"]] == [
        ("NamesAccepted", "False", "ListKindConflict", '"WidgetList" is already in use'),
        ("Established", "False", "NotAccepted", "not all names are accepted"),
    ]
    assert told["acceptedNames"] == {"plural": "gadgets", "kind": ""}
    assert kind(world).plural == "widgets"
    world.server.delete(CUSTOM_RESOURCE_DEFINITION, "", "widgets.example.com")
    world.settle()
    assert kind(world, "widget").plural == "gadgets"


# --- its objects


def test_an_object_is_defaulted_pruned_and_stored(world: World) -> None:
    answer = world.server.create(kind(world), "default", widget(odd=1))
    assert answer.warnings == ('unknown field "spec.odd"',)
    assert answer.object.sections["spec"].plain() == {"size": 3, "colour": "red"}
    assert answer.object.meta.generation == 1
    assert answer.object.raw().startswith(b'{"kind":"Widget","apiVersion":"example.com/v1"')
    with pytest.raises(BadRequest) as raised:
        world.server.create(kind(world), "default", widget("b", odd=1), WriteOptions(validation="Strict"))
    assert raised.value.message == (
        'Widget in version "v1" cannot be handled as a Widget: strict decoding error: unknown field "spec.odd"'
    )


def test_an_object_that_breaks_its_schema_is_refused(world: World) -> None:
    with pytest.raises(Invalid) as raised:
        world.server.create(kind(world), "default", widget(size="x", colour="green"))
    assert raised.value.message == (
        'Widget.example.com "a" is invalid: ['
        'spec.size: Invalid value: "string": spec.size in body must be of type integer: "string", '
        'spec.colour: Unsupported value: "green": supported values: "red", "blue"]'
    )


def test_an_object_of_another_shape_is_refused_and_owns_nothing(world: World) -> None:
    with pytest.raises(Invalid, match='spec in body must be of type object: "integer"'):
        world.server.create(kind(world), "default", {**widget(), "spec": 7}, WriteOptions(field_manager="me"))


def test_names_are_dns_names_and_finalizers_are_free(world: World) -> None:
    with pytest.raises(Invalid, match="a lowercase RFC 1123 subdomain"):
        world.server.create(kind(world), "default", widget("Bad"))
    body = {**widget(), "metadata": {"name": "a", "finalizers": ["mine", "my.org/own"]}}
    (warning,) = world.server.create(kind(world), "default", body).warnings
    assert warning.startswith('metadata.finalizers: "mine": prefer a domain-qualified finalizer name')


def test_keyed_lists_have_an_owner_for_each_item() -> None:
    world = World([], seed=1, start=START)
    items = {"type": "object", "properties": {"k": {"type": "string"}, "v": {"type": "string"}}}
    keyed = {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"], "items": items}
    spec = {"type": "object", "properties": {"l": keyed}}
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}
    world.server.create(CUSTOM_RESOURCE_DEFINITION, "", definition(version={"schema": schema}))
    for manager in ("one", "two"):
        body = msgspec.json.encode({**widget(), "spec": {"l": [{"k": manager, "v": "x"}]}})
        options = WriteOptions(field_manager=manager)
        world.server.patch(kind(world), "default", "a", "application/apply-patch+yaml", body, options)
    found = world.server.get(kind(world), "default", "a")
    assert [item["k"] for item in found.sections["spec"].plain()["l"]] == ["one", "two"]
    entry = msgspec.json.decode(found.meta.managed_fields)[0]["fieldsV1"]
    assert entry == {"f:spec": {"f:l": {'k:{"k":"one"}': {".": {}, "f:k": {}, "f:v": {}}}}}


def test_status_has_a_door_of_its_own(world: World) -> None:
    body = {**widget(), "status": {"phase": "Early"}}
    item = world.server.create(kind(world), "default", body).object
    assert "status" not in item.sections
    changed = {**item.doc(), "status": {"phase": "Late"}, "spec": {"size": 9}}
    done = world.server.update(kind(world), "default", "a", changed, subresource="status").object
    assert done.sections["status"].plain() == {"phase": "Late"}
    assert done.sections["spec"].plain()["size"] == 3
    assert done.meta.generation == 1
    again = world.server.update(kind(world), "default", "a", {**done.doc(), "spec": {"size": 9}, "status": {}}).object
    assert (again.sections["spec"].plain()["size"], again.meta.generation) == (9, 2)
    assert again.sections["status"].plain() == {"phase": "Late"}


def test_an_update_names_the_version_it_knows(world: World) -> None:
    world.server.create(kind(world), "default", widget())
    with pytest.raises(Invalid, match="must be specified for an update"):
        world.server.update(kind(world), "default", "a", widget(size=4))


def test_patches(world: World) -> None:
    world.server.create(kind(world), "default", widget(tags=["a"]))

    def patch(type_: str, body: Any, **options: Any) -> Doc:
        raw = msgspec.json.encode(body)
        answer = world.server.patch(kind(world), "default", "a", type_, raw, WriteOptions(**options))
        found: Doc = answer.object.sections["spec"].plain()
        return found

    assert patch(MERGE, {"spec": {"size": 4}})["size"] == 4
    json = "application/json-patch+json"
    assert patch(json, [{"op": "replace", "path": "/spec/size", "value": 5}])["size"] == 5
    with pytest.raises(UnsupportedMediaType):
        patch("application/strategic-merge-patch+json", {"spec": {"size": 6}})
    applied = {**widget(size=7), "spec": {"size": 7, "tags": ["b"]}}
    apply = "application/apply-patch+yaml"
    with pytest.raises(Conflict):
        patch(apply, applied, field_manager="me")
    assert patch(apply, applied, field_manager="me", force=True) == {"size": 7, "tags": ["b"], "colour": "red"}
    assert patch(apply, {**applied, "spec": {"size": 7}}, field_manager="me") == {"size": 7, "colour": "red"}
    with pytest.raises(Invalid):
        patch(MERGE, {"spec": {"size": 70}})


def test_it_is_scaled_where_its_definition_says(world: World) -> None:
    item = world.server.create(kind(world), "default", widget(replicas=2)).object
    world.server.write_status(item, {"replicas": 1, "selector": "app=a"})
    body = {"metadata": {"name": "a"}, "spec": {"replicas": 5}}
    told, answer = scale(world.server, kind(world), "default", "a", body)
    assert told["spec"] == {"replicas": 5}
    assert told["status"] == {"replicas": 1, "selector": "app=a"}
    assert answer.object.sections["spec"].plain()["replicas"] == 5


def test_an_autoscaler_scales_it() -> None:
    world = made(HorizontalAutoscaler())
    item = world.server.create(kind(world), "default", widget(replicas=1)).object
    world.server.write_status(item, {"replicas": 1, "selector": "app=a"})
    target = {"apiVersion": "example.com/v1", "kind": "Widget", "name": "a"}
    spec = {"scaleTargetRef": target, "minReplicas": 3, "maxReplicas": 5}
    world.server.create(HORIZONTAL_POD_AUTOSCALER, "default", {"metadata": {"name": "a"}, "spec": spec})
    world.advance(Instant(START + 15 * SECOND))
    assert world.server.get(kind(world), "default", "a").sections["spec"].plain()["replicas"] == 3


def test_a_kind_may_have_the_name_of_another(world: World) -> None:
    document = definition(group="batch.example.com", names={"plural": "jobs", "kind": "Job", "shortNames": []})
    world.server.create(CUSTOM_RESOURCE_DEFINITION, "", document)
    world.settle()
    mine = world.store.registry.find("batch.example.com/v1", "Job")
    assert mine is not None
    body = {**widget(), "apiVersion": "batch.example.com/v1", "kind": "Job"}
    world.server.create(mine, "default", body)
    assert world.store.count(JOB) == 0
    assert world.store.count(mine) == 1
    assert world.store.registry.named("jobs") is JOB
    assert world.store.registry.named("jobs.batch.example.com") == mine


# --- several versions


def versions() -> Doc:
    document = definition()
    first = document["spec"]["versions"][0]
    document["spec"]["versions"] = [first, {**first, "name": "v2", "storage": False}]
    return document


def test_an_object_is_shown_in_the_version_that_is_asked_for() -> None:
    world = World([CustomResourceDefinitionController()], seed=1, start=START)
    world.server.create(CUSTOM_RESOURCE_DEFINITION, "", versions())
    old, new = (world.store.registry.find(f"example.com/{version}", "Widget") for version in ("v1", "v2"))
    assert old is not None
    assert new is not None
    world.server.create(new, "default", {**widget(), "apiVersion": "example.com/v2"})
    assert world.server.get(old, "default", "a").doc()["apiVersion"] == "example.com/v1"
    item = world.server.get(new, "default", "a")
    assert item.doc()["apiVersion"] == "example.com/v2"
    same = world.server.patch(old, "default", "a", MERGE, b'{"metadata":{"labels":{"a":"b"}}}').object
    assert (same.kind, same.meta.generation) == (old, 1)
    assert [*world.store.objects(old)] == [*world.store.objects(new)]


# --- the end


def test_its_objects_go_with_the_definition(world: World) -> None:
    item = world.server.create(kind(world), "default", widget()).object
    world.server.create(kind(world), "default", {**widget("held"), "metadata": {"name": "held", "finalizers": ["a/b"]}})
    widgets = kind(world)
    world.server.delete(CUSTOM_RESOURCE_DEFINITION, "", "widgets.example.com")
    world.settle()
    assert world.store.get(widgets, "default", item.name) is None
    told = {one["type"]: one["reason"] for one in status(world)["conditions"]}
    assert told["Terminating"] == "InstanceDeletionInProgress"
    world.server.patch(widgets, "default", "held", MERGE, b'{"metadata":{"finalizers":null}}')
    world.settle()
    assert [*world.store.objects(CUSTOM_RESOURCE_DEFINITION)] == []
    with pytest.raises(NotFound):
        world.server.create(widgets, "default", widget())
    with pytest.raises(NotFound):
        kind(world)


def test_a_kind_that_comes_back_starts_anew(world: World) -> None:
    world.server.create(kind(world), "default", widget())
    world.server.delete(CUSTOM_RESOURCE_DEFINITION, "", "widgets.example.com")
    world.settle()
    world.server.create(CUSTOM_RESOURCE_DEFINITION, "", definition(names={"shortNames": ["w"]}))
    world.settle()
    assert world.store.count(kind(world, "w")) == 0
    world.server.create(kind(world, "w"), "default", widget())


def test_objects_go_with_their_owner_and_their_namespace(world: World) -> None:
    world.server.create(NAMESPACE, "", {"metadata": {"name": "team"}})
    owner = world.server.create(kind(world), "team", widget("owner")).object
    reference = {"apiVersion": "example.com/v1", "kind": "Widget", "name": "owner", "uid": owner.uid}
    meta = {"name": "owned", "ownerReferences": [reference]}
    world.server.create(CONFIG_MAP, "team", {"metadata": meta})
    world.server.create(kind(world), "team", {**widget("owned"), "metadata": meta})
    world.settle()
    assert world.store.count(kind(world), "team") == 2
    world.server.delete(kind(world), "team", "owner")
    world.settle()
    assert world.store.get(CONFIG_MAP, "team", "owned") is None
    assert world.store.count(kind(world), "team") == 0
    world.server.create(kind(world), "team", widget("left"))
    world.server.delete(NAMESPACE, "", "team")
    world.settle()
    assert world.store.count(kind(world)) == 0
    assert world.store.get(NAMESPACE, "", "team") is None


def test_a_changed_definition_keeps_its_objects(world: World) -> None:
    world.server.create(kind(world), "default", widget())
    change = {"spec": {"names": {"shortNames": ["w", "wd"]}}}
    body = msgspec.json.encode(change)
    world.server.patch(CUSTOM_RESOURCE_DEFINITION, "", "widgets.example.com", MERGE, body)
    world.settle()
    assert world.server.get(kind(world, "w"), "default", "a").name == "a"


async def test_it_is_listed_and_watched() -> None:
    cluster = EmbeddedCluster([CustomResourceDefinitionController()])
    await cluster.create(CUSTOM_RESOURCE_DEFINITION, definition())
    widgets = cluster.world.store.registry.named("widgets")
    await cluster.create(widgets, widget(), "default")
    page = await cluster.list(widgets)
    assert [item.name for item in page.items] == ["a"]
    events = []
    async for event in cluster.watch(widgets):
        events.append((event.type, event.object.name if event.object else ""))
        break
    assert events == [("ADDED", "a")]


def test_any_definition_of_any_order_gives_the_same_kinds() -> None:
    documents = [definition(names={"plural": f"{name}s", "kind": name.title(), "shortNames": []}) for name in "abc"]
    found = set()
    for seed in range(5):
        world = World([], seed=1, start=START)
        random.Random(seed).shuffle(documents)
        for document in documents:
            world.server.create(CUSTOM_RESOURCE_DEFINITION, "", document)
        found.add(tuple(sorted(each.plural for each in world.store.registry.custom())))
    assert found == {("as", "bs", "cs")}


def test_what_is_refused_is_refused_as_an_api_error(world: World) -> None:
    for body in (b"[]", b"{", b'{"metadata":1}', b'{"metadata":{"name":1}}'):
        with pytest.raises(ApiError):
            world.server.create(kind(world), "default", body)
