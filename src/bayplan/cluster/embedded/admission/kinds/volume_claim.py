"""PersistentVolumeClaims: what storage is asked for. After creation only a bound claim changes, and it only grows.

Source of truth: core/validation, api/persistentvolumeclaim/util.go (the two data sources are kept alike),
registry/core/persistentvolumeclaim/strategy.go.
"""

from __future__ import annotations

from collections.abc import Mapping

from bayplan.cluster.embedded.admission.fields import Doc, Errors
from bayplan.cluster.embedded.admission.kinds.carry import keep_spec, put
from bayplan.cluster.embedded.admission.labels import validate_label_selector
from bayplan.cluster.embedded.admission.metadata import IMMUTABLE
from bayplan.cluster.embedded.admission.pods.resources import is_native, round_resource_list, validate_quantity_value
from bayplan.cluster.embedded.admission.strategy import Strategy
from bayplan.cluster.embedded.admission.syntax import dns1123_label, dns1123_subdomain, qualified_name, subdomain_name
from bayplan.cluster.kinds import PERSISTENT_VOLUME_CLAIM
from bayplan.model.quantity import Quantity, parse

CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"
_ACCESS_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
VOLUME_MODES = ("Block", "Filesystem")
_RESIZE_STATUSES = (
    "ControllerResizeInProgress",
    "ControllerResizeInfeasible",
    "NodeResizeInProgress",
    "NodeResizeInfeasible",
    "NodeResizePending",
)
_ATTRIBUTES = "volumeAttributesClassName"
_DATA_SOURCES = (("", "PersistentVolumeClaim"), ("snapshot.storage.k8s.io", "VolumeSnapshot"))


def _default(doc: Doc) -> None:
    default_claim_spec(doc["spec"])
    status = doc.setdefault("status", {})
    status.setdefault("phase", "Pending")
    for field in ("capacity", "allocatedResources"):
        round_resource_list(status.get(field, {}))


def default_claim_spec(spec: Doc) -> None:
    """Defaults of a claim, also of one inside a template."""
    spec.setdefault("volumeMode", "Filesystem")
    for field in ("limits", "requests"):
        round_resource_list(spec.get("resources", {}).get(field, {}))


def _prepare(doc: Doc) -> None:
    doc["status"] = {"phase": "Pending"}
    _align_data_sources(doc["spec"], {})


def _prepare_update(new: Doc, old: Doc) -> None:
    new["status"] = old["status"]
    _align_data_sources(new["spec"], old["spec"])


def _align_data_sources(spec: Doc, was: Doc) -> None:
    """dataSource is the older of two fields for the same thing; what it cannot name is dropped without a word."""
    reference = spec.get("dataSourceRef")
    if reference and reference.get("namespace") and "dataSourceRef" not in was:
        del spec["dataSourceRef"]  # another namespace needs a feature that is off by default
        reference = None
    source = spec.get("dataSource")
    nameable = source and (source.get("apiGroup") or "", source.get("kind")) in _DATA_SOURCES
    if source and not (reference or nameable or was.get("dataSource") or was.get("dataSourceRef")):
        del spec["dataSource"]
        source = None
    if source and not reference:
        spec["dataSourceRef"] = dict(source)
    elif reference and not source and not reference.get("namespace"):
        spec["dataSource"] = {key: value for key, value in reference.items() if key != "namespace"}


def _validate(doc: Doc, errors: Errors) -> None:
    validate_claim_spec(doc["spec"], "spec", errors)


def validate_claim_spec(spec: Doc, path: str, errors: Errors, was: Doc | None = None) -> None:
    """A claim's spec, also of one inside a template. `was` is the stored one, whose old faults are forgiven."""
    validate_access_modes(
        spec.get("accessModes", []), f"{path}.accessModes", errors, missing="at least 1 access mode is required"
    )
    faults_before = Errors()
    validate_label_selector((was or {}).get("selector"), "", faults_before)
    forgiven = bool(faults_before)
    validate_label_selector(spec.get("selector"), f"{path}.selector", errors, invalid_values=forgiven)
    _validate_storage(spec.get("resources", {}).get("requests", {}), f"{path}.resources[storage]", errors)
    mode = spec.get("volumeMode")
    if mode is not None and mode not in VOLUME_MODES:
        errors.not_supported(f"{path}.volumeMode", mode, VOLUME_MODES)
    _validate_data_sources(spec, path, errors, any_group=_names_group(was or {}))
    for field in ("storageClassName", _ATTRIBUTES):
        if name := spec.get(field):
            for fault in dns1123_subdomain(name):
                errors.invalid(f"{path}.{field}", name, fault)


