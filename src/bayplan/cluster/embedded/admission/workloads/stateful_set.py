"""StatefulSets: pods with names and volumes of their own.

Source of truth: apps/validation, apps/v1/defaults.go and conversion.go, registry/apps/statefulset/strategy.go.
"""

from __future__ import annotations

from bayplan.cluster.embedded.admission.fields import Doc, Errors
from bayplan.cluster.embedded.admission.kinds.carry import keep_spec, keep_status
from bayplan.cluster.embedded.admission.kinds.volume_claim import (
    claim_spec_warnings,
    default_claim_spec,
    validate_claim_spec,
)
from bayplan.cluster.embedded.admission.labels import read_selector, validate_labels
from bayplan.cluster.embedded.admission.metadata import NOT_NEGATIVE, validate_annotations
from bayplan.cluster.embedded.admission.pods.defaults import default_pod_template
from bayplan.cluster.embedded.admission.pods.spec import validate_pod_template
from bayplan.cluster.embedded.admission.pods.warnings import pod_template_warnings
from bayplan.cluster.embedded.admission.strategy import Strategy
from bayplan.cluster.embedded.admission.syntax import dns1123_label, label_name
from bayplan.cluster.embedded.admission.workloads.numbers import (
    as_struct,
    not_negative,
    validate_collisions,
    validate_replica_counts,
)
from bayplan.cluster.embedded.admission.workloads.templates import (
    generation_moved,
    validate_match,
    validate_required_selector,
    validate_runs_forever,
)
from bayplan.cluster.kinds import STATEFUL_SET

_MUTABLE = frozenset(
    (
        "replicas",
        "ordinals",
        "template",
        "updateStrategy",
        "revisionHistoryLimit",
        "persistentVolumeClaimRetentionPolicy",
        "minReadySeconds",
    )
)
_PARTS = ("readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas")


def _default(doc: Doc) -> None:
    spec = doc["spec"]
    spec.setdefault("podManagementPolicy", "OrderedReady")
    strategy = spec["updateStrategy"]
    if "type" not in strategy:
        strategy["type"] = "RollingUpdate"
        strategy.setdefault("rollingUpdate", {})
    if strategy["type"] == "RollingUpdate" and "rollingUpdate" in strategy:
        strategy["rollingUpdate"].setdefault("partition", 0)
    retention = spec.setdefault("persistentVolumeClaimRetentionPolicy", {})
    retention.setdefault("whenDeleted", "Retain")
    retention.setdefault("whenScaled", "Retain")
    spec.setdefault("replicas", 1)
    spec.setdefault("revisionHistoryLimit", 10)
    default_pod_template(spec["template"])
    for claim in spec.get("volumeClaimTemplates", ()):
        claim["apiVersion"], claim["kind"] = "v1", "PersistentVolumeClaim"
        claim["status"].setdefault("phase", "Pending")
        default_claim_spec(claim["spec"])


def _prepare(doc: Doc) -> None:
    doc["status"] = {"replicas": 0, "availableReplicas": 0}
    _drop_max_unavailable(doc)


def _prepare_update(new: Doc, old: Doc) -> None:
    keep_status(new, old)
    if "maxUnavailable" not in old["spec"]["updateStrategy"].get("rollingUpdate", {}):
        _drop_max_unavailable(new)


def _drop_max_unavailable(doc: Doc) -> None:
    """The field belongs to MaxUnavailableStatefulSet, a gate that is off by default."""
    doc["spec"]["updateStrategy"].get("rollingUpdate", {}).pop("maxUnavailable", None)


def _validate(doc: Doc, errors: Errors) -> None:
    spec = doc["spec"]
    for i, claim in enumerate(spec.get("volumeClaimTemplates", ())):
        validate_claim_spec(claim["spec"], f"spec.volumeClaimTemplates[{i}].spec", errors)
    if service := spec.get("serviceName"):
        for fault in dns1123_label(service):
            errors.invalid("spec.serviceName", service, fault)
    _validate_spec(spec, errors, template=True)


