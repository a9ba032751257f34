"""What the containers of a pod amount to: its phase and its conditions.

Source of truth: getPhase in pkg/kubelet/kubelet_pods.go, pkg/kubelet/status/generate.go, feature gates as in 1.36.
"""

from __future__ import annotations

from collections.abc import Sequence

from bayplan.cluster.embedded.kubelet.run import Doc, Run
from bayplan.model.clock import Instant, rfc3339
from bayplan.model.pods import Pod

_OWN = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")


def phase(pod: Pod, runs: Sequence[Run], *, over: bool) -> str:
    """The pod's phase. `over` says that nothing will be started any more."""
    policy = pod.spec.restart_policy
    init = [run for run in runs if run.init and not run.sidecar]
    if any(failed_for_good(run, policy) for run in init):
        return "Failed"
    mains = [run for run in runs if not run.init]
    sidecars = [run for run in runs if run.sidecar]
    initialized = any(not run.never_ran for run in mains)
    if any(run.outcome is None for run in init) or any(run.never_ran for run in (*mains, *sidecars)):
        return "Pending"
    if not initialized and any("running" in run.state and not run.started for run in sidecars):
        return "Pending"
    if any("running" in run.state for run in (*mains, *sidecars)):
        return "Running"
    if not over and any(run.restarts_after(policy) for run in mains):
        return "Running"
    return "Succeeded" if all(run.succeeded for run in mains) else "Failed"


def failed_for_good(run: Run, policy: str) -> bool:
    """Whether a container ended badly and is not started again."""
    outcome = run.outcome
    return outcome is not None and outcome.get("exitCode", 0) != 0 and not run.restarts_after(policy)


def conditions(pod: Pod, runs: Sequence[Run], phase: str, stored: Sequence[Doc], now: Instant) -> list[Doc]:
    """The pod's conditions: those of others as they are, then the kubelet's own."""
    others = [each for each in stored if each["type"] not in _OWN]
    before = {each["type"]: each for each in stored}
    over = phase in ("Succeeded", "Failed")
    containers = _containers_ready(runs, phase)
    verdicts: dict[str, tuple[bool, str, str]] = {
        "PodReadyToStartContainers": (not over, "", ""),
        "Initialized": _initialized(runs, phase),
        "Ready": _gates(pod, others) if containers[0] else containers,
        "ContainersReady": containers,
        "PodScheduled": (True, "", ""),
    }
    generation = pod.metadata.generation
    return others + [_condition(kind, *verdicts[kind], generation, before.get(kind), now) for kind in _OWN]


def _condition(
    kind: str, holds: bool, reason: str, message: str, generation: int, before: Doc | None, now: Instant
) -> Doc:
    status = "True" if holds else "False"
    same = before is not None and before["status"] == status
    doc: Doc = {"type": kind}
    if generation:
        doc["observedGeneration"] = generation
    doc |= {
        "status": status,
        "lastProbeTime": None,
        "lastTransitionTime": before["lastTransitionTime"] if same and before is not None else rfc3339(now),
    }
    return doc | {key: value for key, value in (("reason", reason), ("message", message)) if value}


def _containers_ready(runs: Sequence[Run], phase: str) -> tuple[bool, str, str]:
    if phase == "Succeeded":
        return False, "PodCompleted", ""
    if phase == "Failed":
        return False, "PodFailed", ""
    unready = [run.name for run in runs if not run.ready and (run.sidecar or not run.init)]
    if unready:
        return False, "ContainersNotReady", f"containers with unready status: [{' '.join(unready)}]"
    return True, "", ""


def _initialized(runs: Sequence[Run], phase: str) -> tuple[bool, str, str]:
    if phase == "Succeeded":
        return True, "PodCompleted", ""
    if any(not run.init and not run.never_ran for run in runs):
        return True, "", ""
    incomplete = [run.name for run in runs if run.init and not (run.started if run.sidecar else run.ready)]
    if incomplete:
        return False, "ContainersNotInitialized", f"containers with incomplete status: [{' '.join(incomplete)}]"
    return True, "", ""


def _gates(pod: Pod, others: Sequence[Doc]) -> tuple[bool, str, str]:
    missing = []
    present = {each["type"]: each["status"] for each in others}
    for gate in pod.spec.readiness_gates:
        name = gate.condition_type
        if name not in present:
            missing.append(f'corresponding condition of pod readiness gate "{name}" does not exist.')
        elif present[name] != "True":
            missing.append(f'the status of pod readiness gate "{name}" is not "True", but {present[name]}')
    return (False, "ReadinessGatesNotReady", ", ".join(missing)) if missing else (True, "", "")