def validate_access_modes(modes: list[str], path: str, errors: Errors, *, missing: str = "") -> None:
    """Access modes of a claim or a volume; `missing` is what to say if there are none."""
    if not modes:
        errors.required(path, missing)
    for mode in modes:
        if mode not in _ACCESS_MODES:
            errors.not_supported(path, mode, _ACCESS_MODES)
    known = set(modes) & set(_ACCESS_MODES)
    if "ReadWriteOncePod" in known and len(known) > 1:
        errors.forbidden(path, "may not use ReadWriteOncePod with other access modes")


def _validate_storage(requests: Mapping[str, str], path: str, errors: Errors) -> None:
    amount = requests.get("storage")
    if amount is None:
        errors.required(path)
    elif parse(amount).nanos <= 0:
        errors.invalid(path, amount, "must be greater than zero")


def _names_group(spec: Doc) -> bool:
    return any("apiGroup" in (spec.get(field) or {}) for field in ("dataSource", "dataSourceRef"))


def _validate_data_sources(spec: Doc, path: str, errors: Errors, *, any_group: bool) -> None:
    source, reference = spec.get("dataSource"), spec.get("dataSourceRef")
    for field, named in (("dataSource", source), ("dataSourceRef", reference)):
        if named is not None:
            _validate_reference(named, f"{path}.{field}", errors, any_group=any_group)
    if source is None or reference is None:
        return
    if reference.get("namespace"):
        errors.invalid(path, {}, "may not be specified when dataSourceRef.namespace is specified")
    elif any(source.get(field) != reference.get(field) for field in ("apiGroup", "kind", "name")):
        errors.invalid(path, {}, "must match dataSourceRef")


def _validate_reference(named: Doc, path: str, errors: Errors, *, any_group: bool) -> None:
    kind, group = named.get("kind", ""), named.get("apiGroup") or ""
    for field in ("name", "kind"):
        if not named.get(field):
            errors.required(f"{path}.{field}")
    if not group and kind != "PersistentVolumeClaim":
        errors.invalid(path, kind, "must be 'PersistentVolumeClaim' when referencing the default apiGroup")
    if group and not any_group:
        for fault in dns1123_subdomain(group):
            errors.invalid(f"{path}.apiGroup", group, fault)
    if namespace := named.get("namespace"):
        for fault in dns1123_label(namespace):
            errors.invalid(f"{path}.namespace", namespace, fault)


def _validate_update(new: Doc, old: Doc, errors: Errors) -> None:
    spec, was = new["spec"], old["spec"]
    validate_claim_spec(spec, "spec", errors, was)
    before = dict(was)
    if not before.get("volumeName"):
        put(before, "volumeName", spec.get("volumeName"))
    if _settled(new, old, errors) != _by_value(before):
        what = "resources.requests and volumeAttributesClassName for bound claims"
        errors.forbidden("spec", f"spec is immutable after creation except {what}")
    asked, asked_before = _storage(spec["resources"].get("requests")), _storage(was["resources"].get("requests"))
    if asked < asked_before and asked <= _storage(old["status"].get("capacity")):
        errors.forbidden("spec.resources.requests.storage", "field can not be less than status.capacity")
    if spec.get("volumeMode") != was.get("volumeMode"):
        errors.invalid("volumeMode", spec.get("volumeMode"), IMMUTABLE)
    _validate_attributes_class(spec.get(_ATTRIBUTES), was.get(_ATTRIBUTES), old["status"], errors)


def _validate_attributes_class(name: str | None, before: str | None, status: Doc, errors: Errors) -> None:
    """A class that is in force can be exchanged, not taken away."""
    if name != before and not name and status.get("currentVolumeAttributesClassName") is not None:
        to = "nil" if name is None else "empty string"
        detail = f"update to {to} is forbidden when status.currentVolumeAttributesClassName is not nil"
        errors.forbidden(f"spec.{_ATTRIBUTES}", detail)


def _storage(amounts: Mapping[str, str] | None) -> Quantity:
    return parse((amounts or {}).get("storage", "0"))


