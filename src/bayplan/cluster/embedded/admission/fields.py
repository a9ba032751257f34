"""Broken rules, collected: each with the field's path and the API server's words.

A validator takes a document (plain JSON values, defaulted, empty fields left out), a path and an `Errors`, and adds to
it. It never stops at the first fault: a user wants all of them at once.

Source of the texts: apimachinery pkg/util/validation/field. A struct or nested value is printed as `{...}` or `[...]`:
upstream dumps its Go internals there.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from bayplan.model.errors import Cause

Doc: TypeAlias = dict[str, Any]
"""A Kubernetes object, or a part of one, as plain JSON values."""


def quoted(text: str) -> str:
    """A string as Go's %q prints it."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\x7f")


def shown(value: object) -> str:
    """A bad value as an error prints it."""
    if isinstance(value, bool) or value is None:
        return json.dumps(value)
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, int | float):
        return str(value)
    if isinstance(value, Mapping):
        flat = all(isinstance(v, str) for v in value.values())
        return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False) if flat else "{...}"
    if isinstance(value, Sequence):
        flat = not any(isinstance(v, Mapping | list) for v in value)
        return json.dumps(value, separators=(",", ":"), ensure_ascii=False) if flat else "[...]"
    raise TypeError(f"not a JSON value: {value!r}")


class Errors(list[Cause]):
    """The faults found so far, in the order in which they were found."""

    def invalid(self, path: str, value: object, detail: str) -> None:
        """The value has the right type and breaks a rule."""
        self._add(path, "FieldValueInvalid", f"Invalid value: {shown(value)}", detail)

    def required(self, path: str, detail: str = "") -> None:
        """The value is missing."""
        self._add(path, "FieldValueRequired", "Required value", detail)

    def duplicate(self, path: str, value: object) -> None:
        """The value must be unique and is not."""
        self._add(path, "FieldValueDuplicate", f"Duplicate value: {shown(value)}", "")

    def forbidden(self, path: str, detail: str) -> None:
        """The value is legal elsewhere and not here."""
        self._add(path, "FieldValueForbidden", "Forbidden", detail)

    def not_found(self, path: str, value: object, detail: str = "") -> None:
        """The value refers to something that is not there."""
        self._add(path, "FieldValueNotFound", f"Not found: {shown(value)}", detail)

    def not_supported(self, path: str, value: object, allowed: Iterable[str]) -> None:
        """The value is none of the allowed ones; they are listed in the order given."""
        listed = ", ".join(quoted(choice) for choice in allowed)
        detail = f"supported values: {listed}" if listed else ""
        self._add(path, "FieldValueNotSupported", f"Unsupported value: {shown(value)}", detail)

    def too_long(self, path: str, most: int) -> None:
        """A text longer than `most` bytes."""
        unit = "byte" if most == 1 else "bytes"
        self._add(path, "FieldValueTooLong", "Too long", f"may not be more than {most} {unit}")

    def too_many(self, path: str, actual: int, most: int) -> None:
        """A list longer than `most` items."""
        unit = "item" if most == 1 else "items"
        self._add(path, "FieldValueTooMany", f"Too many: {actual}", f"must have at most {most} {unit}")

    def internal(self, path: str, detail: str) -> None:
        """Something upstream calls its own fault."""
        self._add(path, "InternalError", "Internal error", detail)

    def _add(self, path: str, reason: str, head: str, detail: str) -> None:
        self.append(Cause(path, reason, f"{head}: {detail}" if detail else head))
