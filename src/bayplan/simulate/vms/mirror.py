"""What is known of the VMs' pods, the nodes and the budgets: fed by watches, asked without any.

A VM has one pod, and for the time of a migration two: then it is where its first one is, until that is gone. A pod that
has ended or is being deleted is no place any more.

Feeding happens on one thread. Asking may happen on any: each question reads one dictionary.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable

import msgspec

from bayplan.cluster.kinds import EVENT, NODE, POD, POD_DISRUPTION_BUDGET, Kind
from bayplan.cluster.objects import Object
from bayplan.model.clock import SECOND, Instant, parse_rfc3339
from bayplan.model.meta import condition
from bayplan.model.nodes import Node
from bayplan.model.pods import Pod
from bayplan.model.policies import Event
from bayplan.model.quantity import parse
from bayplan.simulate.vms.constraints import MANAGED, VM_LABEL
from bayplan.simulate.vms.launcher import DIGEST, MANAGER
from bayplan.simulate.vms.vm import NodeShape

_NOT_READY = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_REMEMBERED = 10_000


class Sight(msgspec.Struct, frozen=True):
    """A pod as it was last seen."""

    name: str
    uid: str
    vm: str
    node: str = ""
    runs: bool = False
    refusal: str = ""
    """What the scheduler wrote when it found no place."""
    digest: str = ""

    @property
    def decided(self) -> bool:
        """Whether the scheduler has spoken."""
        return bool(self.node or self.refusal)


class NodeSight(msgspec.Struct, frozen=True):
    """A node as it was last seen."""

    ready: bool
    shape: NodeShape


class Latencies:
    """From the moment of a bind, as the scheduler tells it in its Event, to the moment in which it was seen here."""

    def __init__(self) -> None:
        self._spans: deque[float] = deque(maxlen=_REMEMBERED)
        self._half: dict[str, tuple[bool, Instant]] = {}

    def note(self, uid: str, at: Instant, *, bound: bool) -> None:
        """One of the two moments of a pod. They come in any order."""
        known = self._half.pop(uid, None)
        if known is None or known[0] == bound:
            if len(self._half) >= _REMEMBERED:  # their other half never came
                self._half.clear()
            self._half[uid] = (bound, at)
            return
        seen, bind = (known[1], at) if bound else (at, known[1])
        self._spans.append(max(0, seen - bind) / SECOND)

    def __len__(self) -> int:
        return len(self._spans)

    def quantile(self, share: float) -> float:
        """Seconds within which that share of binds was seen; 0 where none was measured."""
        spans = sorted(self._spans)
        return spans[max(0, math.ceil(share * len(spans)) - 1)] if spans else 0.0


class Mirror:
    """The present, as far as it was told."""

    def __init__(self, namespace: str) -> None:
        self.namespace = namespace
        self.pods: dict[str, Sight] = {}
        self.nodes: dict[str, NodeSight] = {}
        self.version = 0
        """Of the newest change of a pod that was told."""
        self.budgets = 0
        """Grows with every change of a disruption budget."""
        self.latencies = Latencies()
        self.listeners: list[Callable[[str], None]] = []
        """Told the id of a VM whose place may have changed."""
        self._of: dict[str, tuple[str, ...]] = {}  # a VM's pods, oldest first

    # --- feeding

    def note(self, item: Object, now: Instant, *, gone: bool) -> None:
        """An object is as it is now, or is gone."""
        if item.kind is POD:
            if item.namespace == self.namespace and item.name and (gone or item.meta.labels.get(MANAGED) == MANAGER):
                self._note_pod(item, now, gone)
        elif item.kind is NODE:
            self._note_node(item, gone)
        elif item.kind is POD_DISRUPTION_BUDGET:
            self.budgets += 1
        elif item.kind is EVENT and not gone:
            self._note_event(item.view(Event))

    def _note_pod(self, item: Object, now: Instant, gone: bool) -> None:
        self.version = max(self.version, item.version)
        before = self.pods.get(item.name)
        pod = None if gone else item.view(Pod)
        if pod is None or pod.is_terminal or item.meta.deletion_timestamp is not None:
            if before is not None and before.uid == item.uid:
                self._forget(before)
            return
        seen = _sight(item, pod)
        if before is not None and before.uid != seen.uid:
            self._forget(before)
            before = None
        self.pods[item.name] = seen
        if before is None:
            self._of[seen.vm] = (*self._of.get(seen.vm, ()), item.name)
        if seen.node and (before is None or not before.node):
            self.latencies.note(seen.uid, now, bound=False)
        if before is None or before.node != seen.node:
            self._tell(seen.vm)

    def _forget(self, sight: Sight) -> None:
        del self.pods[sight.name]
        left = tuple(name for name in self._of[sight.vm] if name != sight.name)
        if left:
            self._of[sight.vm] = left
        else:
            del self._of[sight.vm]
        self._tell(sight.vm)

    def names(self, kind: Kind) -> set[str]:
        """The pods, or the nodes, that are known; of no other kind is any kept."""
        return {*self.pods} if kind is POD else {*self.nodes} if kind is NODE else set()

    def lose(self, kind: Kind, names: Iterable[str]) -> None:
        """Pods or nodes that went while nobody listened."""
        for name in names:
            if kind is NODE:
                self.nodes.pop(name, None)
            elif (sight := self.pods.get(name)) is not None:
                self._forget(sight)

    def _tell(self, vm: str) -> None:
        for listener in self.listeners:
            listener(vm)

    def _note_node(self, item: Object, gone: bool) -> None:
        if gone:
            self.nodes.pop(item.name, None)
            return
        node = item.view(Node)
        ready = condition(node.status.conditions, "Ready")
        tainted = any(taint.key in _NOT_READY for taint in node.spec.taints)
        self.nodes[item.name] = NodeSight(ready is not None and ready.status == "True" and not tainted, _shape(node))

    def _note_event(self, event: Event) -> None:
        if event.reason == "Scheduled" and event.event_time:
            self.latencies.note(event.involved_object.uid, parse_rfc3339(event.event_time), bound=True)

    # --- asking

    def of(self, vm: str) -> list[Sight]:
        """A VM's pods, oldest first."""
        found = (self.pods.get(name) for name in self._of.get(vm, ()))
        return [each for each in found if each is not None]

    def place(self, vm: str) -> Sight | None:
        """The pod that runs a VM: the oldest that has a node, else the oldest."""
        pods = self.of(vm)
        return next((each for each in pods if each.node), pods[0] if pods else None)

    def vms(self) -> list[str]:
        """The VMs that have a pod."""
        return list(self._of)


def _sight(item: Object, pod: Pod) -> Sight:
    scheduled = condition(pod.status.conditions, "PodScheduled")
    ready = condition(pod.status.conditions, "Ready")
    refused = scheduled is not None and scheduled.status == "False" and scheduled.reason == "Unschedulable"
    # one that is promised a node waits for others to leave it: nothing is decided yet
    refusal = scheduled.message if refused and scheduled is not None and not pod.status.nominated_node_name else ""
    return Sight(
        item.name,
        item.uid,
        item.meta.labels.get(VM_LABEL, ""),
        pod.spec.node_name,
        pod.status.phase == "Running" and ready is not None and ready.status == "True",
        refusal,
        item.meta.annotations.get(DIGEST, ""),
    )


def _shape(node: Node) -> NodeShape:
    offered = {**node.status.capacity, **node.status.allocatable}
    cpu, memory, pods = (parse(offered.get(name, "0")) for name in ("cpu", "memory", "pods"))
    return NodeShape(cpu.milli() / 1000 or 1.0, memory.value() or 1, pods.value() or 1)
