"""A kubelet for pods about which there is little to compute: they start in a while, run as long as they say, and end.

Most pods of a large scenario are like that, and a look of the whole kubelet costs more than their placement. This one
writes what such a look would come to, but for addresses, which nobody calls here. Every pod with more to it (probes,
init containers, restarts, any other behaviour, a deletion) is left to the whole kubelet.

Pods that start or end in the same second differ in nothing but their uid, so a status is put together once and then
copied with another one.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Any, NamedTuple

import msgspec

from bayplan.cluster.embedded.controllers.contract import NOTHING, Outcome, SetStatus, View
from bayplan.cluster.embedded.kubelet.behaviour import PREFIX, Defaults
from bayplan.cluster.embedded.kubelet.controller import KubeletController
from bayplan.cluster.embedded.kubelet.node import silent
from bayplan.cluster.embedded.store import Change, Key
from bayplan.cluster.kinds import NODE, POD
from bayplan.cluster.objects import Object, Section
from bayplan.model.clock import SECOND, Instant, parse_rfc3339, rfc3339
from bayplan.model.durations import DurationError, parse_duration
from bayplan.model.meta import condition
from bayplan.model.nodes import Node
from bayplan.model.pods import Pod, PodStatus
from bayplan.node.annotations.equipment import Equipment, equipment_of

Doc = dict[str, Any]
_SAID = frozenset(PREFIX + key for key in ("run-for", "exit-code", "cpu", "memory", "gpu"))
_RUN_FOR, _EXIT_CODE = PREFIX + "run-for", PREFIX + "exit-code"
_FOR_EVER = -1
_TRUE = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady")
_RUNTIME = "containerd://"
_ANYBODY = "\x01"
"""Stands for a uid in what is copied: no name or image has such a character."""

Names = tuple[tuple[str, str], ...]
"""The containers of a pod: name and image."""


class BriskKubelet(KubeletController):
    """The kubelet of all nodes, in haste where it may."""

    def __init__(self, defaults: Defaults) -> None:
        super().__init__(defaults)
        self._bound_pod = self.watches[POD]
        self._delay = defaults.pull + defaults.start
        self._own: Section | None = None
        """The status that it wrote last: it knows what it says, and need not look at it."""
        self.watches = {**self.watches, POD: self._told_by_others}

    def _told_by_others(self, change: Change, view: View) -> Iterable[Key]:
        status, old = change.new.sections["status"], change.old
        if status is self._own and old is not None and old.sections["status"] is not status:
            return ()
        return self._bound_pod(change, view)

    def reconcile(self, key: Key, view: View, now: Instant) -> Outcome:
        """A pod's next step; a key without a namespace is a node's."""
        item = view.get(POD, *key) if key[0] else None
        if item is None or item.meta.deletion_timestamp is not None:
            return super().reconcile(key, view, now)
        pod = item.view(Pod)
        if not pod.spec.node_name or pod.is_terminal:
            return NOTHING
        host = view.get(NODE, "", pod.spec.node_name)
        if host is None or silent(host.meta):
            return NOTHING
        lasts = _lasts(pod)
        if lasts is None or _is_special(host) or _is_odd(pod):
            return super().reconcile(key, view, now)
        return self._step(item, pod, lasts, now)

    def _step(self, item: Object, pod: Pod, lasts: int, now: Instant) -> Outcome:
        second = Instant(now // SECOND * SECOND)
        began = second if pod.status.start_time is None else _instant(pod.status.start_time)
        since = _since(pod)
        if since is None:
            due = Instant(began + self._delay)
            if due <= now:
                return self._written(
                    item, _running(_like(item, pod), rfc3339(began), rfc3339(now)), _end(second, lasts)
                )
            if pod.status.start_time is not None:
                return Outcome(again=due)
            return self._written(item, _starting(_like(item, pod), rfc3339(now)), due)
        end = _end(since, lasts)
        if end is None or end > now:
            return Outcome(again=end)
        code = int(pod.metadata.annotations.get(_EXIT_CODE, "0"))
        times = _Times(rfc3339(began), rfc3339(since), rfc3339(end), rfc3339(now))
        return self._written(item, _ended(_like(item, pod), code, times), None)

    def _written(self, item: Object, status: _Copied, again: Instant | None) -> Outcome:
        self._own = status.of(item.uid)
        return Outcome([SetStatus(item, self._own)], again)


def _is_special(host: Object) -> bool:
    """Whether there is more to a node: what its machine is made of, or images that need not be pulled."""
    if host.meta.annotations and isinstance(equipment_of(host.meta.annotations), Equipment):
        return True
    return bool(host.view(Node).status.images)


def _is_odd(pod: Pod) -> bool:
    """Whether a pod was given to its node by somebody else than a scheduler, or was started again."""
    if pod.status.start_time is None:
        return condition(pod.status.conditions, "PodScheduled") is None
    return any(each.restart_count for each in pod.status.container_statuses)


def _since(pod: Pod) -> Instant | None:
    """When its containers started, which they do together."""
    for each in pod.status.container_statuses:
        if each.state.running is not None and each.state.running.started_at:
            return _instant(each.state.running.started_at)
    return None


def _end(since: Instant, lasts: int) -> Instant | None:
    return None if lasts == _FOR_EVER else Instant(since + lasts)


_instant = functools.lru_cache(maxsize=1024)(parse_rfc3339)
_span = functools.lru_cache(maxsize=1024)(parse_duration)


def _lasts(pod: Pod) -> int | None:
    """How long the pod runs, in microseconds; None where there is more to it."""
    annotations, spec = pod.metadata.annotations, pod.spec
    if not _SAID.issuperset(annotations) and any(key.startswith(PREFIX) for key in annotations.keys() - _SAID):
        return None
    if spec.init_containers or spec.readiness_gates or spec.active_deadline_seconds is not None:
        return None
    for each in spec.containers:
        if each.liveness_probe or each.readiness_probe or each.startup_probe:
            return None
    text = annotations.get(_RUN_FOR)
    if text is None:
        controller = pod.metadata.controller
        ends = _EXIT_CODE in annotations or (controller is not None and controller.kind == "Job")
        return None if ends else _FOR_EVER
    if spec.restart_policy != "Never" or text == "forever":
        return None
    try:
        return max(SECOND, _span(text))
    except DurationError:
        return None


class _Copied(NamedTuple):
    """A status with nobody's uid."""

    raw: bytes
    view: PodStatus

    def of(self, uid: str) -> Section:
        """The same with one."""
        containers = [
            msgspec.structs.replace(each, container_id=each.container_id.replace(_ANYBODY, uid))
            for each in self.view.container_statuses
        ]
        view = msgspec.structs.replace(self.view, container_statuses=tuple(containers))
        return Section(self.raw.replace(_ESCAPED, uid.encode()), view)


