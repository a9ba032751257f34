"""Structural schemas: what they drop, what they fill in, what they refuse.

A schema is the plain document `openAPIV3Schema`; each function walks value and schema together. Refusals have the words
of kube-openapi. Source of truth: apiextensions-apiserver pkg/apiserver/schema/{pruning,defaulting,listtype} and
kube-openapi pkg/validation.
"""

from __future__ import annotations

import copy
import functools
import ipaddress
import re
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from bayplan.cluster.embedded.admission.fields import Doc, Errors, quoted
from bayplan.model.clock import parse_rfc3339
from bayplan.model.durations import parse_duration
from bayplan.model.errors import Cause

PRESERVE = "x-kubernetes-preserve-unknown-fields"
INT_OR_STRING = "x-kubernetes-int-or-string"
EMBEDDED = "x-kubernetes-embedded-resource"
_IMPLIED = ("apiVersion", "kind", "metadata")
_NOWHERE = "<nil>"
"""Where upstream has lost the path."""


def _below(schema: Doc, value: Any, path: str) -> Iterator[tuple[Any, Doc, str]]:
    """The parts of a value that the schema speaks of: each with its schema and path."""
    if isinstance(value, dict):
        properties, more = schema.get("properties", {}), schema.get("additionalProperties")
        for key in value:
            inner = properties.get(key, more)
            if isinstance(inner, dict):
                yield value[key], inner, f"{path}.{key}" if path else key
    elif isinstance(value, list) and isinstance(schema.get("items"), dict):
        for index, item in enumerate(value):
            yield item, schema["items"], f"{path}[{index}]"


def prune(value: Any, schema: Doc, path: str = "", *, root: bool = True) -> list[str]:
    """Drop what the schema does not know, in place; the paths of what was dropped."""
    dropped: list[str] = []
    if isinstance(value, dict) and not schema.get(PRESERVE) and not schema.get("additionalProperties"):
        known = {*schema.get("properties", ()), *(_IMPLIED if root or schema.get(EMBEDDED) else ())}
        for key in [key for key in value if key not in known]:
            del value[key]
            dropped.append(f"{path}.{key}" if path else key)
    for inner, its, where in _below(schema, value, path):
        if not (root and where == "metadata"):
            dropped += prune(inner, its, where, root=False)
    return dropped


def default(value: Any, schema: Doc) -> None:
    """Fill in the defaults, in place. A null where none may be counts as missing."""
    if isinstance(value, dict):
        for its, key in [(its, key) for inner, its, key in _below(schema, value, "") if inner is None]:
            if not its.get("nullable"):
                del value[key]
        for key, its in schema.get("properties", {}).items():
            if "default" in its and key not in value:
                value[key] = copy.deepcopy(its["default"])
    for inner, its, _ in _below(schema, value, ""):
        default(inner, its)


# --- validation


def validate(value: Any, schema: Doc, errors: Errors, path: str = "") -> None:
    """Everything that the schema refuses."""
    fits = _validate_type(value, schema, errors, path)
    _validate_junctors(value, schema, errors, path)
    if not fits:
        return
    for check in _CHECKS.get(type(value), ()):
        check(value, schema, errors, path)
    if "enum" in schema and value not in schema["enum"]:
        allowed = (each if isinstance(each, str) else msgspec.json.encode(each).decode() for each in schema["enum"])
        errors.not_supported(path, value, allowed)
    for inner, its, where in _below(schema, value, path):
        validate(inner, its, errors, where)
    if isinstance(value, dict):
        for key in schema.get("required", ()):
            if key not in value:
                errors.required(f"{path}.{key}" if path else key)


def _types(schema: Doc) -> tuple[str, ...]:
    if schema.get(INT_OR_STRING):
        return ("integer", "string")
    return (schema["type"],) if schema.get("type") else ()


def _type_of(value: Any) -> str:
    names = {bool: "boolean", str: "string", int: "integer", float: "number", list: "array", dict: "object"}
    return names.get(type(value), "null")


def _type_invalid(path: str, expected: str, found: str, errors: Errors) -> None:
    text = f"{path} in body must be of type {expected}: {quoted(found)}"
    errors.append(Cause(path or _NOWHERE, "FieldValueTypeInvalid", f"Invalid value: {quoted(found)}: {text}"))


def _validate_type(value: Any, schema: Doc, errors: Errors, path: str) -> bool:
    types, found = _types(schema), _type_of(value)
    if value is None:
        fits = not types or bool(schema.get("nullable"))
    else:
        whole = found == "number" and float(value).is_integer() and "integer" in types
        fits = not types or found in types or (found == "integer" and "number" in types) or whole
    if not fits:
        _type_invalid(path, ",".join(types), found, errors)
        if found == "number" and types == ("integer",):  # the check of its range speaks up, too
            errors.invalid(_NOWHERE, "", f"Checked value must be of type integer (default format) in {path}")
    return fits and value is not None


