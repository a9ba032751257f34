"""Small good objects of the kinds that make pods.

Documents go through decode, as requests do, so that a case is as short as what a user writes.
"""

from __future__ import annotations

from typing import Any

import msgspec

from bayplan.cluster.embedded.admission.fields import Doc, Errors
from bayplan.cluster.embedded.admission.registry import strategy_of
from bayplan.cluster.embedded.schema.decode import decode
from bayplan.cluster.kinds import KINDS

TYPES = {
    "Deployment": "apps.v1.Deployment",
    "ReplicaSet": "apps.v1.ReplicaSet",
    "StatefulSet": "apps.v1.StatefulSet",
    "DaemonSet": "apps.v1.DaemonSet",
    "ControllerRevision": "apps.v1.ControllerRevision",
    "Job": "batch.v1.Job",
    "CronJob": "batch.v1.CronJob",
    "ReplicationController": "core.v1.ReplicationController",
}
LABELS = {"app": "web"}
SELECTOR = {"matchLabels": LABELS}


def template(**pod: Any) -> Doc:
    return {"metadata": {"labels": LABELS}, "spec": {"containers": [{"name": "c", "image": "busybox:1"}], **pod}}


def spec_of(kind: str, **spec: Any) -> Doc:
    """A small good spec of a kind, with some fields of it set otherwise."""
    if kind == "Job":
        return {"template": template(restartPolicy="Never"), **spec}
    if kind == "CronJob":
        return {"schedule": "@daily", "jobTemplate": {"spec": spec_of("Job")}, **spec}
    return {"selector": LABELS if kind == "ReplicationController" else SELECTOR, "template": template(), **spec}


def decoded(kind: str, *, meta: Doc | None = None, status: Doc | None = None, **spec: Any) -> Doc:
    body = {"metadata": {"name": "x", "namespace": "n", "uid": "u", "generation": 1, **(meta or {})}}
    doc, _ = decode(TYPES[kind], msgspec.json.encode({**body, "spec": spec_of(kind, **spec), "status": status or {}}))
    strategy_of(KINDS[kind]).default(doc)
    return doc


def created(kind: str, **spec: Any) -> Doc:
    doc = decoded(kind, **spec)
    strategy_of(KINDS[kind]).prepare(doc)
    return doc


def faults(errors: Errors) -> list[tuple[str, str]]:
    return [(cause.field, cause.message) for cause in dict.fromkeys(errors)]


def refused(kind: str, **spec: Any) -> list[tuple[str, str]]:
    errors = Errors()
    strategy_of(KINDS[kind]).validate(created(kind, **spec), errors)
    return faults(errors)
