"""Kinds of which little is asked here: a good name, the defaults, what must be there and what must not change.

Volumes, endpoint slices and devices have many more rules upstream (volume types, endpoint addresses, selectors in CEL).
What is checked is checked in upstream's words; the rest is stored as it comes.
Source of truth: pkg/apis/{storage,node,discovery,resource,core}, their v1/defaults.go and registry strategies.
"""

from __future__ import annotations

from collections.abc import Iterator

from bayplan.cluster import kinds
from bayplan.cluster.embedded.admission.fields import Doc, Errors
from bayplan.cluster.embedded.admission.kinds.carry import keep_spec, keep_status
from bayplan.cluster.embedded.admission.kinds.volume_claim import VOLUME_MODES, validate_access_modes
from bayplan.cluster.embedded.admission.labels import validate_labels
from bayplan.cluster.embedded.admission.metadata import IMMUTABLE
from bayplan.cluster.embedded.admission.pods.resources import round_resource_list, validate_resource_requirements
from bayplan.cluster.embedded.admission.pods.scheduling import STRUCT, validate_tolerations
from bayplan.cluster.embedded.admission.strategy import ChangeRule, Rule, Strategy
from bayplan.cluster.embedded.admission.syntax import dns1123_label, dns1123_subdomain, qualified_name, subdomain_name
from bayplan.model.quantity import parse

_ADDRESS_TYPES = ("FQDN", "IPv4", "IPv6")
_BINDING_MODES = ("Immediate", "WaitForFirstConsumer")


def _validate_choice(doc: Doc, field: str, allowed: tuple[str, ...], path: str, errors: Errors) -> None:
    value = doc.get(field)
    if value and value not in allowed:
        errors.not_supported(path, value, allowed)


def _frozen(validate: Rule, *fields: str) -> ChangeRule:
    """The rules of a new object, and that these fields stay what they are."""

    def rule(new: Doc, old: Doc, errors: Errors) -> None:
        validate(new, errors)
        for field in fields:
            if new.get(field) != old.get(field):
                errors.invalid(field, new.get(field), IMMUTABLE)

    return rule


def _default_storage_class(doc: Doc) -> None:
    doc.setdefault("reclaimPolicy", "Delete")
    doc.setdefault("volumeBindingMode", "Immediate")


def _validate_storage_class(doc: Doc, errors: Errors) -> None:
    provisioner = doc.get("provisioner", "").lower()
    if not provisioner:
        errors.required("provisioner")
    else:
        for fault in qualified_name(provisioner):
            errors.invalid("provisioner", provisioner, fault)
    _validate_choice(doc, "reclaimPolicy", ("Delete", "Retain"), "reclaimPolicy", errors)
    if (mode := doc.get("volumeBindingMode")) not in _BINDING_MODES:
        errors.not_supported("volumeBindingMode", mode, _BINDING_MODES)


def _default_runtime_class(doc: Doc) -> None:
    round_resource_list((doc.get("overhead") or {}).get("podFixed", {}))


def _validate_runtime_class(doc: Doc, errors: Errors) -> None:
    handler = doc.get("handler", "")
    if not handler:
        errors.required("handler")
    else:
        for fault in dns1123_label(handler):
            errors.invalid("handler", handler, fault)
    if overhead := doc.get("overhead"):
        validate_resource_requirements({"limits": overhead.get("podFixed", {})}, "overhead", errors)
    scheduling = doc.get("scheduling") or {}
    validate_labels(scheduling.get("nodeSelector", {}), "scheduling.nodeSelector", errors)
    tolerations = scheduling.get("tolerations", [])
    validate_tolerations(tolerations, "scheduling.tolerations", errors)
    for i, toleration in enumerate(tolerations):
        alike = [{**each, "tolerationSeconds": None} for each in (toleration, *tolerations[:i])]
        if alike[0] in alike[1:]:
            errors.duplicate(f"scheduling.tolerations[{i}]", STRUCT)


def _default_volume(doc: Doc) -> None:
    doc.setdefault("status", {}).setdefault("phase", "Pending")
    spec = doc["spec"]
    spec.setdefault("persistentVolumeReclaimPolicy", "Retain")
    spec.setdefault("volumeMode", "Filesystem")
    round_resource_list(spec.get("capacity", {}))


def _prepare_volume(doc: Doc) -> None:
    doc["status"] = {"phase": "Pending"}


