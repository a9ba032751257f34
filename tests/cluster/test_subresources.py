"""Binding, eviction and scale below the port: documents, sharing, and what a status keeps."""

from __future__ import annotations

import random
from typing import Any

import pytest

from bayplan.cluster.embedded import scaling, subresources
from bayplan.cluster.embedded.bootstrap import bootstrap
from bayplan.cluster.embedded.requests import WriteOptions
from bayplan.cluster.embedded.server import Server
from bayplan.cluster.embedded.store import Store
from bayplan.cluster.kinds import POD, REPLICA_SET, REPLICATION_CONTROLLER, STATEFUL_SET, Kind
from bayplan.model.clock import Instant
from bayplan.model.errors import BadRequest, Conflict, NotFound, ServerError
from bayplan.model.pods import Pod

Doc = dict[str, Any]
LABELS = {"app": "web"}
POD_SPEC: Doc = {"containers": [{"name": "main", "image": "x:1"}]}
TEMPLATE = {"metadata": {"labels": LABELS}, "spec": POD_SPEC}


@pytest.fixture
def server() -> Server:
    server = Server(Store(), lambda: Instant(10**15), random.Random(0))
    bootstrap(server)
    return server


def target(name: str = "n", **more: Any) -> Doc:
    return {"metadata": more, "target": {"kind": "Node", "name": name}}


def pods(server: Server, *names: str) -> None:
    for name in names:
        server.create(POD, "default", {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": POD_SPEC})


def test_pods_of_one_template_on_one_node_share_their_spec(server: Server) -> None:
    pods(server, "a", "b", "c")
    bound = [
        subresources.bind(server, "default", name, target(node)) for name, node in (("a", "n"), ("b", "n"), ("c", "m"))
    ]
    assert bound[0].sections["spec"] is bound[1].sections["spec"]
    assert bound[0].sections["spec"] is not bound[2].sections["spec"]
    assert [item.view(Pod).spec.node_name for item in bound] == ["n", "n", "m"]
    assert [item.doc()["spec"]["nodeName"] for item in bound] == ["n", "n", "m"]
    assert {item.name for item in server.store.pods_on("n")} == {"a", "b"}


def test_an_update_of_a_bound_pod_changes_nothing_by_itself(server: Server) -> None:
    pods(server, "a")
    bound = subresources.bind(server, "default", "a", target())
    assert server.update(POD, "default", "a", bound.doc()).object is bound


def test_a_binding_brings_its_labels_and_annotations(server: Server) -> None:
    pods(server, "a")
    bound = subresources.bind(server, "default", "a", target(labels={"l": "1"}, annotations={"a": "2"}))
    assert (bound.meta.labels, bound.meta.annotations) == ({"l": "1"}, {"a": "2"})


def test_a_dry_binding_binds_nothing(server: Server) -> None:
    pods(server, "a")
    before = server.get(POD, "default", "a")
    subresources.bind(server, "default", "a", target(), WriteOptions(dry_run=True))
    assert server.get(POD, "default", "a") is before


@pytest.mark.parametrize(
    ("binding", "told"),
    [
        pytest.param({"target": {"kind": "Pod", "name": "x"}}, "target.kind: Unsupported value", id="no node"),
        pytest.param({"target": {"kind": "Node"}}, "target.name: Required value", id="no name"),
        pytest.param({}, "target.name: Required value", id="nothing"),
    ],
)
def test_a_binding_to_nothing_is_refused(server: Server, binding: Doc, told: str) -> None:
    pods(server, "a")
    with pytest.raises(ServerError, match=told):
        subresources.bind(server, "default", "a", binding)


def test_a_condition_that_says_the_same_keeps_its_time(server: Server) -> None:
    pods(server, "a")
    known = {"type": "PodScheduled", "status": "True", "lastTransitionTime": "2001-01-01T00:00:00Z"}
    server.write_status(
        server.get(POD, "default", "a"), {"phase": "Pending", "conditions": [known, {"type": "X", "status": "True"}]}
    )
    conditions = subresources.bind(server, "default", "a", target()).doc()["status"]["conditions"]
    assert [each["type"] for each in conditions] == ["PodScheduled", "X"]
    assert conditions[0]["lastTransitionTime"] == "2001-01-01T00:00:00Z"


@pytest.mark.parametrize(
    ("kind", "selector", "told"),
    [
        pytest.param(REPLICA_SET, {"matchLabels": LABELS}, "app=web", id="ReplicaSet"),
        pytest.param(
            STATEFUL_SET,
            {"matchLabels": LABELS, "matchExpressions": [{"key": "app", "operator": "In", "values": ["web", "w"]}]},
            "app=web,app in (w,web)",
            id="StatefulSet with an expression",
        ),
        pytest.param(REPLICATION_CONTROLLER, LABELS, "app=web", id="ReplicationController with its plain map"),
    ],
)
def test_a_scale_tells_which_pods_it_counts(server: Server, kind: Kind, selector: Doc, told: str) -> None:
    body = {"metadata": {"name": "a"}, "spec": {"replicas": 3, "selector": selector, "template": TEMPLATE}}
    item = server.create(kind, "default", body).object
    scale = scaling.scale_of(item)
    assert scale["spec"] == {"replicas": 3}
    assert scale["status"] == {"replicas": 0, "selector": told}
    assert scale["metadata"]["resourceVersion"] == item.meta.resource_version
    assert (scale["kind"], scale["apiVersion"]) == ("Scale", "autoscaling/v1")


def test_a_scale_may_name_the_version_it_is_for(server: Server) -> None:
    body = {"metadata": {"name": "a"}, "spec": {"selector": {"matchLabels": LABELS}, "template": TEMPLATE}}
    old = server.create(REPLICA_SET, "default", body).object
    wanted = {"metadata": {"name": "a", "resourceVersion": old.meta.resource_version}, "spec": {"replicas": 4}}
    scale, answer = subresources.scale(server, REPLICA_SET, "default", "a", wanted)
    assert (scale["spec"]["replicas"], answer.status) == (4, 200)
    with pytest.raises(Conflict):
        subresources.scale(server, REPLICA_SET, "default", "a", wanted | {"spec": {"replicas": 5}})
    with pytest.raises(BadRequest, match="does not match the name on the URL"):
        subresources.scale(server, REPLICA_SET, "default", "a", {"metadata": {"name": "b"}})


def test_what_is_not_scaled_has_no_scale(server: Server) -> None:
    pods(server, "a")
    with pytest.raises(NotFound, match="the server could not find the requested resource"):
        subresources.scale(server, POD, "default", "a", {"metadata": {"name": "a"}, "spec": {"replicas": 1}})
