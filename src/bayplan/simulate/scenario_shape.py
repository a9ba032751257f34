"""What is wrong with the shape of a scenario: unknown keys, wrong types, missing keys, all of them at once.

msgspec stops at the first fault. So each entry is looked at by itself, what was wrong is taken out of it, and it is
looked at again.
"""

from __future__ import annotations

import copy
import re
import typing
from collections.abc import Iterator
from typing import Any

import msgspec

from bayplan.service.durations import Duration
from bayplan.simulate.fault_kinds import Fault, FaultKind, fault_of
from bayplan.simulate.scenario import Scenario

_STEP = re.compile(r"([^.\[\]]+)|\[(\d+)\]")
_MOST = 50
"""Faults told of one entry."""


def convert(value: Any, kind: Any = Scenario) -> Any:
    """The structs of a document. Raises msgspec.ValidationError at the first fault."""
    return msgspec.convert(value, kind, dec_hook=_duration)


def _duration(kind: type, value: Any) -> Any:
    if kind is Duration and isinstance(value, str):
        return Duration.parse(value)
    raise ValueError(f"expected a duration such as 45m, got {value!r}")


def faults(document: Any) -> Iterator[Fault]:
    """Every fault of shape."""
    if not isinstance(document, dict):
        yield from _look(document, Scenario, "")
        return
    fields = {field.encode_name: field for field in msgspec.structs.fields(Scenario)}
    hints = typing.get_type_hints(Scenario)
    for key, given in document.items():
        kind = hints[fields[key].name] if key in fields else None
        if kind is None:
            yield Fault(str(key), "unknown key", FaultKind.UNKNOWN)
        elif isinstance(given, list) and typing.get_origin(kind) is tuple:
            for index, each in enumerate(given):
                yield from _look(each, typing.get_args(kind)[0], f"{key}[{index}]")
        else:
            yield from _look(given, kind, key)


def _look(value: Any, kind: Any, path: str) -> Iterator[Fault]:
    value = copy.deepcopy(value)
    taken: set[str] = set()
    for _ in range(_MOST):
        try:
            convert(value, kind)
        except msgspec.ValidationError as error:
            fault = fault_of(error)
        else:
            return
        if fault.kind is FaultKind.MISSING and _missing(fault) in taken:
            return  # it was there, and wrong
        joint = "" if not path or not fault.path or fault.path[0] == "[" else "."
        yield Fault(f"{path}{joint}{fault.path}", fault.message, fault.kind)
        if fault.kind is FaultKind.MISSING or not _take_out(value, fault.path):
            return
        taken.add(fault.path)


def _missing(fault: Fault) -> str:
    """The path of a key that is not there."""
    name = fault.message.rpartition(" ")[2]
    return f"{fault.path}.{name}" if fault.path else name


def _take_out(value: Any, path: str) -> bool:
    """Remove what stands at a path, if it is a key of a mapping."""
    steps = [name or int(index) for name, index in _STEP.findall(path)]
    for step in steps[:-1]:
        try:
            value = value[step]
        except (KeyError, IndexError, TypeError):
            return False
    if not steps or not isinstance(value, dict) or steps[-1] not in value:
        return False
    del value[steps[-1]]
    return True
