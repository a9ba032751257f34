"""Leases: who holds something, and until when.

Source of truth: coordination/validation, registry/coordination/lease/strategy.go. Coordinated leader election is off by
default, so the two fields that belong to it are dropped.
"""

from __future__ import annotations

from bayplan.cluster.embedded.admission.fields import Doc, Errors
from bayplan.cluster.embedded.admission.strategy import Strategy
from bayplan.cluster.embedded.admission.syntax import subdomain_name
from bayplan.cluster.kinds import LEASE


def _prepare(doc: Doc) -> None:
    for field in ("strategy", "preferredHolder"):
        doc["spec"].pop(field, None)


def _prepare_update(new: Doc, _old: Doc) -> None:
    _prepare(new)


def _validate(doc: Doc, errors: Errors) -> None:
    spec = doc["spec"]
    if (seconds := spec.get("leaseDurationSeconds", 1)) <= 0:
        errors.invalid("spec.leaseDurationSeconds", seconds, "must be greater than 0")
    if (transitions := spec.get("leaseTransitions", 0)) < 0:
        errors.invalid("spec.leaseTransitions", transitions, "must be greater than or equal to 0")


def _validate_update(new: Doc, _old: Doc, errors: Errors) -> None:
    _validate(new, errors)


STRATEGY = Strategy(
    kind=LEASE,
    name_rule=subdomain_name,
    prepare=_prepare,
    validate=_validate,
    prepare_update=_prepare_update,
    validate_update=_validate_update,
    create_on_update=True,
    needs_version=True,
)
