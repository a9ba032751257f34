"""What is wrong with a scenario whose shape is right: names of nothing, keys that do not go together, refused objects.

An embedded API server is asked about each kind of object before any of them is wanted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from bayplan.cluster.embedded.kubelet.behaviour import PREFIX, Defaults, manners
from bayplan.cluster.embedded.requests import WriteOptions
from bayplan.cluster.embedded.server import Server
from bayplan.cluster.embedded.world import World
from bayplan.model.clock import Instant
from bayplan.model.errors import ApiError
from bayplan.model.meta import ObjectMeta
from bayplan.model.pods import Pod
from bayplan.model.quantity import QuantityError, parse
from bayplan.simulate import manifests
from bayplan.simulate.scenario import FLAT, Behaviour, Quantities, Scenario, Workload

Fault = tuple[str, str]
"""A path and what is wrong there."""

_ASK = WriteOptions(dry_run=True, validation="Strict")


def references(scenario: Scenario) -> Iterator[Fault]:
    """Names that name nothing or two things, and keys that do not go together."""
    nodes = [name for group in scenario.nodes for name in group.node_names()]
    yield from _twice("nodes", [group.name for group in scenario.nodes])
    yield from _twice("teams", [team.name for team in scenario.teams])
    yield from _twice("workloads", [f"{each.namespace}/{each.name}" for each in scenario.workloads])
    yield from _amounts(scenario)
    yield from _twice("curves", [curve.name for curve in scenario.curves])
    for index, curve in enumerate(scenario.curves):
        if not any(curve.hours):
            yield f"curves[{index}].hours", "expected a level above 0 in some hour"
    for index, workload in enumerate(scenario.workloads):
        for path, message in (*_named_by(workload, scenario), *_fitting(workload), *_behaviours(workload)):
            yield f"workloads[{index}]{path}", message
    for index, outage in enumerate(scenario.outages):
        if outage.node not in nodes:
            yield f"outages[{index}].node", _one_of("a node", outage.node, nodes)


def _amounts(scenario: Scenario) -> Iterator[Fault]:
    written: list[tuple[str, Quantities]] = []
    written += [(f"nodes[{index}].capacity", group.capacity) for index, group in enumerate(scenario.nodes)]
    written += [(f"teams[{index}].quota", team.quota) for index, team in enumerate(scenario.teams)]
    for index, workload in enumerate(scenario.workloads):
        for number, size in enumerate(workload.sizes):
            path = f"workloads[{index}].sizes[{number}].resources"
            written += [(f"{path}.{side}", given) for side, given in size.resources.items()]
    for path, quantities in written:
        for resource, amount in quantities.items():
            try:
                parse(str(amount))
            except QuantityError:
                yield f"{path}.{resource}", f'expected a quantity such as 500m, 8 or 64Gi, got "{amount}"'


def _twice(path: str, names: list[str]) -> Iterator[Fault]:
    for index, name in enumerate(names):
        if name in names[:index]:
            yield f"{path}[{index}].name", f'expected names that differ, got "{name}" twice'


def _named_by(workload: Workload, scenario: Scenario) -> Iterator[Fault]:
    teams, curves = [team.name for team in scenario.teams], [*(curve.name for curve in scenario.curves), FLAT]
    if workload.namespace not in teams:
        yield ".namespace", _one_of("a team", workload.namespace, teams)
    for key in ("arrivals", "replicas", "rollouts"):
        timed = getattr(workload, key)
        if timed is not None and timed.curve not in curves:
            yield f".{key}.curve", _one_of("a curve", timed.curve, curves)


def _fitting(workload: Workload) -> Iterator[Fault]:
    if workload.kind in ("Pod", "Job") and workload.arrivals is None:
        yield "", f"expected arrivals: a {workload.kind} ends, and others come after it"
    if workload.replicas is not None and (workload.kind != "Deployment" or workload.arrivals is not None):
        yield ".replicas", "expected on a Deployment that is there from the start, and on nothing else"
    if workload.rollouts is not None and (workload.kind in ("Pod", "Job") or workload.arrivals is not None):
        yield ".rollouts", "expected on what is there from the start and has a template, and on nothing else"


def _behaviours(workload: Workload) -> Iterator[Fault]:
    said: list[tuple[str, Behaviour]] = [("", workload.behaviour)]
    said += [(f".mishaps[{index}]", mishap.behaviour) for index, mishap in enumerate(workload.mishaps)]
    for path, behaviour in said:
        annotations = {PREFIX + key: str(value) for key, value in behaviour.items()}
        for problem in manners(Pod(metadata=ObjectMeta(annotations=annotations)), Defaults()).problems:
            key = problem.annotation.removeprefix(PREFIX)
            yield f"{path}.behaviour.{key}", f'expected {problem.expected}, got "{problem.value}"'


def _one_of(what: str, given: str, known: list[str]) -> str:
    return f'expected {what} ({", ".join(known) or "there is none"}), got "{given}"'


def objects(scenario: Scenario) -> Iterator[Fault]:
    """What an API server says to each kind of object that the scenario would make."""
    server = World([], seed=0, start=Instant(0)).server
    for number, team in enumerate(scenario.teams):
        server.create(*manifests.namespace(team).request)
        for made in manifests.quota(team):
            yield from _asked(server, made, f"teams[{number}]", {"spec.hard": "quota"})
    for number, group in enumerate(scenario.nodes):
        made = manifests.node(group, f"{group.name}-1")
        fields = {"spec.taints": "taints", "metadata.taints": "taints", "metadata.": "", "status.": ""}
        yield from _asked(server, made, f"nodes[{number}]", fields)
    for number, priority in enumerate(scenario.priority_classes):
        made = manifests.priority_class(priority)
        faults = [*_asked(server, made, f"priorityClasses[{number}]", {"metadata.": ""})]
        yield from faults
        if not faults:
            server.create(*made.request)
    for number, workload in enumerate(scenario.workloads):
        path = f"workloads[{number}]"
        yield from _asked(server, manifests.workload(workload, workload.name), path, {})
        for index, size in enumerate(workload.sizes):
            made = manifests.workload(workload, workload.name, resources=size.resources)
            start = "spec" if workload.kind == "Pod" else "spec.template.spec"
            yield from _asked(server, made, path, {f"{start}.containers[0].resources": f"sizes[{index}].resources"})


def _asked(server: Server, made: manifests.Made, path: str, fields: Mapping[str, str]) -> Iterator[Fault]:
    """The API server's refusals as faults. `fields`: where the scenario writes what the object has elsewhere."""
    try:
        server.create(*made.request, _ASK)
    except ApiError as error:
        if not error.causes:
            yield path, error.message
        for cause in error.causes:
            yield f"{path}.{_own_path(cause.field, fields)}", cause.message


def _own_path(field: str, fields: Mapping[str, str]) -> str:
    for theirs, ours in fields.items():
        if field.startswith(theirs):
            return ours + field.removeprefix(theirs)
    return field
