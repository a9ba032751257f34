"""A record for programs: its fields under names in Kubernetes' manner."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec


def camel_names(value: Any) -> Any:
    """The value with every struct a mapping from its fields' names: `limit_cpus` is limitCpus. Keys of data stay."""
    if isinstance(value, msgspec.Struct):
        return {_camel(field): camel_names(getattr(value, field)) for field in value.__struct_fields__}
    if isinstance(value, Mapping):
        return {key: camel_names(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [camel_names(each) for each in value]
    return value


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(map(str.capitalize, others))
