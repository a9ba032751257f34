"""Structs read what servers write: unknown fields, missing fields and nulls included."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import msgspec
import pytest

from bayplan.model.meta import KubernetesObject, ObjectMeta, OwnerReference, Wire, condition
from bayplan.model.objects import KINDS, decode, from_builtins
from bayplan.model.pods import Pod, PodTemplate
from bayplan.model.workloads import Deployment, Job, StatefulSet

VECTORS = Path(__file__).parents[1] / "vectors" / "apiserver" / "admission.jsonl.gz"


def _structs(root: type[Wire]) -> set[type[Wire]]:
    return {root}.union(*(_structs(one) for one in root.__subclasses__()))


STRUCTS = sorted(
    (one for one in _structs(Wire) if one.__module__.startswith("bayplan.model.")), key=lambda one: one.__name__
)


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_an_empty_object_has_every_field(kind: type[KubernetesObject]) -> None:
    empty = decode(b"{}", kind)
    assert empty == kind()
    assert empty.metadata.labels == {}
    assert msgspec.json.encode(empty) == b"{}"
    assert KINDS[kind.KIND] is kind


@pytest.mark.parametrize("struct", STRUCTS, ids=[one.__name__ for one in STRUCTS])
def test_a_null_for_any_field_is_a_missing_field(struct: type[Wire]) -> None:
    for field in msgspec.structs.fields(struct):
        if field.type is not msgspec.Raw:
            assert decode(msgspec.json.encode({field.encode_name: None}), struct) == struct(), field.name


def test_every_object_that_the_api_server_stores_can_be_read() -> None:
    read = 0
    with gzip.open(VECTORS) as lines:
        for line in lines:
            case = msgspec.json.decode(line)
            stored: dict[str, Any] | None = case["expected"].get("object")
            kind = KINDS.get(case.get("kind", ""))
            if stored is None or kind is None or stored.get("kind") != kind.KIND or b'"<port>"' in line:
                continue
            assert stored["apiVersion"] == kind.API_VERSION
            found = from_builtins(stored, kind)
            assert found.metadata.name == stored["metadata"]["name"]
            read += 1
    assert read > 300


def test_a_pod_is_read_from_what_a_kubelet_reports() -> None:
    raw = b"""{"kind":"Pod","apiVersion":"v1",
    "metadata":{"name":"a","creationTimestamp":null,"managedFields":[{"manager":"x"}],"ownerReferences":[
      {"kind":"Job","name":"other","uid":"1"},{"kind":"ReplicaSet","name":"web","uid":"2","controller":true}]},
    "spec":{"containers":[{"name":"m","ports":[{"containerPort":80,"hostIP":"10.0.0.1"}],
      "livenessProbe":{"httpGet":{"port":"http"}}}]},
    "status":{"phase":"Running","podIP":"10.1.2.3","qosClass":"BestEffort","surprise":[1,2],
      "conditions":[{"type":"Ready","status":"True","lastProbeTime":null}],
      "containerStatuses":[{"name":"m","imageID":"sha256:1","state":{"running":{"startedAt":null}},"lastState":{}}]}}"""
    pod = decode(raw, Pod)
    assert pod.metadata.controller == OwnerReference(kind="ReplicaSet", name="web", uid="2", controller=True)
    assert bytes(pod.metadata.managed_fields) == b'[{"manager":"x"}]'
    assert pod.spec.containers[0].ports[0].host_ip == "10.0.0.1"
    probe = pod.spec.containers[0].liveness_probe
    assert probe is not None
    assert probe.http_get is not None
    assert (probe.http_get.port, probe.period_seconds) == ("http", 10)
    assert (pod.status.pod_ip, pod.status.qos_class) == ("10.1.2.3", "BestEffort")
    assert pod.status.container_statuses[0].state.running is not None
    assert pod.status.container_statuses[0].image_id == "sha256:1"
    ready = condition(pod.status.conditions, "Ready")
    assert ready is not None
    assert ready.status == "True"
    assert condition(pod.status.conditions, "Initialized") is None
    assert ObjectMeta().controller is None
    assert (pod.is_terminal, pod.spec.containers[0].is_sidecar) == (False, False)


def test_a_template_stays_bytes() -> None:
    spec = b'{"containers":[{"name":"m","env":[{"name":"A","value":"1"}]}]}'
    raw = b'{"spec":{"template":{"metadata":{"labels":{"a":"b"}},"spec":' + spec + b"}}}"
    templates: list[PodTemplate] = [
        decode(raw, Deployment).spec.template,
        decode(raw, StatefulSet).spec.template,
        decode(raw, Job).spec.template,
    ]
    for template in templates:
        assert template.metadata.labels == {"a": "b"}
        assert bytes(template.spec) == spec


def test_a_wrong_type_is_refused_with_its_path() -> None:
    with pytest.raises(msgspec.ValidationError, match=r"\$\.spec\.replicas"):
        decode(b'{"spec":{"replicas":"three","paused":null}}', Deployment)
    with pytest.raises(msgspec.ValidationError, match=r"\$\.spec\.replicas"):
        decode(b'{"spec":{"replicas":"three"}}', Deployment)


def test_structs_cannot_be_changed() -> None:
    for struct in STRUCTS:
        assert struct.__struct_config__.frozen
        assert not struct.__struct_config__.gc
