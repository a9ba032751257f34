"""What a pod is up to, in the word of kubectl's STATUS column."""

from __future__ import annotations

from bayplan.model.meta import condition
from bayplan.model.pods import ContainerState, Pod


def status_word(pod: Pod) -> str:
    """`Running`, `ContainerCreating`, `CrashLoopBackOff`, `Completed`, `Terminating`, ..."""
    if pod.metadata.deletion_timestamp is not None:
        return "Unknown" if pod.status.reason == "NodeLost" else "Terminating"
    word = pod.status.reason or pod.status.phase
    for number, status in enumerate(pod.status.init_container_statuses):
        said = _trouble(status.state)
        if said and not (status.state.terminated is not None and status.state.terminated.exit_code == 0):
            return f"Init:{said}"
        if status.state.terminated is None and not status.started:
            return f"Init:{number}/{len(pod.spec.init_containers)}"
    for status in pod.status.container_statuses:
        said = _trouble(status.state)
        if said:
            return said
    return word


def _trouble(state: ContainerState) -> str:
    if state.waiting is not None:
        return state.waiting.reason
    if state.terminated is not None:
        return state.terminated.reason or f"ExitCode:{state.terminated.exit_code}"
    return ""


def refusal_of(pod: Pod) -> str:
    """What the scheduler said when it refused a pod; empty where it did not."""
    scheduled = condition(pod.status.conditions, "PodScheduled")
    return scheduled.message or scheduled.reason if scheduled is not None and scheduled.status == "False" else ""


def why_waiting(pod: Pod) -> str:
    """Why a pending pod does not run yet: what the scheduler counted on the nodes, or the kubelet's words."""
    if refusal := refusal_of(pod):
        return refusal.partition(" nodes are available: ")[2].partition(". ")[0] or refusal
    if not pod.spec.node_name:
        return "not looked at yet"
    for status in (*pod.status.init_container_statuses, *pod.status.container_statuses):
        if status.state.waiting is not None:
            return status.state.waiting.message or status.state.waiting.reason
    return "starting"
