"""A scenario's events in a few words: `power: fail 3 nodes for 40m`."""

from __future__ import annotations

from collections.abc import Iterator

from bayplan.simulate.entry import Entry
from bayplan.simulate.timeline import AddNodes, Bound, Deeds, Event, Fewer, Migrate, More, Pace, Pick, Resize, When

_VERBS = {"removeNodes": "remove"}
"""Of keys that are no verbs by themselves."""


def event_words(event: Event) -> str:
    """What an event is called and does."""
    did = deeds_words(event.do)
    return f"{event.name}: {did}" if event.name else did


def deeds_words(deeds: Deeds) -> str:
    """What is done."""
    return ", ".join(_deed(key, deed) for key, deed in deeds.each())


def condition_words(when: When) -> str:
    """What has to hold: `pending above 3 for 2m`."""
    parts = [f"{when.after} has happened"] if when.after else []
    parts += [f"{name} {_bound(bound)}" for name, bound in when.bounds()]
    return " and ".join(parts) + (f" for {when.for_}" if when.for_.micros else "")


def _bound(bound: Bound) -> str:
    given = (("above", bound.above), ("below", bound.below))
    return " and ".join(f"{word} {number:g}" for word, number in given if number is not None)


def _deed(key: str, deed: Entry) -> str:
    match deed:
        case Pick():
            return f"{_VERBS.get(key, key)} {' '.join(_picked(deed))}"
        case AddNodes(group=group, count=count):
            return f"add {_number(count, 'node')} of {group}"
        case More(workload=name, count=count):
            return f"create {count} of {name}"
        case Fewer(workload=name, count=most):
            return f"delete {'all' if most is None else most} of {name}"
        case Resize(workload=name, replicas=replicas):
            return f"scale {name} to {replicas}"
        case Pace(workload=name, factor=factor):
            return f"arrivals of {name} ×{factor:g}"
        case Migrate():
            ends = [f"{word} {node}" for word, node in (("from", deed.from_), ("to", deed.to)) if node]
            return " ".join([f"migrate {deed.count} of {deed.vms}", *ends])
        case _:
            raise TypeError(f"no words for {deed!r}")


def _picked(pick: Pick) -> Iterator[str]:
    if isinstance(pick.nodes, tuple):
        yield ", ".join(pick.nodes)
    else:
        yield "all nodes" if pick.nodes is None else _number(pick.nodes, "node")
    if pick.group:
        yield f"of {pick.group}"
    if pick.labels:
        yield "with " + ",".join(f"{name}={value}" for name, value in pick.labels.items())
    if pick.for_ is not None:
        yield f"for {pick.for_}"


def _number(count: int, what: str) -> str:
    return f"{count} {what}{'s' * (count != 1)}"
