"""The columns of pods, above all the status that sums up what the containers do.

Two walks. The init containers in the order of their statuses, up to the first that is neither done nor a started
sidecar: that one *holds* the pod. If none does, or the pod says it is initialized, the containers from the last to the
first, so that the first one with something to say has the last word.
"""

from __future__ import annotations

from bayplan.cluster.tables.columns import (
    AGE,
    NAME,
    NONE,
    Column,
    Columns,
    Doc,
    at,
    condition_status,
    deleted,
    field,
)
from bayplan.model.ages import human_duration
from bayplan.model.clock import Instant, parse_rfc3339

_FINAL_WORDS = {"Succeeded": "The pod has completed successfully.", "Failed": "The pod failed."}


def row_conditions(pod: Doc) -> list[Doc]:
    """What a Table says of the row itself: a finished pod is completed, so that clients may hide it."""
    phase = at(pod, "status.phase")
    if phase not in _FINAL_WORDS:
        return []
    return [{"type": "Completed", "status": "True", "reason": phase, "message": _FINAL_WORDS[phase]}]


def pod_status(pod: Doc, _now: Instant) -> str:
    """One word on how a pod is: `Running`, `Init:0/2`, `CrashLoopBackOff`, `Terminating`."""
    given, phase = at(pod, "status.reason"), at(pod, "status.phase")
    if deleted(pod) and given == "NodeLost":
        return "Unknown"
    if deleted(pod) and phase not in _FINAL_WORDS:
        return "Terminating"
    word: str = given or phase or ""
    if any(each["type"] == "PodScheduled" and each.get("reason") == "SchedulingGated" for each in _conditions(pod)):
        word = "SchedulingGated"
    holding = _holding(pod)
    if holding is not None:
        word = f"Init:{_init_word(pod, holding)}"
    return _containers_word(pod, word) if _initialized(pod, holding) else word


def _init_word(pod: Doc, holding: int) -> str:
    state = _init_statuses(pod)[holding].get("state") or {}
    if state.get("terminated") is not None:
        return _end(state["terminated"])
    reason: str = at(state, "waiting.reason") or ""
    if reason and reason != "PodInitializing":
        return reason
    return f"{holding}/{len(at(pod, 'spec.initContainers') or ())}"


def _containers_word(pod: Doc, word: str) -> str:
    error = ""
    for status in reversed(_statuses(pod)):
        state = status.get("state") or {}
        if reason := at(state, "waiting.reason"):
            word = reason
        elif state.get("terminated") is not None:
            word = _end(state["terminated"])
            error = word if state["terminated"].get("exitCode") else error
    if word != "Completed":
        return word
    running = any(map(_runs_ready, _statuses(pod)))
    if running and any(each["type"] == "Ready" and each.get("status") == "True" for each in _conditions(pod)):
        return "Running"
    return error or ("NotReady" if running else word)


def _end(terminated: Doc) -> str:
    if terminated.get("reason"):
        return str(terminated["reason"])
    if terminated.get("signal"):
        return f"Signal:{terminated['signal']}"
    return f"ExitCode:{terminated.get('exitCode', 0)}"


def _ready(pod: Doc, _now: Instant) -> str:
    sidecars, holding = _sidecars(pod), _holding(pod)
    total = len(at(pod, "spec.containers") or ()) + len(sidecars)
    passed = _init_statuses(pod)[:holding]
    ready = sum(_started(each, sidecars) and not _succeeded(each) and bool(each.get("ready")) for each in passed)
    if _initialized(pod, holding):
        ready += sum(map(_runs_ready, _statuses(pod)))
    return f"{ready}/{total}"


def _restarts(pod: Doc, now: Instant) -> str:
    """While a container holds the pod, those of the init containers up to it; then of the sidecars among them and of
    the containers."""
    holding = _holding(pod)
    counted = _init_statuses(pod)[: None if holding is None else holding + 1]
    if _initialized(pod, holding):
        sidecars = _sidecars(pod)
        counted = [each for each in counted if each["name"] in sidecars] + _statuses(pod)
    restarts = sum(each.get("restartCount", 0) for each in counted)
    ends = [parse_rfc3339(end) for each in counted if (end := at(each, "lastState.terminated.finishedAt"))]
    return f"{restarts} ({human_duration(now - max(ends))} ago)" if restarts and ends else str(restarts)


def _holding(pod: Doc) -> int | None:
    """Which init container, by the order of the statuses, keeps the others waiting; None if all are past."""
    statuses = _init_statuses(pod)
    sidecars = _sidecars(pod) if statuses else set()
    for index, status in enumerate(statuses):
        if not _succeeded(status) and not _started(status, sidecars):
            return index
    return None


def _initialized(pod: Doc, holding: int | None) -> bool:
    return holding is None or condition_status(pod, "Initialized") == "True"


def _sidecars(pod: Doc) -> set[str]:
    return {each["name"] for each in at(pod, "spec.initContainers") or () if each.get("restartPolicy") == "Always"}


def _succeeded(status: Doc) -> bool:
    terminated = at(status, "state.terminated")
    return terminated is not None and not terminated.get("exitCode")


def _started(status: Doc, sidecars: set[str]) -> bool:
    return status["name"] in sidecars and bool(status.get("started"))


def _runs_ready(status: Doc) -> bool:
    """Ready and running, and saying nothing else: a state has one member, but a client may write two."""
    state = status.get("state") or {}
    silent = not at(state, "waiting.reason") and state.get("terminated") is None
    return silent and bool(status.get("ready")) and state.get("running") is not None


def _init_statuses(pod: Doc) -> list[Doc]:
    return at(pod, "status.initContainerStatuses") or []


def _statuses(pod: Doc) -> list[Doc]:
    return at(pod, "status.containerStatuses") or []


def _conditions(pod: Doc) -> list[Doc]:
    return at(pod, "status.conditions") or []


def _address(pod: Doc, _now: Instant) -> str:
    addresses = at(pod, "status.podIPs") or [{}]
    return addresses[0].get("ip") or NONE


def _gates(pod: Doc, _now: Instant) -> str:
    gates = at(pod, "spec.readinessGates") or ()
    true = sum(condition_status(pod, gate["conditionType"]) == "True" for gate in gates)
    return f"{true}/{len(gates)}" if gates else NONE


POD: Columns = (
    NAME,
    Column("Ready", _ready),
    Column("Status", pod_status),
    Column("Restarts", _restarts),
    AGE,
    Column("IP", _address, priority=1),
    Column("Node", field("spec.nodeName", NONE), priority=1),
    Column("Nominated Node", field("status.nominatedNodeName", NONE), priority=1),
    Column("Readiness Gates", _gates, priority=1),
)
