"""The table of types: every field of every kind, as Go's struct tags and the OpenAPI document describe it.

The grammar of a field's type: `*T` pointer, `[]T` list, `map T` map with string keys, `core.v1.PodSpec` a struct of
this table, and the scalars string, bool, int32, int64, bytes, Quantity, Time, MicroTime, Duration, IntOrString, Any.
"""

from __future__ import annotations

import functools
import importlib.resources
from typing import Any

import msgspec

CUSTOM = "custom."
"""The name of a type that a cluster defines itself begins so; the table does not have it."""


class Field(msgspec.Struct, frozen=True):
    """One field of a struct."""

    name: str
    type: str
    keep: bool = False
    """Written even when it is zero (Go: no omitempty)."""
    embedded: str = ""
    """The Go struct it was inlined from; Go names it in decoding errors."""
    patch: str = ""
    """Strategic merge patch: `merge`, `retainKeys`, `replace` or several, comma-separated."""
    merge_key: str = msgspec.field(name="mergeKey", default="")
    list: str = ""
    """Server-side apply: `atomic`, `set` or `map`."""
    list_keys: tuple[str, ...] = msgspec.field(name="listKeys", default=())
    map: str = ""
    """Server-side apply: `atomic` or `granular`."""
    default: Any = None
    proto: tuple[int, ...] = ()
    """Protobuf field numbers: its own, after those of the struct it was inlined from."""


class Table(msgspec.Struct, frozen=True):
    """Everything known of one version of Kubernetes."""

    version: str
    kinds: dict[str, str]
    """Kind to the name of its type: `Deployment` to `apps.v1.Deployment`."""
    atomic: frozenset[str]
    """Structs that server-side apply owns as one piece."""
    types: dict[str, tuple[Field, ...]]


TABLE = msgspec.json.decode(importlib.resources.files(__package__).joinpath("kubernetes.json").read_bytes(), type=Table)


@functools.cache
def fields_of(type_name: str) -> dict[str, Field]:
    """The fields of a struct by name."""
    return {field.name: field for field in TABLE.types[type_name]}
