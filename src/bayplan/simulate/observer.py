"""What a run sees of its cluster: every change of pods and nodes, told to the log and added up.

It is given changes from whichever engine, in order, each with its time; it writes nothing to the cluster.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Literal, NamedTuple

import msgspec

from bayplan.cluster.embedded.kubelet.node import silent
from bayplan.cluster.kinds import NODE, POD
from bayplan.cluster.objects import Object, Section
from bayplan.model.clock import SECOND, Instant
from bayplan.model.meta import condition
from bayplan.model.nodes import Node
from bayplan.model.pods import Pod
from bayplan.model.resources import CPU, MEMORY, pod_requests
from bayplan.scheduling.gpus.asking import SHARE, hold_of
from bayplan.simulate import eventlog
from bayplan.simulate.gpus import gpus_asked, gpus_of_pod
from bayplan.simulate.levels import Levels
from bayplan.simulate.seats import Ask, PodKey, Seat
from bayplan.simulate.tally import Tally
from bayplan.simulate.vm_pods import WISHED
from bayplan.simulate.wishes import Wishes

_State = Literal["lost", "ready", "cordoned", "uncordoned"]
_OVER = ("Succeeded", "Failed")


class _Seen:
    """A pod that is there."""

    __slots__ = ("ask", "came", "going", "key", "message", "name", "node", "phase", "wished")

    def __init__(self, key: PodKey, ask: Ask, came: Instant, wished: str) -> None:
        self.key = key
        self.name = f"{key[0]}/{key[1]}"
        self.ask = ask
        self.came = came
        self.wished = wished
        self.node = self.phase = self.message = ""
        self.going = False
        """Whether it is being deleted."""


class _Template(NamedTuple):
    """What pods of one spec have in common."""

    id: int
    requests: Mapping[str, int]
    ask: Ask
    """Without annotations."""


def _ask(requests: Mapping[str, int], annotations: Mapping[str, str]) -> Ask:
    hold = hold_of(requests, annotations).ask
    gpus = gpus_asked(requests, annotations.get(SHARE, ""), {})
    return Ask(requests.get(CPU, 0), requests.get(MEMORY, 0), gpus, hold.number, hold.milli)


class Observer:
    """The account of a run so far."""

    def __init__(self, log: eventlog.Writer, start: Instant, wishes: Wishes | None = None) -> None:
        self.log = log
        self.start = start
        self.tally = Tally(start)
        self.levels = Levels(start)
        self.seats: dict[str, Seat] = {}
        self.wishes = wishes or Wishes()
        self.changes = self.pod_changes = 0
        """Of pods and nodes, and of pods alone: nodes are heard of also while nothing is done."""
        self.expected: set[PodKey] = set()
        """Pods that somebody has made and that are not heard of yet: where one watches, news come later."""
        self.pending = self.running = self.failed = 0
        self._total = [0, 0, 0.0]
        self._taken = [0, 0, 0.0]
        self._ready = 0
        self._pods: dict[PodKey, _Seen] = {}
        self._daemons: set[PodKey] = set()
        self._templates: dict[Section, _Template] = {}

    # --- asking

    def look(self, metric: str) -> float:
        """A figure that conditions are about."""
        if metric == "nodes":
            return self._ready
        if metric in ("pending", "running", "failed"):
            return float(getattr(self, metric))
        return self.share(("cpu", "memory", "gpu").index(metric))

    def share(self, resource: int) -> float:
        """How much of all nodes' CPU, memory or GPUs is requested."""
        return self._taken[resource] / self._total[resource] if self._total[resource] else 0.0

    @property
    def totals(self) -> tuple[int, int, float]:
        """What all nodes have together."""
        cpu, memory, gpus = self._total
        return int(cpu), int(memory), gpus

    @property
    def ready(self) -> int:
        """Nodes that can be used."""
        return self._ready

    def place_of(self, key: PodKey) -> str:
        """The node of a pod that is there and not over; empty while it waits."""
        seen = self._pods.get(key)
        return seen.node if seen is not None and seen.phase not in _OVER else ""

    def runs(self, key: PodKey) -> bool:
        """Whether a pod runs, on a node that is heard of, and is not being deleted."""
        seen = self._pods.get(key)
        if seen is None or seen.phase != "Running" or seen.going:
            return False
        seat = self.seats.get(seen.node)
        return seat is not None and seat.ready

    def is_there(self, key: PodKey) -> bool:
        """Whether a pod is there, or expected, and is not being deleted."""
        seen = self._pods.get(key)
        return key in self.expected if seen is None else not seen.going

    def is_lost(self, key: PodKey) -> bool:
        """Whether a pod is gone, over or being deleted."""
        seen = self._pods.get(key)
        return not self.is_there(key) or (seen is not None and seen.phase in _OVER)

    def refusal(self, key: PodKey) -> str:
        """What the scheduler has said of a pod that has no place; empty where it has one, or nothing was said."""
        seen = self._pods.get(key)
        return seen.message if seen is not None and not seen.node else ""

    def gpus_of(self, key: PodKey) -> float:
        """The GPUs that a pod holds."""
        seen = self._pods.get(key)
        return seen.ask.gpus if seen is not None else 0.0

    def why_pending(self) -> Counter[str]:
        """What the scheduler said of those that wait."""
        return Counter(seen.message for seen in self._pods.values() if not seen.node and seen.message)

    def undecided(self) -> int:
        """Pods of which the scheduler has said nothing yet."""
        return sum(not seen.node and not seen.message and seen.phase not in _OVER for seen in self._pods.values())

    def is_daemon(self, key: PodKey) -> bool:
        """Whether a pod belongs to a DaemonSet, and so stays on a node that is drained."""
        return key in self._daemons

    # --- being told

    def pass_to(self, now: Instant) -> None:
        """It is that time, and so far all is as it was."""
        self.levels.pass_to(now, self._standing())

    def sample(self, now: Instant) -> None:
        """Somebody looks."""
        self.pass_to(now)
        self.levels.sample()

    def rest(self, now: Instant) -> None:
        """All is done, and nothing is under way."""
        self.pass_to(now)
        self.levels.rest(self._standing())

    def _standing(self) -> tuple[float, ...]:
        """What levels are about."""
        return self.share(0), self.share(1), self.share(2), float(self.pending)

    def note(self, new: Object, old: Object | None, now: Instant, *, gone: bool) -> None:
        """A pod or node has changed, or is gone."""
        if now > self.levels.at:
            self.pass_to(now)
        if new.kind is POD:
            self.changes += 1
            self.pod_changes += 1
            self.tally.note(new, now, gone=gone)
            self._note_pod(new, old, now, gone=gone)
        elif new.kind is NODE:
            self.changes += 1
            self.tally.note(new, now, gone=gone)
            self._note_node(new, now, gone=gone)

    def _t(self, now: Instant) -> float:
        return (now - self.start) / SECOND

    def _note_pod(self, new: Object, old: Object | None, now: Instant, *, gone: bool) -> None:
        seen = self._pods.get(new.key)
        as_before = seen is not None and old is not None and not gone and old.sections == new.sections
        if seen is None:
            if gone:
                return
            seen = self._created(new, now)
        seen.going = new.meta.deletion_timestamp is not None
        if as_before:
            return
        pod = new.view(Pod)
        if pod.spec.node_name and not seen.node:
            self._placed(seen, pod, now)
        if pod.status.phase != seen.phase:
            self._phase(seen, pod, now)
        if not seen.node:
            self._refused(seen, pod, now)
        if gone:
            self._gone(seen, now)

    def _created(self, new: Object, now: Instant) -> _Seen:
        pod, t = new.view(Pod), self._t(now)
        spec = new.sections["spec"]
        known = self._templates.get(spec)
        if known is None:
            requests = pod_requests(pod)
            known = self._templates[spec] = _Template(len(self._templates) + 1, requests, _ask(requests, {}))
            self.log.write(eventlog.Template(t=t, id=known.id, spec=msgspec.Raw(spec.raw)))
        annotations = pod.metadata.annotations
        ask = _ask(known.requests, annotations) if SHARE in annotations else known.ask
        seen = self._pods[new.key] = _Seen(new.key, ask, now, annotations.get(WISHED, ""))
        controller = pod.metadata.controller
        if controller is not None and controller.kind == "DaemonSet":
            self._daemons.add(new.key)
        self.expected.discard(new.key)
        self.pending += 1
        line = eventlog.Created(
            t=t,
            pod=seen.name,
            template=known.id,
            owner="" if controller is None else f"{controller.kind}/{controller.name}",
            labels=pod.metadata.labels,
            annotations=annotations,
            cpu=ask.cpu,
            memory=ask.memory,
            gpus=ask.gpus,
        )
        self.log.write(line)
        return seen

    def _placed(self, seen: _Seen, pod: Pod, now: Instant) -> None:
        seen.node = pod.spec.node_name
        self.pending -= 1
        seat = self.seats.get(seen.node)
        why = ""
        if seat is not None:
            if seat.is_cut:
                seen.ask = seen.ask._replace(gpus=gpus_of_pod(pod, seat.labels))
            seat.take(seen.key, seen.ask, pod)
            self._add(seen.ask, 1)
            if seen.wished:
                why = self.wishes.placed(pod, seen.wished, seen.ask, self.seats)
        waited = (now - seen.came) / SECOND
        self.log.write(
            eventlog.Placed(t=self._t(now), pod=seen.name, node=seen.node, waited=waited, wished=seen.wished, why=why)
        )

    def _add(self, ask: Ask, sign: int) -> None:
        taken = self._taken
        taken[0] += sign * ask.cpu
        taken[1] += sign * ask.memory
        taken[2] += sign * ask.gpus

    def _phase(self, seen: _Seen, pod: Pod, now: Instant) -> None:
        before, seen.phase = seen.phase, pod.status.phase
        self.running += (seen.phase == "Running") - (before == "Running")
        self.failed += seen.phase == "Failed" and not seen.going
        if seen.phase in _OVER:
            self._free(seen)
        if seen.phase != "Pending":
            reason = pod.status.reason or ""
            self.log.write(eventlog.Phase(t=self._t(now), pod=seen.name, phase=seen.phase, reason=reason))

    def _free(self, seen: _Seen) -> None:
        seat = self.seats.get(seen.node)
        if seat is not None and seen.key in seat.pods:
            seat.leave(seen.key, seen.ask)
            self._add(seen.ask, -1)
        if not seen.node:
            self.pending -= 1
            seen.node = "-"

    def _refused(self, seen: _Seen, pod: Pod, now: Instant) -> None:
        told = condition(pod.status.conditions, "PodScheduled")
        message = told.message if told is not None and told.status == "False" else ""
        if message and message != seen.message:
            seen.message = message
            self.log.write(eventlog.Refused(t=self._t(now), pod=seen.name, message=message))

    def _gone(self, seen: _Seen, now: Instant) -> None:
        if seen.phase not in _OVER:
            self._free(seen)
            self.running -= seen.phase == "Running"
        del self._pods[seen.key]
        self._daemons.discard(seen.key)
        self.log.write(eventlog.Gone(t=self._t(now), pod=seen.name))

    # --- nodes

    def _note_node(self, new: Object, now: Instant, *, gone: bool) -> None:
        node, name, t = new.view(Node), new.name, self._t(now)
        seat = self.seats.get(name)
        if gone:
            if seat is not None:
                self._remove(name, seat)
                self.log.write(eventlog.NodeLine(t=t, node=name, state="removed"))
            return
        if seat is None:
            seat = self.seats[name] = Seat(node)
            self._count(seat.capacity, 1)
            manifest = msgspec.json.encode(
                {"labels": new.meta.labels, "taints": node.spec.taints, "capacity": node.status.capacity}
            )
            cpu, memory, gpus = seat.capacity
            self.log.write(
                eventlog.NodeLine(
                    t=t, node=name, state="added", cpu=cpu, memory=memory, gpus=gpus, manifest=msgspec.Raw(manifest)
                )
            )
        else:
            before = seat.capacity
            if seat.resize(node):
                self._count(before, -1)
                self._count(seat.capacity, 1)
        seat.silent = silent(new.meta)
        ready = condition(node.status.conditions, "Ready")
        self._turn(name, seat, "ready", ready is not None and ready.status == "True", ("lost", "ready"), t)
        self._turn(name, seat, "cordoned", node.spec.unschedulable, ("uncordoned", "cordoned"), t)

    def _turn(self, name: str, seat: Seat, what: str, to: bool, words: tuple[_State, _State], t: float) -> None:
        if getattr(seat, what) != to:
            setattr(seat, what, to)
            self._ready += (1 if to else -1) if what == "ready" else 0
            self.log.write(eventlog.NodeLine(t=t, node=name, state=words[to]))

    def _remove(self, name: str, seat: Seat) -> None:
        self._count(seat.capacity, -1)
        self._ready -= seat.ready
        for key in [*seat.pods]:
            self._add(self._pods[key].ask, -1)
        del self.seats[name]

    def _count(self, capacity: tuple[int, int, float], sign: int) -> None:
        for place, amount in enumerate(capacity):
            self._total[place] += sign * amount
