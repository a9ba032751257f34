"""Bodies in Kubernetes' protobuf, read into plain JSON values by the table's field numbers.

Clients built on client-go send protobuf by default, kubectl's typed commands among them. The wire format is small:
tagged fields, varints, lengths. What is read here goes through the same decoder as a JSON body.
"""

from __future__ import annotations

import base64
import functools
from collections.abc import Iterator
from typing import Any

import msgspec

from bayplan.cluster.embedded.schema.document import MalformedBodyError
from bayplan.cluster.embedded.schema.table import TABLE, Field
from bayplan.model.clock import SECOND, Instant, rfc3339, rfc3339_micro

MEDIA = "application/vnd.kubernetes.protobuf"
_MAGIC = b"k8s\x00"
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5

Doc = dict[str, Any]


def read_protobuf(type_name: str, body: bytes) -> Doc:
    """The document in an enveloped body: runtime.Unknown around the object. Raises MalformedBodyError."""
    if not body.startswith(_MAGIC):
        raise MalformedBodyError(
            "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]"
        )
    document: Doc = {}
    raw = b""
    try:
        for number, value in _fields(body[len(_MAGIC) :]):
            if number == 1:
                names = {1: "apiVersion", 2: "kind"}
                document |= {names[n]: _text(v) for n, v in _fields(value) if n in names}
            elif number == 2:
                raw = value
        return {**document, **_struct(type_name, raw)}
    except (IndexError, UnicodeDecodeError, TypeError) as error:
        raise MalformedBodyError(f"proto: {error}") from error


def _varint(data: bytes, at: int) -> tuple[int, int]:
    result = shift = 0
    while True:
        byte = data[at]
        at += 1
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            return result, at
        shift += 7


def _fields(data: bytes) -> Iterator[tuple[int, Any]]:
    """Each field's number and its value: a whole number, or bytes."""
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        number, wire = tag >> 3, tag & 7
        value: int | bytes
        if wire == _VARINT:
            value, at = _varint(data, at)
        elif wire == _BYTES:
            size, at = _varint(data, at)
            if at + size > len(data):
                raise IndexError("unexpected end of message")
            value, at = data[at : at + size], at + size
        elif wire in (_FIXED32, _FIXED64):
            width = 4 if wire == _FIXED32 else 8
            value, at = int.from_bytes(data[at : at + width], "little"), at + width
        else:
            raise IndexError(f"illegal wireType {wire}")
        yield number, value


@functools.cache
def _numbers(type_name: str) -> dict[int, Field | dict[int, Field]]:
    """The fields of a struct by number; those inlined from a struct of their own one level deeper."""
    found: dict[int, Any] = {}
    for field in TABLE.types[type_name]:
        if len(field.proto) == 1:
            found[field.proto[0]] = field
        elif len(field.proto) == 2:
            found.setdefault(field.proto[0], {})[field.proto[1]] = field
    return found


def _struct(type_name: str, data: bytes) -> Doc:
    document: Doc = {}
    _read_into(document, _numbers(type_name), data)
    return document


def _read_into(document: Doc, numbers: Any, data: bytes) -> None:
    for number, value in _fields(data):
        field = numbers.get(number)
        if isinstance(field, dict):
            _read_into(document, field, value)
        elif field is not None:
            _read_field(document, field, value)


def _read_field(document: Doc, field: Field, value: Any) -> None:
    type_name = field.type
    if type_name[:2] == "[]":
        document.setdefault(field.name, []).append(_value(type_name[2:], value))
    elif type_name[:4] == "map ":
        entry = dict(_fields(value))
        inner = type_name[4:]
        document.setdefault(field.name, {})[_text(entry.get(1, b""))] = _value(inner, entry.get(2, _nothing(inner)))
    else:
        document[field.name] = _value(type_name.removeprefix("*"), value)


def _nothing(type_name: str) -> int | bytes:
    return 0 if type_name in ("int32", "int64", "bool") else b""


def _text(value: bytes) -> str:
    return value.decode()


def _value(type_name: str, value: Any) -> Any:
    if type_name in TABLE.types:
        return _struct(type_name, value)
    return _SCALARS[type_name](value)


def _signed(value: int) -> int:
    return value - (1 << 64) if value >= 1 << 63 else value


def _quantity(value: bytes) -> str:
    return _text(dict(_fields(value)).get(1, b"0"))


def _instant(value: bytes) -> Instant:
    parts = dict(_fields(value))
    return Instant(_signed(parts.get(1, 0)) * SECOND + parts.get(2, 0) // 1000)


def _time(value: bytes) -> str | None:
    return rfc3339(_instant(value)) if value else None


def _micro_time(value: bytes) -> str | None:
    return rfc3339_micro(_instant(value)) if value else None


def _int_or_string(value: bytes) -> int | str:
    parts = dict(_fields(value))
    return _text(parts.get(3, b"")) if parts.get(0) or parts.get(1) else _signed(parts.get(2, 0))


def _any(value: bytes) -> Any:
    raw = dict(_fields(value)).get(1, b"")
    return msgspec.json.decode(raw) if raw else None


_SCALARS: dict[str, Any] = {
    "string": _text,
    "bool": bool,
    "int32": _signed,
    "int64": _signed,
    "bytes": lambda value: base64.b64encode(value).decode(),
    "Quantity": _quantity,
    "Time": _time,
    "MicroTime": _micro_time,
    "IntOrString": _int_or_string,
    "Any": _any,
}
