"""Namespaces, nodes and storage: the plugins around the pods, and their order."""

from __future__ import annotations

from typing import Any

import pytest

from bayplan.cluster.embedded.admission.fields import Doc
from bayplan.cluster.embedded.admission.plugins import PLUGINS
from bayplan.model.errors import Cause, Details, Forbidden, NotFound
from tests.cluster.admission.plugin_bench import pod, submit, thing


def test_the_order_is_kube_apiserver_s() -> None:
    assert [plugin.name for plugin in PLUGINS] == [
        "NamespaceLifecycle",
        "LimitRanger",
        "TaintNodesByCondition",
        "PodSecurity",
        "Priority",
        "DefaultTolerationSeconds",
        "DefaultStorageClass",
        "StorageObjectInUseProtection",
        "PersistentVolumeClaimResize",
        "RuntimeClass",
        "PodTopologyLabels",
        "PodResizeValidator",
        "ResourceQuota",
        "ServiceAllocation",
    ]


def test_a_missing_namespace_hides_every_other_fault() -> None:
    with pytest.raises(NotFound) as refused:
        submit(pod(priorityClassName="none"), namespace="missing")
    assert refused.value.message == 'namespaces "missing" not found'
    assert refused.value.details == Details("missing", kind="namespaces")


def test_nothing_new_comes_into_a_namespace_that_goes() -> None:
    going = thing("Namespace", "term", status={"phase": "Terminating"})
    with pytest.raises(Forbidden) as refused:
        submit(thing("ConfigMap", "c"), going, namespace="term")
    assert refused.value.message == (
        'configmaps "c" is forbidden: unable to create new content in namespace term because it is being terminated'
    )
    cause = Cause("metadata.namespace", "NamespaceTerminating", "namespace term is being terminated")
    assert refused.value.causes == (cause,)
    submit(thing("ConfigMap", "c"), going, namespace="term", old=thing("ConfigMap", "c"))


@pytest.mark.parametrize("name", ["default", "kube-system", "kube-public"])
def test_some_namespaces_stay(name: str) -> None:
    with pytest.raises(Forbidden) as refused:
        submit(thing("Namespace", name), operation="DELETE")
    assert refused.value.message == f'namespaces "{name}" is forbidden: this namespace may not be deleted'
    submit(thing("Namespace", "kube-node-lease"), operation="DELETE")


def test_a_refusal_before_the_name_is_made_names_the_prefix() -> None:
    nameless = pod(priorityClassName="none")
    nameless["metadata"] = {"generateName": "web-"}
    with pytest.raises(Forbidden, match='pods "web-" is forbidden: no PriorityClass'):
        submit(nameless)


NOT_READY = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param({}, [NOT_READY], id="a bare node"),
        pytest.param(
            {"spec": {"taints": [{"key": "gpu", "effect": "NoSchedule"}]}},
            [{"key": "gpu", "effect": "NoSchedule"}, NOT_READY],
            id="after its own taints",
        ),
        pytest.param(
            {"spec": {"taints": [NOT_READY | {"value": "x"}]}}, [NOT_READY | {"value": "x"}], id="not a second time"
        ),
    ],
)
def test_a_new_node_is_not_ready(given: Doc, expected: list[Doc]) -> None:
    assert submit(thing("Node", "n", **given))[0].doc["spec"]["taints"] == expected


def storage_class(name: str, created: str = "2026-01-01T00:00:00Z", **fields: Any) -> Doc:
    found = thing("StorageClass", name, **fields)
    found["metadata"] |= {
        "creationTimestamp": created,
        "annotations": {"storageclass.kubernetes.io/is-default-class": "true"},
    }
    return found


def claim(size: str = "1Gi", **spec: Any) -> Doc:
    return thing("PersistentVolumeClaim", "d", spec={"resources": {"requests": {"storage": size}}, **spec})


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({}, "new-a", id="the newest default class, the first by name"),
        pytest.param({"storageClassName": ""}, "", id="no class is a choice too"),
        pytest.param({"storageClassName": "own"}, "own", id="a class of its own"),
    ],
)
def test_claims_get_a_class_and_protection(spec: Doc, expected: str) -> None:
    later = "2026-02-01T00:00:00Z"
    classes = [storage_class("old"), storage_class("new-b", later), storage_class("new-a", later)]
    made = submit(claim(**spec), *classes)[0].doc
    assert made["spec"]["storageClassName"] == expected
    assert made["metadata"]["finalizers"] == ["kubernetes.io/pvc-protection"]


def test_volumes_are_protected_too() -> None:
    made = submit(thing("PersistentVolume", "v", spec={}))[0].doc
    assert made["metadata"]["finalizers"] == ["kubernetes.io/pv-protection"]


@pytest.mark.parametrize(
    ("phase", "expands", "why"),
    [
        pytest.param("Pending", True, "Only bound persistent volume claims can be expanded", id="not bound yet"),
        pytest.param(
            "Bound",
            False,
            "only dynamically provisioned pvc can be resized and "
            "the storageclass that provisions the pvc must support resize",
            id="a class that cannot",
        ),
        pytest.param("Bound", True, None, id="bound, and the class can"),
    ],
)
def test_claims_grow_where_they_can(phase: str, expands: bool, why: str | None) -> None:
    old = claim("1Gi", storageClassName="std") | {"status": {"phase": phase}}
    new = claim("2Gi", storageClassName="std")
    found = storage_class("std", allowVolumeExpansion=expands)
    if why is None:
        submit(new, found, old=old)
        return
    with pytest.raises(Forbidden) as refused:
        submit(new, found, old=old)
    assert refused.value.message == f'persistentvolumeclaims "d" is forbidden: {why}'
    submit(old, found, old=old)
