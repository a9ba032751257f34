"""The cells of the other kinds: what the recordings do not hold, and the corners of what they hold."""

from __future__ import annotations

from typing import Any

import pytest

from bayplan.cluster.kinds import kind_named
from bayplan.cluster.tables.table import table
from bayplan.model.clock import parse_rfc3339

NOW = parse_rfc3339("2026-01-02T12:00:00Z")
Doc = dict[str, Any]
TEMPLATE = {"spec": {"containers": [{"name": "a", "image": "x:1"}, {"name": "b", "image": "y"}]}}
GONE = {"metadata": {"deletionTimestamp": "2026-01-02T11:59:00Z"}}
STORAGE_CLASS_NAME = "volume.beta.kubernetes.io/storage-class"


def cells(kind: str, document: Doc) -> dict[str, Any]:
    """The cells of an object called `x`, made an hour and a half ago, by column; Name and Age are left out."""
    document = {"metadata": {}, **document}
    document["metadata"] = {"name": "x", "creationTimestamp": "2026-01-02T10:30:00Z", **document["metadata"]}
    told = table(kind_named(kind), [document], NOW)
    found = dict(zip((each["name"] for each in told["columnDefinitions"]), told["rows"][0]["cells"], strict=True))
    assert found.pop("Age", "90m") == "90m"
    if found["Name"] == "x":
        found.pop("Name")
    return found


def metric(kind: str, target: Doc, current: Doc | None = None) -> Doc:
    """An autoscaler with one metric, measured or not."""
    source = kind[0].lower() + kind[1:]
    status = {} if current is None else {"currentMetrics": [{"type": kind, source: {"current": current}}]}
    return {"spec": {"metrics": [{"type": kind, source: {"name": "cpu", "target": target}}]}, "status": status}


