"""The schema as server-side apply sees it: scalars, maps and lists, each owned in parts or as one piece.

A shape is built from the table of types when first asked for. Source of truth: the OpenAPI document of kube-apiserver
1.36 through kube-openapi's schemaconv: lists are atomic unless said otherwise, maps are not; a key that an item leaves
out has Go's zero (fields without omitempty) or a default of its own.
"""

from __future__ import annotations

import functools
from typing import Any, TypeAlias

import msgspec

from bayplan.cluster.embedded.schema.table import TABLE, Field

_SCALARS = {"string": "string", "bytes": "string", "Duration": "string", "bool": "boolean"}
_SCALARS |= dict.fromkeys(("int32", "int64", "float64"), "numeric")
_SCALARS |= dict.fromkeys(("Time", "MicroTime"), "untyped")
_ZEROS: dict[str, Any] = {"string": "", "int32": 0, "int64": 0, "bool": False}
_KEY_DEFAULTS = {
    "core.v1.ContainerPort": {"protocol": "TCP"},
    "core.v1.ServicePort": {"protocol": "TCP"},
    "core.v1.LocalObjectReference": {"name": ""},
}


class Scalar(msgspec.Struct, frozen=True):
    """A leaf: `string`, `numeric`, `boolean` or `untyped`."""

    sort: str


class Anything(msgspec.Struct, frozen=True):
    """A value whose shape is its own: a quantity, an int or string, a raw object."""


class Map(msgspec.Struct, frozen=True):
    """An object: a struct with `fields`, or a map whose values all have the shape `element`."""

    fields: dict[str, Shape]
    element: Shape | None
    atomic: bool


class List(msgspec.Struct, frozen=True):
    """A list: atomic, a set (no keys), or items told apart by `keys`."""

    element: Shape
    atomic: bool
    keys: tuple[str, ...] = ()
    key_defaults: dict[str, Any] = {}


Shape: TypeAlias = Scalar | Anything | Map | List

ANYTHING = Anything()


class ShapedName(str):
    """The name of a type that the table does not have, with its shape."""

    shape: Shape

    def __new__(cls, name: str, shape: Shape) -> ShapedName:
        made = super().__new__(cls, name)
        made.shape = shape
        return made


def shape_of(type_name: str) -> Shape:
    """The shape of a type of the table, pointers seen through, or the one that the name brings."""
    if isinstance(type_name, ShapedName):
        return type_name.shape
    return _shape(type_name.lstrip("*"), "", (), "")


def _of_field(field: Field) -> Shape:
    return _shape(field.type.lstrip("*"), field.list, field.list_keys, field.map)


@functools.cache
def _shape(name: str, listed: str, keys: tuple[str, ...], mapped: str) -> Shape:
    if name.startswith("[]"):
        item = name[2:].lstrip("*")
        if listed in ("", "atomic"):
            return List(shape_of(item), atomic=True)
        return List(shape_of(item), atomic=False, keys=keys, key_defaults=_defaults(item, keys))
    if name.startswith("map "):
        return Map({}, shape_of(name[4:]), atomic=mapped == "atomic")
    if name in TABLE.types:
        atomic = mapped == "atomic" or (name in TABLE.atomic and mapped != "granular")
        return Map({field.name: _of_field(field) for field in TABLE.types[name]}, None, atomic)
    return Scalar(_SCALARS[name]) if name in _SCALARS else ANYTHING


def _defaults(item: str, keys: tuple[str, ...]) -> dict[str, Any]:
    fields = {field.name: field for field in TABLE.types.get(item, ())}
    zeros = {key: _ZEROS[fields[key].type] for key in keys if fields[key].keep and fields[key].type in _ZEROS}
    return {key: value for key, value in _KEY_DEFAULTS.get(item, {}).items() if key in keys} | zeros
