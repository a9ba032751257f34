"""Definitions looked after: names accepted, kinds established, and, at the end, their objects removed.

Source of truth: apiextensions-apiserver pkg/controller/{status,establish,finalizer}. Upstream accepts and establishes
in two steps a moment apart; here both happen in one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from bayplan.cluster.embedded.controllers.contract import (
    ANY_CUSTOM,
    NOTHING,
    Concern,
    Delete,
    Outcome,
    Patch,
    SetStatus,
    View,
    Write,
)
from bayplan.cluster.embedded.custom.types import accepted_names
from bayplan.cluster.embedded.deletion import CUSTOM_CLEANUP
from bayplan.cluster.embedded.store import Change, ChangeType, Key
from bayplan.cluster.kinds import CUSTOM_RESOURCE_DEFINITION, Kind
from bayplan.cluster.objects import Object
from bayplan.model.clock import Instant, rfc3339

Doc = dict[str, Any]


def _defined(change: Change, view: View) -> Iterable[Key]:
    """A definition concerns itself; one that is gone concerns those that may have its names now."""
    if change.type is ChangeType.DELETED:
        return [each.key for each in view.objects(CUSTOM_RESOURCE_DEFINITION)]
    return (change.new.key,)


def _removed(change: Change, view: View) -> Iterable[Key]:
    """An object that is gone concerns its definition while that is being deleted."""
    if change.type is not ChangeType.DELETED:
        return ()
    item = view.get(CUSTOM_RESOURCE_DEFINITION, "", change.new.kind.resource)
    return (item.key,) if item is not None and item.meta.deletion_timestamp is not None else ()


class CustomResourceDefinitionController:
    """Tells how definitions fare, and empties those that are being deleted."""

    name = "crd-controller"
    watches: Mapping[Kind, Concern] = {CUSTOM_RESOURCE_DEFINITION: _defined, ANY_CUSTOM: _removed}

    def reconcile(self, key: Key, view: View, now: Instant) -> Outcome:
        item = view.get(CUSTOM_RESOURCE_DEFINITION, *key)
        if item is None:
            return NOTHING
        status: Doc = item.sections["status"].plain()
        told = [dict(condition) for condition in status.get("conditions") or ()]
        if item.meta.deletion_timestamp is not None:
            return Outcome(_ended(item, status | {"conditions": told}, view, now))
        names, conflict = accepted_names(item, view.objects(CUSTOM_RESOURCE_DEFINITION))
        if conflict is None:
            _tell(told, "NamesAccepted", "True", "NoConflicts", "no conflicts found", now)
            _tell(told, "Established", "True", "InitialNamesAccepted", "the initial names have been accepted", now)
        else:
            _tell(told, "NamesAccepted", "False", *conflict, now)
            if not any(condition["type"] == "Established" for condition in told):
                _tell(told, "Established", "False", "NotAccepted", "not all names are accepted", now)
        after = status | {"conditions": told, "acceptedNames": names}
        return Outcome([SetStatus(item, after)] if after != status else [])


def _tell(conditions: list[Doc], kind: str, status: str, reason: str, message: str, now: Instant) -> None:
    """Set a condition, in its place; its time stays as long as its status does."""
    found = next((condition for condition in conditions if condition["type"] == kind), None)
    if found is None:
        found = {"type": kind, "status": ""}
        conditions.append(found)
    at = found.get("lastTransitionTime") if found["status"] == status else rfc3339(now)
    found |= {"status": status, "lastTransitionTime": at, "reason": reason, "message": message}


def _ended(item: Object, status: Doc, view: View, now: Instant) -> list[Write]:
    if CUSTOM_CLEANUP not in item.meta.finalizers:
        return []
    names = item.sections["spec"].plain()
    kind = view.registry.qualified(f"{names['names']['kind']}.{names['group']}")
    left = [] if kind is None else [*view.objects(kind)]
    if left:
        words = ("InstanceDeletionInProgress", "CustomResource deletion is in progress")
        _tell(status["conditions"], "Terminating", "True", *words, now)
        told: list[Write] = [SetStatus(item, status)] if status != item.sections["status"].plain() else []
        return [*told, *(Delete(each) for each in left if each.meta.deletion_timestamp is None)]
    others = [each for each in item.meta.finalizers if each != CUSTOM_CLEANUP]
    return [Patch(item, {"metadata": {"finalizers": others or None}})]
