"""ConfigMaps: text and bytes under keys that can be file names, a mebibyte at most.

Source of truth: core/validation, ValidateConfigMap and ValidateConfigMapUpdate.
"""

from __future__ import annotations

from bayplan.cluster.embedded.admission.fields import Doc, Errors
from bayplan.cluster.embedded.admission.strategy import Strategy
from bayplan.cluster.embedded.admission.syntax import config_map_key, size, subdomain_name
from bayplan.cluster.kinds import CONFIG_MAP

MOST_BYTES = 1024 * 1024


def byte_count(encoded: str) -> int:
    """How many bytes a base64 text holds."""
    return len(encoded) // 4 * 3 - encoded.count("=", -2)


def validate_frozen(new: Doc, old: Doc, fields: tuple[str, ...], errors: Errors) -> None:
    """An object that was made immutable stays so, and so do these fields."""
    if not old.get("immutable"):
        return
    changed = [field for field in fields if new.get(field, {}) != old.get(field, {})]
    for field in ([] if new.get("immutable") else ["immutable"]) + changed:
        errors.forbidden(field, "field is immutable when `immutable` is set")


def _validate(doc: Doc, errors: Errors) -> None:
    data, binary = doc.get("data", {}), doc.get("binaryData", {})
    for field, entries in (("data", data), ("binaryData", binary)):
        for key in entries:
            for fault in config_map_key(key):
                errors.invalid(f"{field}[{key}]", key, fault)
    for key in data.keys() & binary.keys():
        errors.invalid(f"data[{key}]", key, "duplicate of key present in binaryData")
    if sum(map(size, data.values())) + sum(map(byte_count, binary.values())) > MOST_BYTES:
        errors.too_long("[]", MOST_BYTES)  # upstream names the whole object by an empty path


def _validate_update(new: Doc, old: Doc, errors: Errors) -> None:
    validate_frozen(new, old, ("data", "binaryData"), errors)
    _validate(new, errors)


STRATEGY = Strategy(kind=CONFIG_MAP, name_rule=subdomain_name, validate=_validate, validate_update=_validate_update)