def _settled(new: Doc, old: Doc, errors: Errors) -> Doc:
    """The new spec with everything that may change set back to what it was."""
    was, spec = old["spec"], dict(new["spec"])
    if _may_name_class(new, old, errors):
        del spec["storageClassName"]
    if new["status"].get("phase") == "Bound":
        put(spec, _ATTRIBUTES, was.get(_ATTRIBUTES))
        if requests := spec["resources"].get("requests"):
            storage = was["resources"].get("requests", {}).get("storage", "0")
            spec["resources"] = {**spec["resources"], "requests": {**requests, "storage": storage}}
    return _by_value(spec)


def _may_name_class(new: Doc, old: Doc, errors: Errors) -> bool:
    """A claim without a class may get one: the one its annotation names, if it has that."""
    named = new["spec"].get("storageClassName")
    annotated = old["metadata"].get("annotations", {}).get(CLASS_ANNOTATION)
    now = new["metadata"].get("annotations", {}).get(CLASS_ANNOTATION)
    may = named is not None and "storageClassName" not in old["spec"] and annotated in (None, named)
    moved = may and annotated is not None and now in (None, annotated)
    if not moved and (now or "") != (annotated or ""):
        errors.invalid(f"metadata.annotations.{CLASS_ANNOTATION}", now or "", IMMUTABLE)
    return may


def _by_value(spec: Doc) -> Doc:
    """A spec whose amounts compare by what they are, not by how they are written."""
    amounts = {
        field: {name: parse(text) for name, text in listed.items()}
        for field, listed in spec.get("resources", {}).items()
    }
    return {**spec, "resources": amounts}


def _validate_status(new: Doc, _old: Doc, errors: Errors) -> None:
    status = new["status"]
    if not new["spec"].get("accessModes"):
        errors.required("Spec.accessModes")
    for resource, amount in status.get("capacity", {}).items():
        _validate_whole(amount, f"status.capacity[{resource}]", errors)
    path = "status.allocatedResourceStatuses"
    for resource, resize in status.get("allocatedResourceStatuses", {}).items():
        _validate_resource(resource, path, errors)
        if resize not in _RESIZE_STATUSES:
            errors.not_supported(path, resource, _RESIZE_STATUSES)
    path = "status.allocatedResources"
    for resource, amount in status.get("allocatedResources", {}).items():
        if _validate_resource(resource, path, errors) and _validate_whole(amount, f"{path}[{resource}]", errors):
            validate_quantity_value("storage", amount, f"{path}[{resource}]", errors)


def _validate_whole(amount: str, path: str, errors: Errors) -> bool:
    if (value := parse(amount).value()) >= 0:
        return True
    errors.invalid(path, value, "must be a valid resource quantity")
    return False


def _validate_resource(resource: str, path: str, errors: Errors) -> bool:
    faults = qualified_name(resource)
    for fault in faults:
        errors.invalid(path, resource, fault)
    if not faults and is_native(resource) and resource != "storage":
        errors.not_supported(path, resource, ("storage",))
        return False
    return not faults


def _warn(new: Doc, _old: Doc | None) -> list[str]:
    warnings = []
    if CLASS_ANNOTATION in new["metadata"].get("annotations", {}):
        warnings.append(
            f'metadata.annotations[{CLASS_ANNOTATION}]: deprecated since v1.8; use "storageClassName" attribute instead'
        )
    return warnings + claim_spec_warnings(new["spec"], "spec")


def claim_spec_warnings(spec: Doc, path: str) -> list[str]:
    """Warnings on a claim's spec, also of one inside a template."""
    warnings = []
    for field in ("requests", "limits"):
        amount = spec.get("resources", {}).get(field, {}).get("storage", "0")
        if parse(amount).milli() % 1000:
            where = f"{path}.resources.{field}[storage]"
            warnings.append(f'{where}: fractional byte value "{amount}" is invalid, must be an integer')
    return warnings


STRATEGY = Strategy(
    kind=PERSISTENT_VOLUME_CLAIM,
    name_rule=subdomain_name,
    default=_default,
    prepare=_prepare,
    validate=_validate,
    prepare_update=_prepare_update,
    validate_update=_validate_update,
    prepare_status=keep_spec,
    validate_status=_validate_status,
    warn=_warn,
)
