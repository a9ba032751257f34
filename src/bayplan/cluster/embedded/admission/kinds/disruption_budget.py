"""PodDisruptionBudgets: how many pods of a selection must stay, or may go.

Source of truth: policy/validation, registry/policy/poddisruptionbudget/strategy.go. Upstream leaves the budget's
metadata to the generic rules, so any name that a URL can carry is a good one.
"""

from __future__ import annotations

from bayplan.cluster.embedded.admission.fields import Doc, Errors
from bayplan.cluster.embedded.admission.kinds.carry import keep_spec, keep_status
from bayplan.cluster.embedded.admission.kinds.conditions import validate_conditions
from bayplan.cluster.embedded.admission.labels import has_invalid_values, validate_label_selector
from bayplan.cluster.embedded.admission.pods.scheduling import STRUCT
from bayplan.cluster.embedded.admission.strategy import Strategy
from bayplan.cluster.embedded.admission.syntax import path_segment_name
from bayplan.cluster.embedded.admission.workloads.numbers import not_negative, validate_at_most_all, validate_share
from bayplan.cluster.kinds import POD_DISRUPTION_BUDGET

_COUNTS = ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods")
_EVICTION_POLICIES = ("AlwaysAllow", "IfHealthyBudget")


def _prepare(doc: Doc) -> None:
    doc["status"] = dict.fromkeys(_COUNTS, 0)


def _validate(doc: Doc, errors: Errors) -> None:
    _validate_spec(doc["spec"], errors, invalid_values=False)


def _validate_spec(spec: Doc, errors: Errors, *, invalid_values: bool) -> None:
    if "minAvailable" in spec and "maxUnavailable" in spec:
        errors.invalid("spec", STRUCT, "minAvailable and maxUnavailable cannot be both set")
    for field in ("minAvailable", "maxUnavailable"):
        if field in spec:
            validate_share(spec[field], f"spec.{field}", errors)
            validate_at_most_all(spec[field], f"spec.{field}", errors)
    validate_label_selector(spec.get("selector"), "spec.selector", errors, invalid_values=invalid_values)
    policy = spec.get("unhealthyPodEvictionPolicy")
    if policy is not None and policy not in _EVICTION_POLICIES:
        errors.not_supported("spec.unhealthyPodEvictionPolicy", policy, _EVICTION_POLICIES)


def _validate_update(new: Doc, old: Doc, errors: Errors) -> None:
    _validate_spec(new["spec"], errors, invalid_values=has_invalid_values(old["spec"].get("selector")))


def _validate_status(new: Doc, _old: Doc, errors: Errors) -> None:
    status = new["status"]
    validate_conditions(status.get("conditions", ()), "status.conditions", errors)
    not_negative(status, "status", errors, _COUNTS)


STRATEGY = Strategy(
    kind=POD_DISRUPTION_BUDGET,
    name_rule=path_segment_name,
    generation=True,
    prepare=_prepare,
    validate=_validate,
    prepare_update=keep_status,
    validate_update=_validate_update,
    prepare_status=keep_spec,
    validate_status=_validate_status,
    needs_version=True,
)
