"""ControllerRevisions: past templates of a StatefulSet or DaemonSet, written once.

Source of truth: apps/validation, registry/apps/controllerrevision/strategy.go.
"""

from __future__ import annotations

from bayplan.cluster.embedded.admission.fields import Doc, Errors
from bayplan.cluster.embedded.admission.metadata import IMMUTABLE, NOT_NEGATIVE
from bayplan.cluster.embedded.admission.strategy import Strategy
from bayplan.cluster.embedded.admission.syntax import subdomain_name
from bayplan.cluster.kinds import CONTROLLER_REVISION


def _validate_revision(doc: Doc, errors: Errors) -> None:
    if (revision := doc.get("revision", 0)) < 0:
        errors.invalid("revision", revision, NOT_NEGATIVE)


def _validate(doc: Doc, errors: Errors) -> None:
    _validate_revision(doc, errors)
    data = doc.get("data")
    if data is None:
        errors.required("data", "data is mandatory")
    elif not isinstance(data, dict):
        errors.required("data", "data must be a valid JSON object")


def _validate_update(new: Doc, old: Doc, errors: Errors) -> None:
    _validate_revision(new, errors)
    if new.get("data") != old.get("data"):
        errors.invalid("data", new.get("data"), IMMUTABLE)


STRATEGY = Strategy(
    kind=CONTROLLER_REVISION, name_rule=subdomain_name, validate=_validate, validate_update=_validate_update
)
