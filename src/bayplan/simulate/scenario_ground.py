"""What a scenario finds where it is put: nothing at all, or the cluster of a twin.

On a twin a scenario may name what is there already: its nodes, its namespaces, its workloads. What the scenario asks
for beside that is made; a team whose namespace is there, or a priority class, is not made twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec
from msgspec.structs import replace

from bayplan.cluster.embedded.kubelet.behaviour import USUAL
from bayplan.cluster.kinds import DAEMON_SET, DEPLOYMENT, JOB, NAMESPACE, NODE, PRIORITY_CLASS, STATEFUL_SET, Kind
from bayplan.model.policies import PriorityClass
from bayplan.service.durations import Duration
from bayplan.simulate.entry import Behaviour
from bayplan.simulate.fault_kinds import Fault, FaultKind
from bayplan.simulate.scenario import Scenario, Workload
from bayplan.simulate.twin.snapshot import Snapshot

_WORKLOADS = (JOB, DAEMON_SET, STATEFUL_SET, DEPLOYMENT)
SCALABLE = (DEPLOYMENT, STATEFUL_SET)


class Ground(msgspec.Struct, frozen=True):
    """What is there before a scenario begins."""

    nodes: tuple[str, ...] = ()
    namespaces: tuple[str, ...] = ()
    priorities: Mapping[str, int] = {}
    """The values of priority classes."""
    workloads: Mapping[str, Kind] = {}
    """By namespace and name, with a slash."""
    is_twin: bool = False


NOTHING = Ground()


def ground_of(snapshot: Snapshot) -> Ground:
    """What a twin brings."""
    classes = [item.view(PriorityClass) for item in snapshot.of(PRIORITY_CLASS)]
    return Ground(
        tuple(item.name for item in snapshot.of(NODE)),
        tuple(item.name for item in snapshot.of(NAMESPACE)),
        {each.metadata.name: each.value for each in classes},
        {f"{item.namespace}/{item.name}": kind for kind in _WORKLOADS for item in snapshot.of(kind)},
        is_twin=True,
    )


def faults(scenario: Scenario, ground: Ground) -> Iterator[Fault]:
    """What there is too little of, or twice."""
    if not ground.is_twin and not scenario.node_count:
        yield Fault("nodes", "expected nodes, unless the scenario is put to a twin (--twin)", FaultKind.MISSING)
    for index, group in enumerate(scenario.nodes):
        for name in sorted({*group.node_names()} & {*ground.nodes}):
            yield Fault(f"nodes[{index}].name", f'the twin has a node "{name}" already', FaultKind.TWICE)
    for index, team in enumerate(scenario.teams):
        if team.name in ground.namespaces and team.quota:
            message = f'expected none: the twin has the namespace "{team.name}", and its own quotas hold'
            yield Fault(f"teams[{index}].quota", message, FaultKind.TOGETHER)
    for index, priority in enumerate(scenario.priority_classes):
        there = ground.priorities.get(priority.name, priority.value)
        if there != priority.value:
            yield Fault(f"priorityClasses[{index}].value", f"the twin has it with {there}", FaultKind.TWICE)
    for index, workload in enumerate(scenario.workloads):
        full = f"{workload.namespace}/{workload.name}"
        if workload.arrivals is None and full in ground.workloads:
            yield Fault(f"workloads[{index}].name", f'the twin has "{full}" already', FaultKind.TWICE)


def settled(scenario: Scenario, ground: Ground) -> Scenario:
    """The scenario as it is to be made there: without what is there, and with ends for what is to end.

    On a twin, pods that do not say how long they run never end (twin.filling); those of a scenario do, as anywhere.
    """
    if not ground.is_twin:
        return scenario
    return replace(
        scenario,
        teams=tuple(each for each in scenario.teams if each.name not in ground.namespaces),
        priority_classes=tuple(each for each in scenario.priority_classes if each.name not in ground.priorities),
        workloads=tuple(map(_ending, scenario.workloads)),
    )


def _ending(workload: Workload) -> Workload:
    return replace(
        workload,
        behaviour=_ends(workload.behaviour, workload.kind == "Job"),
        mishaps=tuple(replace(each, behaviour=_ends(each.behaviour)) for each in workload.mishaps),
    )


def _ends(behaviour: Behaviour, always: bool = False) -> Behaviour:
    if not always and "exit-code" not in behaviour:
        return behaviour
    return {"run-for": str(Duration(USUAL.run)), **behaviour}
