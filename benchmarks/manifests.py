"""The pods that are measured with: what a person or a client sends (1.5 KB), and what a server stores (8 KB)."""

from __future__ import annotations

import json
from typing import Any

_PROBE = {"httpGet": {"path": "/healthz", "port": 8080}, "periodSeconds": 15}
_GPU = "nvidia.com/gpu"


def sent_pod(number: int, *, own_spec: bool = True) -> bytes:
    """A manifest of about 1.5 KB, as sent. With `own_spec` no two have the same spec."""
    run = str(number if own_spec else 0)
    labels = {"app": "trainer", "team": "vision", "app.kubernetes.io/part-of": "recogniser", "tier": "batch"}
    trainer = {
        "name": "trainer",
        "image": "registry.example/vision/trainer:v2.4.1",
        "command": ["python", "-m", "trainer.main"],
        "args": ["--epochs=40", "--batch=256", f"--run={run}"],
        "ports": [{"name": "http", "containerPort": 8080}, {"name": "metrics", "containerPort": 9090}],
        "env": [
            {"name": "RUN", "value": run},
            {"name": "DATA", "value": "/data/images"},
            {"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            {"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "tracking", "key": "token"}}},
        ],
        "resources": {
            "requests": {"cpu": "4", "memory": "16Gi", _GPU: "1"},
            "limits": {"memory": "16Gi", _GPU: "1"},
        },
        "volumeMounts": [{"name": "data", "mountPath": "/data"}, {"name": "scratch", "mountPath": "/scratch"}],
        "readinessProbe": _PROBE,
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
    }
    spec = {
        "containers": [trainer],
        "volumes": [
            {"name": "data", "persistentVolumeClaim": {"claimName": "images"}},
            {"name": "scratch", "emptyDir": {"sizeLimit": "20Gi"}},
        ],
        "nodeSelector": {"accelerator": "a100"},
        "tolerations": [{"key": _GPU, "operator": "Exists", "effect": "NoSchedule"}],
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 30,
    }
    notes = {"prometheus.io/scrape": "true", "prometheus.io/port": "9090", "example.com/owner": "vision@example.com"}
    meta = {"name": f"trainer-{number}", "namespace": "default", "labels": labels, "annotations": notes}
    return _encode({"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec})


def replica_set(name: str, replicas: int) -> bytes:
    """A ReplicaSet whose pods are those of `sent_pod`."""
    pod: dict[str, Any] = json.loads(sent_pod(0))
    labels = {**pod["metadata"]["labels"], "run": name}
    pod["spec"]["restartPolicy"] = "Always"
    template = {"metadata": {"labels": labels}, "spec": pod["spec"]}
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    return _encode({"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": name}, "spec": spec})


def stored_pod(number: int) -> bytes:
    """A running pod of about 8 KB as an API server stores it: defaults, status, managedFields."""
    name = f"inference-7d9c5b8f6b-{number:06d}"
    containers = [_container(part, number) for part in ("server", "tokenizer", "proxy")]
    spec = {
        "volumes": [
            {"name": "models", "persistentVolumeClaim": {"claimName": "models"}},
            {"name": "settings", "configMap": {"name": "inference", "defaultMode": 420}},
            {"name": "kube-api-access", "projected": {"sources": _TOKEN_SOURCES, "defaultMode": 420}},
        ],
        "containers": containers,
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": 30,
        "dnsPolicy": "ClusterFirst",
        "serviceAccountName": "inference",
        "serviceAccount": "inference",
        "nodeName": f"gpu-{number % 500:04d}",
        "securityContext": {},
        "schedulerName": "default-scheduler",
        "tolerations": [
            {"key": f"node.kubernetes.io/{what}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
            for what in ("not-ready", "unreachable")
        ],
        "priority": 0,
        "enableServiceLinks": True,
        "preemptionPolicy": "PreemptLowerPriority",
    }
    return _encode(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": _stored_meta(name, number),
            "spec": spec,
            "status": _status(number),
        }
    )


def pod_list(count: int) -> bytes:
    """A PodList of stored pods: about 41 MB for 5,000."""
    items = b",".join(stored_pod(number) for number in range(count))
    return b'{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"9999999"},"items":[' + items + b"]}"


def _encode(document: object) -> bytes:
    return json.dumps(document, separators=(",", ":")).encode()


_TOKEN_SOURCES = [
    {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
    {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
    {
        "downwardAPI": {
            "items": [{"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}]
        }
    },
]


def _container(name: str, number: int) -> dict[str, Any]:
    sizes = {"cpu": "2", "memory": "8Gi", **({_GPU: "1"} if name == "server" else {})}
    return {
        "name": name,
        "image": f"registry.example/nlp/{name}@sha256:{'4f1c' * 16}",
        "args": ["--listen=0.0.0.0:8080", "--models=/models", f"--shard={number}"],
        "ports": [{"name": "http", "containerPort": 8080, "protocol": "TCP"}],
        "env": [{"name": "SHARD", "value": str(number)}],
        "resources": {"limits": sizes, "requests": sizes},
        "volumeMounts": [
            {"name": "models", "mountPath": "/models"},
            {"name": "settings", "mountPath": "/etc/inference"},
            {
                "name": "kube-api-access",
                "readOnly": True,
                "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount",
            },
        ],
        "readinessProbe": {
            "httpGet": {"path": "/ready", "port": "http", "scheme": "HTTP"},
            "timeoutSeconds": 1,
            "periodSeconds": 10,
            "successThreshold": 1,
            "failureThreshold": 3,
        },
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        "imagePullPolicy": "IfNotPresent",
    }


def _stored_meta(name: str, number: int) -> dict[str, Any]:
    return {
        "name": name,
        "generateName": "inference-7d9c5b8f6b-",
        "namespace": f"team-{number % 40}",
        "uid": f"00000000-0000-4000-8000-{number:012d}",
        "resourceVersion": str(1_000_000 + number),
        "generation": 1,
        "creationTimestamp": "2026-03-01T10:00:00Z",
        "labels": {"app": "inference", "team": f"team-{number % 40}", "pod-template-hash": "7d9c5b8f6b"},
        "annotations": {"prometheus.io/scrape": "true", "prometheus.io/port": "9090", "checksum/config": "9c41" * 16},
        "ownerReferences": [
            {
                "apiVersion": "apps/v1",
                "kind": "ReplicaSet",
                "name": "inference-7d9c5b8f6b",
                "uid": f"00000000-0000-4000-9000-{number % 625:012d}",
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ],
        "managedFields": _MANAGED,
    }


def _owned_container(name: str) -> dict[str, Any]:
    fields = (
        *(".", "f:args", "f:image", "f:imagePullPolicy", "f:name", "f:resources"),
        *("f:terminationMessagePath", "f:terminationMessagePolicy"),
    )
    owned: dict[str, Any] = {field: {} for field in fields}
    owned["f:env"] = {".": {}, 'k:{"name":"SHARD"}': {".": {}, "f:name": {}, "f:value": {}}}
    owned["f:ports"] = {'k:{"containerPort":8080,"protocol":"TCP"}': {".": {}, "f:containerPort": {}, "f:name": {}}}
    return {f'k:{{"name":"{name}"}}': owned}


def _managed_entry(manager: str, fields: dict[str, Any], subresource: str = "") -> dict[str, Any]:
    entry = {
        "manager": manager,
        "operation": "Update",
        "apiVersion": "v1",
        "time": "2026-03-01T10:00:05Z",
        "fieldsType": "FieldsV1",
        "fieldsV1": fields,
    }
    return {**entry, "subresource": subresource} if subresource else entry


_CONDITIONS = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
_MANAGED = [
    _managed_entry(
        "kube-controller-manager",
        {
            "f:metadata": {
                "f:generateName": {},
                "f:labels": {".": {}, "f:app": {}, "f:team": {}},
                "f:ownerReferences": {},
            },
            "f:spec": {
                "f:containers": {
                    k: v for part in ("server", "tokenizer", "proxy") for k, v in _owned_container(part).items()
                },
                **{
                    f"f:{each}": {}
                    for each in ("dnsPolicy", "restartPolicy", "schedulerName", "volumes", "tolerations")
                },
            },
        },
    ),
    _managed_entry(
        "kubelet",
        {
            "f:status": {
                "f:conditions": {
                    f'k:{{"type":"{kind}"}}': {".": {}, "f:lastTransitionTime": {}, "f:status": {}, "f:type": {}}
                    for kind in _CONDITIONS
                },
                **{
                    f"f:{each}": {} for each in ("containerStatuses", "hostIP", "phase", "podIP", "podIPs", "startTime")
                },
            }
        },
        "status",
    ),
]


def _status(number: int) -> dict[str, Any]:
    address = f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"
    return {
        "phase": "Running",
        "conditions": [
            {"type": kind, "status": "True", "lastProbeTime": None, "lastTransitionTime": "2026-03-01T10:00:04Z"}
            for kind in _CONDITIONS
        ],
        "hostIP": "192.168.0.7",
        "hostIPs": [{"ip": "192.168.0.7"}],
        "podIP": address,
        "podIPs": [{"ip": address}],
        "startTime": "2026-03-01T10:00:01Z",
        "containerStatuses": [
            {
                "name": name,
                "state": {"running": {"startedAt": "2026-03-01T10:00:03Z"}},
                "lastState": {},
                "ready": True,
                "restartCount": 0,
                "image": f"registry.example/nlp/{name}",
                "imageID": f"registry.example/nlp/{name}@sha256:{'4f1c' * 16}",
                "containerID": f"containerd://{number:064x}",
                "started": True,
            }
            for name in ("server", "tokenizer", "proxy")
        ],
        "qosClass": "Guaranteed",
    }
