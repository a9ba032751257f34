"""Which fields a kind lets select by, and what stands for a field that was never set."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bayplan.cluster.embedded.selection import Selection
from bayplan.cluster.kinds import (
    CONFIG_MAP,
    DEPLOYMENT,
    EVENT,
    JOB,
    NAMESPACE,
    NODE,
    POD,
    REPLICATION_CONTROLLER,
    SECRET,
    SERVICE,
    Kind,
)
from bayplan.cluster.objects import Object
from bayplan.model.errors import BadRequest


def made(kind: Kind, **sections: Any) -> Object:
    return Object.from_raw(kind, json.dumps({"metadata": {"name": "a", "namespace": "here"}, **sections}).encode())


ABOUT = {
    "involvedObject": {"kind": "Pod", "name": "p", "uid": "u"},
    "reason": "Killing",
    "source": {"component": "kubelet"},
}


@pytest.mark.parametrize(
    ("item", "fields"),
    [
        pytest.param(made(POD), "spec.nodeName=,status.phase=,spec.hostNetwork=false", id="an empty pod"),
        pytest.param(made(POD, status={"podIP": "10.0.0.1"}), "status.podIP=10.0.0.1", id="a pod by its address"),
        pytest.param(made(POD, spec={"hostNetwork": True}), "spec.hostNetwork=true", id="a pod on its node's network"),
        pytest.param(made(NODE), "spec.unschedulable=false", id="a node that was never cordoned"),
        pytest.param(made(NODE, spec={"unschedulable": True}), "spec.unschedulable=true", id="a cordoned node"),
        pytest.param(made(NAMESPACE, status={"phase": "Active"}), "status.phase=Active", id="a namespace by its phase"),
        pytest.param(made(SECRET, type="Opaque"), "type=Opaque", id="a secret by its type"),
        pytest.param(made(JOB), "status.successful=0", id="a job without a success"),
        pytest.param(made(JOB, status={"succeeded": 3}), "status.successful=3", id="a job with three"),
        pytest.param(made(REPLICATION_CONTROLLER), "status.replicas=0", id="a controller without replicas"),
        pytest.param(made(SERVICE, spec={"type": "NodePort"}), "spec.type=NodePort,spec.clusterIP=", id="a service"),
        pytest.param(made(EVENT, **ABOUT), "involvedObject.name=p,reason=Killing,source=kubelet", id="an event"),
        pytest.param(made(CONFIG_MAP), "metadata.name=a,metadata.namespace=here", id="anything by name and namespace"),
    ],
)
def test_fields_select(item: Object, fields: str) -> None:
    assert Selection(item.kind, None, fields=fields).matches(item)
    for term in fields.split(","):
        assert not Selection(item.kind, None, fields=term.replace("=", "!=")).matches(item)


@pytest.mark.parametrize(
    ("kind", "told"),
    [
        pytest.param(POD, "field label not supported: spec.x", id="a kind with fields of its own"),
        pytest.param(JOB, 'field label "spec.x" not supported for Job', id="a job"),
        pytest.param(
            DEPLOYMENT,
            '"spec.x" is not a known field selector: only "metadata.name", "metadata.namespace"',
            id="a kind without",
        ),
    ],
)
def test_other_fields_are_refused_in_upstreams_words(kind: Kind, told: str) -> None:
    with pytest.raises(BadRequest) as refusal:
        Selection(kind, None, fields="spec.x=1")
    assert refusal.value.message == told


def test_a_selection_knows_when_it_selects_everything() -> None:
    assert Selection(POD, None).everything
    for other in (Selection(POD, "here"), Selection(POD, None, "a=b"), Selection(POD, None, fields="metadata.name=a")):
        assert not other.everything


def test_the_one_value_of_a_field() -> None:
    assert Selection(POD, None, fields="spec.nodeName=n,status.phase!=Failed").exact("spec.nodeName") == "n"
    assert Selection(POD, None, fields="spec.nodeName!=n").exact("spec.nodeName") is None
    assert Selection(POD, None).exact("spec.nodeName") is None
