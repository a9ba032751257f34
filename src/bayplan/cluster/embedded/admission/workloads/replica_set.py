"""ReplicaSets: so many pods of one template.

Source of truth: apps/validation, apps/v1/defaults.go, registry/apps/replicaset/strategy.go.
"""

from __future__ import annotations

from bayplan.cluster.embedded.admission.fields import Doc, Errors
from bayplan.cluster.embedded.admission.kinds.carry import keep_spec, keep_status
from bayplan.cluster.embedded.admission.pods.defaults import default_pod_template
from bayplan.cluster.embedded.admission.strategy import Strategy
from bayplan.cluster.embedded.admission.syntax import subdomain_name
from bayplan.cluster.embedded.admission.workloads.numbers import not_negative, validate_replica_counts
from bayplan.cluster.embedded.admission.workloads.templates import (
    template_warnings,
    validate_immutable,
    validate_replica_template,
    validate_required_selector,
)
from bayplan.cluster.kinds import REPLICA_SET

_PARTS = ("fullyLabeledReplicas", "readyReplicas", "availableReplicas")


def _default(doc: Doc) -> None:
    doc["spec"].setdefault("replicas", 1)
    default_pod_template(doc["spec"]["template"])


def _prepare(doc: Doc) -> None:
    doc["status"] = {"replicas": 0}


def _validate(doc: Doc, errors: Errors) -> None:
    spec = doc["spec"]
    not_negative(spec, "spec", errors, ("replicas", "minReadySeconds"))
    validate_required_selector(spec, errors, noun="deployment")  # sic
    validate_replica_template(spec, errors)


def _validate_update(new: Doc, old: Doc, errors: Errors) -> None:
    _validate(new, errors)
    validate_immutable(new["spec"], old["spec"], "selector", errors)


def validate_replica_status(new: Doc, _old: Doc, errors: Errors) -> None:
    """The counters of a ReplicaSet or ReplicationController."""
    status = new["status"]
    not_negative(status, "status", errors, ("replicas", *_PARTS, "observedGeneration", "terminatingReplicas"))
    validate_replica_counts(status, errors, _PARTS, ready="readyReplicas")


STRATEGY = Strategy(
    kind=REPLICA_SET,
    name_rule=subdomain_name,
    generation=True,
    default=_default,
    prepare=_prepare,
    validate=_validate,
    prepare_update=keep_status,
    validate_update=_validate_update,
    prepare_status=keep_spec,
    validate_status=validate_replica_status,
    warn=template_warnings,
)