@pytest.mark.parametrize(
    ("kind", "document", "expected"),
    [
        pytest.param(
            "rc",
            {"spec": {"replicas": 3, "selector": {"b": "", "a": "1"}, "template": TEMPLATE}, "status": {"replicas": 1}},
            {"Desired": 3, "Current": 1, "Ready": 0, "Containers": "a,b", "Images": "x:1,y", "Selector": "a=1,b="},
            id="a replication controller's selector is a set of labels",
        ),
        pytest.param(
            "controllerrevision",
            {
                "metadata": {
                    "ownerReferences": [
                        {"apiVersion": "v1", "kind": "Pod", "name": "p"},
                        {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db", "controller": True},
                    ]
                },
                "revision": 4,
            },
            {"Controller": "statefulset.apps/db", "Revision": 4},
            id="a revision names its controller",
        ),
        pytest.param("controllerrevision", {}, {"Controller": "<none>", "Revision": 0}, id="a revision of nobody"),
        pytest.param(
            "pdb",
            {"spec": {"minAvailable": 0}, "status": {"disruptionsAllowed": 1}},
            {"Min Available": "0", "Max Unavailable": "N/A", "Allowed Disruptions": 1},
            id="a budget of zero is a budget",
        ),
        pytest.param(
            "pv",
            {
                "spec": {
                    "capacity": {"storage": "10Gi"},
                    "accessModes": ["ReadWriteMany", "ReadWriteOnce", "ReadWriteMany"],
                    "persistentVolumeReclaimPolicy": "Retain",
                    "claimRef": {"namespace": "ml", "name": "data"},
                    "storageClassName": "fast",
                    "volumeMode": "Block",
                },
                "status": {"phase": "Bound", "reason": "why"},
            },
            {
                "Capacity": "10Gi",
                "Access Modes": "RWO,RWX",
                "Reclaim Policy": "Retain",
                "Status": "Bound",
                "Claim": "ml/data",
                "StorageClass": "fast",
                "VolumeAttributesClass": "<unset>",
                "Reason": "why",
                "VolumeMode": "Block",
            },
            id="a volume, its modes in one order",
        ),
        pytest.param(
            "pvc",
            {
                "metadata": {"annotations": {STORAGE_CLASS_NAME: ""}, **GONE["metadata"]},
                "spec": {"volumeName": "v", "storageClassName": "fast", "volumeAttributesClassName": "gold"},
                "status": {"phase": "Bound", "accessModes": ["ReadWriteOncePod"]},
            },
            {
                "Status": "Terminating",
                "Volume": "v",
                "Capacity": "0",
                "Access Modes": "RWOP",
                "StorageClass": "",
                "VolumeAttributesClass": "gold",
                "VolumeMode": "<unset>",
            },
            id="a claim that goes away, its class in the old annotation",
        ),
        pytest.param(
            "sc",
            {
                "metadata": {"annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
                "provisioner": "local",
                "volumeBindingMode": "WaitForFirstConsumer",
            },
            {
                "Name": "x (default)",
                "Provisioner": "local",
                "ReclaimPolicy": "Delete",
                "VolumeBindingMode": "WaitForFirstConsumer",
                "AllowVolumeExpansion": False,
            },
            id="the default storage class says so in its name",
        ),
        pytest.param(
            "endpointslice",
            {
                "addressType": "IPv4",
                "ports": [{"port": 80}, {"name": "any"}, {}, {"port": 81}],
                "endpoints": [{"addresses": ["10.0.0.1"]}, {"addresses": ["10.0.0.2", "10.0.0.3"]}],
            },
            {"AddressType": "IPv4", "Ports": "80,any,* + 1 more...", "Endpoints": "10.0.0.1,10.0.0.2,10.0.0.3"},
            id="an endpoint slice shows three of each",
        ),
        pytest.param(
            "endpointslice",
            {"addressType": "FQDN"},
            {"AddressType": "FQDN", "Ports": "<unset>", "Endpoints": "<unset>"},
            id="an endpoint slice without endpoints",
        ),
        pytest.param("runtimeclass", {"handler": "kata"}, {"Handler": "kata"}, id="a runtime class"),
        pytest.param("sa", {}, {}, id="a service account has a name and an age"),
        pytest.param("resourceclaim", {}, {"State": "pending"}, id="a claim that waits"),
        pytest.param(
            "resourceclaim",
            {"status": {"allocation": {}, "reservedFor": [{"name": "p"}]}},
            {"State": "allocated,reserved"},
            id="a claim in use",
        ),
        pytest.param(
            "resourceclaim",
            {**GONE, "status": {"allocation": {}}},
            {"State": "deleted,allocated"},
            id="a deleted claim",
        ),
        pytest.param("resourceclaim", GONE, {"State": "deleted"}, id="a deleted claim that waited"),
        pytest.param(
            "resourceslice",
            {"spec": {"driver": "gpu.example.com", "pool": {"name": "n1"}, "nodeName": "n1"}},
            {"Node": "n1", "Driver": "gpu.example.com", "Pool": "n1"},
            id="a resource slice",
        ),
        pytest.param(
            "limits", {}, {"Created At": "2026-01-02T10:30:00Z"}, id="a kind without columns has name and birthday"
        ),
        pytest.param("lease", {"spec": {"holderIdentity": "n1"}}, {"Holder": "n1"}, id="a lease names its holder"),
        pytest.param(
            "quota",
            {"status": {"hard": {"limits.cpu": "4", "pods": "9", "limits": "1"}, "used": {"pods": "2"}}},
            {"Request": "limits: 0/1, pods: 2/9", "Limit": "limits.cpu: 0/4"},
            id="a quota has its limits apart",
        ),
    ],
)
def test_cells(kind: str, document: Doc, expected: Doc) -> None:
    assert cells(kind, document) == expected


@pytest.mark.parametrize(
    ("document", "targets"),
    [
        pytest.param({}, "<none>", id="no metric"),
        pytest.param(metric("Resource", {"averageUtilization": 60}), "cpu: <unknown>/60%", id="not measured yet"),
        pytest.param(
            metric("ContainerResource", {"averageUtilization": 60}, {"averageUtilization": 0}),
            "cpu: 0%/60%",
            id="a share of a container's request",
        ),
        pytest.param(metric("Resource", {}, {}), "cpu: <unknown>/<auto>", id="a target left open"),
        pytest.param(
            metric("Resource", {"averageValue": "1Gi"}, {"averageValue": "2Gi"}), "cpu: 2Gi/1Gi", id="an amount"
        ),
        pytest.param(metric("Pods", {"averageValue": "10"}, {"averageValue": "7"}), "7/10", id="an average over pods"),
        pytest.param(metric("Pods", {"averageValue": "10"}), "<unknown>/10", id="an average not measured"),
        pytest.param(
            metric("Object", {"averageValue": "10"}, {"averageValue": "7"}), "7/10 (avg)", id="an object's average"
        ),
        pytest.param(metric("Object", {"value": "10"}, {"value": "7"}), "7/10", id="an object's value"),
        pytest.param(metric("External", {"averageValue": "1"}, {}), "<unknown>/1 (avg)", id="an average left out"),
        pytest.param(metric("External", {"value": "1k"}, {}), "<nil>/1k", id="a value left out, in Go's words"),
        pytest.param(metric("Strange", {}), "<unknown type>", id="a metric of a type to come"),
    ],
)
def test_targets_of_an_autoscaler(document: Doc, targets: str) -> None:
    assert cells("hpa", document)["Targets"] == targets


@pytest.mark.parametrize(
    ("kind", "selector", "text"),
    [
        pytest.param("rs", None, "<none>", id="no selector"),
        pytest.param("rs", {}, "<none>", id="an empty selector"),
        pytest.param("deploy", {}, "", id="an empty selector of a deployment"),
        pytest.param("rs", {"matchExpressions": [{"key": "a", "operator": "Near"}]}, "<error>", id="a broken one"),
        pytest.param(
            "deploy",
            {"matchExpressions": [{"key": "a", "operator": "Near"}]},
            "<invalid>",
            id="a broken one of a deployment",
        ),
        pytest.param(
            "ds",
            {
                "matchLabels": {"z": "1"},
                "matchExpressions": [
                    {"key": "b", "operator": "In", "values": ["y", "x"]},
                    {"key": "a", "operator": "DoesNotExist"},
                ],
            },
            "!a,b in (x,y),z=1",
            id="sorted by key",
        ),
    ],
)
def test_selectors(kind: str, selector: Doc | None, text: str) -> None:
    assert cells(kind, {"spec": {"selector": selector}})["Selector"] == text


@pytest.mark.parametrize(
    ("service", "external"),
    [
        pytest.param({"type": "NodePort", "externalIPs": ["1.1.1.1"]}, "1.1.1.1", id="fixed addresses"),
        pytest.param({"type": "ClusterIP"}, "<none>", id="none"),
        pytest.param({"type": "LoadBalancer"}, "<pending>", id="none yet"),
        pytest.param(
            {"type": "LoadBalancer", "externalIPs": ["1.1.1.1"], "ingress": [{"hostname": "b"}, {"ip": "9.9.9.9"}]},
            "9.9.9.9,b,1.1.1.1",
            id="those of the balancer, sorted, before the fixed ones",
        ),
        pytest.param({"type": "ExternalName", "externalName": "x.example.com"}, "x.example.com", id="a name elsewhere"),
        pytest.param({"type": "Later"}, "<unknown>", id="a type to come"),
    ],
)
def test_external_addresses(service: Doc, external: str) -> None:
    status = {"loadBalancer": {"ingress": service.pop("ingress", [])}}
    assert cells("svc", {"spec": service, "status": status})["External-IP"] == external


AGO = {"firstTimestamp": "2026-01-02T11:00:00Z", "lastTimestamp": "2026-01-02T11:59:00Z"}


@pytest.mark.parametrize(
    ("event", "seen"),
    [
        pytest.param({}, ("<unknown>", "<unknown>", 1), id="no time at all"),
        pytest.param({**AGO, "count": 5}, ("60s", "60m", 5), id="the old form"),
        pytest.param({"eventTime": "2026-01-02T11:58:00.000001Z"}, ("119s", "119s", 1), id="the new form, seen once"),
        pytest.param(
            {**AGO, "series": {"count": 9, "lastObservedTime": "2026-01-02T11:59:50.000000Z"}},
            ("10s", "60m", 9),
            id="a series",
        ),
    ],
)
def test_when_an_event_was_seen(event: Doc, seen: tuple[str, str, int]) -> None:
    told = cells("event", event)
    assert (told["Last Seen"], told["First Seen"], told["Count"]) == seen
