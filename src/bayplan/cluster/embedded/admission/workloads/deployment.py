"""Deployments: ReplicaSets that follow a changing template.

Source of truth: apps/validation, apps/v1/defaults.go, registry/apps/deployment/strategy.go.
"""

from __future__ import annotations

from bayplan.cluster.embedded.admission.fields import Doc, Errors
from bayplan.cluster.embedded.admission.kinds.carry import keep_spec, keep_status, put
from bayplan.cluster.embedded.admission.metadata import NOT_NEGATIVE
from bayplan.cluster.embedded.admission.pods.defaults import default_pod_template
from bayplan.cluster.embedded.admission.strategy import Strategy
from bayplan.cluster.embedded.admission.syntax import subdomain_name
from bayplan.cluster.embedded.admission.workloads.numbers import (
    as_struct,
    not_negative,
    share,
    validate_at_most_all,
    validate_collisions,
    validate_replica_counts,
    validate_share,
)
from bayplan.cluster.embedded.admission.workloads.templates import (
    template_warnings,
    validate_immutable,
    validate_replica_template,
    validate_required_selector,
)
from bayplan.cluster.kinds import DEPLOYMENT

_PARTS = ("updatedReplicas", "readyReplicas", "availableReplicas")
_COUNTS = (
    "observedGeneration",
    "replicas",
    *_PARTS,
    "unavailableReplicas",
    "terminatingReplicas",
    "collisionCount",
)


def _default(doc: Doc) -> None:
    spec = doc["spec"]
    spec.setdefault("replicas", 1)
    strategy = spec["strategy"]
    if strategy.setdefault("type", "RollingUpdate") == "RollingUpdate":
        rolling = strategy.setdefault("rollingUpdate", {})
        rolling.setdefault("maxUnavailable", "25%")
        rolling.setdefault("maxSurge", "25%")
    spec.setdefault("revisionHistoryLimit", 10)
    spec.setdefault("progressDeadlineSeconds", 600)
    default_pod_template(spec["template"])


def _prepare(doc: Doc) -> None:
    doc["status"] = {}


def _validate(doc: Doc, errors: Errors) -> None:
    spec = doc["spec"]
    not_negative(spec, "spec", errors, ("replicas",))
    validate_required_selector(spec, errors, noun="deployment")
    validate_replica_template(spec, errors)
    _validate_strategy(spec["strategy"], errors)
    not_negative(spec, "spec", errors, ("minReadySeconds", "revisionHistoryLimit"))
    deadline = spec.get("progressDeadlineSeconds")
    if deadline is not None:
        if deadline < 0:
            errors.invalid("spec.progressDeadlineSeconds", deadline, NOT_NEGATIVE)
        if deadline <= spec.get("minReadySeconds", 0):
            errors.invalid("spec.progressDeadlineSeconds", deadline, "must be greater than minReadySeconds")


def _validate_strategy(strategy: Doc, errors: Errors) -> None:
    path = "spec.strategy.rollingUpdate"
    match strategy.get("type"):
        case "Recreate":
            if strategy.get("rollingUpdate") is not None:
                errors.forbidden(path, "may not be specified when strategy `type` is 'Recreate'")
        case "RollingUpdate":
            unavailable, surge = strategy["rollingUpdate"]["maxUnavailable"], strategy["rollingUpdate"]["maxSurge"]
            validate_share(unavailable, f"{path}.maxUnavailable", errors)
            validate_share(surge, f"{path}.maxSurge", errors)
            if not share(unavailable) and not share(surge):
                errors.invalid(f"{path}.maxUnavailable", unavailable, "may not be 0 when `maxSurge` is 0")
            validate_at_most_all(unavailable, f"{path}.maxUnavailable", errors)
        case _:
            errors.not_supported("spec.strategy", as_struct(strategy, "rollingUpdate"), ("Recreate", "RollingUpdate"))


def _prepare_update(new: Doc, old: Doc) -> None:
    """Annotations are copied to ReplicaSets, so their change is one for the controller to observe."""
    keep_status(new, old)
    if new["metadata"].get("annotations", {}) != old["metadata"].get("annotations", {}):
        new["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1


def _validate_update(new: Doc, old: Doc, errors: Errors) -> None:
    _validate(new, errors)
    validate_immutable(new["spec"], old["spec"], "selector", errors)


def _prepare_status(new: Doc, old: Doc) -> None:
    keep_spec(new, old)
    put(new["metadata"], "labels", old["metadata"].get("labels"))


def _validate_status(new: Doc, old: Doc, errors: Errors) -> None:
    not_negative(new["status"], "status", errors, _COUNTS)
    validate_replica_counts(new["status"], errors, _PARTS, ready="readyReplicas")
    validate_collisions(new, old, errors)


STRATEGY = Strategy(
    kind=DEPLOYMENT,
    name_rule=subdomain_name,
    generation=True,
    default=_default,
    prepare=_prepare,
    validate=_validate,
    prepare_update=_prepare_update,
    validate_update=_validate_update,
    prepare_status=_prepare_status,
    validate_status=_validate_status,
    warn=template_warnings,
)
