"""What happens in a scenario beside its load: events at a time, after another event, or while something holds.

An event happens once, or again and again with `every`; never twice at one instant, so events that set off one another
come to an end there. `after` names another event; a circle of those would never begin, and is refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from bayplan.service.durations import Duration
from bayplan.simulate.entry import Count, Entry, Name, Some

SHARES = ("cpu", "memory", "gpu")
METRICS = ("pending", "running", "failed", "nodes", *SHARES)
"""What conditions can be about."""


class Bound(Entry, frozen=True):
    """A limit that is passed."""

    above: float | None = None
    below: float | None = None

    def holds(self, value: float) -> bool:
        """Whether a value lies beyond it."""
        return (self.above is None or value > self.above) and (self.below is None or value < self.below)


class When(Entry, frozen=True):
    """All of it has to hold, for so long."""

    after: str = ""
    """An event that has happened."""
    pending: Bound | None = None
    """Pods without a node."""
    running: Bound | None = None
    failed: Bound | None = None
    """Pods that have failed so far, unless they were being deleted."""
    nodes: Bound | None = None
    """Nodes that are ready."""
    cpu: Bound | None = None
    """The share of all nodes' CPU that is requested, 0 to 1; so for memory and GPUs."""
    memory: Bound | None = None
    gpu: Bound | None = None
    for_: Duration = msgspec.field(default_factory=lambda: Duration(0), name="for")

    def bounds(self) -> Iterator[tuple[str, Bound]]:
        """The limits by what they are about."""
        for name in METRICS:
            if (bound := getattr(self, name)) is not None:
                yield name, bound


class Pick(Entry, frozen=True):
    """Nodes: by name, so many by chance, or all; of one group, with some labels, or of the whole cluster."""

    nodes: Some | tuple[str, ...] | None = None
    group: str = ""
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    for_: Duration | None = msgspec.field(default=None, name="for")
    """With `fail` and `cordon`: after that it is undone."""


class AddNodes(Entry, frozen=True):
    """More nodes of a group."""

    group: str
    count: Some


class More(Entry, frozen=True):
    """So many more of a workload or of VMs."""

    workload: str
    count: Some = 1


class Fewer(Entry, frozen=True):
    """So many of a workload or of VMs are deleted, the oldest first; without a count all of them."""

    workload: str
    count: Some | None = None


class Resize(Entry, frozen=True):
    """Another number of replicas."""

    workload: str
    replicas: Count


class Pace(Entry, frozen=True):
    """Arrivals come so many times as often as the workload says; 0: none."""

    workload: str
    factor: Annotated[float, Meta(ge=0, le=1000)]


class Migrate(Entry, frozen=True):
    """VMs go to another node, which the scheduler chooses; `to` is a wish."""

    vms: str
    count: Some = 1
    from_: str = msgspec.field(default="", name="from")
    to: str = ""
    budget: Literal["wait", "fail"] = "wait"
    """What to do while a disruption budget forbids it."""


class Deeds(Entry, frozen=True):
    """What is done, in this order."""

    fail: Pick | None = None
    """Kubelets fall silent."""
    recover: Pick | None = None
    cordon: Pick | None = None
    uncordon: Pick | None = None
    drain: Pick | None = None
    """Cordoned, and the pods evicted as their budgets allow, all but those of DaemonSets; VMs migrate."""
    remove_nodes: Pick | None = None
    add_nodes: AddNodes | None = None
    create: More | None = None
    delete: Fewer | None = None
    scale: Resize | None = None
    arrivals: Pace | None = None
    migrate: Migrate | None = None

    def each(self) -> Iterator[tuple[str, Entry]]:
        """What there is to do, by key."""
        for field in msgspec.structs.fields(self):
            if (deed := getattr(self, field.name)) is not None:
                yield field.encode_name, deed


class Event(Entry, frozen=True):
    """Something that happens `at` a time, or `when` something holds."""

    do: Deeds
    name: Annotated[str, Meta(max_length=40)] = ""
    at: Duration | None = None
    when: When | None = None
    every: Duration | None = None
    """Again, no sooner than after that."""
    times: Some | None = None
    """No more often than that."""


class Usage(Entry, frozen=True):
    """What pods use, as curves (docs/behaviour.md)."""

    name: Name
    cpu: str = ""
    memory: str = ""
    gpu: str = ""

    def behaviour(self) -> dict[str, str | int]:
        """As annotations without their prefix."""
        return {key: text for key in ("cpu", "memory", "gpu") if (text := getattr(self, key))}
