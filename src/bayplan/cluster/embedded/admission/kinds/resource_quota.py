"""ResourceQuotas: how much of what a namespace may use, perhaps only of pods of some scope.

Source of truth: core/validation, core/helper, registry/core/resourcequota/strategy.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from bayplan.cluster.embedded.admission.fields import Doc, Errors
from bayplan.cluster.embedded.admission.kinds.carry import keep_spec, keep_status
from bayplan.cluster.embedded.admission.metadata import IMMUTABLE
from bayplan.cluster.embedded.admission.pods.resources import (
    resource_name_faults,
    round_resource_list,
    validate_quantity_value,
)
from bayplan.cluster.embedded.admission.pods.scheduling import STRUCT
from bayplan.cluster.embedded.admission.strategy import Strategy
from bayplan.cluster.embedded.admission.syntax import subdomain_name
from bayplan.cluster.kinds import RESOURCE_QUOTA
from bayplan.model.quantity import parse

_POD = frozenset(("pods",))
_COMPUTE = frozenset(("cpu", "memory", "limits.cpu", "limits.memory", "requests.cpu", "requests.memory"))
_SCOPES = {
    "BestEffort": _POD,
    "NotBestEffort": _POD | _COMPUTE,
    "Terminating": _POD | _COMPUTE,
    "NotTerminating": _POD | _COMPUTE,
    "PriorityClass": _POD | _COMPUTE,
    "CrossNamespacePodAffinity": _POD | _COMPUTE,
    "VolumeAttributesClass": frozenset(("persistentvolumeclaims", "requests.storage")),
}
"""Each scope and the standard resources that it can limit."""

_WITHOUT_VALUES = frozenset(_SCOPES) - {"PriorityClass", "VolumeAttributesClass"}
_OPPOSITES = ({"BestEffort", "NotBestEffort"}, {"Terminating", "NotTerminating"})
_ONLY_EXISTS = (
    "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, "
    "ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity"
)
_MISFIT = "unsupported scope applied to resource"


def _is_standard(resource: str) -> bool:
    """Whether a quota knows the resource by a bare name; `storage` alone it does not, only `requests.storage`."""
    return "/" not in resource and resource != "storage" and not resource_name_faults(resource)


def _default(doc: Doc) -> None:
    status = doc["status"]
    for amounts in (doc["spec"].get("hard"), status.get("hard"), status.get("used")):
        round_resource_list(amounts or {})


def _prepare(doc: Doc) -> None:
    doc["status"] = {}


def _validate(doc: Doc, errors: Errors) -> None:
    spec = doc["spec"]
    hard = spec.get("hard", {})
    _validate_amounts(hard, "spec.hard", errors)
    if scopes := spec.get("scopes"):
        _validate_scopes(scopes, hard, errors)
    if "scopeSelector" in spec:
        _validate_scope_selector(spec, hard, errors)


def _validate_amounts(amounts: Mapping[str, str], path: str, errors: Errors) -> None:
    for resource, amount in amounts.items():
        here = f"{path}[{resource}]"
        for fault in resource_name_faults(resource):
            errors.invalid(here, resource, fault)
        if "/" not in resource and not _is_standard(resource):
            errors.invalid(here, resource, "must be a standard resource for quota")
        validate_quantity_value(resource, amount, here, errors)


def _fits(scope: str, hard: Iterable[str]) -> bool:
    limited = _SCOPES.get(scope)
    return limited is None or all(resource in limited for resource in hard if _is_standard(resource))


def _validate_scopes(scopes: list[str], hard: Mapping[str, str], errors: Errors) -> None:
    path = "spec.scopes"
    for scope in scopes:
        if scope not in _SCOPES:
            errors.invalid(path, scopes, "unsupported scope")
        if not _fits(scope, hard):
            errors.invalid(path, scopes, _MISFIT)
    if any(pair <= set(scopes) for pair in _OPPOSITES):
        errors.invalid(path, scopes, "conflicting scopes")


def _validate_scope_selector(spec: Doc, hard: Mapping[str, str], errors: Errors) -> None:
    path = "spec.scopeSelector.matchExpressions"
    requirements = spec["scopeSelector"].get("matchExpressions", ())
    for requirement in requirements:
        scope = requirement.get("scopeName", "")
        if scope not in _SCOPES:
            errors.invalid(f"{path}.scopeName", scope, "unsupported scope")
        if not _fits(scope, hard):
            errors.invalid(path, STRUCT, _MISFIT)
        _validate_requirement(requirement, scope, path, errors)
    if any(pair <= {requirement.get("scopeName", "") for requirement in requirements} for pair in _OPPOSITES):
        errors.invalid(path, spec.get("scopes"), "conflicting scopes")


def _validate_requirement(requirement: Doc, scope: str, path: str, errors: Errors) -> None:
    operator, values = requirement.get("operator", ""), requirement.get("values", [])
    if scope in _WITHOUT_VALUES and operator != "Exists":
        errors.invalid(f"{path}.operator", operator, _ONLY_EXISTS)
    if operator in ("In", "NotIn"):
        if not values:
            detail = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"
            errors.required(f"{path}.values", detail)
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            detail = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"
            errors.invalid(f"{path}.values", values, detail)
    else:
        errors.invalid(f"{path}.operator", operator, "not a valid selector operator")


def _validate_update(new: Doc, old: Doc, errors: Errors) -> None:
    _validate(new, errors)
    if set(new["spec"].get("scopes", ())) != set(old["spec"].get("scopes", ())):
        errors.invalid("spec.scopes", new["spec"].get("scopes"), IMMUTABLE)


def _validate_status(new: Doc, _old: Doc, errors: Errors) -> None:
    for field in ("hard", "used"):
        _validate_amounts(new["status"].get(field, {}), f"status.{field}", errors)


def _warn(new: Doc, old: Doc | None) -> list[str]:
    if old is not None:
        return []
    hard, warnings = new["spec"].get("hard", {}), []
    for resource in ("cpu", "memory", "storage", "ephemeral-storage"):
        asked, limited = f"requests.{resource}", f"limits.{resource}"
        if asked not in hard and resource in ("cpu", "memory"):
            asked = resource
        if asked in hard and limited in hard and parse(hard[asked]) > parse(hard[limited]):
            warnings.append(f"ResourceQuota {asked} ({hard[asked]}) should be less than {limited} ({hard[limited]})")
    return warnings


STRATEGY = Strategy(
    kind=RESOURCE_QUOTA,
    name_rule=subdomain_name,
    default=_default,
    prepare=_prepare,
    validate=_validate,
    prepare_update=keep_status,
    validate_update=_validate_update,
    prepare_status=keep_spec,
    validate_status=_validate_status,
    warn=_warn,
)
