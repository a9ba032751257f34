"""What is wrong with a scenario whose shape is right: names of nothing, keys that do not go together, refused objects.

An embedded API server is asked about each kind of object before any of them is wanted.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from bayplan.cluster.embedded.kubelet.behaviour import PREFIX, Defaults, manners
from bayplan.cluster.embedded.requests import WriteOptions
from bayplan.cluster.embedded.server import Server
from bayplan.cluster.embedded.world import World
from bayplan.cluster.kinds import NAMESPACE, PRIORITY_CLASS
from bayplan.model.clock import Instant
from bayplan.model.errors import ApiError
from bayplan.model.meta import ObjectMeta
from bayplan.model.pods import Pod
from bayplan.model.quantity import QuantityError, parse
from bayplan.simulate import manifests
from bayplan.simulate.entry import Amounts, Behaviour, Quantities
from bayplan.simulate.fault_kinds import Fault, FaultKind
from bayplan.simulate.scenario import FLAT, Arrivals, PriorityClass, Scenario, Team, VmGroup, Workload
from bayplan.simulate.scenario_ground import Ground
from bayplan.simulate.vm_pods import asked_faults, first_pod

_ASK = WriteOptions(dry_run=True, validation="Strict")
_SHOWN = 20
"""Names that are told where another was expected."""


def references(scenario: Scenario, ground: Ground) -> Iterator[Fault]:
    """Names that name nothing or two things, and keys that do not go together."""
    nodes = [*(name for group in scenario.nodes for name in group.node_names()), *ground.nodes]
    teams = [*dict.fromkeys((*(team.name for team in scenario.teams), *ground.namespaces))]
    yield from _budgets(scenario, teams)
    for key in ("nodes", "teams", "vms", "usageModels", "curves"):
        named = scenario.usage_models if key == "usageModels" else getattr(scenario, key)
        yield from twice(key, [each.name for each in named])
    for key in ("workloads", "budgets"):
        yield from twice(key, [f"{each.namespace}/{each.name}" for each in getattr(scenario, key)])
    yield from _amounts(scenario)
    yield from _curves(scenario)
    for index, workload in enumerate(scenario.workloads):
        for fault in (*_named_by(workload, scenario, teams), *_fitting(workload), *_behaviours(workload)):
            yield fault._replace(path=f"workloads[{index}]{fault.path}")
    for index, group in enumerate(scenario.vms):
        for fault in (*_named_by(group, scenario, teams), *_fitting_vms(group, nodes)):
            yield fault._replace(path=f"vms[{index}]{fault.path}")
    for index, model in enumerate(scenario.usage_models):
        yield from _said(model.behaviour(), f"usageModels[{index}]")
    yield from _outages(scenario, nodes)


def _outages(scenario: Scenario, nodes: list[str]) -> Iterator[Fault]:
    for index, outage in enumerate(scenario.outages):
        if outage.node not in nodes:
            yield one_of(f"outages[{index}].node", "a node", outage.node, nodes)
        if outage.every is not None and outage.every.micros <= outage.lasts.micros:
            yield Fault(f"outages[{index}].every", "expected more than lasts", FaultKind.VALUE)


def _budgets(scenario: Scenario, teams: list[str]) -> Iterator[Fault]:
    for index, budget in enumerate(scenario.budgets):
        path = f"budgets[{index}]"
        if budget.namespace not in teams:
            yield one_of(f"{path}.namespace", "a team", budget.namespace, teams)
        if (budget.min_available is None) == (budget.max_unavailable is None):
            yield Fault(path, "expected either minAvailable or maxUnavailable", FaultKind.TOGETHER)
        if bool(budget.workload) == bool(budget.selector):
            yield Fault(path, "expected either workload or selector", FaultKind.TOGETHER)
        vms = [each.name for each in scenario.vms if each.namespace == budget.namespace]
        known = [*(each.name for each in scenario.workloads if each.namespace == budget.namespace), *vms]
        if budget.workload and budget.workload not in known:
            yield one_of(f"{path}.workload", "a workload or VMs of the namespace", budget.workload, known)


def _curves(scenario: Scenario) -> Iterator[Fault]:
    for index, curve in enumerate(scenario.curves):
        if not any(curve.hours):
            yield Fault(f"curves[{index}].hours", "expected a level above 0 in some hour", FaultKind.VALUE)


def _amounts(scenario: Scenario) -> Iterator[Fault]:
    written: list[tuple[str, Quantities]] = []
    written += [(f"nodes[{index}].capacity", group.capacity) for index, group in enumerate(scenario.nodes)]
    written += [(f"teams[{index}].quota", team.quota) for index, team in enumerate(scenario.teams)]
    for index, workload in enumerate(scenario.workloads):
        for number, size in enumerate(workload.sizes):
            path = f"workloads[{index}].sizes[{number}].resources"
            written += [(f"{path}.{side}", given) for side, given in size.resources.items()]
    for index, group in enumerate(scenario.vms):
        for key, given in (("cpu", group.cpu), ("memory", group.memory)):
            path = f"vms[{index}]"
            if isinstance(given, Amounts):
                told = {"median": given.median, **({} if given.most is None else {"most": given.most})}
                written.append((f"{path}.{key}", told))
            else:
                written.append((path, {key: given}))
    for path, quantities in written:
        for resource, amount in quantities.items():
            if not _is_quantity(amount):
                message = f'expected a quantity such as 500m, 8 or 64Gi, got "{amount}"'
                yield Fault(f"{path}.{resource}", message, FaultKind.QUANTITY)


def _is_quantity(amount: object) -> bool:
    try:
        return parse(str(amount)).nanos >= 0
    except QuantityError:
        return False


def twice(path: str, names: list[str]) -> Iterator[Fault]:
    """Names that are given more than once."""
    for index, name in enumerate(names):
        if name and name in names[:index]:
            yield Fault(f"{path}[{index}].name", f'expected names that differ, got "{name}" twice', FaultKind.TWICE)


def _named_by(thing: Workload | VmGroup, scenario: Scenario, teams: list[str]) -> Iterator[Fault]:
    curves = [*(curve.name for curve in scenario.curves), FLAT]
    models = [model.name for model in scenario.usage_models]
    if thing.namespace not in teams:
        yield one_of(".namespace", "a team", thing.namespace, teams)
    if thing.usage and thing.usage not in models:
        yield one_of(".usage", "a usage model", thing.usage, models)
    for key in ("arrivals", "replicas", "rollouts"):
        timed = getattr(thing, key, None)
        if timed is not None and timed.curve not in curves:
            yield one_of(f".{key}.curve", "a curve", timed.curve, curves)
        if isinstance(timed, Arrivals):
            yield from _paced(f".{key}", timed)


def _paced(path: str, arrivals: Arrivals) -> Iterator[Fault]:
    if arrivals.per_hour is not None and arrivals.every is not None:
        yield Fault(f"{path}.every", "expected either perHour or every", FaultKind.TOGETHER)
    if arrivals.per_hour is None and arrivals.every is None and arrivals.count is None:
        yield Fault(path, "expected perHour, every or count", FaultKind.MISSING)
    if arrivals.every is not None and arrivals.every.micros == 0:
        yield Fault(f"{path}.every", "expected a span above 0", FaultKind.VALUE)
    if arrivals.curve != FLAT and arrivals.per_hour is None:
        yield Fault(f"{path}.curve", "expected with perHour", FaultKind.TOGETHER)


def _fitting(workload: Workload) -> Iterator[Fault]:
    if workload.kind in ("Pod", "Job") and workload.arrivals is None:
        yield Fault("", f"expected arrivals: a {workload.kind} ends, and others come after it", FaultKind.TOGETHER)
    if workload.replicas is not None and (workload.kind != "Deployment" or workload.arrivals is not None):
        message = "expected on a Deployment that is there from the start, and on nothing else"
        yield Fault(".replicas", message, FaultKind.TOGETHER)
    if workload.replicas is not None and workload.replicas.every.micros == 0:
        yield Fault(".replicas.every", "expected a span above 0", FaultKind.VALUE)
    if workload.rollouts is not None and (workload.kind in ("Pod", "Job") or workload.arrivals is not None):
        message = "expected on what is there from the start and has a template, and on nothing else"
        yield Fault(".rollouts", message, FaultKind.TOGETHER)


def _fitting_vms(group: VmGroup, nodes: list[str]) -> Iterator[Fault]:
    if not group.count and group.arrivals is None:
        yield Fault("", "expected count or arrivals: else there are none", FaultKind.MISSING)
    for index, name in enumerate(group.wished):
        if name not in nodes:
            yield one_of(f".wished[{index}]", "a node", name, nodes)
    for fault in asked_faults(group):
        yield fault._replace(path=f".{fault.path}")


def _behaviours(workload: Workload) -> Iterator[Fault]:
    yield from _said(workload.behaviour, ".behaviour")
    for index, mishap in enumerate(workload.mishaps):
        yield from _said(mishap.behaviour, f".mishaps[{index}].behaviour")


def _said(behaviour: Behaviour, path: str) -> Iterator[Fault]:
    annotations = {PREFIX + key: str(value) for key, value in behaviour.items()}
    for problem in manners(Pod(metadata=ObjectMeta(annotations=annotations)), Defaults()).problems:
        key = problem.annotation.removeprefix(PREFIX)
        message = f'expected {problem.expected}, got "{problem.value}"'
        yield Fault(f"{path}.{key}", message, FaultKind.BEHAVIOUR)


def one_of(path: str, what: str, given: str, known: list[str]) -> Fault:
    """A name that names nothing."""
    shown = known if len(known) <= _SHOWN else [*known[:_SHOWN], "..."]
    return Fault(path, f'expected {what} ({", ".join(shown) or "there is none"}), got "{given}"', FaultKind.NAME)


def objects(scenario: Scenario, wrong: Collection[str], ground: Ground) -> Iterator[Fault]:
    """What an API server says to each kind of object that the scenario would make; not of what is `wrong` already."""
    server = World([], seed=0, start=Instant(0)).server
    _furnish(server, scenario, ground)
    for number, team in enumerate(scenario.teams):
        if not _is_wrong(f"teams[{number}]", wrong):
            _have_namespace(server, team)
            for made in manifests.quota(team):
                yield from _asked(server, made, f"teams[{number}]", {"spec.hard": "quota"})
    for number, priority in enumerate(scenario.priority_classes):
        made = manifests.priority_class(priority)
        faults = [*_asked(server, made, f"priorityClasses[{number}]", {"metadata.": ""})]
        yield from faults
        if not faults:
            server.create(*made.request)
    for path, asked in _groups(server, scenario):
        if not _is_wrong(path, wrong):
            yield from asked


def _furnish(server: Server, scenario: Scenario, ground: Ground) -> None:
    """Give the server what is there already and the scenario does not name itself."""
    own = {team.name for team in scenario.teams}
    priorities = {each.name for each in scenario.priority_classes}
    for name in ground.namespaces:
        if name not in own:
            _have_namespace(server, Team(name=name))
    for name, value in ground.priorities.items():
        if name not in priorities and server.store.get(PRIORITY_CLASS, "", name) is None:
            server.create(*manifests.priority_class(PriorityClass(name=name, value=value)).request)


def _have_namespace(server: Server, team: Team) -> None:
    if server.store.get(NAMESPACE, "", team.name) is None:
        server.create(*manifests.namespace(team).request)


_NODE_FIELDS = {"spec.taints": "taints", "metadata.taints": "taints", "metadata.": "", "status.": ""}


def _groups(server: Server, scenario: Scenario) -> Iterator[tuple[str, Iterator[Fault]]]:
    """Nodes, workloads and VMs by path, and what the server would say; it is asked only then."""
    for number, group in enumerate(scenario.nodes):
        path = f"nodes[{number}]"
        yield path, _asked(server, manifests.node(group, f"{group.name}-1"), path, _NODE_FIELDS)
    for number, workload in enumerate(scenario.workloads):
        path = f"workloads[{number}]"
        yield path, _asked_workload(server, workload, path)
    for number, vms in enumerate(scenario.vms):
        path = f"vms[{number}]"
        yield path, _asked_vms(server, vms, scenario, path)
    for number, budget in enumerate(scenario.budgets):
        path = f"budgets[{number}]"
        yield path, _asked(server, manifests.budget(budget, scenario), path, {"spec.": "", "metadata.": ""})


def _asked_vms(server: Server, vms: VmGroup, scenario: Scenario, path: str) -> Iterator[Fault]:
    yield from _asked(server, first_pod(vms, scenario), path, {"spec.": "", "metadata.": ""})


def _is_wrong(path: str, wrong: Collection[str]) -> bool:
    return any(each.startswith(path) and each[len(path) : len(path) + 1] in ("", ".", "[") for each in wrong)


def _asked_workload(server: Server, workload: Workload, path: str) -> Iterator[Fault]:
    yield from _asked(server, manifests.workload(workload, workload.name), path, {})
    for index, size in enumerate(workload.sizes):
        made = manifests.workload(workload, workload.name, size=size)
        start = "spec" if workload.kind == "Pod" else "spec.template.spec"
        yield from _asked(server, made, path, {f"{start}.containers[0].resources": f"sizes[{index}].resources"})


def _asked(server: Server, made: manifests.Made, path: str, fields: Mapping[str, str]) -> Iterator[Fault]:
    """The API server's refusals as faults. `fields`: where the scenario writes what the object has elsewhere."""
    try:
        server.create(*made.request, _ASK)
    except ApiError as error:
        if not error.causes:
            yield Fault(path, error.message, FaultKind.OBJECT)
        for cause in error.causes:
            yield Fault(f"{path}.{_own_path(cause.field, fields)}", cause.message, FaultKind.OBJECT)


def _own_path(field: str, fields: Mapping[str, str]) -> str:
    for theirs, ours in fields.items():
        if field.startswith(theirs):
            return ours + field.removeprefix(theirs)
    return field
