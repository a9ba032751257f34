"""Plain values into typed ones, as upstream converts the result of a strategic merge patch or an apply.

Both skip JSON decoding, so a wrong type is refused in other words than a body's. Unknown fields are left for the
decoder. Source of truth: apimachinery pkg/runtime/converter.go.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from bayplan.cluster.embedded.patch.merge import cannot_unmarshal
from bayplan.cluster.embedded.schema.scalars import (
    ScalarError,
    bytes_text,
    micro_time_text,
    quantity_text,
    time_text,
)
from bayplan.cluster.embedded.schema.table import CUSTOM, TABLE
from bayplan.model.quantity import QuantityError

_KINDS = {dict: "map", list: "slice", str: "string", bool: "bool", int: "int64", float: "float64"}
_TIMES: dict[str, Callable[[str], str]] = {"Time": time_text, "MicroTime": micro_time_text}


class ConversionError(ValueError):
    """A value of the wrong type; the message is upstream's, which names no path."""


def converted(value: Any, type_name: str) -> Any:
    """The value with whole floats as the integers they stand for. Raises ConversionError."""
    if value is None or type_name.startswith(CUSTOM):
        return value
    if type_name[0] == "*":
        return converted(value, type_name[1:])
    if type_name in TABLE.types:
        return _struct(value, type_name)
    if type_name.startswith("[]"):
        if not isinstance(value, list):
            raise ConversionError(f"cannot restore slice from {_KINDS[type(value)]}")
        return [converted(item, type_name[2:]) for item in value]
    if type_name.startswith("map "):
        if not isinstance(value, dict):
            raise ConversionError(f"cannot restore map from {_KINDS[type(value)]}")
        return {key: converted(item, type_name[4:]) for key, item in value.items()}
    return _scalar(value, type_name)


def _struct(value: Any, type_name: str) -> Any:
    if not isinstance(value, dict):
        raise ConversionError(f"cannot restore struct from: {_KINDS[type(value)]}")
    result = dict(value)
    for field in TABLE.types[type_name]:
        if field.name in value:
            result[field.name] = converted(value[field.name], field.type)
    return result


def _scalar(value: Any, type_name: str) -> Any:
    if type_name in _PARSED:
        try:
            _PARSED[type_name](value)
        except (ScalarError, QuantityError) as error:
            raise ConversionError(str(error)) from None
        return value
    kind = _KINDS[type(value)]
    if type_name in ("string", "bool") and kind != type_name:
        convertible = type_name == "string" and kind == "int64"
        raise ConversionError(f"cannot convert {kind} to string" if convertible else f"unrecognized type: {type_name}")
    if type_name in ("int32", "int64"):
        return _whole(value, kind, type_name)
    return value


def _whole(value: Any, kind: str, type_name: str) -> int:
    if kind not in ("int64", "float64"):
        raise ConversionError(f"unrecognized type: {type_name}")
    if value != int(value):
        raise ConversionError(f"cannot convert float64 to {type_name}")
    return int(value)


def _quantity(value: Any) -> None:
    quantity_text(value if isinstance(value, str) else json.dumps(value))


def _time(parse: Callable[[str], str]) -> Callable[[Any], None]:
    def check(value: Any) -> None:
        if not isinstance(value, str):
            raise ConversionError(cannot_unmarshal(value))
        parse(value)

    return check


def _int_or_string(value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, int | str):
        spelled = f" {value}" if isinstance(value, float) else ""
        raise ConversionError(cannot_unmarshal(value).replace(" into", f"{spelled} into"))


def _bytes(value: Any) -> None:
    if not isinstance(value, str):
        raise ConversionError(f"cannot restore slice from {_KINDS[type(value)]}")
    try:
        bytes_text(value)
    except ScalarError as error:
        raise ConversionError(f"error decoding from json: {error}") from None


_PARSED: dict[str, Callable[[Any], None]] = {
    "Quantity": _quantity,
    "IntOrString": _int_or_string,
    "bytes": _bytes,
    **{name: _time(parse) for name, parse in _TIMES.items()},
}
