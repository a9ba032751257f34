"""Reading a scenario: the file's words become structs, or the file is refused with line and path.

First the shape is looked at (scenario_shape), then what the entries say (scenario_faults, event_faults), on the ground
where the scenario is put (scenario_ground).
"""

from __future__ import annotations

import importlib.resources
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from bayplan.service.durations import Duration
from bayplan.service.yaml_lines import FileError, Located, read_yaml
from bayplan.simulate import event_faults, scenario_faults, scenario_ground, scenario_shape
from bayplan.simulate.fault_kinds import Fault, FaultKind, fault_of
from bayplan.simulate.scenario import Scenario
from bayplan.simulate.scenario_ground import NOTHING, Ground

_GZIP = b"\x1f\x8b"
SHIPPED = "day"
"""The scenario that `bayplan up` runs."""


class ScenarioError(FileError):
    """A scenario cannot be used."""

    code = "BP-X001"

    def __init__(self, message: str, *, kinds: Iterable[FaultKind] = (), hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.kinds = tuple(kinds)
        """Of each line of the message."""


def names() -> list[str]:
    """The scenarios that come with the package."""
    folder = importlib.resources.files("bayplan.simulate") / "scenarios"
    return sorted(place.name.removesuffix(".yaml") for place in folder.iterdir() if place.name.endswith(".yaml"))


def shipped(name: str = SHIPPED, ground: Ground = NOTHING) -> Scenario:
    """A scenario that comes with the package."""
    place = importlib.resources.files("bayplan.simulate") / "scenarios" / f"{name}.yaml"
    return parse_scenario(place.name, place.read_bytes(), ground)


def read_scenario(path: Path, ground: Ground = NOTHING) -> Scenario:
    """A scenario from a file. Raises ScenarioError, OSError."""
    text = path.read_bytes()
    if text.startswith(_GZIP):
        hint = f"bayplan simulate run SCENARIO --twin {path}, or bayplan simulate replay {path}"
        raise ScenarioError(f"{path}: a twin or a recording, no scenario", kinds=(FaultKind.YAML,), hint=hint)
    return parse_scenario(str(path), text, ground)


def parse_scenario(name: str, text: str | bytes, ground: Ground = NOTHING) -> Scenario:
    """A scenario from its text; `name` is what errors call it. Raises ScenarioError with every fault of one look.

    On the ground of a twin it comes without what is there already.
    """
    try:
        document = read_yaml(name, text)
    except FileError as fault:
        raise ScenarioError(fault.message, kinds=(FaultKind.YAML,), hint=fault.hint) from fault
    value = {} if document.value is None else document.value
    try:
        scenario: Scenario = scenario_shape.convert(value)
    except msgspec.ValidationError as error:
        found = [*scenario_shape.faults(value)] or [fault_of(error)]
        _refuse(document, found, hint="docs/simulate.md lists the keys")
    meant = [
        *scenario_ground.faults(scenario, ground),
        *scenario_faults.references(scenario, ground),
        *event_faults.references(scenario, ground),
    ]
    _refuse(document, [*meant, *scenario_faults.objects(scenario, {fault.path for fault in meant}, ground)])
    return scenario_ground.settled(scenario, ground)


def _refuse(document: Located, faults: Iterable[Fault], hint: str = "") -> None:
    told = {document.fault(fault.path, fault.message): fault.kind for fault in faults}
    if told:
        raise ScenarioError("\n".join(told), kinds=told.values(), hint=hint)


def json_schema() -> dict[str, Any]:
    """The JSON Schema (2020-12) of a scenario file."""
    schema = msgspec.json.schema(Scenario, schema_hook=_schema_of)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "bayplan scenario", **schema}


def _schema_of(kind: type) -> dict[str, Any]:
    if kind is Duration:
        return dict(Duration.schema)
    raise NotImplementedError
