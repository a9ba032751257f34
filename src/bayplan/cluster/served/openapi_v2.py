"""OpenAPI 2 in protobuf: what kubectl falls back to for a `kind: List` and for kinds it does not find.

Made from the schemas of the OpenAPI 3 documents. The message types are gnostic's openapi.v2.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

MEDIA = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"  # asked for with an @, answered with a dot
_REF, _FORMAT, _REQUIRED, _ADDITIONAL, _TYPE, _ITEMS, _PROPERTIES, _EXTENSION = 1, 2, 19, 21, 22, 23, 25, 31

Doc = Mapping[str, Any]


def encoded(schemas: Mapping[str, Doc], version: str) -> bytes:
    """The whole document."""
    definitions = _named(schemas)
    info = _field(1, b"Kubernetes") + _field(2, version.encode())
    return _field(1, b"2.0") + _field(2, info) + _field(8, b"") + _field(9, definitions)


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _field(number: int, value: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(value)) + value


def _named(schemas: Mapping[str, Doc]) -> bytes:
    """Repeated NamedSchema: the form of both definitions and properties."""
    return b"".join(
        _field(1, _field(1, name.encode()) + _field(2, _schema(schema))) for name, schema in schemas.items()
    )


def _schema(schema: Doc) -> bytes:
    parts: list[bytes] = []
    for inner in schema.get("allOf", ()):  # a reference with extensions: version 2 has both side by side
        schema = {**inner, **schema}
    if "$ref" in schema:
        parts.append(_field(_REF, f"#/definitions/{schema['$ref'].rpartition('/')[2]}".encode()))
    kind = "string" if "oneOf" in schema else schema.get("type")
    if "format" in schema:
        parts.append(_field(_FORMAT, schema["format"].encode()))
    parts += [_field(_REQUIRED, name.encode()) for name in schema.get("required", ())]
    if isinstance(schema.get("additionalProperties"), dict):
        parts.append(_field(_ADDITIONAL, _field(1, _schema(schema["additionalProperties"]))))
    if kind:
        parts.append(_field(_TYPE, _field(1, kind.encode())))
    if "items" in schema:
        parts.append(_field(_ITEMS, _field(1, _schema(schema["items"]))))
    if schema.get("properties"):
        parts.append(_field(_PROPERTIES, _named(schema["properties"])))
    parts += _extensions(schema)
    return b"".join(parts)


def _extensions(schema: Doc) -> Iterable[bytes]:
    for name, value in schema.items():
        if name.startswith("x-kubernetes-"):
            text = msgspec.json.encode(value)  # JSON is YAML
            yield _field(_EXTENSION, _field(1, name.encode()) + _field(2, _field(2, text)))
