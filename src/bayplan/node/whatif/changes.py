"""A change as a value. Whether it lets the pod in is never guessed: the changed pod comes to a copy of the node.

Nobody who is on the node already may lose out, but for those that a change names.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence

import msgspec

from bayplan.model.errors import PermanentError
from bayplan.model.pods import Container, Pod
from bayplan.model.qos import QosClass
from bayplan.model.resources import CPU
from bayplan.node.admission import Remembered
from bayplan.node.configuration import NodeConfiguration
from bayplan.node.machine import Machine
from bayplan.node.plan import Candidate, Outcome, Plan, Site, candidate, site_of
from bayplan.node.reasons import many


class Kind(enum.IntEnum):
    """The kinds of changes, the least disturbing first: to the pod itself, to the node, to others."""

    LOWER = 0
    RAISE = 1
    SHARE = 2
    SETTING = 3
    ORDER = 4
    EVICT = 5


class Situation(msgspec.Struct, frozen=True):
    """A refused pod, the node as it found it, and how that came about."""

    machine: Machine
    configuration: NodeConfiguration
    start: Remembered
    earlier: tuple[Candidate, ...]
    """The pods of the plan that were on the node."""
    before: Site
    outcome: Outcome

    @property
    def wanted(self) -> Candidate:
        """The refused pod."""
        return self.outcome.candidate

    def admits(self, pod: Pod) -> bool:
        """Whether the node would take this pod in its place."""
        return self.before.fork().admit(candidate(pod)).admitted


def situation(plan: Plan, outcome: Outcome) -> Situation:
    """The node as a pod of the plan found it."""
    site = site_of(plan.machine, plan.configuration, plan.start)
    earlier = []
    for each in plan.outcomes:
        if each is outcome:
            break
        if each.admitted:
            site.admit(each.candidate)
            earlier.append(each.candidate)
    return Situation(plan.machine, plan.configuration, plan.start, tuple(earlier), site, outcome)


class Change(msgspec.Struct, frozen=True):
    """One change."""

    @property
    def kind(self) -> Kind:
        """Which it is."""
        raise NotImplementedError

    @property
    def cost(self) -> tuple[int, ...]:
        """Among changes of its kind, the less the nearer."""
        raise NotImplementedError

    @property
    def document(self) -> dict[str, object]:
        """Its particulars, for programs."""
        raise NotImplementedError

    def admits(self, now: Situation) -> bool:
        """Try it on a copy: whether the pod is let in then."""
        raise NotImplementedError


class Ask(Change, frozen=True):
    """The pod asks for another amount of a resource."""

    resource: str
    amounts: Mapping[str, str]
    """By container."""
    was: Mapping[str, str]
    sort: Kind
    difference: int
    asked: int
    """What was asked for by those containers."""

    @property
    def kind(self) -> Kind:
        return self.sort

    @property
    def cost(self) -> tuple[int, ...]:
        return len(self.amounts), self.difference * 1000 // self.asked, self.difference

    def __str__(self) -> str:
        parts = [f"container {name} asks for {self._words(name)}" for name in self.amounts]
        told = " and ".join(parts)
        return f"{told}, and so runs on the shared CPUs" if self.sort is Kind.SHARE else told

    def _words(self, name: str) -> str:
        now, before = self.amounts[name], self.was[name]
        if self.resource == CPU and now.isdigit():
            return f"{many(int(now), 'CPU')} instead of {before}"
        return f"{now} {self.resource} instead of {before}"

    @property
    def document(self) -> dict[str, object]:
        return {"resource": self.resource, "containers": self.amounts, "instead": self.was}

    def changed(self, pod: Pod) -> Pod:
        """The pod that asks so."""
        both = candidate(pod).need.qos is QosClass.GUARANTEED or "/" in self.resource
        spec = msgspec.structs.replace(
            pod.spec,
            containers=self._in(pod.spec.containers, both),
            init_containers=self._in(pod.spec.init_containers, both),
        )
        return msgspec.structs.replace(pod, spec=spec)

    def _in(self, containers: Sequence[Container], both: bool) -> tuple[Container, ...]:
        return tuple(self._asking(each, both) if each.name in self.amounts else each for each in containers)

    def _asking(self, container: Container, both: bool) -> Container:
        given = {self.resource: self.amounts[container.name]}
        resources = container.resources
        limits = {**resources.limits, **given} if both else resources.limits
        changed = msgspec.structs.replace(resources, requests={**resources.requests, **given}, limits=limits)
        return msgspec.structs.replace(container, resources=changed)

    def admits(self, now: Situation) -> bool:
        return now.admits(self.changed(now.wanted.pod))


class Setting(Change, frozen=True):
    """The kubelet is set otherwise and started again; all pods that are there must still be welcome."""

    flag: str
    was: str
    configuration: NodeConfiguration
    distance: int
    """How far it is from what is set now."""

    @property
    def kind(self) -> Kind:
        return Kind.SETTING

    @property
    def cost(self) -> tuple[int, ...]:
        return (self.distance,)

    def __str__(self) -> str:
        return f"the kubelet has {self.flag} instead of {self.was}"

    @property
    def document(self) -> dict[str, object]:
        return {"flag": self.flag, "instead": self.was}

    def admits(self, now: Situation) -> bool:
        try:
            site = site_of(now.machine, self.configuration, now.before.managers.state)
        except PermanentError:
            return False  # the machine, or what is held on it, does not go with the setting
        site.tenants = now.before.tenants
        return all(site.admit(each).admitted for each in (*now.earlier, now.wanted))


class Order(Change, frozen=True):
    """Pods that came earlier come after it."""

    after: tuple[str, ...]
    """Their names, in order."""
    order: tuple[str, ...]
    """The uids of all pods in the new order."""
    anew: bool = False
    """All are placed anew, the largest first; `after` are all others."""

    @property
    def kind(self) -> Kind:
        return Kind.ORDER

    @property
    def cost(self) -> tuple[int, ...]:
        return (len(self.after),)

    def __str__(self) -> str:
        if self.anew:
            return f"it and {', '.join(self.after)} are placed anew, the largest first: all of them fit"
        return f"it comes before {', '.join(self.after)}: all of them fit in this order"

    @property
    def document(self) -> dict[str, object]:
        return {"before": self.after, "order": self.order}

    def admits(self, now: Situation) -> bool:
        known = {each.need.uid: each for each in (*now.earlier, now.wanted)}
        site = site_of(now.machine, now.configuration, now.start)
        return all(site.admit(known[uid]).admitted for uid in self.order)


class Evict(Change, frozen=True):
    """Pods go."""

    pods: Mapping[str, str]
    """Names by uid."""
    cpus: int
    """That they hold."""
    asked: int
    """Thousandths of a core that they ask for."""

    @property
    def kind(self) -> Kind:
        return Kind.EVICT

    @property
    def cost(self) -> tuple[int, ...]:
        return len(self.pods), self.cpus, self.asked

    def __str__(self) -> str:
        held = f" ({many(self.cpus, 'CPU')} of {'its' if len(self.pods) == 1 else 'their'} own)" if self.cpus else ""
        *others, last = self.pods.values()
        names = f"{', '.join(others)} and {last}" if others else last
        return f"{names} {'go' if others else 'goes'}{held}"

    @property
    def document(self) -> dict[str, object]:
        return {"pods": [{"uid": uid, "name": name} for uid, name in self.pods.items()], "cpus": self.cpus}

    def admits(self, now: Situation) -> bool:
        site = now.before.fork()
        for uid in self.pods:
            site.evict(uid)
        return site.admit(now.wanted).admitted
