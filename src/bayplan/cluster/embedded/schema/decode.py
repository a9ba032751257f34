"""From bytes to a clean document: known fields, right types, canonical scalars, empty fields left out.

Most documents have no fault. For them the table is turned, once a type, into msgspec structs, and the C decoder does
the work; whatever it refuses goes the careful way (`walk`), which gives the same document or the reason why not.
The tests hold both ways against each other.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Annotated, Any

import msgspec

from bayplan.cluster.embedded.schema.document import read_json
from bayplan.cluster.embedded.schema.scalars import bytes_text, micro_time_text, quantity_text, time_text
from bayplan.cluster.embedded.schema.table import TABLE, Field
from bayplan.cluster.embedded.schema.walk import DecodeError, Walk

__all__ = ["DecodeError", "clean_document", "decode", "decode_tree"]


class _Text(str):
    """A string with a parser of its own. A class each, for msgspec tells custom types apart by class."""

    __slots__ = ()


class _Quantity(_Text):
    __slots__ = ()


class _Time(_Text):
    __slots__ = ()


class _MicroTime(_Text):
    __slots__ = ()


class _Bytes(_Text):
    __slots__ = ()


_PARSERS: dict[type[_Text], Callable[[str], str]] = {
    _Quantity: quantity_text,
    _Time: time_text,
    _MicroTime: micro_time_text,
    _Bytes: bytes_text,
}


def _parse(kind: type[_Text], value: object) -> _Text:
    if type(value) is not str:
        raise ValueError("a number or worse: the careful way knows its spelling")
    return _parsed(kind, value)


@functools.lru_cache(maxsize=8192)
def _parsed(kind: type[_Text], text: str) -> _Text:
    return kind(_PARSERS[kind](text))


_SCALARS: dict[str, Any] = {
    "string": str,
    "bool": bool,
    "int32": Annotated[int, msgspec.Meta(ge=-(1 << 31), le=(1 << 31) - 1)],
    "int64": Annotated[int, msgspec.Meta(ge=-(1 << 63), le=(1 << 63) - 1)],
    "IntOrString": Annotated[int, msgspec.Meta(ge=-(1 << 31), le=(1 << 31) - 1)] | str,
    "Quantity": _Quantity,
    "Time": _Time | None,
    "MicroTime": _MicroTime | None,
    "bytes": _Bytes,
    "Any": Any,
}


def _none() -> None:
    return None


def _python_type(name: str) -> Any:
    if name in TABLE.types:
        return struct_for(name)
    if name[0] == "*":
        return _python_type(name[1:]) | None
    if name[:2] == "[]":
        return list[_python_type(name[2:])]  # type: ignore[misc]  # built from the table at run time
    if name[:4] == "map ":
        return dict[str, _python_type(name[4:])]  # type: ignore[misc]  # built from the table at run time
    return _SCALARS[name]


_ZERO: dict[str, Any] = {"string": "", "bool": False, "int32": 0, "int64": 0}


def _field(field: Field) -> tuple[str, Any, Any]:
    """A struct field whose default is Go's zero: left out where it may be (a plain default), else written."""
    kind = _python_type(field.type)
    if field.type in TABLE.types:
        return field.name, kind, msgspec.field(default_factory=kind)
    if field.type in _ZERO:
        value = _ZERO[field.type]
        return field.name, kind, msgspec.field(default_factory=type(value)) if field.keep else value
    if field.type == "IntOrString":
        return field.name, kind, msgspec.field(default_factory=int)
    if field.type == "Quantity":
        return field.name, kind, msgspec.field(default_factory=lambda: _Quantity("0"))
    if field.keep:
        return field.name, kind | None, msgspec.field(default_factory=_none)
    if field.type[:2] == "[]":
        return field.name, kind, msgspec.field(default_factory=list)
    if field.type[:4] == "map ":
        return field.name, kind, msgspec.field(default_factory=dict)
    return field.name, kind | None, None


@functools.cache
def struct_for(type_name: str) -> Any:
    """The msgspec struct of a type of the table."""
    fields = [_field(field) for field in TABLE.types[type_name]]
    return msgspec.defstruct(
        type_name.rpartition(".")[2], fields, forbid_unknown_fields=True, omit_defaults=True, gc=False, kw_only=True
    )


@functools.cache
def _decoder(type_name: str) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(struct_for(type_name), dec_hook=_parse)


_ENCODER = msgspec.json.Encoder(enc_hook=str)


def decode(type_name: str, body: bytes) -> tuple[dict[str, Any], list[str]]:
    """The clean document and the unknown and repeated fields. Raises DecodeError, MalformedBodyError."""
    try:
        value = _decoder(type_name).decode(body)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return decode_tree(type_name, read_json(body))
    if _may_repeat_keys(body):
        return decode_tree(type_name, read_json(body))
    return msgspec.to_builtins(value, enc_hook=str), []


def _may_repeat_keys(body: bytes) -> bool:
    """Whether a key may stand twice in the body: msgspec keeps the last and says nothing.

    Without \\u escapes every quote of the body is a quote of what is read, so equal counts leave no room for a repeat.
    """
    return b"\\u" in body or body.count(b'"') != _ENCODER.encode(msgspec.json.decode(body)).count(b'"')


def decode_tree(type_name: str, tree: Any) -> tuple[dict[str, Any], list[str]]:
    """The same from a body read by `document`. Raises DecodeError."""
    walk = Walk()
    return walk.document(type_name, tree), walk.problems


def clean_document(type_name: str, document: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """The same from plain JSON values, as a patch leaves them: no key is there twice. Raises DecodeError."""
    body = _ENCODER.encode(document)
    try:
        value = _decoder(type_name).decode(body)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return decode_tree(type_name, read_json(body))
    return msgspec.to_builtins(value, enc_hook=str), []
