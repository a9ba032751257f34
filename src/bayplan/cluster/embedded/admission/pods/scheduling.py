"""What else steers placement: tolerations, spread constraints, gates, claims, preemption.

Source of truth: kubernetes 1.36 pkg/apis/core/validation. Node taints share `validate_taint_effect`.
"""

from __future__ import annotations

from collections.abc import Sequence

from bayplan.cluster.embedded.admission.fields import Doc, Errors
from bayplan.cluster.embedded.admission.labels import validate_label_name, validate_label_selector
from bayplan.cluster.embedded.admission.pods.affinity import validate_label_keys
from bayplan.cluster.embedded.admission.syntax import dns1123_label, dns1123_subdomain, label_value, qualified_name

EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_ACTIONS = ("DoNotSchedule", "ScheduleAnyway")
_INCLUSION_POLICIES = ("Honor", "Ignore")
_NOT_POSITIVE = "must be greater than zero"
STRUCT: Doc = {"": None}
"""Stands for a value that upstream prints as a Go struct: an error shows it as `{...}`."""


def validate_taint_effect(effect: str, path: str, errors: Errors) -> None:
    """An effect that is given."""
    if effect not in EFFECTS:
        errors.not_supported(path, effect, EFFECTS)


def validate_tolerations(tolerations: Sequence[Doc], path: str, errors: Errors) -> None:
    """Tolerations of a pod."""
    for i, toleration in enumerate(tolerations):
        _validate_toleration(toleration, f"{path}[{i}]", errors)


def _validate_toleration(toleration: Doc, path: str, errors: Errors) -> None:
    key, operator = toleration.get("key", ""), toleration.get("operator", "")
    effect = toleration.get("effect", "")
    if key:
        validate_label_name(key, f"{path}.key", errors)
    elif operator != "Exists":
        text = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
        errors.invalid(f"{path}.operator", operator, text)
    if "tolerationSeconds" in toleration and effect != "NoExecute":
        errors.invalid(f"{path}.effect", effect, "effect must be 'NoExecute' when `tolerationSeconds` is set")
    _validate_comparison(operator, toleration.get("value", ""), f"{path}.operator", errors)
    if effect:
        validate_taint_effect(effect, f"{path}.effect", errors)


def _validate_comparison(operator: str, value: str, path: str, errors: Errors) -> None:
    if operator in ("Equal", ""):
        if faults := label_value(value):
            errors.invalid(path, value, ";".join(faults))
    elif operator == "Exists":
        if value:
            errors.invalid(path, value, "value must be empty when `operator` is 'Exists'")
    elif operator in ("Lt", "Gt"):  # behind a gate that is off: refused, and listed as supported
        errors.not_supported(path, operator, ("Equal", "Exists", "Lt", "Gt"))
    else:
        errors.not_supported(path, operator, ("Equal", "Exists"))


def validate_spread_constraints(constraints: Sequence[Doc], path: str, errors: Errors) -> None:
    """Topology spread constraints; key and action together may occur once."""
    for i, constraint in enumerate(constraints):
        here = f"{path}[{i}]"
        _validate_spread(constraint, here, errors)
        pair = _spread_pair(constraint)
        if any(pair == _spread_pair(other) for other in constraints[i + 1 :]):
            errors.duplicate(f"{here}.{{topologyKey, whenUnsatisfiable}}", f"{{{pair[0]}, {pair[1]}}}")
        validate_label_keys(constraint, here, errors)
        validate_label_selector(constraint.get("labelSelector"), f"{here}.labelSelector", errors)


def _spread_pair(constraint: Doc) -> tuple[str, str]:
    return constraint.get("topologyKey", ""), constraint.get("whenUnsatisfiable", "")


def _validate_spread(constraint: Doc, path: str, errors: Errors) -> None:
    skew, (key, action) = constraint.get("maxSkew", 0), _spread_pair(constraint)
    if skew <= 0:
        errors.invalid(f"{path}.maxSkew", skew, _NOT_POSITIVE)
    if not key:
        errors.required(f"{path}.topologyKey", "can not be empty")
    if action not in _ACTIONS:
        errors.not_supported(f"{path}.whenUnsatisfiable", action, _ACTIONS)
    domains = constraint.get("minDomains")
    if domains is not None and domains <= 0:
        errors.invalid(f"{path}.minDomains", domains, _NOT_POSITIVE)
    if domains is not None and action != "DoNotSchedule":
        text = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}"
        errors.invalid(f"{path}.minDomains", domains, text)
    for field in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
        policy = constraint.get(field)
        if policy is not None and policy not in _INCLUSION_POLICIES:
            errors.not_supported(f"{path}.{field}", policy, _INCLUSION_POLICIES)


def validate_readiness_gates(gates: Sequence[Doc], path: str, errors: Errors) -> None:
    """Conditions that others set."""
    for i, gate in enumerate(gates):
        validate_label_name(gate.get("conditionType", ""), f"{path}[{i}].conditionType", errors)


def validate_scheduling_gates(gates: Sequence[Doc], path: str, errors: Errors) -> None:
    """Gates, each name once; reported on the gate, not on its name."""
    seen: set[str] = set()
    for i, gate in enumerate(gates):
        name = gate.get("name", "")
        for fault in qualified_name(name):
            errors.invalid(f"{path}[{i}]", name, fault)
        if name in seen:
            errors.duplicate(f"{path}[{i}]", name)
        seen.add(name)


def validate_resource_claims(claims: Sequence[Doc], path: str, errors: Errors) -> None:
    """Claims of a pod: each a name of its own and one source."""
    seen: set[str] = set()
    for i, claim in enumerate(claims):
        here = f"{path}[{i}]"
        name = claim.get("name", "")
        if not name:
            errors.required(f"{here}.name")
        elif name in seen:
            errors.duplicate(f"{here}.name", name)
        else:
            for fault in dns1123_label(name):
                errors.invalid(f"{here}.name", name, fault)
            seen.add(name)
        _validate_claim_source(claim, here, errors)


def _validate_claim_source(claim: Doc, path: str, errors: Errors) -> None:
    sources = [field for field in ("resourceClaimName", "resourceClaimTemplateName") if field in claim]
    if len(sources) != 1:
        if sources:
            text = "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
        else:
            text = "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"
        errors.invalid(path, STRUCT, text)
    for field in sources:
        for fault in dns1123_subdomain(claim[field]):
            errors.invalid(f"{path}.{field}", claim[field], fault)
