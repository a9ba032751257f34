"""Namespaces: a label with the name, a finalizer that holds the namespace until it is empty, a phase.

Source of truth: core/v1/defaults.go, registry/core/namespace/strategy.go, core/validation.
"""

from __future__ import annotations

from bayplan.cluster.embedded.admission.fields import Doc, Errors
from bayplan.cluster.embedded.admission.kinds.carry import keep_spec, put
from bayplan.cluster.embedded.admission.strategy import Strategy
from bayplan.cluster.embedded.admission.syntax import label_name, qualified_name
from bayplan.cluster.kinds import NAMESPACE

NAME_LABEL = "kubernetes.io/metadata.name"
FINALIZER = "kubernetes"
_STANDARD_FINALIZERS = frozenset(("kubernetes", "orphan", "foregroundDeletion"))


def _default(doc: Doc) -> None:
    _label(doc)
    doc.setdefault("status", {}).setdefault("phase", "Active")


def _label(doc: Doc) -> None:
    meta = doc["metadata"]
    if name := meta.get("name"):
        meta["labels"] = {**meta.get("labels", {}), NAME_LABEL: name}


def _prepare(doc: Doc) -> None:
    _label(doc)  # again: a generated name was not there yet when defaults were set
    doc["status"] = {"phase": "Active"}
    spec = doc.setdefault("spec", {})
    finalizers = spec.get("finalizers", [])
    if FINALIZER not in finalizers:
        spec["finalizers"] = [*finalizers, FINALIZER]


def _validate(doc: Doc, errors: Errors) -> None:
    for name in doc["spec"].get("finalizers", ()):
        _validate_finalizer(name, "spec.finalizers", errors)


def _validate_finalizer(name: str, path: str, errors: Errors) -> None:
    for fault in qualified_name(name):
        errors.invalid(path, name, fault)
    if "/" not in name and name not in _STANDARD_FINALIZERS:
        errors.invalid(path, name, "name is neither a standard finalizer name nor is it fully qualified")


def _prepare_update(new: Doc, old: Doc) -> None:
    put(new["spec"], "finalizers", old["spec"].get("finalizers"))
    new["status"] = old["status"]


def _validate_update(new: Doc, _old: Doc, errors: Errors) -> None:
    _validate(new, errors)


def _validate_status(new: Doc, _old: Doc, errors: Errors) -> None:
    deleted = "deletionTimestamp" in new["metadata"]
    phase, right = new["status"].get("phase", ""), "Terminating" if deleted else "Active"
    if phase != right:
        when = "is not empty" if deleted else "is empty"
        errors.invalid("status.Phase", phase, f"may only be '{right}' if `deletionTimestamp` {when}")


def _prepare_finalize(new: Doc, old: Doc) -> None:
    new["status"] = old["status"]


def validate_finalize(new: Doc, _old: Doc, errors: Errors) -> None:
    """A change through /finalize, the one way to take the finalizers away."""
    for i, name in enumerate(new["spec"].get("finalizers", ())):
        _validate_finalizer(name, f"spec.finalizers[{i}]", errors)


STRATEGY = Strategy(
    kind=NAMESPACE,
    name_rule=label_name,
    default=_default,
    prepare=_prepare,
    validate=_validate,
    prepare_update=_prepare_update,
    validate_update=_validate_update,
    prepare_status=keep_spec,
    validate_status=_validate_status,
    prepare_finalize=_prepare_finalize,
    validate_finalize=validate_finalize,
)
