"""PriorityClasses: a number and whether it preempts; the number never changes.

Source of truth: scheduling/validation, scheduling/v1/defaults.go and helpers.go.
"""

from __future__ import annotations

from bayplan.cluster.embedded.admission.fields import Doc, Errors
from bayplan.cluster.embedded.admission.metadata import IMMUTABLE
from bayplan.cluster.embedded.admission.strategy import Strategy
from bayplan.cluster.embedded.admission.syntax import subdomain_name
from bayplan.cluster.kinds import PRIORITY_CLASS

HIGHEST_USER_VALUE = 1_000_000_000
SYSTEM_PREFIX = "system-"
SYSTEM_CLASSES = {"system-node-critical": 2_000_001_000, "system-cluster-critical": 2_000_000_000}
_POLICIES = ("PreemptLowerPriority", "Never")


def _default(doc: Doc) -> None:
    doc.setdefault("preemptionPolicy", "PreemptLowerPriority")


def _prepare(doc: Doc) -> None:
    doc["metadata"]["generation"] = 1  # and 1 it stays: upstream never counts on


def _validate(doc: Doc, errors: Errors) -> None:
    name = doc["metadata"].get("name", "")
    if name.startswith(SYSTEM_PREFIX):
        if fault := _system_fault(doc, name):
            detail = (
                f"priority class names with '{SYSTEM_PREFIX}' prefix are reserved for system use only. error: {fault}"
            )
            errors.forbidden("metadata.name", detail)
    elif doc.get("value", 0) > HIGHEST_USER_VALUE:
        errors.forbidden("value", f"maximum allowed value of a user defined priority is {HIGHEST_USER_VALUE}")
    policy = doc.get("preemptionPolicy")
    if policy == "":
        errors.required("preemptionPolicy")
    elif policy is not None and policy not in _POLICIES:
        errors.not_supported("preemptionPolicy", policy, _POLICIES)


def _system_fault(doc: Doc, name: str) -> str:
    """What keeps a class from being the system's own of that name; empty if nothing does."""
    if name not in SYSTEM_CLASSES:
        return f"{name} is not a known system priority class"
    if doc.get("value", 0) != SYSTEM_CLASSES[name]:
        return f"value of {name} PriorityClass must be {SYSTEM_CLASSES[name]}"
    return f"globalDefault of {name} PriorityClass must be false" if doc.get("globalDefault") else ""


def _validate_update(new: Doc, old: Doc, errors: Errors) -> None:
    if new.get("value", 0) != old.get("value", 0):
        errors.forbidden("value", "may not be changed in an update.")
    if new.get("preemptionPolicy") != old.get("preemptionPolicy"):
        errors.invalid("preemptionPolicy", new.get("preemptionPolicy"), IMMUTABLE)


STRATEGY = Strategy(
    kind=PRIORITY_CLASS,
    name_rule=subdomain_name,
    default=_default,
    prepare=_prepare,
    validate=_validate,
    validate_update=_validate_update,
)
