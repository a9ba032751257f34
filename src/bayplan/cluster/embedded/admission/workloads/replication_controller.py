"""ReplicationControllers: ReplicaSets of an older day, with a plain label map as selector.

Source of truth: core/validation, core/v1/defaults.go, registry/core/replicationcontroller/strategy.go.
"""

from __future__ import annotations

from bayplan.cluster.embedded.admission.fields import Doc, Errors
from bayplan.cluster.embedded.admission.kinds.carry import keep_spec, keep_status
from bayplan.cluster.embedded.admission.pods.defaults import default_pod_template
from bayplan.cluster.embedded.admission.pods.spec import validate_pod_template
from bayplan.cluster.embedded.admission.strategy import Strategy
from bayplan.cluster.embedded.admission.syntax import subdomain_name
from bayplan.cluster.embedded.admission.workloads.numbers import not_negative
from bayplan.cluster.embedded.admission.workloads.replica_set import validate_replica_status
from bayplan.cluster.embedded.admission.workloads.templates import NO_MATCH, template_warnings, validate_runs_forever
from bayplan.cluster.kinds import REPLICATION_CONTROLLER


def _default(doc: Doc) -> None:
    spec = doc["spec"]
    spec.setdefault("replicas", 1)
    if (template := spec.get("template")) is None:
        return
    if labels := template["metadata"].get("labels"):
        if not spec.get("selector"):
            spec["selector"] = dict(labels)
        if not doc["metadata"].get("labels"):
            doc["metadata"]["labels"] = dict(labels)
    default_pod_template(template)


def _prepare(doc: Doc) -> None:
    doc["status"] = {"replicas": 0}


def _validate(doc: Doc, errors: Errors) -> None:
    spec = doc["spec"]
    not_negative(spec, "spec", errors, ("minReadySeconds", "replicas"))
    if not spec.get("selector"):
        errors.required("spec.selector")
    template = spec.get("template")
    if template is None:
        errors.required("spec.template")
        return
    labels = template["metadata"].get("labels")
    if any((labels or {}).get(key) != value for key, value in spec.get("selector", {}).items()):
        errors.invalid("spec.template.metadata.labels", labels, NO_MATCH)
    validate_pod_template(template, "spec.template", errors)
    validate_runs_forever(template["spec"], errors, noun="ReplicationController")


def _validate_update(new: Doc, _old: Doc, errors: Errors) -> None:
    _validate(new, errors)


STRATEGY = Strategy(
    kind=REPLICATION_CONTROLLER,
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
