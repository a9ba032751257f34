"""What a scenario says: the nodes, the teams, what they run and when, what breaks.

Keys are Kubernetes' where Kubernetes has them: a workload embeds the real `spec` of its kind. What is added is chance
and time: how often something arrives, how large it is, how long it runs, what goes wrong. All times count from the
scenario's start, which is midnight of its first day.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from bayplan.model.quantity import Quantity, parse
from bayplan.service.durations import Duration
from bayplan.simulate.entry import (
    Amounts,
    Behaviour,
    Count,
    Entry,
    Level,
    Name,
    Positive,
    Quantities,
    Share,
    Some,
    Spread,
    span,
)
from bayplan.simulate.timeline import Event, Usage
from bayplan.simulate.vms.precopy import NETWORK, Network

FLAT = "flat"


class NodeGroup(Entry, frozen=True):
    """Nodes of one shape, named `NAME-1`, `NAME-2`, ..."""

    name: Name
    count: Count
    """None: there is none until an event adds some."""
    capacity: Quantities
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    taints: tuple[dict[str, str], ...] = ()

    def node_names(self) -> list[str]:
        """The names of its nodes."""
        return [f"{self.name}-{number}" for number in range(1, self.count + 1)]


class Team(Entry, frozen=True):
    """A team owns the namespace of its name. `quota` is a ResourceQuota's `hard`."""

    name: Name
    quota: Quantities = msgspec.field(default_factory=dict)


class PriorityClass(Entry, frozen=True):
    """A scheduling.k8s.io/v1 PriorityClass."""

    name: Name
    value: int
    preemption_policy: Literal["PreemptLowerPriority", "Never"] = "PreemptLowerPriority"


class Curve(Entry, frozen=True):
    """A day as 24 levels from 0 to 1, one for each hour's beginning; between them it is straight."""

    name: Name
    hours: Annotated[tuple[Level, ...], Meta(min_length=24, max_length=24)]


class Arrivals(Entry, frozen=True):
    """How something comes: by chance, so many an hour on average while the curve is at 1; or at equal distances.

    With neither, all `count` of them come at once.
    """

    per_hour: Positive | None = None
    every: Duration | None = None
    count: Some | None = None
    """So many in all."""
    start: Duration = span("0s")
    """None comes before."""
    curve: str = FLAT


class Size(Entry, frozen=True):
    """One size of a workload, with the share of arrivals that have it: resources of the first container."""

    share: Positive
    resources: dict[str, Quantities] = msgspec.field(default_factory=dict)
    gpu_milli: Annotated[int, Meta(ge=1, le=999)] | None = None
    """Thousandths of one GPU, which its pods share with others."""


class Mishap(Entry, frozen=True):
    """What goes wrong with a share of arrivals."""

    share: Level
    behaviour: Behaviour
    lifetime: Spread | None = None
    """When somebody notices and deletes it."""


class Daily(Entry, frozen=True):
    """Replicas that follow the day."""

    low: Count
    high: Count
    curve: str
    every: Duration = span("10m")
    """How often the number is looked at."""


class Workload(Entry, frozen=True):
    """Something a team runs: once from the start, or with `arrivals` a new one each time, `NAME-1`, `NAME-2`, ..."""

    name: Name
    namespace: str
    kind: Literal["Pod", "Job", "Deployment", "StatefulSet", "DaemonSet"]
    spec: dict[str, Any]
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    """Labels of its pods, beside `app`."""
    annotations: dict[str, str] = msgspec.field(default_factory=dict)
    """Annotations of its pods."""
    behaviour: Behaviour = msgspec.field(default_factory=dict)
    arrivals: Arrivals | None = None
    sizes: tuple[Size, ...] = ()
    run_time: Spread | None = None
    lifetime: Spread | None = None
    """After that it is deleted."""
    mishaps: tuple[Mishap, ...] = ()
    replicas: Daily | None = None
    rollouts: Arrivals | None = None
    """When its template is changed."""
    usage: str = ""
    """What its pods use, by the name of a usage model."""


class VmGroup(Entry, frozen=True):
    """VMs of one sort, `NAME-1`, `NAME-2`, ...: constraints as in a pod's spec."""

    name: Name
    namespace: str
    cpu: str | int | float | Amounts
    """Cores."""
    memory: str | int | float | Amounts
    count: Count = 0
    """There from the start."""
    arrivals: Arrivals | None = None
    dirty_rate: Annotated[float, Meta(ge=0)] = 800
    """Megabits of memory that it changes a second; a migration sends them again."""
    lifetime: Spread | None = None
    wished: tuple[str, ...] = ()
    """Nodes on which somebody would like them, in turn. The scheduler decides, and the run tells how it agrees."""
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    node_selector: dict[str, str] = msgspec.field(default_factory=dict)
    affinity: dict[str, Any] = msgspec.field(default_factory=dict)
    tolerations: tuple[dict[str, Any], ...] = ()
    topology_spread_constraints: tuple[dict[str, Any], ...] = ()
    priority_class_name: str = ""
    usage: str = ""


