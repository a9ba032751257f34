"""Reading a scenario: the file's words become structs, or the file is refused with line and path.

Three looks: the shape (msgspec), the references between entries, and the objects themselves, which an embedded API
server is asked about before any of them is wanted.
"""

from __future__ import annotations

import importlib.resources
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from bayplan.cluster.embedded.requests import WriteOptions
from bayplan.cluster.embedded.server import Server
from bayplan.cluster.embedded.world import World
from bayplan.model.clock import Instant
from bayplan.model.errors import ApiError
from bayplan.service.durations import Duration
from bayplan.service.yaml_lines import FileFault, Located, read_yaml
from bayplan.simulate import manifests
from bayplan.simulate.scenario import FLAT, Scenario, Workload

SHIPPED = "day"
"""The scenario that comes with the package."""

_AT = re.compile(r"(?s)(.*) - at (?:`key` in )?`\$\.?(.*)`")
_UNKNOWN = re.compile(r"Object contains unknown field `(.*)`")
_TRUSTED = WriteOptions(dry_run=True, validation="Strict")

Fault = tuple[str, str]
"""A path and what is wrong there."""


class ScenarioError(FileFault):
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
    except FileFault as fault:
        raise ScenarioError(fault.message, hint=fault.hint) from fault
    try:
        scenario = msgspec.convert({} if document.value is None else document.value, Scenario, dec_hook=_duration)
    except msgspec.ValidationError as error:
        raise ScenarioError(document.fault(*_shape_fault(str(error))), hint="docs/up.md lists the keys") from error
    _refuse(document, _references(scenario))
    _refuse(document, _objects(scenario))
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
    told = [document.fault(path, message) for path, message in faults]
    if told:
        raise ScenarioError("\n".join(told))


def _references(scenario: Scenario) -> Iterator[Fault]:
    teams = [team.name for team in scenario.teams]
    curves = [*scenario.curves, FLAT]
    nodes = [name for group in scenario.nodes for name in group.node_names()]
    for path, names in (("nodes", [group.name for group in scenario.nodes]), ("teams", teams)):
        for index, name in enumerate(names):
            if name in names[:index]:
                yield f"{path}[{index}].name", f'expected names that differ, got "{name}" twice'
    for name, hours in scenario.curves.items():
        if not any(hours):
            yield f"curves.{name}", "expected a level above 0 in some hour"
    seen: set[tuple[str, str]] = set()
    for index, workload in enumerate(scenario.workloads):
        path = f"workloads[{index}]"
        if workload.namespace not in teams:
            yield f"{path}.namespace", _one_of("a team", workload.namespace, teams)
        if (workload.namespace, workload.name) in seen:
            yield f"{path}.name", f'expected names that differ within a team, got "{workload.name}" twice'
        seen.add((workload.namespace, workload.name))
        for key in ("arrivals", "replicas", "rollouts"):
            timed = getattr(workload, key)
            if timed is not None and timed.curve not in curves:
                yield f"{path}.{key}.curve", _one_of("a curve", timed.curve, curves)
        yield from _of_workload(path, workload)
    for index, outage in enumerate(scenario.outages):
        if outage.node not in nodes:
            yield f"outages[{index}].node", _one_of("a node", outage.node, nodes)


def _of_workload(path: str, workload: Workload) -> Iterator[Fault]:
    if workload.kind in ("Pod", "Job") and workload.arrivals is None:
        yield path, f"expected arrivals: a {workload.kind} ends, and others come after it"
    if workload.replicas is not None and (workload.kind != "Deployment" or workload.arrivals is not None):
        yield f"{path}.replicas", "expected on a Deployment that is there from the start, and on nothing else"
    if workload.rollouts is not None and workload.kind in ("Pod", "Job"):
        yield f"{path}.rollouts", f"expected on what has a template to change, which a {workload.kind} has not"


def _one_of(what: str, given: str, known: list[str]) -> str:
    return f'expected {what} ({", ".join(known) or "there is none"}), got "{given}"'


def _objects(scenario: Scenario) -> Iterator[Fault]:
    """What an API server says to each kind of object that the scenario would make."""
    server = World([], seed=0, start=Instant(0)).server
    for number, team in enumerate(scenario.teams):
        yield from _asked(server, manifests.namespace(team), f"teams[{number}]", {})
        server.create(*manifests.namespace(team).request)
        for made in manifests.quota(team):
            yield from _asked(server, made, f"teams[{number}]", {"spec.hard": "quota"})
    for number, group in enumerate(scenario.nodes):
        fields = {"spec.taints": "taints", "metadata.taints": "taints", "metadata": "", "status": ""}
        yield from _asked(server, manifests.node(group, f"{group.name}-1"), f"nodes[{number}]", fields)
    for number, priority in enumerate(scenario.priority_classes):
        made = manifests.priority_class(priority)
        faults = [*_asked(server, made, f"priorityClasses[{number}]", {"": ""})]
        yield from faults
        if not faults:
            server.create(*made.request)
    for number, workload in enumerate(scenario.workloads):
        path = f"workloads[{number}]"
        yield from _asked(server, manifests.workload(workload, "x"), path, {})
        for index, size in enumerate(workload.sizes):
            sized = manifests.workload(workload, "x", resources=size.resources)
            yield from _asked(server, sized, path, {"resources": f"sizes[{index}].resources"})


def _asked(server: Server, made: manifests.Made, path: str, fields: dict[str, str]) -> Iterator[Fault]:
    """The API server's refusals as faults. `fields`: where the scenario writes what the object has elsewhere."""
    try:
        server.create(*made.request, _TRUSTED)
    except ApiError as error:
        if not error.causes:
            yield path, error.message
        for cause in error.causes:
            yield f"{path}.{_own_path(cause.field, fields)}".rstrip("."), cause.message


def _own_path(field: str, fields: dict[str, str]) -> str:
    for theirs, ours in fields.items():
        before, found, after = field.partition(theirs)
        if found:
            return ours + after if theirs == "resources" or not before else field
    return field
