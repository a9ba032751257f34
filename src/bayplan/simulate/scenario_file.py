"""Reading a scenario: the file's words become structs, or the file is refused with line and path.

First the shape is looked at (msgspec), then what the entries say (scenario_faults).
"""

from __future__ import annotations

import importlib.resources
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from bayplan.service.durations import Duration
from bayplan.service.yaml_lines import FileError, Located, read_yaml
from bayplan.simulate.scenario import Scenario
from bayplan.simulate.scenario_faults import Fault, objects, references

SHIPPED = "day"
"""The scenario that comes with the package."""

_AT = re.compile(r"(?s)(.*) - at (?:`key` in )?`\$\.?(.*)`")
_UNKNOWN = re.compile(r"Object contains unknown field `(.*)`")


class ScenarioError(FileError):
    """A scenario cannot be used."""

    code = "BP-X001"


def shipped(name: str = SHIPPED) -> Scenario:
    """A scenario that comes with the package."""
    place = importlib.resources.files("bayplan.simulate") / "scenarios" / f"{name}.yaml"
    return parse_scenario(place.name, place.read_bytes())


def read_scenario(path: Path) -> Scenario:
    """A scenario from a file. Raises ScenarioError, OSError."""
    return parse_scenario(str(path), path.read_bytes())


def parse_scenario(name: str, text: str | bytes) -> Scenario:
    """A scenario from its text; `name` is what errors call it. Raises ScenarioError with every fault of one look."""
    try:
        document = read_yaml(name, text)
    except FileError as fault:
        raise ScenarioError(fault.message, hint=fault.hint) from fault
    try:
        scenario = msgspec.convert({} if document.value is None else document.value, Scenario, dec_hook=_duration)
    except msgspec.ValidationError as error:
        raise ScenarioError(document.fault(*_shape_fault(str(error))), hint="docs/up.md lists the keys") from error
    _refuse(document, references(scenario))
    _refuse(document, objects(scenario))
    return scenario


def _duration(kind: type, value: Any) -> Any:
    if kind is Duration and isinstance(value, str):
        return Duration.parse(value)
    raise ValueError(f"expected a duration such as 45m, got {value!r}")


def _shape_fault(text: str) -> Fault:
    """msgspec's words as a path and a sentence of the house."""
    match = _AT.fullmatch(text)
    message, path = (match[1], match[2]) if match else (text, "")
    if unknown := _UNKNOWN.fullmatch(message):
        return f"{path}.{unknown[1]}" if path else unknown[1], "unknown key"
    return path, message[:1].lower() + message[1:].replace("`", "")


def _refuse(document: Located, faults: Iterator[Fault]) -> None:
    told = dict.fromkeys(document.fault(path, message) for path, message in faults)
    if told:
        raise ScenarioError("\n".join(told))