_ESCAPED = msgspec.json.encode(_ANYBODY)[1:-1]


class _Like(NamedTuple):
    """All that a pod's next status depends on, but for its uid and the time."""

    stored: bytes
    containers: Names
    generation: int


class _Times(NamedTuple):
    """Of a pod that has ended: when the kubelet took it, when it started and ended, and now."""

    began: str
    since: str
    end: str
    now: str


@functools.lru_cache(maxsize=1024)
def _starting(like: _Like, now: str) -> _Copied:
    names = " ".join(name for name, _ in like.containers)
    why = {"reason": "ContainersNotReady", "message": f"containers with unready status: [{names}]"}
    own = [_condition(kind, "True", now) for kind in _TRUE[:2]]
    own += [_condition(kind, "False", now) | why for kind in _TRUE[2:]]
    return _status(like, "Pending", own, {"waiting": {"reason": "ContainerCreating"}}, now)


@functools.lru_cache(maxsize=1024)
def _running(like: _Like, began: str, now: str) -> _Copied:
    state = {"running": {"startedAt": now}}
    return _status(like, "Running", [_condition(kind, "True", now) for kind in _TRUE], state, began)


@functools.lru_cache(maxsize=1024)
def _ended(like: _Like, code: int, times: _Times) -> _Copied:
    began, since, end, now = times
    word, reason = ("Error", "PodFailed") if code else ("Completed", "PodCompleted")
    own = [
        _condition("PodReadyToStartContainers", "False", now),
        _condition("Initialized", "True", now) | ({} if code else {"reason": reason}),
        _condition("Ready", "False", now) | {"reason": reason},
        _condition("ContainersReady", "False", now) | {"reason": reason},
    ]
    state = {"terminated": {"exitCode": code, "reason": word, "startedAt": since, "finishedAt": end}}
    return _status(like, "Failed" if code else "Succeeded", own, state, began)


def _status(like: _Like, phase: str, own: list[Doc], state: Doc, began: str) -> _Copied:
    stored: Doc = msgspec.json.decode(like.stored)
    before = {each["type"]: each for each in stored.get("conditions", ())}
    for each in own:
        known = before.pop(each["type"], None)
        if known is not None and known["status"] == each["status"]:
            each["lastTransitionTime"] = known["lastTransitionTime"]
    changed = {
        "observedGeneration": like.generation,
        "phase": phase,
        "conditions": [*own, *before.values()],
        "startTime": began,
        "containerStatuses": [_container(name, image, state) for name, image in like.containers],
    }
    raw = msgspec.json.encode(stored | changed)
    return _Copied(raw, Section(raw).view(PodStatus))


def _like(item: Object, pod: Pod) -> _Like:
    own = (_RUNTIME + item.uid).encode()
    stored = item.sections["status"].raw.replace(own, _RUNTIME.encode() + _ESCAPED)
    return _Like(stored, tuple([(each.name, each.image) for each in pod.spec.containers]), item.meta.generation)


def _condition(kind: str, status: str, at: str) -> Doc:
    return {"type": kind, "status": status, "lastProbeTime": None, "lastTransitionTime": at}


def _container(name: str, image: str, state: Doc) -> Doc:
    runs = "running" in state
    return {
        "name": name,
        "state": state,
        "lastState": {},
        "ready": runs,
        "restartCount": 0,
        "image": image,
        "imageID": "",
        **({} if "waiting" in state else {"containerID": f"{_RUNTIME}{_ANYBODY}-{name}"}),
        "started": runs,
    }
