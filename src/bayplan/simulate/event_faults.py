"""What is wrong with a scenario's events: names of nothing, keys that do not go together, circles."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from bayplan.cluster.kinds import Kind
from bayplan.simulate.fault_kinds import Fault, FaultKind
from bayplan.simulate.scenario import Arrivals, Scenario, VmGroup
from bayplan.simulate.scenario_faults import one_of, twice
from bayplan.simulate.scenario_ground import SCALABLE, Ground
from bayplan.simulate.timeline import (
    SHARES,
    AddNodes,
    Bound,
    Deeds,
    Event,
    Fewer,
    Migrate,
    More,
    Pace,
    Pick,
    Resize,
    When,
)

_LEAST_EVERY = 1_000_000
_UNDONE = ("fail", "cordon")
_DIGITS = 10
"""More than any number of a group has."""


def references(scenario: Scenario, ground: Ground) -> Iterator[Fault]:
    """Every fault of the events."""
    events = scenario.events
    yield from twice("events", [event.name for event in events])
    names = [event.name for event in events if event.name]
    for index, event in enumerate(events):
        path = f"events[{index}]"
        yield from _timing(path, event, names)
        if not any(event.do.each()):
            yield Fault(f"{path}.do", f"expected one of {', '.join(_KEYS)}", FaultKind.MISSING)
        for key, deed in event.do.each():
            yield from _named(f"{path}.do.{key}", key, deed, scenario, ground)
    yield from _circles(events)


_KEYS = [field.encode_name for field in msgspec.structs.fields(Deeds)]


def _timing(path: str, event: Event, names: list[str]) -> Iterator[Fault]:
    if (event.at is None) == (event.when is None):
        yield Fault(path, "expected either at or when", FaultKind.TOGETHER)
    if event.every is not None and event.every.micros < _LEAST_EVERY:
        yield Fault(f"{path}.every", "expected at least 1s: it would never end", FaultKind.VALUE)
    if event.times is not None and event.every is None:
        yield Fault(f"{path}.times", "expected with every: without it an event happens once", FaultKind.TOGETHER)
    if event.when is not None:
        yield from _condition(path, event, event.when, names)


def _condition(path: str, event: Event, when: When, names: list[str]) -> Iterator[Fault]:
    if not when.after and not any(when.bounds()):
        yield Fault(f"{path}.when", "expected something that has to hold", FaultKind.MISSING)
    if when.after and when.after not in names:
        yield one_of(f"{path}.when.after", "an event's name", when.after, names)
    if when.after and event.every is not None:
        yield Fault(f"{path}.every", "expected without after: an event has happened for good", FaultKind.TOGETHER)
    for key, bound in when.bounds():
        if bound.above is None and bound.below is None:
            yield Fault(f"{path}.when.{key}", "expected above or below", FaultKind.MISSING)
        elif bound.above is not None and bound.below is not None and bound.above >= bound.below:
            yield Fault(f"{path}.when.{key}", "expected above to be less than below", FaultKind.TOGETHER)
        if key in SHARES:
            yield from _shares(f"{path}.when.{key}", bound)


def _shares(path: str, bound: Bound) -> Iterator[Fault]:
    """What could never hold, or always: requests are never more than all there is."""
    for side, number in (("above", bound.above), ("below", bound.below)):
        if number is not None and not 0 <= number <= 1:
            message = f"expected a share of all nodes', 0 to 1, got {number:g}"
            yield Fault(f"{path}.{side}", message, FaultKind.VALUE)


def _named(path: str, key: str, deed: object, scenario: Scenario, ground: Ground) -> Iterator[Fault]:
    groups = [group.name for group in scenario.nodes]
    match deed:
        case Pick():
            yield from _picked(path, key, deed, groups, ground)
        case AddNodes(group=group) if group not in groups:
            yield one_of(f"{path}.group", "a group of nodes", group, groups)
        case Migrate():
            vms = [each.name for each in scenario.vms]
            if deed.vms not in vms and not any(_is_one_of(deed.vms, each) for each in scenario.vms):
                yield one_of(f"{path}.vms", "VMs", deed.vms, vms)
            for end, name in (("from", deed.from_), ("to", deed.to)):
                if name and not _is_node(name, groups, ground):
                    yield one_of(f"{path}.{end}", "a node", name, [*_nodes(scenario), *ground.nodes])
        case More() | Fewer() | Resize() | Pace():
            yield from _of_workload(path, deed, scenario, ground)
        case _:
            pass


def _picked(path: str, key: str, pick: Pick, groups: list[str], ground: Ground) -> Iterator[Fault]:
    if pick.group and pick.group not in groups:
        yield one_of(f"{path}.group", "a group of nodes", pick.group, groups)
    for index, name in enumerate(pick.nodes if isinstance(pick.nodes, tuple) else ()):
        if not _is_node(name, groups, ground):
            where = "of a group, or of the twin" if ground.is_twin else "of a group"
            yield Fault(f"{path}.nodes[{index}]", f'expected a node {where}, got "{name}"', FaultKind.NAME)
    for narrower in ("group", "labels") if isinstance(pick.nodes, tuple) else ():
        if getattr(pick, narrower):
            yield Fault(f"{path}.{narrower}", f"expected either names of nodes or {narrower}", FaultKind.TOGETHER)
    if pick.for_ is not None and key not in _UNDONE:
        yield Fault(f"{path}.for", f"expected with {' and '.join(_UNDONE)} only", FaultKind.TOGETHER)


def _is_one_of(name: str, group: VmGroup) -> bool:
    """Whether a VM of a group has the name from the start."""
    of, _, number = name.rpartition("-")
    plain = number.isascii() and number.isdecimal() and not number.startswith("0")
    return of == group.name and plain and len(number) < _DIGITS and int(number) <= group.count


def _is_node(name: str, groups: list[str], ground: Ground) -> bool:
    """Whether it may be one: nodes that are added have later numbers."""
    group, _, number = name.rpartition("-")
    return (group in groups and number.isdecimal() and number != "0") or name in ground.nodes


def _nodes(scenario: Scenario) -> list[str]:
    return [name for group in scenario.nodes for name in group.node_names()]


def _of_workload(path: str, deed: More | Fewer | Resize | Pace, scenario: Scenario, ground: Ground) -> Iterator[Fault]:
    if (there := ground.workloads.get(deed.workload)) is not None:
        yield from _of_twin(path, deed, there)
        return
    found = [each for each in scenario.workloads if deed.workload in (each.name, f"{each.namespace}/{each.name}")]
    vms = [each for each in scenario.vms if each.name == deed.workload]
    if len(found) + len(vms) != 1:
        known = [f"{each.namespace}/{each.name}" for each in scenario.workloads] + [each.name for each in scenario.vms]
        yield one_of(f"{path}.workload", "one workload", deed.workload, [*known, *ground.workloads])
        return
    arrivals = (found or vms)[0].arrivals
    arrives = arrivals is not None
    if isinstance(deed, Pace):
        yield from _paced(path, arrivals)
    if isinstance(deed, More | Fewer) and found and not arrives:
        yield Fault(f"{path}.workload", "expected a workload with arrivals; scale suits this one", FaultKind.TOGETHER)
    if isinstance(deed, Resize) and (arrives or not found or found[0].kind not in ("Deployment", "StatefulSet")):
        message = "expected a Deployment or StatefulSet that is there from the start"
        yield Fault(f"{path}.workload", message, FaultKind.TOGETHER)


def _paced(path: str, arrivals: Arrivals | None) -> Iterator[Fault]:
    if arrivals is None:
        yield Fault(f"{path}.workload", "expected a workload with arrivals", FaultKind.TOGETHER)
    elif arrivals.per_hour is None and arrivals.every is None:
        message = "expected a workload whose arrivals have perHour or every"
        yield Fault(f"{path}.workload", message, FaultKind.TOGETHER)


def _of_twin(path: str, deed: More | Fewer | Resize | Pace, kind: Kind) -> Iterator[Fault]:
    """A workload of the twin is one object: it can be scaled or deleted, and that is all."""
    if isinstance(deed, Resize) and kind in SCALABLE:
        return
    if not isinstance(deed, Fewer):
        message = f"expected a workload of the scenario: the twin's {kind.name} can be deleted"
        yield Fault(f"{path}.workload", message + (" or scaled" if kind in SCALABLE else ""), FaultKind.TOGETHER)
    elif deed.count is not None:
        yield Fault(f"{path}.count", "expected none: the twin's workload goes as a whole", FaultKind.TOGETHER)


def _circles(events: tuple[Event, ...]) -> Iterator[Fault]:
    """Events that wait for one another: told once, where it is closed."""
    waits = {event.name: event.when.after for event in events if event.name and event.when and event.when.after}
    told: set[str] = set()
    for index, event in enumerate(events):
        trail = [event.name]
        while (following := waits.get(trail[-1])) and following not in trail:
            trail.append(following)
        if following == event.name and not told & set(trail):
            told |= set(trail)
            circle = " waits for ".join([*trail, event.name])
            yield Fault(f"events[{index}].when.after", f"expected no circle: {circle}", FaultKind.CIRCLE)