def _validate_string(value: str, schema: Doc, errors: Errors, path: str) -> None:
    """Length and pattern, of which the first that is broken is told, and format."""
    if len(value) > schema.get("maxLength", len(value)):
        errors.too_long(path, schema["maxLength"])
    elif len(value) < schema.get("minLength", 0):
        errors.invalid(path, value, f"{path} in body should be at least {schema['minLength']} chars long")
    elif "pattern" in schema and not _pattern(schema["pattern"]).search(value):
        errors.invalid(path, value, f"{path} in body should match '{schema['pattern']}'")
    check = _FORMATS.get(schema.get("format", ""))
    if check is not None and not _passes(check, value):
        text = f"{path} in body must be of type {schema['format']}: {quoted(value)}"
        errors.append(Cause(path, "FieldValueTypeInvalid", f"Invalid value: {quoted(value)}: {text}"))


@functools.lru_cache(maxsize=1024)
def _pattern(text: str) -> re.Pattern[str]:
    """A Go regular expression, near enough: its end of text is called otherwise in Python."""
    return re.compile(text.replace(r"\z", r"\Z"))


def _passes(check: Callable[[str], object], value: str) -> bool:
    try:
        check(value)
    except ValueError:
        return False
    return True


_FORMATS: dict[str, Callable[[str], object]] = {
    "date-time": parse_rfc3339,
    "duration": parse_duration,
    "ipv4": ipaddress.IPv4Address,
    "ipv6": ipaddress.IPv6Address,
    "cidr": ipaddress.ip_interface,
    "uuid": uuid.UUID,
}


def _validate_number(value: float, schema: Doc, errors: Errors, path: str) -> None:
    for name, word, sign in (("maximum", "less than", 1), ("minimum", "greater than", -1)):
        if name not in schema:
            continue
        limit, exclusive = schema[name], schema.get(f"exclusive{name.capitalize()}")
        if sign * (value - limit) > 0 or (exclusive and value == limit):
            text = f"{word} {_number(limit)}" if exclusive else f"{word} or equal to {_number(limit)}"
            errors.invalid(path, value, f"{path} in body should be {text}")
    factor = schema.get("multipleOf")
    if factor and not float(value / factor).is_integer():
        errors.invalid(path, value, f"{path} in body should be a multiple of {_number(factor)}")


def _number(value: float) -> str:
    return str(int(value)) if float(value).is_integer() else f"{value:g}"


def _validate_list(value: list[Any], schema: Doc, errors: Errors, path: str) -> None:
    if len(value) < schema.get("minItems", 0):
        errors.invalid(path, len(value), f"{path} in body should have at least {schema['minItems']} items")
    if len(value) > schema.get("maxItems", len(value)):
        errors.too_many(path, len(value), schema["maxItems"])
    if schema.get("uniqueItems") and _repeated(value):
        errors.invalid(path, "", f"{path} in body shouldn't contain duplicates")
    match schema.get("x-kubernetes-list-type"):
        case "set":
            keyed = value
        case "map":
            names = schema.get("x-kubernetes-list-map-keys", ())
            keyed = [{name: item.get(name) for name in names} for item in value if isinstance(item, dict)]
        case _:
            return
    for index in _repeated(keyed):
        shown = keyed[index] if isinstance(keyed[index], dict) else value[index]
        text = msgspec.json.encode(shown).decode() if isinstance(shown, dict) else quoted(str(shown))
        errors.append(Cause(f"{path}[{index}]", "FieldValueDuplicate", f"Duplicate value: {text}"))


def _repeated(values: list[Any]) -> list[int]:
    return [index for index, value in enumerate(values) if value in values[:index]]


def _validate_object(value: Doc, schema: Doc, errors: Errors, path: str) -> None:
    if len(value) < schema.get("minProperties", 0):
        errors.invalid(path, len(value), f"{path} in body should have at least {schema['minProperties']} properties")
    if len(value) > schema.get("maxProperties", len(value)):
        errors.too_many(path, len(value), schema["maxProperties"])


Check = Callable[[Any, Doc, Errors, str], None]
_CHECKS: dict[type, tuple[Check, ...]] = {
    str: (_validate_string,),
    int: (_validate_number,),
    float: (_validate_number,),
    list: (_validate_list,),
    dict: (_validate_object,),
}


def _validate_junctors(value: Any, schema: Doc, errors: Errors, path: str) -> None:
    """Combinations of schemas. What is told of them is that they fail, and why the first of them does."""

    def found(each: Doc) -> Errors:
        faults = Errors()
        validate(value, each, faults, path)
        return faults

    for name, fits, words in _JUNCTORS:
        all_ = [found(each) for each in schema.get(name) or ()]
        good = sum(not faults for faults in all_)
        if all_ and not fits(good, len(all_)):
            errors.invalid(_NOWHERE, "", f"{quoted(path)} {words}")
            errors += next((faults for faults in all_ if faults), ()) if good == 0 or name == "allOf" else ()
    if schema.get("not") and not found(schema["not"]):
        errors.invalid(_NOWHERE, "", f"{quoted(path)} must not validate the schema (not)")


_JUNCTORS: tuple[tuple[str, Callable[[int, int], bool], str], ...] = (
    ("allOf", lambda good, total: good == total, "must validate all the schemas (allOf)"),
    ("anyOf", lambda good, _total: good > 0, "must validate at least one schema (anyOf)"),
    ("oneOf", lambda good, _total: good == 1, "must validate one and only one schema (oneOf)"),
)
"""Each with the number of schemas that may fit, of how many."""
