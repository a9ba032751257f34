"""Resizing a Pod in place: cpu and memory of its containers and of the pod as a whole, nothing else.

Source of truth: kubernetes 1.36 pkg/registry/core/pod/strategy.go (podResizeStrategy) and ValidatePodResize.
"""

from __future__ import annotations

from collections.abc import Sequence

from bayplan.cluster.embedded.admission.fields import Doc, Errors
from bayplan.cluster.embedded.admission.kinds.carry import put
from bayplan.cluster.embedded.admission.pods.annotations import MIRROR
from bayplan.cluster.embedded.admission.pods.status import qos_of
from bayplan.cluster.embedded.admission.pods.updates import same

_KEPT_METADATA = ("labels", "annotations", "finalizers", "ownerReferences")
_ONLY_COMPUTE = "only cpu and memory resources are mutable"
_LISTS = ("containers", "initContainers")


def prepare_resize(new: Doc, old: Doc) -> None:
    """Take everything but resources and resize policies from the old pod.

    Containers added, removed or renamed stay in, for validation to refuse.
    """
    spec, was = new["spec"], old["spec"]
    if any(len(spec.get(field) or ()) != len(was.get(field, ())) for field in _LISTS):
        return
    merged = dict(was)
    put(merged, "resources", spec.get("resources"))
    for field in _LISTS:
        if field in spec:
            merged[field] = _with_resources(spec[field], was[field])
    new["spec"] = merged
    put(new, "status", old.get("status"))
    for field in _KEPT_METADATA:
        put(new["metadata"], field, old["metadata"].get(field))


def _with_resources(new: Sequence[Doc], old: Sequence[Doc]) -> Sequence[Doc]:
    merged = []
    for container, was in zip(new, old, strict=True):
        if container.get("name") != was.get("name"):
            return new
        resized = dict(was)
        for field in ("resources", "resizePolicy"):
            put(resized, field, container.get(field))
        merged.append(resized)
    return merged


def validate_resize(new: Doc, old: Doc, errors: Errors) -> None:
    """The rules of a resize, for a pod that is valid by itself."""
    if refusal := _never_resized(old):
        errors[:] = []
        errors.forbidden("", refusal)
        return
    spec, was = new["spec"], old["spec"]
    before = old.get("status", {}).get("qosClass") or qos_of(was)
    if qos_of(spec) != before:
        shown = new.get("status", {}).get("qosClass", "")
        errors.invalid("spec", shown, "Pod QOS Class may not change as a result of resizing")
    if not _node_can_resize(old.get("status", {})):
        errors.forbidden("spec", "Pod running on node without support for resize")
    masked = dict(spec)
    if _is_set(spec.get("resources")) or _is_set(was.get("resources")):
        _validate_pod_level(masked, was.get("resources"), errors)
    if not _validate_order(spec, was, errors):
        return
    _validate_nothing_removed(spec, was, errors)
    _mask_containers(masked, was, errors)
    if not errors and not same(masked, was):
        errors.forbidden("spec", _ONLY_COMPUTE)


def _never_resized(old: Doc) -> str:
    if MIRROR in old["metadata"].get("annotations", ()):
        return "static pods cannot be resized"
    return "windows pods cannot be resized" if (old["spec"].get("os") or {}).get("name") == "windows" else ""


def _node_can_resize(status: Doc) -> bool:
    """A node that can resize reports the resources of running containers."""
    for container in status.get("containerStatuses", ()):
        if container.get("state", {}).get("running") is not None:
            return container.get("resources") is not None
    return True


def _is_set(resources: Doc | None) -> bool:
    return bool(resources and (resources.get("requests") or resources.get("limits")))


def _validate_pod_level(masked: Doc, was: Doc | None, errors: Errors) -> None:
    resources = masked.get("resources")
    if was is not None:
        if resources is None:
            errors.forbidden("spec.resources", "pod-level resources cannot be removed")
            return
        for field in ("requests", "limits"):
            if was.get(field, {}).keys() - resources.get(field, {}).keys():
                errors.forbidden(f"spec.resources.{field}", f"pod-level resource {field} cannot be removed")
    if resources is not None:
        resources = _mask(resources, was or {})
        put(masked, "resources", resources if resources or was is not None else None)
    if not same(masked.get("resources"), was):
        errors.forbidden("spec", f"{_ONLY_COMPUTE} at pod-level")


def _mask(resources: Doc, was: Doc) -> Doc:
    """`resources` with the cpu and memory of `was`."""
    masked = {field: value for field, value in resources.items() if field not in ("limits", "requests")}
    for field in ("limits", "requests"):
        old = was.get(field, {})
        amounts = {name: text for name, text in resources.get(field, {}).items() if name not in ("cpu", "memory")}
        amounts |= {name: old[name] for name in ("cpu", "memory") if name in old}
        if amounts:
            masked[field] = amounts
    return masked


def _validate_order(new: Doc, old: Doc, errors: Errors) -> bool:
    """Containers are matched by their place: none may be added, removed, renamed or moved."""
    before = len(errors)
    for field in _LISTS:
        containers, were = new.get(field) or (), old.get(field, ())
        if len(containers) != len(were):
            errors.forbidden(f"spec.{field}", f"{field} may not be added or removed on resize")
            continue
        for i, (container, was) in enumerate(zip(containers, were, strict=True)):
            if container.get("name") != was.get("name"):
                errors.forbidden(f"spec.{field}[{i}].name", f"{field} may not be renamed or reordered on resize")
    return len(errors) == before


def _validate_nothing_removed(new: Doc, old: Doc, errors: Errors) -> None:
    for field in reversed(_LISTS):
        for i, (container, was) in enumerate(zip(new.get(field, ()), old.get(field, ()), strict=True)):
            for side in ("requests", "limits"):
                had = was.get("resources", {}).get(side, {})
                if had.keys() - container.get("resources", {}).get(side, {}).keys():
                    errors.forbidden(f"spec.{field}[{i}].resources.{side}", f"resource {side} cannot be removed")


def _mask_containers(masked: Doc, old: Doc, errors: Errors) -> None:
    """Undo the changes of cpu and memory in `masked`; any other change of a container is refused here."""
    for field in _LISTS:
        if field not in masked:
            continue
        undone = []
        for i, (container, was) in enumerate(zip(masked[field], old[field], strict=True)):
            resources = _mask(container.get("resources", {}), was.get("resources", {}))
            resources.pop("claims", None)  # upstream compares without them, and so refuses pods that have claims
            same_but_compute = {**container, "resources": resources}
            if not same(same_but_compute, was):
                if field == "containers":
                    errors.forbidden("spec", _ONLY_COMPUTE)
                else:
                    text = "only cpu and memory resources for init or sidecar containers are mutable"
                    errors.forbidden(f"spec.{field}[{i}]", text)
            undone.append(same_but_compute)
        masked[field] = undone
