"""The pods of a StatefulSet: each a number, a name, a host name and its own volumes.

Source of truth: pkg/controller/statefulset/stateful_set_utils.go and stateful_pod_control.go.
"""

from __future__ import annotations

from typing import Any

import msgspec

from bayplan.cluster.embedded.controllers.contract import Create, Delete, Emit, Patch, View, Write
from bayplan.cluster.embedded.controllers.revisions import REVISION_LABEL, Revision
from bayplan.cluster.embedded.controllers.stamping import pod_meta
from bayplan.cluster.embedded.controllers.stateful_set_claims import (
    COMPONENT,
    claim_names,
    missing_claims,
    retention,
    vanishing_claim,
)
from bayplan.cluster.kinds import POD
from bayplan.cluster.objects import Object, Section
from bayplan.model.workloads import StatefulSet

POD_NAME = "statefulset.kubernetes.io/pod-name"
POD_INDEX = "apps.kubernetes.io/pod-index"


def create_pod(item: Object, wanted: StatefulSet, revision: Revision, ordinal: int, view: View) -> list[Write]:
    """The pod of an ordinal, after the claims that it needs; no pod while one of those is on its way out."""
    name = f"{item.name}-{ordinal}"
    failure = f"Create Pod {name} in StatefulSet {item.name} failed error: "
    if claim := vanishing_claim(wanted, ordinal, view):
        return [_told(item, "Warning", "FailedCreate", f"{failure}pvc {claim} is being deleted")]
    labels = {**_identity(name, ordinal), REVISION_LABEL: revision.name}
    meta = pod_meta(revision.template, item, name=name, labels=labels)
    refused = _told(item, "Warning", "FailedCreate", failure + "{error}")
    is_taken = view.get(POD, item.namespace, name) is not None  # by a pod of someone else: wait without a word
    create = Create(
        POD,
        meta,
        {"spec": _spec(wanted, revision, name, ordinal)},
        then=_told(item, "Normal", "SuccessfulCreate", f"Create Pod {name} in StatefulSet {item.name} successful"),
        refused=None if is_taken else refused,
    )
    return [*missing_claims(item, wanted, ordinal, view), create]


def delete_pod(item: Object, pod: Object) -> Delete:
    """The end of a pod."""
    text = f"Delete Pod {pod.name} in StatefulSet {item.name} successful"
    return Delete(pod, then=_told(item, "Normal", "SuccessfulDelete", text))


def corrections(item: Object, wanted: StatefulSet, pod: Object, ordinal: int, view: View) -> list[Write]:
    """What a pod and its claims lack to be the ordinal's."""
    lacking = {key: value for key, value in _identity(pod.name, ordinal).items() if key not in pod.meta.labels}
    writes: list[Write] = [*retention(item, wanted, pod, ordinal, view)]
    if pod.meta.labels.get(POD_NAME) != pod.name:
        writes.append(Patch(pod, {"metadata": {"labels": lacking | {POD_NAME: pod.name}}}))
    if writes:
        text = f"Update Pod {pod.name} in StatefulSet {item.name} successful"
        writes.append(_told(item, "Normal", "SuccessfulUpdate", text))
    return writes


def _identity(name: str, ordinal: int) -> dict[str, str]:
    return {POD_NAME: name, POD_INDEX: str(ordinal)}


def _spec(wanted: StatefulSet, revision: Revision, name: str, ordinal: int) -> Section:
    spec: dict[str, Any] = msgspec.json.decode(revision.template.spec)
    spec["hostname"] = name
    if wanted.spec.service_name:
        spec["subdomain"] = wanted.spec.service_name
    if claims := claim_names(wanted, ordinal):
        volumes = [{"name": volume, "persistentVolumeClaim": {"claimName": claim}} for volume, claim in claims.items()]
        spec["volumes"] = volumes + [one for one in spec.get("volumes", ()) if one["name"] not in claims]
    return Section(msgspec.json.encode(spec))


def _told(item: Object, kind: str, reason: str, message: str) -> Emit:
    return Emit(item, kind, reason, message, COMPONENT)
