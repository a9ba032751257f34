"""The careful decoder: a document checked field by field against the table, with Go's words for every fault.

It is the specification of `decode`, which takes a faster way whenever a document has no fault. Faults come in three
sorts, as in upstream's decoder: a scalar that its own parser refuses ends decoding; a value of the wrong type is
remembered and the rest is still read; unknown and repeated fields are collected for strict validation and warnings.
"""

from __future__ import annotations

import json
from typing import Any

from bayplan.cluster.embedded.schema.document import Number, Pairs, plain
from bayplan.cluster.embedded.schema.scalars import (
    ScalarError,
    bytes_text,
    micro_time_text,
    quantity_text,
    time_text,
)
from bayplan.cluster.embedded.schema.table import CUSTOM, TABLE, Field, fields_of
from bayplan.model.quantity import QuantityError

_RANGE = {"int32": 1 << 31, "int64": 1 << 63}
_LONGEST = len(str(-(1 << 63)))
_TIMES = {"Time": time_text, "MicroTime": micro_time_text}
_ABSENT = object()


class DecodeError(ValueError):
    """The document does not fit its type; the message is upstream's."""


def zero(type_name: str) -> Any:
    """What Go writes for a field of this type that was never set."""
    if type_name.startswith(CUSTOM):
        return {"metadata": {}}
    if type_name in TABLE.types:
        return {field.name: zero(field.type) for field in TABLE.types[type_name] if field.keep}
    return {"string": "", "bool": False, "int32": 0, "int64": 0, "IntOrString": 0, "Quantity": "0", "bytes": ""}.get(
        type_name
    )


def _mismatch_text(value: Any, path: str) -> str:
    sort = {Pairs: "object", list: "array", str: "string", bool: "bool", Number: "number"}[type(value)]
    return f"json: cannot unmarshal {sort} into Go {f'struct field {path}' if path else 'value'}"


class Walk:
    """One decoding: the first wrong type met, and the unknown and repeated fields, in document order."""

    def __init__(self) -> None:
        self.wrong: str | None = None
        self.problems: list[str] = []

    def document(self, type_name: str, tree: Any) -> dict[str, Any]:
        """The cleaned document of a top-level type. Raises DecodeError."""
        result = self._value(type_name, tree, "", "")
        if self.wrong is not None:
            raise DecodeError(self.wrong)
        return result if isinstance(result, dict) else zero(type_name)

    def _mismatch(self, value: Any, path: str) -> Any:
        if self.wrong is None:
            self.wrong = _mismatch_text(value, path)
        return _ABSENT

    def _value(self, type_name: str, value: Any, path: str, strict: str) -> Any:
        """The cleaned value, or _ABSENT when there is none to keep."""
        if value is None:
            return _ABSENT
        if type_name in TABLE.types:
            return self._struct(type_name, value, path, strict)
        if type_name[0] == "*":
            return self._value(type_name[1:], value, path, strict)
        if type_name[:2] == "[]":
            return self._list(type_name[2:], value, path, strict)
        if type_name[:4] == "map ":
            return self._map(type_name[4:], value, path, strict)
        return self._scalar(type_name, value, path)

    def _struct(self, type_name: str, value: Any, path: str, strict: str) -> Any:
        if not isinstance(value, Pairs):
            return self._mismatch(value, path)
        known = fields_of(type_name)
        found: dict[str, Any] = {}
        for key, item in value:
            here = f"{strict}.{key}" if strict else key
            field = known.get(key)
            if field is None:
                self.problems.append(f'unknown field "{here}"')
                continue
            if key in found:
                self.problems.append(f'duplicate field "{here}"')
            step = f"{field.embedded}.{key}" if field.embedded else key
            found[key] = self._value(field.type, item, f"{path}.{step}" if path else step, here)
        return clean(type_name, found)

    def _list(self, inner: str, value: Any, path: str, strict: str) -> Any:
        if not isinstance(value, list) or isinstance(value, Pairs):
            return self._mismatch(value, path)
        items = [self._value(inner, item, path, f"{strict}[{i}]") for i, item in enumerate(value)]
        return [zero(inner) if item is _ABSENT else item for item in items]

    def _map(self, inner: str, value: Any, path: str, strict: str) -> Any:
        if not isinstance(value, Pairs):
            return self._mismatch(value, path)
        found: dict[str, Any] = {}
        for key, item in value:
            if key in found:
                self.problems.append(f'duplicate field "{strict}.{key}"')
            cleaned = self._value(inner, item, path, f"{strict}.{key}")
            found[key] = zero(inner) if cleaned is _ABSENT else cleaned
        return found

    def _scalar(self, type_name: str, value: Any, path: str) -> Any:
        if type_name == "Any":
            return plain(value)
        if type_name == "Quantity":
            return self._quantity(value)
        if type_name in _TIMES:
            return self._time(type_name, value, path)
        if type_name == "IntOrString":
            type_name = "string" if type(value) is str else "int32"
        if type_name in _RANGE:
            return self._integer(type_name, value, path)
        if type_name == "bool":
            return value if isinstance(value, bool) else self._mismatch(value, path)
        if type(value) is not str:
            return self._mismatch(value, path)
        return self._bytes(value) if type_name == "bytes" else value

    def _integer(self, type_name: str, value: Any, path: str) -> Any:
        if not isinstance(value, Number):
            return self._mismatch(value, path)
        limit = _RANGE[type_name]
        whole = value.lstrip("-").isdigit() and len(value) <= _LONGEST
        if not whole or not -limit <= int(value) < limit:
            if self.wrong is None:
                self.wrong = f"json: cannot unmarshal number {value} into Go struct field {path}"
            return _ABSENT
        return int(value)

    def _quantity(self, value: Any) -> str:
        try:
            return quantity_text(str(value) if isinstance(value, str) else json.dumps(plain(value)))
        except QuantityError as error:
            raise DecodeError(str(error)) from None

    def _time(self, type_name: str, value: Any, path: str) -> Any:
        if type(value) is not str:
            raise DecodeError(_mismatch_text(value, path))
        try:
            return _TIMES[type_name](value)
        except ScalarError as error:
            raise DecodeError(str(error)) from None

    def _bytes(self, value: str) -> Any:
        try:
            return bytes_text(value)
        except ScalarError as error:
            self.wrong = self.wrong or str(error)
            return _ABSENT


def clean(type_name: str, found: dict[str, Any]) -> dict[str, Any]:
    """A struct as Go writes it: fields in order, empty ones left out where they may be, the others with their zero."""
    result: dict[str, Any] = {}
    for field in TABLE.types[type_name]:
        value = found.get(field.name, _ABSENT)
        if value is _ABSENT:
            if field.keep:
                result[field.name] = zero(field.type)
        elif field.keep or not _empty(field, value):
            result[field.name] = value
    return result


def _empty(field: Field, value: Any) -> bool:
    """Whether Go's omitempty drops the value: a pointer never when set, everything else when it is zero."""
    return field.type[0] != "*" and not value and value is not None
