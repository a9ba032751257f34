"""A namespace that is being deleted goes once everything in it has gone.

Owners go before what they own, so nothing is made anew in the meantime. What takes its time (pods that shut down,
finalizers) is told in the namespace's conditions. Source of truth: pkg/controller/namespace/deletion.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from bayplan.cluster.embedded.admission.kinds.namespace import FINALIZER
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
    itself,
)
from bayplan.cluster.embedded.store import Change, Key
from bayplan.cluster.kinds import KINDS, NAMESPACE, POD, Kind
from bayplan.cluster.objects import Object
from bayplan.model.clock import Instant, rfc3339
from bayplan.model.policies import Namespace

_CONTENT = sorted((kind for kind in KINDS.values() if kind.namespaced), key=lambda kind: kind is POD)
_FINE = {
    "NamespaceDeletionDiscoveryFailure": ("ResourcesDiscovered", "All resources successfully discovered"),
    "NamespaceDeletionGroupVersionParsingFailure": ("ParsedGroupVersions", "All legacy kube types successfully parsed"),
    "NamespaceDeletionContentFailure": (
        "ContentDeleted",
        "All content successfully deleted, may be waiting on finalization",
    ),
    "NamespaceContentRemaining": ("ContentRemoved", "All content successfully removed"),
    "NamespaceFinalizersRemaining": ("ContentHasNoFinalizers", "All content-preserving finalizers finished"),
}
"""The conditions of a namespace that is being deleted, in order, with what they say when all is well."""


def _in_namespace(change: Change, view: View) -> Iterable[Key]:
    """An object concerns its namespace while that is being deleted."""
    namespace = view.get(NAMESPACE, "", change.new.namespace)
    return (namespace.key,) if namespace is not None and namespace.meta.deletion_timestamp is not None else ()


class NamespaceController:
    """Empties namespaces that are being deleted."""

    name = "namespace-controller"
    watches: Mapping[Kind, Concern] = {**dict.fromkeys((*_CONTENT, ANY_CUSTOM), _in_namespace), NAMESPACE: itself}

    def reconcile(self, key: Key, view: View, now: Instant) -> Outcome:
        item = view.get(NAMESPACE, *key)
        if item is None or item.meta.deletion_timestamp is None:
            return NOTHING
        finalizers = item.view(Namespace).spec.finalizers
        if FINALIZER not in finalizers:
            return NOTHING
        kinds = (*(kind for kind in view.registry.custom() if kind.namespaced), *_CONTENT)
        content = [each for kind in kinds for each in view.objects(kind, item.name)]
        staying = [each for each in content if each.meta.deletion_timestamp is None]
        if staying:  # each deletion brings another look
            return Outcome([Delete(each, propagation="Background") for each in staying])
        writes = _told(item, content, now)
        if not content:
            others = [each for each in finalizers if each != FINALIZER]
            writes.append(Patch(item, {"spec": {"finalizers": others or None}}, subresource="finalize"))
        return Outcome(writes)


def _told(item: Object, content: Sequence[Object], now: Instant) -> list[Write]:
    status: dict[str, Any] = item.sections["status"].plain()
    present = {one["type"]: one for one in status.get("conditions") or ()}
    others = [one for kind, one in present.items() if kind not in _FINE]
    troubles = _remaining(content)
    conditions = [
        _condition(present.get(kind), kind, *(("True", *troubles[kind]) if kind in troubles else ("False", *fine)), now)
        for kind, fine in _FINE.items()
    ]
    told = status | {"phase": "Terminating", "conditions": [*others, *conditions]}
    return [SetStatus(item, told)] if told != status else []


def _condition(
    present: dict[str, Any] | None, kind: str, status: str, reason: str, message: str, now: Instant
) -> dict[str, Any]:
    same = present is not None and present["status"] == status
    at = present["lastTransitionTime"] if present is not None and same else rfc3339(now)
    return {"type": kind, "status": status, "lastTransitionTime": at, "reason": reason, "message": message}


def _remaining(content: Sequence[Object]) -> dict[str, tuple[str, str]]:
    """What is still there, by condition: reason and message."""
    if not content:
        return {}
    kinds = Counter(f"{each.kind.plural}.{each.kind.group}" for each in content)
    listed = ", ".join(sorted(f"{name} has {count} resource instances" for name, count in kinds.items()))
    found = {"NamespaceContentRemaining": ("SomeResourcesRemain", f"Some resources are remaining: {listed}")}
    holders = Counter(finalizer for each in content for finalizer in each.meta.finalizers)
    if holders:
        listed = ", ".join(sorted(f"{name} in {count} resource instances" for name, count in holders.items()))
        text = f"Some content in the namespace has finalizers remaining: {listed}"
        found["NamespaceFinalizersRemaining"] = ("SomeFinalizersRemain", text)
    return found
