"""The objects that run a ledger in a cluster: its account, its roles, and two replicas of it.

Roles follow from `rights`; what the pods are told of settings follows from those that are not as they were.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from bayplan.ledger.rights import Need, places, rules
from bayplan.service.settings import SETTINGS, LedgerSettings, plain

NAME = "bayplan-ledger"
DATABASE_KEY = "database"
"""Of the Secret named NAME: the database's URL."""
_RBAC = "rbac.authorization.k8s.io"
_LABELS = {"app.kubernetes.io/name": NAME}
_USER = 65532
"""By custom the user of images without users."""
_SPOOL = "/spool"

Document = dict[str, Any]


def manifest(lines: Sequence[Need], settings: LedgerSettings, namespace: str, image: str) -> list[Document]:
    """Everything, in the order in which it is to be made."""
    account = _object("v1", "ServiceAccount", namespace)
    return [account, *roles(lines, namespace), _deployment(settings, namespace, image)]


def roles(lines: Sequence[Need], namespace: str, name: str = NAME) -> list[Document]:
    """What the account of this name may do: a ClusterRole, a Role for each place, and their bindings."""
    found: list[Document] = []
    for place in ("", *places(lines)):
        kind = "Role" if place else "ClusterRole"
        found.append(_object(f"{_RBAC}/v1", kind, place, name) | {"rules": rules(lines, place)})
        found.append(
            _object(f"{_RBAC}/v1", f"{kind}Binding", place, name)
            | {
                "roleRef": {"apiGroup": _RBAC, "kind": kind, "name": name},
                "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": namespace}],
            }
        )
    return found


def _object(api_version: str, kind: str, namespace: str, name: str = NAME) -> Document:
    place = {"namespace": namespace} if namespace else {}
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name, **place, "labels": dict(_LABELS)}}


def _environment(settings: LedgerSettings) -> list[Document]:
    """The settings that are not their defaults; the database, with its password, from the Secret."""
    secret = [DATABASE_KEY, *(["prometheus"] if "@" in settings.prometheus else [])]
    told = {
        f"ledger.{name}": str(plain(value))
        for name, value in msgspec.structs.asdict(settings).items()
        if name not in (*secret, "spool") and value != SETTINGS[f"ledger.{name}"].default
    }
    told = {"health.bind": "0.0.0.0", "log.format": "json", "ledger.spool": _SPOOL, **told}  # noqa: S104 - the kubelet asks from outside the pod
    return [
        *(
            {
                "name": SETTINGS[f"ledger.{key}"].variable,
                "valueFrom": {"secretKeyRef": {"name": NAME, "key": key}},
            }
            for key in secret
        ),
        *({"name": SETTINGS[key].variable, "value": value} for key, value in told.items()),
    ]


def _container(name: str, image: str, settings: LedgerSettings, *words: str) -> Document:
    return {
        "name": name,
        "image": image,
        "command": ["bayplan", "ledger", *words],
        "env": _environment(settings),
        "resources": {"requests": {"cpu": "100m", "memory": "256Mi"}, "limits": {"cpu": "1", "memory": "512Mi"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
        },
        "volumeMounts": [{"name": "spool", "mountPath": _SPOOL}],
    }


def _probe(path: str) -> Document:
    return {"httpGet": {"path": path, "port": "health"}, "periodSeconds": 10, "timeoutSeconds": 5}


def _deployment(settings: LedgerSettings, namespace: str, image: str) -> Document:
    ledger = _container("ledger", image, settings, "run") | {
        "ports": [{"name": "health", "containerPort": SETTINGS["health.port"].default}],
        "livenessProbe": _probe("/livez"),
        "readinessProbe": _probe("/readyz"),
    }
    spool = {"name": "spool", "emptyDir": {"sizeLimit": f"{settings.spool_mib * 2}Mi"}}
    apart = {"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "ScheduleAnyway"}
    pod = {
        "serviceAccountName": NAME,
        "enableServiceLinks": False,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": _USER,
            "fsGroup": _USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "topologySpreadConstraints": [apart | {"labelSelector": {"matchLabels": _LABELS}}],
        "initContainers": [_container("migrate", image, settings, "migrate")],
        "containers": [ledger],
        "volumes": [spool],
    }
    return _object("apps/v1", "Deployment", namespace) | {
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": _LABELS},
            "template": {"metadata": {"labels": _LABELS}, "spec": pod},
        }
    }