class Budget(Entry, frozen=True):
    """A policy/v1 PodDisruptionBudget: of a workload's or a group of VMs' pods, or of those that a selector means."""

    name: Name
    namespace: str
    workload: str = ""
    selector: dict[str, Any] = msgspec.field(default_factory=dict)
    min_available: Count | Share | None = None
    max_unavailable: Count | Share | None = None


class Links(Entry, frozen=True):
    """What VMs' memory goes over when they migrate, in megabits a second."""

    link: Positive = NETWORK.link_mbps
    """Of each node, in each direction; migrations that run together share it."""
    total: Positive | None = None
    """Of all migrations together."""

    def mbps(self) -> Network:
        """The same for the closed form."""
        return Network(self.link, NETWORK.total_mbps if self.total is None else self.total)


class Outage(Entry, frozen=True):
    """A node's kubelet falls silent for a while."""

    node: str
    at: Duration
    lasts: Duration
    every: Duration | None = None


class Scenario(Entry, frozen=True):
    """A cluster and its days."""

    nodes: tuple[NodeGroup, ...] = ()
    """None on a twin, where there are nodes already."""
    teams: tuple[Team, ...] = ()
    curves: tuple[Curve, ...] = ()
    priority_classes: tuple[PriorityClass, ...] = ()
    workloads: tuple[Workload, ...] = ()
    vms: tuple[VmGroup, ...] = ()
    budgets: tuple[Budget, ...] = ()
    network: Links = msgspec.field(default_factory=Links)
    usage_models: tuple[Usage, ...] = ()
    outages: tuple[Outage, ...] = ()
    events: tuple[Event, ...] = ()
    warm_up: Duration = span("0s")
    """How much of the first day has passed when people are shown the cluster."""
    seed: int = 0
    """What chance goes by, unless a run is given another."""
    duration: Duration = span("24h")
    """How much of the cluster's time a run takes, unless it is given another."""
    start_up: Duration | None = None
    """How long a pod takes to run once it is placed, exactly; by default some seconds."""

    @property
    def node_count(self) -> int:
        """How many nodes there are."""
        return sum(group.count for group in self.nodes)


def scaled(scenario: Scenario, nodes: int) -> Scenario:
    """The scenario on another number of nodes, with load and quotas in proportion.

    Group sizes are rounded so that the sum is right; a group that comes out empty stays for events that add to it.
    Outages of nodes that are not there are left out.
    """
    before = scenario.node_count
    groups = []
    sum_before = sum_after = 0
    for group in scenario.nodes:
        sum_before += group.count
        count = (sum_before * nodes + before // 2) // before - sum_after
        sum_after += count
        groups.append(msgspec.structs.replace(group, count=count))
    names = {name for group in groups for name in group.node_names()}
    return msgspec.structs.replace(
        scenario,
        nodes=tuple(groups),
        teams=tuple(_scaled_team(team, nodes, before) for team in scenario.teams),
        workloads=tuple(_scaled_workload(workload, nodes, before) for workload in scenario.workloads),
        vms=tuple(_scaled_vms(group, nodes, before) for group in scenario.vms),
        outages=tuple(outage for outage in scenario.outages if outage.node in names),
    )


def _scaled_team(team: Team, to: int, of: int) -> Team:
    amounts = {name: parse(str(amount)) for name, amount in team.quota.items()}
    quota = {name: str(Quantity(amount.nanos * to // of, amount.format)) for name, amount in amounts.items()}
    return msgspec.structs.replace(team, quota=quota)


def _scaled_workload(workload: Workload, to: int, of: int) -> Workload:
    changed: dict[str, Any] = {}
    if (arrivals := workload.arrivals) is not None:
        changed["arrivals"] = _scaled_arrivals(arrivals, to, of)
    if (daily := workload.replicas) is not None:
        low, high = (-(-number * to // of) for number in (daily.low, daily.high))
        changed["replicas"] = msgspec.structs.replace(daily, low=low, high=high)
    return msgspec.structs.replace(workload, **changed)


def _scaled_arrivals(arrivals: Arrivals, to: int, of: int) -> Arrivals:
    return msgspec.structs.replace(
        arrivals,
        per_hour=arrivals.per_hour and arrivals.per_hour * to / of,
        every=arrivals.every and Duration(max(1, arrivals.every.micros * of // to)),
        count=arrivals.count and max(1, arrivals.count * to // of),
    )


def _scaled_vms(group: VmGroup, to: int, of: int) -> VmGroup:
    arrivals = group.arrivals and _scaled_arrivals(group.arrivals, to, of)
    return msgspec.structs.replace(group, count=-(-group.count * to // of), arrivals=arrivals)
