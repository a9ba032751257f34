"""A kubelet for pods about which there is little to compute: they start at once, run as long as they say, and end.

Most pods of a large scenario are like that, and a look of the whole kubelet costs more than their placement. This one
writes what such a look would come to, but for addresses, which nobody calls here. Every pod with more to it (probes,
init containers, restarts, any other behaviour, a deletion) is left to the whole kubelet.
"""

from __future__ import annotations

from typing import Any

from bayplan.cluster.embedded.controllers.contract import NOTHING, Outcome, SetStatus, View
from bayplan.cluster.embedded.kubelet.behaviour import PREFIX
from bayplan.cluster.embedded.kubelet.controller import KubeletController
from bayplan.cluster.embedded.kubelet.node import silent
from bayplan.cluster.embedded.store import Key
from bayplan.cluster.kinds import NODE, POD
from bayplan.cluster.objects import Object
from bayplan.model.clock import SECOND, Instant, parse_rfc3339, rfc3339
from bayplan.model.durations import DurationError, parse_duration
from bayplan.model.pods import Pod

Doc = dict[str, Any]
_SAID = frozenset(PREFIX + key for key in ("run-for", "exit-code", "cpu", "memory", "gpu"))
_RUN_FOR, _EXIT_CODE = PREFIX + "run-for", PREFIX + "exit-code"
_FOR_EVER = -1
_TRUE = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady")


class BriskKubelet(KubeletController):
    """The kubelet of all nodes, in haste where it may."""

    def reconcile(self, key: Key, view: View, now: Instant) -> Outcome:
        """A pod's next step; a key without a namespace is a node's."""
        item = view.get(POD, *key) if key[0] else None
        if item is None or item.meta.deletion_timestamp is not None:
            return super().reconcile(key, view, now)
        pod = item.view(Pod)
        if not pod.spec.node_name or pod.is_terminal:
            return NOTHING
        lasts = _lasts(pod)
        if lasts is None:
            return super().reconcile(key, view, now)
        host = view.get(NODE, "", pod.spec.node_name)
        if host is None or silent(host.meta):
            return NOTHING
        began = Instant(now // SECOND * SECOND) if pod.status.start_time is None else _instant(pod.status.start_time)
        end = None if lasts == _FOR_EVER else Instant(began + lasts)
        if end is not None and end <= now:
            return Outcome([SetStatus(item, _ended(item, pod, began, end, now))])
        if pod.status.start_time is not None:
            return Outcome(again=end)
        return Outcome([SetStatus(item, _running(item, pod, began, now))], end)


def _instant(text: str) -> Instant:
    return parse_rfc3339(text)


def _lasts(pod: Pod) -> int | None:
    """How long the pod runs, in microseconds; None where there is more to it."""
    annotations, spec = pod.metadata.annotations, pod.spec
    if any(key.startswith(PREFIX) and key not in _SAID for key in annotations):
        return None
    if spec.init_containers or spec.readiness_gates or spec.active_deadline_seconds is not None:
        return None
    if any(each.liveness_probe or each.readiness_probe or each.startup_probe for each in spec.containers):
        return None
    text = annotations.get(_RUN_FOR)
    if text is None:
        controller = pod.metadata.controller
        ends = _EXIT_CODE in annotations or (controller is not None and controller.kind == "Job")
        return None if ends else _FOR_EVER
    if spec.restart_policy != "Never" or text == "forever":
        return None
    try:
        return max(SECOND, parse_duration(text))
    except DurationError:
        return None


def _running(item: Object, pod: Pod, began: Instant, now: Instant) -> Doc:
    at = rfc3339(now)
    state = {"running": {"startedAt": rfc3339(began)}}
    own = [_condition(kind, "True", at) for kind in _TRUE]
    return _status(
        item, "Running", own, [_container(each.name, each.image, state, pod) for each in pod.spec.containers], began
    )


def _ended(item: Object, pod: Pod, began: Instant, end: Instant, now: Instant) -> Doc:
    code = int(pod.metadata.annotations.get(_EXIT_CODE, "0"))
    ended = {
        "exitCode": code,
        "reason": "Error" if code else "Completed",
        "startedAt": rfc3339(began),
        "finishedAt": rfc3339(end),
    }
    at, reason = rfc3339(now), "PodFailed" if code else "PodCompleted"
    own = [
        _condition("PodReadyToStartContainers", "False", at),
        _condition("Initialized", "True", at) | ({} if code else {"reason": reason}),
        _condition("Ready", "False", at) | {"reason": reason},
        _condition("ContainersReady", "False", at) | {"reason": reason},
    ]
    containers = [_container(each.name, each.image, {"terminated": ended}, pod) for each in pod.spec.containers]
    return _status(item, "Failed" if code else "Succeeded", own, containers, began)


def _status(item: Object, phase: str, own: list[Doc], containers: list[Doc], began: Instant) -> Doc:
    stored: Doc = item.sections["status"].plain()
    mine = {each["type"] for each in own}
    others = [each for each in stored.get("conditions", ()) if each["type"] not in mine]
    return stored | {
        "observedGeneration": item.meta.generation,
        "phase": phase,
        "conditions": [*own, *others],
        "startTime": rfc3339(began),
        "containerStatuses": containers,
    }


def _condition(kind: str, status: str, at: str) -> Doc:
    return {"type": kind, "status": status, "lastProbeTime": None, "lastTransitionTime": at}


def _container(name: str, image: str, state: Doc, pod: Pod) -> Doc:
    runs = "running" in state
    return {
        "name": name,
        "state": state,
        "lastState": {},
        "ready": runs,
        "restartCount": 0,
        "image": image,
        "imageID": "",
        "containerID": f"containerd://{pod.metadata.uid}-{name}",
        "started": runs,
    }
