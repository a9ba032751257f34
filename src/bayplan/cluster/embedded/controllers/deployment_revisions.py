"""The new ReplicaSet of a Deployment: what it is made of, and what its annotations say.

Source of truth: getNewReplicaSet in pkg/controller/deployment/sync.go, and util (SetNewReplicaSetAnnotations).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from bayplan.cluster.embedded.controllers.contract import Create, Emit
from bayplan.cluster.embedded.controllers.deployment_parts import (
    DESIRED_REPLICAS,
    MAX_REPLICAS,
    REVISION,
    Parts,
    max_surge,
    revision_of,
    size_of_new,
)
from bayplan.cluster.embedded.controllers.ownership import reference
from bayplan.cluster.embedded.controllers.stamping import POD_TEMPLATE_HASH, template_body, template_hash
from bayplan.cluster.kinds import REPLICA_SET
from bayplan.cluster.objects import Object, Section
from bayplan.model.meta import ObjectMeta
from bayplan.model.workloads import Deployment, ReplicaSet, ReplicaSetSpec

REVISION_HISTORY = "deployment.kubernetes.io/revision-history"
COMPONENT = "deployment-controller"
_NOT_COPIED = {
    "kubectl.kubernetes.io/last-applied-configuration",
    REVISION,
    REVISION_HISTORY,
    DESIRED_REPLICAS,
    MAX_REPLICAS,
    "deprecated.deployment.rollback.to",
}
_MAX_HISTORY = 2000  # characters, about a hundred revisions
_MAX_NAME = 253


def next_revision(old: Iterable[ReplicaSet]) -> int:
    """The number of the new ReplicaSet's turn."""
    return max(map(revision_of, old), default=0) + 1


def part_name(wanted: Deployment) -> str:
    """The name of the ReplicaSet of the present template."""
    suffix = template_hash(wanted.spec.template, wanted.status.collision_count)
    return f"{wanted.metadata.name[: _MAX_NAME - len(suffix) - 1]}-{suffix}"


def new_part(wanted: Deployment, parts: Parts) -> ReplicaSet:
    """The ReplicaSet to make, as far as its Deployment counts it."""
    meta = ObjectMeta(name=part_name(wanted))
    return ReplicaSet(metadata=meta, spec=ReplicaSetSpec(replicas=size_of_new(wanted, parts)))


def create_part(item: Object, wanted: Deployment, parts: Parts, part: ReplicaSet) -> Create:
    """The making of that ReplicaSet."""
    name, size = part.metadata.name, part.spec.replicas
    own = {POD_TEMPLATE_HASH: name.rpartition("-")[2]}
    labels = {**wanted.spec.template.metadata.labels, **own}
    selector = msgspec.structs.replace(wanted.spec.selector, match_labels={**wanted.spec.selector.match_labels, **own})
    spec: dict[str, Any] = {
        "replicas": size,
        "minReadySeconds": wanted.spec.min_ready_seconds,
        "selector": msgspec.to_builtins(selector),
        "template": template_body(wanted.spec.template, labels),
    }
    meta = ObjectMeta(
        name=name,
        namespace=item.namespace,
        labels=labels,
        annotations={**_copied(wanted), REVISION: str(next_revision(parts.old)), **replicas_annotations(wanted)},
        owner_references=(reference(item),),
    )
    text = f"Scaled up replica set {name} from 0 to {size}"
    failure = f'Failed to create new replica set "{name}": {{error}}'
    return Create(
        REPLICA_SET,
        meta,
        {"spec": Section(msgspec.json.encode(spec))},
        then=Emit(item, "Normal", "ScalingReplicaSet", text, COMPONENT) if size else None,
        refused=Emit(item, "Warning", "ReplicaSetCreateError", failure, COMPONENT),
    )


def replicas_annotations(wanted: Deployment) -> dict[str, str]:
    """What every ReplicaSet is told of its Deployment's size."""
    replicas = wanted.spec.replicas
    return {DESIRED_REPLICAS: str(replicas), MAX_REPLICAS: str(replicas + max_surge(wanted))}


def renewal(wanted: Deployment, parts: Parts, new: ReplicaSet) -> dict[str, Any]:
    """The patch that makes the new ReplicaSet the newest: annotations, turn, minReadySeconds. Empty if it is."""
    present = new.metadata.annotations
    changed = {key: value for key, value in _copied(wanted).items() if present.get(key) != value}
    changed |= _next_turn(present, next_revision(parts.old))
    patch: dict[str, Any] = {"metadata": {"annotations": changed}} if changed else {}
    if new.spec.min_ready_seconds != wanted.spec.min_ready_seconds:
        patch["spec"] = {"minReadySeconds": wanted.spec.min_ready_seconds}
    return patch


def _next_turn(present: dict[str, str], revision: int) -> dict[str, str]:
    """The revision goes up, and the one it had before joins the history: this is a rollback."""
    before = present.get(REVISION)
    if before is None or not before.isdigit():
        return {} if before else {REVISION: str(revision)}
    if int(before) >= revision:
        return {}
    history = [*filter(None, present.get(REVISION_HISTORY, "").split(",")), before]
    while len(",".join(history)) > _MAX_HISTORY:
        history.pop(0)
    return {REVISION: str(revision), REVISION_HISTORY: ",".join(history)}


def _copied(wanted: Deployment) -> dict[str, str]:
    return {key: value for key, value in wanted.metadata.annotations.items() if key not in _NOT_COPIED}
