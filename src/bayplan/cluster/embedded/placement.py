"""Placing pods: the small interface behind which schedulers stand, a first-fit one, and the controller that drives it.

A placer keeps its own columns (who is where, what is free), told of every change by `observe`, and answers `place` with
a node or with reasons counted over all nodes. The controller keeps the queue: pods by priority, then by arrival; a pod
that found no place waits until something changed that could help it, or five minutes.

Source of truth for order, words and waits: kube-scheduler 1.36, with no preemption.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Protocol

import msgspec

from bayplan.cluster.embedded.controllers.contract import (
    NOTHING,
    Bind,
    Concern,
    Emit,
    Outcome,
    SetStatus,
    View,
    Write,
)
from bayplan.cluster.embedded.kubelet.fit import affine, in_order, requests_of
from bayplan.cluster.embedded.store import Change, ChangeType, Key
from bayplan.cluster.kinds import NODE, POD, Kind
from bayplan.cluster.objects import Object
from bayplan.model.clock import SECOND, Instant, rfc3339
from bayplan.model.nodes import Node
from bayplan.model.pods import Pod
from bayplan.model.resources import Amounts, amounts
from bayplan.model.taints import HARD_EFFECTS, NO_SCHEDULE, Taint, first_untolerated

SCHEDULER = "default-scheduler"
_QUEUE: Key = ("", "queue")
_BATCH = 200
"""Pods placed in one go, so that a long queue does not hold up the rest of the world."""
_BACKOFF_FIRST = SECOND
_BACKOFF_MOST = 10 * SECOND
_AT_LATEST = 300 * SECOND
_UNSCHEDULABLE = Taint(key="node.kubernetes.io/unschedulable", effect=NO_SCHEDULE)


class Placement(msgspec.Struct, frozen=True):
    """Where a pod goes, or why it cannot go anywhere."""

    node: str = ""
    nodes: int = 0
    """How many nodes were looked at in vain."""
    reasons: Mapping[str, int] = {}
    """Why, and on how many nodes."""
    hopeless: int = 0
    """On how many of them it would not help to evict others."""


class Placer(Protocol):
    """Who decides."""

    def observe(self, change: Change) -> None:
        """Take note of a change of a Node or Pod. Told of all of them, in order, the first one included."""
        ...

    def place(self, pod: Object) -> Placement:
        """Find a node for a pod. It counts as being there from now on, until it is observed or placed anew."""
        ...


# --- first fit


class _Verdict(msgspec.Struct, frozen=True):
    reasons: tuple[str, ...] = ()
    hopeless: bool = False


_FITS = _Verdict()


class _Column(msgspec.Struct):
    """A node: what it offers, and the step at which something about it last changed."""

    node: Node
    offers: Amounts
    step: int


class FirstFit:
    """The first node by name that takes the pod.

    What is used is summed up as pods come and go. What a node answered to a kind of pod (its requests, selectors and
    tolerations) is remembered until the node changes, so that pods alike are not judged over and over.
    """

    _kinds_remembered = 128

    def __init__(self) -> None:
        self._nodes: dict[str, _Column] = {}  # by name, in order
        self._used: dict[str, Amounts] = {}
        self._places: dict[Key, tuple[str, Amounts]] = {}
        self._answers: dict[bytes, dict[str, tuple[int, _Verdict]]] = {}
        self._step = 0

    def observe(self, change: Change) -> None:
        """See Placer."""
        if change.kind is NODE:
            self._observe_node(change)
            return
        pod = change.new.view(Pod)
        gone = change.type is ChangeType.DELETED or pod.is_terminal
        if gone:
            self._release(change.new.key)
        elif pod.spec.node_name:
            self._hold(change.new, pod.spec.node_name)

    def _observe_node(self, change: Change) -> None:
        name = change.new.name
        if change.type is ChangeType.DELETED:
            self._nodes.pop(name, None)
            return
        node = change.new.view(Node)
        self._step += 1
        new = name not in self._nodes
        self._nodes[name] = _Column(node, amounts(node.status.allocatable), self._step)
        if new:
            self._nodes = dict(sorted(self._nodes.items()))

    def _hold(self, pod: Object, node: str) -> None:
        asked = requests_of(pod.sections["spec"])
        if self._places.get(pod.key) == (node, asked):
            return
        self._release(pod.key)
        self._places[pod.key] = (node, asked)
        self._add(node, asked, 1)

    def _release(self, key: Key) -> None:
        place = self._places.pop(key, None)
        if place is not None:
            self._add(*place, -1)

    def _add(self, node: str, asked: Amounts, sign: int) -> None:
        used = self._used.setdefault(node, {})
        for name, amount in asked.items():
            used[name] = used.get(name, 0) + sign * amount
        column = self._nodes.get(node)
        if column is not None:
            self._step += 1
            column.step = self._step

    def place(self, pod: Object) -> Placement:
        """See Placer."""
        self._release(pod.key)
        view = pod.view(Pod)
        asked = requests_of(pod.sections["spec"])
        answers = self._remember(view, asked)
        for name, column in self._nodes.items():
            answer = answers.get(name)
            if answer is None or answer[0] < column.step:
                answer = answers[name] = (column.step, self._verdict(view, asked, column))
            if answer[1] is _FITS:
                self._hold(pod, name)
                return Placement(name)
        verdicts = [answers[name][1] for name in self._nodes]
        reasons = Counter(reason for verdict in verdicts for reason in verdict.reasons)
        return Placement(nodes=len(verdicts), reasons=reasons, hopeless=sum(each.hopeless for each in verdicts))

    def _remember(self, pod: Pod, asked: Amounts) -> dict[str, tuple[int, _Verdict]]:
        """What nodes have answered to pods of this kind, each as of a step."""
        spec = pod.spec
        kind = msgspec.json.encode((asked, spec.node_selector, spec.affinity, spec.tolerations))
        answers = self._answers.pop(kind, {})
        self._answers[kind] = answers
        if len(self._answers) > self._kinds_remembered:
            del self._answers[next(iter(self._answers))]
        return answers

    def _verdict(self, pod: Pod, asked: Amounts, column: _Column) -> _Verdict:
        """The first filter that refuses has the word, as in kube-scheduler."""
        node, tolerations = column.node, pod.spec.tolerations
        if node.spec.unschedulable and first_untolerated((_UNSCHEDULABLE,), tolerations, HARD_EFFECTS):
            return _Verdict(("node(s) were unschedulable",), hopeless=True)
        if node.spec.taints and first_untolerated(node.spec.taints, tolerations, HARD_EFFECTS):
            return _Verdict(("node(s) had untolerated taint(s)",), hopeless=True)
        if not affine(pod.spec, node):
            return _Verdict(("node(s) didn't match Pod's node affinity/selector",), hopeless=True)
        used = self._used.get(node.metadata.name, {})
        offers = column.offers
        lacking = [name for name in in_order(asked) if asked[name] > max(offers.get(name, 0) - used.get(name, 0), 0)]
        if not lacking:
            return _FITS
        words = tuple("Too many pods" if name == "pods" else f"Insufficient {name}" for name in lacking)
        return _Verdict(words, hopeless=any(asked[name] > offers.get(name, 0) for name in lacking if name != "pods"))


# --- the queue


class _Waiting(msgspec.Struct):
    """A pod in the queue. `seen` is the stir after which it was last tried."""

    uid: str
    priority: int
    arrival: int
    tries: int = 0
    tried: Instant = Instant(0)
    seen: int = -1

    def due(self, stirs: int) -> Instant:
        """When to try it: at once when new, after its back-off once something changed, else at the latest."""
        if not self.tries:
            return Instant(0)
        backoff = min(_BACKOFF_FIRST << min(self.tries - 1, 8), _BACKOFF_MOST)
        return Instant(self.tried + (_AT_LATEST if self.seen == stirs else backoff))


class SchedulerController:
    """Binds pending pods to the nodes that a placer names. Its queue is rebuilt from what it watches."""

    name = SCHEDULER
    watches: Mapping[Kind, Concern]

    def __init__(self, placer: Placer | None = None) -> None:
        self.watches = {POD: self._pod_changed, NODE: self._node_changed}
        self._placer: Placer = FirstFit() if placer is None else placer
        self._queue: dict[Key, _Waiting] = {}
        self._arrivals = 0
        self._stirs = 0
        self._more = False

    def _node_changed(self, change: Change, _view: View) -> Iterable[Key]:
        self._placer.observe(change)
        if change.type is ChangeType.DELETED or not _offers_anew(change):
            return ()
        return self._stir()

    def _pod_changed(self, change: Change, _view: View) -> Iterable[Key]:
        self._placer.observe(change)
        item = change.new
        known = self._queue.get(item.key)
        if change.type is ChangeType.DELETED or not _pending(item.view(Pod)):
            self._queue.pop(item.key, None)
            if _frees(change):
                return self._stir()
            return (_QUEUE,) if self._more else ()
        if known is None or known.uid != item.uid:
            self._arrivals += 1
            self._queue[item.key] = _Waiting(item.uid, item.view(Pod).spec.priority, self._arrivals)
            return (_QUEUE,)
        if change.old is not None and change.old.sections["spec"] is not item.sections["spec"]:
            known.tries = 0
            return (_QUEUE,)
        return (_QUEUE,) if self._more else ()

    def _stir(self) -> Iterable[Key]:
        """Something changed that may let a waiting pod in."""
        self._stirs += 1
        return (_QUEUE,) if self._queue else ()

    def reconcile(self, _key: Key, view: View, now: Instant) -> Outcome:
        """Try the pods that are due, the most important first."""
        due: list[tuple[int, int, Key]] = []
        later: Instant | None = None
        for key, waiting in self._queue.items():
            at = waiting.due(self._stirs)
            if at <= now:
                due.append((-waiting.priority, waiting.arrival, key))
            elif later is None or at < later:
                later = at
        if not due and later is None:
            return NOTHING
        self._more = len(due) > _BATCH
        writes: list[Write] = []
        for _, _, key in heapq.nsmallest(_BATCH, due):
            item = view.get(POD, *key)
            assert item is not None  # what is gone has left the queue
            waiting = self._queue[key]
            placement = self._placer.place(item)
            waiting.tries += 1
            waiting.tried = now
            waiting.seen = -1 if placement.node else self._stirs  # a refused bind is tried again after the back-off
            writes += _writes(item, placement, now)
        return Outcome(writes, now if self._more else self._next(now))

    def _next(self, now: Instant) -> Instant | None:
        return min((max(each.due(self._stirs), Instant(now + 1)) for each in self._queue.values()), default=None)


def _pending(pod: Pod) -> bool:
    return not (
        pod.spec.node_name
        or pod.spec.scheduling_gates
        or pod.spec.scheduler_name != SCHEDULER
        or pod.metadata.deletion_timestamp is not None
        or pod.is_terminal
    )


def _frees(change: Change) -> bool:
    """Whether a change gives back what a pod held on a node."""
    before = change.old.view(Pod) if change.old is not None else None
    if before is None or not before.spec.node_name or before.is_terminal:
        return False
    return change.type is ChangeType.DELETED or change.new.view(Pod).is_terminal


def _offers_anew(change: Change) -> bool:
    """Whether a change of a node may let a pod in: its spec, labels or what it offers, not its conditions."""
    old = change.old
    if old is None or old.sections.get("spec") is not change.new.sections.get("spec"):
        return True
    before, after = old.view(Node), change.new.view(Node)
    return before.status.allocatable != after.status.allocatable or before.metadata.labels != after.metadata.labels


def _writes(item: Object, placement: Placement, now: Instant) -> list[Write]:
    if placement.node:
        message = f"Successfully assigned {item.namespace}/{item.name} to {placement.node}"
        return [Bind(item, placement.node, then=Emit(item, "Normal", "Scheduled", message, SCHEDULER))]
    message = explanation(placement, item.view(Pod))
    status: dict[str, Any] = item.sections["status"].plain()
    present: dict[str, Any] = next(
        (each for each in status.get("conditions", ()) if each["type"] == "PodScheduled"), {}
    )
    if present.get("status") == "False" and present.get("message") == message:
        return []
    since = present["lastTransitionTime"] if present.get("status") == "False" else rfc3339(now)
    condition = {
        "type": "PodScheduled",
        "observedGeneration": item.meta.generation,
        "status": "False",
        "lastProbeTime": None,
        "lastTransitionTime": since,
        "reason": "Unschedulable",
        "message": message,
    }
    others = [each for each in status.get("conditions", ()) if each["type"] != "PodScheduled"]
    changed = {**status, "conditions": [*others, condition]}
    return [SetStatus(item, changed), Emit(item, "Warning", "FailedScheduling", message, SCHEDULER)]


def explanation(placement: Placement, pod: Pod) -> str:
    """Why a pod found no place, in kube-scheduler's words."""
    if not placement.nodes:
        return "no nodes available to schedule pods"
    head = f"0/{placement.nodes} nodes are available:"
    filters = _counted(placement.reasons)
    if pod.spec.preemption_policy == "Never":
        preemption = "not eligible due to preemptionPolicy=Never."
    else:
        others = {
            "Preemption is not helpful for scheduling": placement.hopeless,
            "No preemption victims found for incoming pod": placement.nodes - placement.hopeless,
        }
        preemption = f"{head} {_counted(others)}."
    return f"{head} {filters}. no new claims to deallocate, preemption: {preemption}"


def _counted(reasons: Mapping[str, int]) -> str:
    return ", ".join(sorted(f"{count} {reason}" for reason, count in reasons.items() if count))