def _validate_spec(spec: Doc, errors: Errors, *, template: bool) -> None:
    """What is checked of old objects too; `template` is False where a bad one has been stored already."""
    policy = spec["podManagementPolicy"]
    if policy not in ("OrderedReady", "Parallel"):
        errors.invalid("spec.podManagementPolicy", policy, "must be 'OrderedReady' or 'Parallel'")
    _validate_strategy(spec["updateStrategy"], errors)
    for field in ("whenDeleted", "whenScaled"):
        if (policy := spec["persistentVolumeClaimRetentionPolicy"][field]) not in ("Retain", "Delete"):
            errors.not_supported(f"spec.persistentVolumeClaimRetentionPolicy.{field}", policy, ("Retain", "Delete"))
    not_negative(spec, "spec", errors, ("replicas", "minReadySeconds"))
    not_negative(spec.get("ordinals") or {}, "spec.ordinals", errors, ("start",))
    validate_required_selector(spec, errors, noun="statefulset")
    if (selector := read_selector(spec.get("selector"))) is not None:
        validate_match(selector, spec["template"], errors)
        _validate_template(spec, errors, whole=template)
    else:
        errors.invalid("spec.selector", spec["selector"], "")
    validate_runs_forever(spec["template"]["spec"], errors, noun="StatefulSet")


def _validate_strategy(strategy: Doc, errors: Errors) -> None:
    path, rolling = "spec.updateStrategy", strategy.get("rollingUpdate")
    match strategy["type"]:
        case "OnDelete":
            if rolling is not None:
                shown = {"partition": rolling.get("partition", 0)}
                errors.invalid(f"{path}.rollingUpdate", shown, "only allowed for updateStrategy 'RollingUpdate'")
        case "RollingUpdate":
            if rolling is not None and rolling["partition"] < 0:
                errors.invalid(f"{path}.rollingUpdate.partition", rolling["partition"], NOT_NEGATIVE)
        case _:
            errors.invalid(path, as_struct(strategy, "rollingUpdate"), "must be 'RollingUpdate' or 'OnDelete'")


def _validate_template(spec: Doc, errors: Errors, *, whole: bool) -> None:
    template = spec["template"]
    if whole:
        validate_pod_template({**template, "spec": _as_made(spec)}, "spec.template", errors)
    else:
        meta = template["metadata"]
        validate_labels(meta.get("labels", {}), "spec.template.labels", errors)
        validate_annotations(meta.get("annotations", {}), "spec.template.annotations", errors)


def _as_made(spec: Doc) -> Doc:
    """The pod as the controller makes it: name and subdomain overwritten, a volume for every claim."""
    pod: Doc = {k: v for k, v in spec["template"]["spec"].items() if k not in ("subdomain", "hostname")}
    if claims := spec.get("volumeClaimTemplates"):
        names = dict.fromkeys(claim["metadata"].get("name", "") for claim in claims)
        made = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in names]
        pod["volumes"] = made + [volume for volume in pod.get("volumes", ()) if volume.get("name", "") not in names]
    return pod


def _validate_update(new: Doc, old: Doc, errors: Errors) -> None:
    stored_faults = Errors()
    _validate_spec(old["spec"], stored_faults, template=True)
    _validate_spec(new["spec"], errors, template=not stored_faults)
    if _fixed(new["spec"]) != _fixed(old["spec"]):
        text = (
            "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', "
            "'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"
        )
        errors.forbidden("spec", text)


def _fixed(spec: Doc) -> Doc:
    return {field: value for field, value in spec.items() if field not in _MUTABLE}


def _validate_status(new: Doc, old: Doc, errors: Errors) -> None:
    counts = ("replicas", *_PARTS, "observedGeneration", "collisionCount")
    not_negative(new["status"], "status", errors, counts)
    validate_replica_counts(new["status"], errors, _PARTS, ready="status.readyReplicas")
    validate_collisions(new, old, errors)


def _warn(new: Doc, old: Doc | None) -> list[str]:
    spec, warnings = new["spec"], list[str]()
    if old is None or generation_moved(new, old):
        warnings += pod_template_warnings(spec["template"], "spec.template")
    for i, claim in enumerate(spec.get("volumeClaimTemplates", ())):
        path = f"spec.volumeClaimTemplates[{i}]"
        warnings += claim_spec_warnings(claim["spec"], path if old is None else f"{path}.Spec")
    if spec["revisionHistoryLimit"] < 0:
        text = "a negative value retains all historical revisions; a value >= 0 is recommended"
        warnings.append(f"spec.revisionHistoryLimit: {text}")
    return warnings


STRATEGY = Strategy(
    kind=STATEFUL_SET,
    name_rule=label_name,
    generation=True,
    default=_default,
    prepare=_prepare,
    validate=_validate,
    prepare_update=_prepare_update,
    validate_update=_validate_update,
    prepare_status=keep_spec,
    validate_status=_validate_status,
    warn=_warn,
)
