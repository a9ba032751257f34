"""Objects: metadata decoded, the rest as bytes; what goes in comes out."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayplan.cluster.kinds import CONFIG_MAP, DEPLOYMENT, KINDS, NODE, POD, kind_named
from bayplan.cluster.objects import Object, Section, meta_of, sections_of
from bayplan.model.errors import NotFound
from bayplan.model.nodes import Node
from bayplan.model.objects import KINDS as VIEWS
from bayplan.model.pods import Pod, PodSpec
from bayplan.model.workloads import Deployment
from tests.cluster.schema.mutations import documents

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


def test_recorded_objects_come_out_as_they_went_in() -> None:
    for kind, text in documents()[::5]:
        document = json.loads(text)
        if "creationTimestamp" in (document.get("metadata") or {}) or document.get("kind") != kind:
            continue
        try:
            item = Object.from_raw(KINDS[kind], text.encode())
        except ValueError:  # a recorded fault in its metadata
            continue
        told = item.doc()
        assert {name: part for name, part in told.items() if name != "metadata"} == {
            name: part for name, part in document.items() if name != "metadata"
        }


@settings(max_examples=80, deadline=None)
@given(sections=st.dictionaries(st.sampled_from(["spec", "status", "data", "immutable"]), PLAIN))
def test_any_section_keeps_its_values(sections: dict[str, object]) -> None:
    document = {"metadata": {"name": "a", "labels": {"x": "y"}}, **sections}
    item = Object(CONFIG_MAP, meta_of(document), sections_of(document), 5)
    assert item.doc() == {"kind": "ConfigMap", "apiVersion": "v1", **document}
    assert Object.from_raw(CONFIG_MAP, item.raw()).doc() == item.doc()


def test_an_object_knows_its_version_from_its_metadata() -> None:
    assert Object.from_raw(POD, b'{"metadata":{"resourceVersion":"17"}}').version == 17
    for text in ("", "x", "-1"):
        assert Object.from_raw(POD, json.dumps({"metadata": {"resourceVersion": text}}).encode()).version == 0
    assert Object.from_raw(POD, b"{}").key == ("", "")


def test_a_view_is_decoded_once_and_shared_by_all_with_the_section() -> None:
    section = Section(b'{"nodeName":"n"}')
    one, two = (Object(POD, meta_of({"metadata": {"name": name}}), {"spec": section}, 1) for name in "ab")
    assert one.view(Pod) is one.view(Pod)
    assert one.view(Pod).spec is two.view(Pod).spec is section.view(PodSpec)
    assert (one.view(Pod).metadata.name, two.view(Pod).metadata.name) == ("a", "b")


def test_plain_values_are_the_callers_own() -> None:
    item = Object.from_raw(CONFIG_MAP, b'{"data":{"a":"1"}}')
    item.doc()["data"]["a"] = "2"
    item.sections["data"].plain()["a"] = "2"
    assert item.doc()["data"] == {"a": "1"}


def test_a_view_of_another_kind_is_refused() -> None:
    item = Object.from_raw(NODE, b'{"metadata":{"name":"n"}}')
    assert item.view(Node).metadata.name == "n"
    with pytest.raises(TypeError, match="<Node n at 0> is not a Deployment"):
        item.view(Deployment)


@pytest.mark.parametrize("kind", sorted(VIEWS.keys() & KINDS.keys()))
def test_every_view_reads_an_empty_object(kind: str) -> None:
    assert Object.from_raw(KINDS[kind], b"{}").view(VIEWS[kind]) == VIEWS[kind]()


@pytest.mark.parametrize(
    ("word", "kind"),
    [("po", POD), ("pods", POD), ("Pod", POD), ("deployments.apps", DEPLOYMENT), ("deployment.apps", DEPLOYMENT)],
)
def test_kinds_are_found_by_what_people_call_them(word: str, kind: object) -> None:
    assert kind_named(word) is kind


def test_a_kind_nobody_knows_is_not_found() -> None:
    with pytest.raises(NotFound, match='the server doesn\'t have a resource type "gpus"'):
        kind_named("gpus")
