"""Changing a Pod: nearly everything stays as it was created.

Source of truth: kubernetes 1.36 pkg/apis/core/validation, ValidatePodUpdate. The allowed changes are undone in a copy;
if the copy then differs from the old spec, something else was changed too.
"""

from __future__ import annotations

from collections.abc import Sequence

from bayplan.cluster.embedded.admission.fields import Doc, Errors
from bayplan.cluster.embedded.admission.kinds.carry import put
from bayplan.cluster.embedded.admission.pods.affinity import REQUIRED
from bayplan.cluster.embedded.admission.pods.scheduling import STRUCT
from bayplan.cluster.embedded.admission.syntax import between
from bayplan.model.quantity import parse

_MOST_INT32 = 2**31 - 1
_QUANTITY_MAPS = frozenset(("limits", "requests", "overhead"))
_QUANTITIES = frozenset(("sizeLimit", "divisor"))
_UPDATABLE = ",".join(
    (
        "`spec.containers[*].image`",
        "`spec.initContainers[*].image`",
        "`spec.activeDeadlineSeconds`",
        "`spec.tolerations` (only additions to existing tolerations)",
        "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)",
    )
)


def same(one: object, other: object, field: str = "") -> bool:
    """Whether two values mean the same: quantities compare by amount. `field` is where they stand."""
    if one == other:
        return True
    if isinstance(one, dict) and isinstance(other, dict):
        amounts = "sizeLimit" if field in _QUANTITY_MAPS else ""
        return one.keys() == other.keys() and all(same(one[key], other[key], amounts or key) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(same(a, b) for a, b in zip(one, other, strict=True))
    return field in _QUANTITIES and isinstance(one, str) and isinstance(other, str) and parse(one) == parse(other)


def validate_spec_change(new: Doc, old: Doc, errors: Errors) -> None:
    """What may differ between two valid specs of one pod."""
    for field in ("containers", "initContainers"):
        if len(new.get(field) or ()) != len(old.get(field, ())):
            errors.forbidden(f"spec.{field}", "pod updates may not add or remove containers")
            return
    if not _validate_deadline(new.get("activeDeadlineSeconds"), old.get("activeDeadlineSeconds"), errors):
        return
    _validate_tolerations(new.get("tolerations", ()), old.get("tolerations", ()), errors)
    _validate_gates(new.get("schedulingGates", ()), old.get("schedulingGates", ()), errors)
    if same(new, old):
        return
    munged = dict(new)
    for field in ("containers", "initContainers"):
        if field in new:
            munged[field] = [_with_image(c, was) for c, was in zip(new[field], old[field], strict=True)]
    for field in ("activeDeadlineSeconds", "schedulingGates", "tolerations"):
        put(munged, field, old.get(field))
    if old.get("schedulingGates"):
        _validate_gated(munged, old, errors)
    if not same(munged, old):
        errors.forbidden("spec", f"pod updates may not change fields other than {_UPDATABLE}")


def _with_image(container: Doc, was: Doc) -> Doc:
    container = dict(container)
    put(container, "image", was.get("image"))
    return container


def _validate_deadline(new: int | None, old: int | None, errors: Errors) -> bool:
    """A deadline may appear or come nearer. False: upstream looks no further."""
    path = "spec.activeDeadlineSeconds"
    if new is None:
        if old is not None:
            errors.invalid(path, None, "must not update from a positive integer to nil value")
        return True
    if not 0 <= new <= _MOST_INT32:
        errors.invalid(path, new, between(0, _MOST_INT32))
        return False
    if old is not None and old < new:
        errors.invalid(path, new, "must be less than or equal to previous value")
        return False
    return True


def _validate_tolerations(new: Sequence[Doc], old: Sequence[Doc], errors: Errors) -> None:
    kept = [_without_seconds(toleration) for toleration in new]
    if any(_without_seconds(toleration) not in kept for toleration in old):
        text = "existing toleration can not be modified except its tolerationSeconds"
        errors.forbidden("spec.tolerations", text)


def _without_seconds(toleration: Doc) -> Doc:
    return {field: value for field, value in toleration.items() if field != "tolerationSeconds"}


def _validate_gates(new: Sequence[Doc], old: Sequence[Doc], errors: Errors) -> None:
    known = {gate.get("name", "") for gate in old}
    added = {gate.get("name", ""): i for i, gate in enumerate(new) if gate.get("name", "") not in known}
    for name, i in added.items():
        text = f"only deletion is allowed, but found new scheduling gate '{name}'"
        errors.forbidden(f"spec.schedulingGates[{i}].name", text)


def _validate_gated(munged: Doc, old: Doc, errors: Errors) -> None:
    """A gated pod's choice of nodes may be narrowed; what is allowed is undone in `munged`."""
    selector, was = munged.get("nodeSelector", {}), old.get("nodeSelector", {})
    if any(selector.get(key) != value for key, value in was.items()):
        text = "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
        errors.invalid("spec.nodeSelector", selector or None, text)
    put(munged, "nodeSelector", old.get("nodeSelector"))
    old_affinity, affinity = old.get("affinity"), munged.get("affinity")
    old_node, node = (old_affinity or {}).get("nodeAffinity"), (affinity or {}).get("nodeAffinity")
    if same(old_node, node):
        return
    _validate_node_affinity_change(node or {}, old_node or {}, errors)
    others = {field: value for field, value in (affinity or {}).items() if field != "nodeAffinity"}
    if old_node is not None:
        munged["affinity"] = {**others, "nodeAffinity": old_node}
    elif old_affinity is None and not others:
        munged.pop("affinity", None)
    else:
        munged["affinity"] = others


def _validate_node_affinity_change(new: Doc, old: Doc, errors: Errors) -> None:
    path = f"spec.affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms"
    old_terms = (old.get(REQUIRED) or {}).get("nodeSelectorTerms") or ()
    terms = (new.get(REQUIRED) or {}).get("nodeSelectorTerms") or ()
    if not old_terms:
        return
    if len(terms) != len(old_terms):
        text = "no additions/deletions to non-empty NodeSelectorTerms list are allowed"
        errors.invalid(path, [STRUCT] if terms else None, text)
        return
    for i, (term, was) in enumerate(zip(terms, old_terms, strict=True)):
        if not _only_adds(term, was):
            errors.invalid(f"{path}[{i}]", STRUCT, "only additions are allowed (no mutations or deletions)")


def _only_adds(new: Doc, old: Doc) -> bool:
    fields = ("matchExpressions", "matchFields")
    if not any(old.get(field) for field in fields):
        return not any(new.get(field) for field in fields)
    return all(new.get(field, [])[: len(old.get(field, ()))] == old.get(field, []) for field in fields)
