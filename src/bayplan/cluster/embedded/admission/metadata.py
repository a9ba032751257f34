"""The rules of metadata, the same for every kind but for the form of the name.

Source of truth: apimachinery pkg/api/validation/objectmeta.go, core/validation for the finalizers, and apiserver's
registry/rest (BeforeCreate, BeforeUpdate) for which of them run when. Labels, annotations, finalizers and owner
references are reported on the whole map or list.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from bayplan.cluster.embedded.admission.fields import Doc, Errors
from bayplan.cluster.embedded.admission.labels import validate_labels
from bayplan.cluster.embedded.admission.strategy import NameRule
from bayplan.cluster.embedded.admission.syntax import dns1123_label, path_segment_name, qualified_name, size

IMMUTABLE = "field is immutable"
NOT_NEGATIVE = "must be greater than or equal to 0"
ANNOTATION_BYTES = 256 * 1024
"""Keys and values of all annotations of an object together."""

_STANDARD_FINALIZERS = frozenset(("kubernetes", "orphan", "foregroundDeletion"))
_FIXED = ("name", "namespace", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds")
_POINTERS = frozenset(("creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"))


def validate_metadata(doc: Doc, *, namespaced: bool, name_rule: NameRule, errors: Errors) -> None:
    """Metadata of a new object, its name already generated.

    Kinds named by `path_segment_name` are those whose own rules leave metadata alone: their finalizers need not be
    standard ones.
    """
    meta = doc.get("metadata", {})
    _validate_common(meta, namespaced, name_rule, errors)
    if name_rule is not path_segment_name:
        _validate_standard_finalizers(meta.get("finalizers", ()), errors)


def validate_metadata_update(new: Doc, old: Doc, errors: Errors, *, standard_finalizers: bool = True) -> None:
    """Metadata of a changed object. `standard_finalizers` is False for the kinds named by `path_segment_name`."""
    meta, was = new.get("metadata", {}), old.get("metadata", {})
    _validate_common(meta, bool(was.get("namespace")), path_segment_name, errors)
    if was.get("deletionTimestamp"):
        _validate_no_new_finalizers(meta.get("finalizers", ()), was.get("finalizers", ()), errors)
    if not meta.get("resourceVersion"):
        errors.invalid("metadata.resourceVersion", "", "must be specified for an update")
    if meta.get("generation", 0) < was.get("generation", 0):
        errors.invalid("metadata.generation", meta.get("generation", 0), "must not be decremented")
    for name in _FIXED:
        absent = None if name in _POINTERS else ""
        value = meta.get(name, absent)
        if value != was.get(name, absent):
            errors.invalid(f"metadata.{name}", value, IMMUTABLE)
    if standard_finalizers:
        _validate_standard_finalizers(meta.get("finalizers", ()), errors)


def _validate_common(meta: Doc, namespaced: bool, name_rule: NameRule, errors: Errors) -> None:
    _validate_names(meta, name_rule, errors)
    _validate_namespace(meta.get("namespace", ""), namespaced, errors)
    if (generation := meta.get("generation", 0)) < 0:
        errors.invalid("metadata.generation", generation, NOT_NEGATIVE)
    if labels := meta.get("labels"):
        validate_labels(labels, "metadata.labels", errors)
    if annotations := meta.get("annotations"):
        validate_annotations(annotations, "metadata.annotations", errors)
    if owners := meta.get("ownerReferences"):
        _validate_owner_references(owners, errors)
    if finalizers := meta.get("finalizers"):
        _validate_finalizers(finalizers, errors)
    for i, entry in enumerate(meta.get("managedFields", ())):
        _validate_managed_fields(entry, f"metadata.managedFields[{i}]", errors)


def _validate_names(meta: Doc, name_rule: NameRule, errors: Errors) -> None:
    if prefix := meta.get("generateName"):
        for fault in name_rule(prefix, True):
            errors.invalid("metadata.generateName", prefix, fault)
    if name := meta.get("name"):
        for fault in name_rule(name, False):
            errors.invalid("metadata.name", name, fault)
    else:
        errors.required("metadata.name", "name or generateName is required")


def _validate_namespace(namespace: str, namespaced: bool, errors: Errors) -> None:
    if not namespaced:
        if namespace:
            errors.forbidden("metadata.namespace", "not allowed on this type")
    elif not namespace:
        errors.required("metadata.namespace")
    else:
        for fault in dns1123_label(namespace):
            errors.invalid("metadata.namespace", namespace, fault)


def validate_annotations(annotations: Mapping[str, str], path: str, errors: Errors) -> None:
    """Keys are label keys of any case; all keys and values together have a size limit."""
    for key in annotations:
        for fault in qualified_name(key.lower()):
            errors.invalid(path, key, fault)
    if sum(size(key) + size(value) for key, value in annotations.items()) > ANNOTATION_BYTES:
        errors.too_long(path, ANNOTATION_BYTES)


def _validate_owner_references(owners: Sequence[Doc], errors: Errors) -> None:
    path, controller = "metadata.ownerReferences", ""
    for owner in owners:
        _validate_owner_reference(owner, path, errors)
        if owner.get("controller"):
            name = f"{owner.get('kind', '')}/{owner.get('name', '')}"
            if controller:
                detail = 'Only one reference can have Controller set to true. Found "true" in references for'
                errors.invalid(path, owners, f"{detail} {controller} and {name}")
            else:
                controller = name


def _validate_owner_reference(owner: Doc, path: str, errors: Errors) -> None:
    api_version = owner.get("apiVersion", "")
    if api_version.count("/") > 1 or not api_version.rpartition("/")[2]:
        errors.invalid(f"{path}.apiVersion", api_version, "version must not be empty")
    for name in ("kind", "name", "uid"):
        if not owner.get(name):
            errors.invalid(f"{path}.{name}", "", "must not be empty")
    if (api_version, owner.get("kind")) in (("v1", "Event"), ("/v1", "Event")):
        errors.invalid(path, owner, "/v1, Kind=Event is disallowed from being an owner")


def _validate_finalizers(finalizers: Sequence[str], errors: Errors) -> None:
    path = "metadata.finalizers"
    for name in finalizers:
        for fault in qualified_name(name):
            errors.invalid(path, name, fault)
    if "orphan" in finalizers and "foregroundDeletion" in finalizers:
        errors.invalid(path, finalizers, "finalizer orphan and foregroundDeletion cannot be both set")


def _validate_standard_finalizers(finalizers: Sequence[str], errors: Errors) -> None:
    for i, name in enumerate(finalizers):
        if "/" not in name and name not in _STANDARD_FINALIZERS:
            text = "name is neither a standard finalizer name nor is it fully qualified"
            errors.invalid(f"metadata.finalizers[{i}]", name, text)


def _validate_no_new_finalizers(new: Sequence[str], old: Sequence[str], errors: Errors) -> None:
    if extra := sorted(set(new) - set(old)):
        listed = ", ".join(json.dumps(name, ensure_ascii=False) for name in extra)
        text = (
            f"no new finalizers can be added if the object is being deleted, found new finalizers []string{{{listed}}}"
        )
        errors.forbidden("metadata.finalizers", text)


def _validate_managed_fields(entry: Doc, path: str, errors: Errors) -> None:
    operation, fields_type = entry.get("operation", ""), entry.get("fieldsType", "")
    if operation not in ("Apply", "Update"):
        errors.invalid(f"{path}.operation", operation, "must be `Apply` or `Update`")
    if fields_type not in ("", "FieldsV1"):
        errors.invalid(f"{path}.fieldsType", fields_type, "must be `FieldsV1`")
    validate_field_manager(entry.get("manager", ""), f"{path}.manager", errors)
    if size(entry.get("subresource", "")) > 256:
        errors.too_long(f"{path}.subresource", 256)


def validate_field_manager(manager: str, path: str, errors: Errors) -> None:
    """The name of a field manager, in metadata or in a request's options."""
    if size(manager) > 128:
        errors.too_long(path, 128)
    position = 0
    for character in manager:
        if not character.isprintable():
            detail = f"invalid character U+{ord(character):04X} (at position {position})"
            errors.invalid(path, manager, detail)
        position += len(character.encode())
