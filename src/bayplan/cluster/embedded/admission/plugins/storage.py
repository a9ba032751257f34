"""Claims and volumes: the default storage class, protection while in use, growth only where the class allows it.

Source of truth: plugin/pkg/admission/storage.
"""

from __future__ import annotations

from bayplan.cluster.embedded.admission.fields import Doc
from bayplan.cluster.embedded.admission.plugin import Request, State
from bayplan.cluster.embedded.admission.plugins.base import Rule, forbidden
from bayplan.cluster.kinds import PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM, STORAGE_CLASS
from bayplan.model.quantity import Quantity, parse

_CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"
_DEFAULT_ANNOTATIONS = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)
_FINALIZERS = {
    PERSISTENT_VOLUME.name: "kubernetes.io/pv-protection",
    PERSISTENT_VOLUME_CLAIM.name: "kubernetes.io/pvc-protection",
}


def class_of_claim(claim: Doc) -> str | None:
    """The class a claim names; "" asks for a volume without class, None for the default."""
    annotations: dict[str, str] = claim.get("metadata", {}).get("annotations", {})
    named: str | None = claim["spec"].get("storageClassName")
    return annotations.get(_CLASS_ANNOTATION, named)


class DefaultStorageClass(Rule):
    """Of several default classes the newest wins, then the first by name."""

    name = "DefaultStorageClass"

    def wants(self, request: Request) -> bool:
        return request.kind is PERSISTENT_VOLUME_CLAIM and request.operation == "CREATE" and not request.subresource

    def mutate(self, request: Request, state: State) -> None:
        if class_of_claim(request.doc) is not None:
            return
        marked = [found["metadata"] for found in state.list(STORAGE_CLASS) if _is_default(found["metadata"])]
        if marked:
            newest = max(marked, key=lambda meta: meta.get("creationTimestamp") or "")
            request.doc["spec"]["storageClassName"] = newest["name"]


class StorageObjectInUseProtection(Rule):
    """The finalizer goes when nothing uses the object any more."""

    name = "StorageObjectInUseProtection"

    def wants(self, request: Request) -> bool:
        return request.kind.name in _FINALIZERS and request.operation == "CREATE" and not request.subresource

    def mutate(self, request: Request, _state: State) -> None:
        finalizers = request.doc["metadata"].setdefault("finalizers", [])
        own = _FINALIZERS[request.kind.name]
        if own not in finalizers:
            finalizers.append(own)


class PersistentVolumeClaimResize(Rule):
    """A claim grows only when it is bound and its class can do it."""

    name = "PersistentVolumeClaimResize"

    def wants(self, request: Request) -> bool:
        return request.kind is PERSISTENT_VOLUME_CLAIM and request.operation == "UPDATE" and not request.subresource

    def validate(self, request: Request, state: State) -> None:
        old = request.old
        if old is None or _size(request.doc) <= _size(old):
            return
        if old.get("status", {}).get("phase") != "Bound":
            raise forbidden(request, "Only bound persistent volume claims can be expanded")
        name = class_of_claim(request.doc)
        found = state.get(STORAGE_CLASS, "", name) if name and name == class_of_claim(old) else None
        if found is None or not found.get("allowVolumeExpansion"):
            raise forbidden(
                request,
                "only dynamically provisioned pvc can be resized and "
                "the storageclass that provisions the pvc must support resize",
            )


def _is_default(meta: Doc) -> bool:
    annotations = meta.get("annotations", {})
    return any(annotations.get(key) == "true" for key in _DEFAULT_ANNOTATIONS)


def _size(claim: Doc) -> Quantity:
    return parse(claim["spec"].get("resources", {}).get("requests", {}).get("storage", "0"))