def _validate_volume(doc: Doc, errors: Errors) -> None:
    spec = doc["spec"]
    capacity = spec.get("capacity", {})
    validate_access_modes(spec.get("accessModes", []), "spec.accessModes", errors)
    if not capacity:
        errors.required("spec.capacity")
    if set(capacity) != {"storage"}:
        errors.not_supported("spec.capacity", capacity, ("storage",))
    for resource, amount in capacity.items():
        if parse(amount).nanos <= 0:
            errors.invalid(f"spec.capacity[{resource}]", amount, "must be greater than zero")
    policies = ("Delete", "Recycle", "Retain")
    policy = "persistentVolumeReclaimPolicy"
    _validate_choice(spec, policy, policies, f"spec.{policy}", errors)
    _validate_choice(spec, "volumeMode", VOLUME_MODES, "spec.volumeMode", errors)
    if name := spec.get("storageClassName"):
        for fault in dns1123_subdomain(name):
            errors.invalid("spec.storageClassName", name, fault)


def _validate_volume_update(new: Doc, old: Doc, errors: Errors) -> None:
    _validate_volume(new, errors)
    if new["spec"].get("volumeMode") != old["spec"].get("volumeMode"):
        errors.invalid("volumeMode", new["spec"].get("volumeMode"), IMMUTABLE)


def _default_endpoint_slice(doc: Doc) -> None:
    for port in doc.get("ports") or ():
        port.setdefault("name", "")
        port.setdefault("protocol", "TCP")


def _validate_endpoint_slice(doc: Doc, errors: Errors) -> None:
    if not doc.get("addressType"):
        errors.required("addressType")
    _validate_choice(doc, "addressType", _ADDRESS_TYPES, "addressType", errors)
    for i, endpoint in enumerate(doc.get("endpoints") or ()):
        if not endpoint.get("addresses"):
            errors.required(f"endpoints[{i}].addresses", "must contain at least 1 address")


def _default_claim(doc: Doc) -> None:
    _default_requests(doc["spec"])


def _default_claim_template(doc: Doc) -> None:
    _default_requests(doc["spec"]["spec"])


def _default_requests(spec: Doc) -> None:
    """A request for devices is for one of them unless it says how many."""
    for request in _device_requests(spec):
        mode = request.setdefault("allocationMode", "ExactCount")
        if mode == "ExactCount":
            request.setdefault("count", 1)


def _device_requests(spec: Doc) -> Iterator[Doc]:
    for request in spec.get("devices", {}).get("requests") or ():
        if "exactly" in request:
            yield request["exactly"]
        yield from request.get("firstAvailable") or ()


def _prepare_claim(doc: Doc) -> None:
    doc["status"] = {}


def _frozen_spec(new: Doc, old: Doc, errors: Errors) -> None:
    if new["spec"] != old["spec"]:
        errors.invalid("spec", STRUCT, IMMUTABLE)


STRATEGIES = {
    strategy.kind.name: strategy
    for strategy in (
        Strategy(kind=kinds.SERVICE_ACCOUNT, name_rule=subdomain_name),
        Strategy(
            kind=kinds.STORAGE_CLASS,
            name_rule=subdomain_name,
            default=_default_storage_class,
            validate=_validate_storage_class,
            validate_update=_frozen(
                _validate_storage_class, "parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"
            ),
        ),
        Strategy(
            kind=kinds.RUNTIME_CLASS,
            name_rule=subdomain_name,
            default=_default_runtime_class,
            validate=_validate_runtime_class,
            validate_update=_frozen(_validate_runtime_class, "handler"),
            create_on_update=True,
            needs_version=True,
        ),
        Strategy(
            kind=kinds.PERSISTENT_VOLUME,
            name_rule=subdomain_name,
            default=_default_volume,
            prepare=_prepare_volume,
            validate=_validate_volume,
            prepare_update=keep_status,
            validate_update=_validate_volume_update,
            prepare_status=keep_spec,
        ),
        Strategy(
            kind=kinds.ENDPOINT_SLICE,
            name_rule=subdomain_name,
            generation=True,
            default=_default_endpoint_slice,
            validate=_validate_endpoint_slice,
            validate_update=_frozen(_validate_endpoint_slice, "addressType"),
        ),
        Strategy(
            kind=kinds.RESOURCE_CLAIM,
            name_rule=subdomain_name,
            default=_default_claim,
            prepare=_prepare_claim,
            prepare_update=keep_status,
            validate_update=_frozen_spec,
            prepare_status=keep_spec,
        ),
        Strategy(
            kind=kinds.RESOURCE_CLAIM_TEMPLATE,
            name_rule=subdomain_name,
            default=_default_claim_template,
            validate_update=_frozen_spec,
        ),
        Strategy(kind=kinds.RESOURCE_SLICE, name_rule=subdomain_name, generation=True),
        Strategy(kind=kinds.DEVICE_CLASS, name_rule=subdomain_name, generation=True),
    )
}
"""The strategies of these kinds, by the kind's name."""
