"""Fitting a document to a struct, with every unknown field and every wrong type told at once.

msgspec itself stops at the first. What does not fit is left out, so that the rest can still be judged; what is null
counts as not given, as in Go.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec
from msgspec import inspect

from bayplan.model.faults import Faults, below, invalid, shown, unknown

T = TypeVar("T", bound=msgspec.Struct)

_SCALARS: dict[type[inspect.Type], tuple[tuple[type, ...], str]] = {
    inspect.StrType: ((str,), "a text"),
    inspect.BoolType: ((bool,), "true or false"),
    inspect.IntType: ((int,), "a whole number"),
    inspect.FloatType: ((int, float), "a number"),
}
_WRONG: Any = object()


def fit(document: Any, kind: type[T], path: str, faults: Faults) -> tuple[T, dict[str, Any]]:
    """The struct, and what of the document went into it."""
    expected = inspect.type_info(kind)
    fitted = _fitted(document, expected, path, faults)
    if fitted is _WRONG:
        fitted = _blank(expected)
    return msgspec.convert(fitted, kind), fitted


def _fitted(value: Any, kind: inspect.Type, path: str, faults: Faults) -> Any:
    if isinstance(kind, inspect.UnionType):
        (kind,) = (each for each in kind.types if not isinstance(each, inspect.NoneType))
    if isinstance(kind, inspect.StructType):
        return _struct(value, kind, path, faults)
    if isinstance(kind, inspect.VarTupleType):
        return _list(value, kind.item_type, path, faults)
    if isinstance(kind, inspect.DictType):
        return _mapping(value, kind.value_type, path, faults)
    if isinstance(kind, inspect.LiteralType):
        return _choice(value, kind, path, faults)
    return value if isinstance(kind, inspect.AnyType) else _scalar(value, kind, path, faults)


def _struct(value: Any, kind: inspect.StructType, path: str, faults: Faults) -> Any:
    if not isinstance(value, Mapping):
        return _wrong("a mapping", value, path, faults)
    fields = {field.encode_name: field for field in kind.fields}
    fitted = {}
    for name, given in value.items():
        if name not in fields:
            faults.add(below(path, str(name)), unknown("field", str(name), fields))
        elif given is not None:
            found = _fitted(given, fields[name].type, below(path, name), faults)
            if found is not _WRONG:
                fitted[name] = found
    for name, field in fields.items():
        if field.required and name not in fitted:
            faults.add(below(path, name), "Required value")
            fitted[name] = _blank(field.type)
    return fitted


def _list(value: Any, kind: inspect.Type, path: str, faults: Faults) -> Any:
    if not isinstance(value, list | tuple):
        return _wrong("a list", value, path, faults)
    fitted = [_fitted(each, kind, f"{path}[{i}]", faults) for i, each in enumerate(value)]
    return [_blank(kind) if each is _WRONG else each for each in fitted]  # the others keep their places


def _mapping(value: Any, kind: inspect.Type, path: str, faults: Faults) -> Any:
    if not isinstance(value, Mapping):
        return _wrong("a mapping", value, path, faults)
    fitted = {str(key): _fitted(each, kind, below(path, str(key)), faults) for key, each in value.items()}
    return {key: each for key, each in fitted.items() if each is not _WRONG}


def _choice(value: Any, kind: inspect.LiteralType, path: str, faults: Faults) -> Any:
    if value not in kind.values and value != "":  # the empty text is Go's way not to choose
        choices = ", ".join(map(shown, kind.values))
        faults.add(path, f"Unsupported value: {shown(value)}: supported values: {choices}")
    return value if value in kind.values else _WRONG


def _scalar(value: Any, kind: inspect.Type, path: str, faults: Faults) -> Any:
    types, words = _SCALARS[type(kind)]
    if not isinstance(value, types) or isinstance(value, bool) != (types == (bool,)):
        return _wrong(words, value, path, faults)
    if isinstance(kind, inspect.IntType):
        return _in_range(value, kind, path, faults)
    return value


def _in_range(value: Any, kind: inspect.IntType, path: str, faults: Faults) -> Any:
    least, most = kind.ge, kind.le
    if least is None or most is None or least <= value <= most:
        return value
    faults.add(path, invalid(value, f"not in valid range [{least}, {most}]"))
    return _WRONG


def _wrong(expected: str, value: Any, path: str, faults: Faults) -> Any:
    faults.add(path, f"expected {expected}, not {shown(value)}")
    return _WRONG


def _blank(kind: inspect.Type) -> Any:
    """Something to stand for what is not there."""
    if isinstance(kind, inspect.StructType):
        return {field.encode_name: _blank(field.type) for field in kind.fields if field.required}
    if isinstance(kind, inspect.IntType):
        return max(0, kind.ge or 0)
    return "" if isinstance(kind, inspect.StrType) else 0
