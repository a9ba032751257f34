"""What a pod is worth to its owner: active, ready, available, or on its way out.

Available is ready for at least minReadySeconds.

Source of truth: pkg/api/v1/pod/util.go and pkg/controller/controller_utils.go.
"""

from __future__ import annotations

from collections.abc import Iterable

from bayplan.model.clock import SECOND, Instant, parse_rfc3339
from bayplan.model.meta import condition
from bayplan.model.pods import Pod


def is_active(pod: Pod) -> bool:
    """Whether it counts as one of its owner's replicas."""
    return not pod.is_terminal and pod.metadata.deletion_timestamp is None


def is_terminating(pod: Pod) -> bool:
    """Whether it is being deleted and still runs."""
    return not pod.is_terminal and pod.metadata.deletion_timestamp is not None


def is_ready(pod: Pod) -> bool:
    """Whether its Ready condition holds."""
    ready = condition(pod.status.conditions, "Ready")
    return ready is not None and ready.status == "True"


def ready_since(pod: Pod) -> Instant | None:
    """Since when it has been ready, if it is and says so."""
    ready = condition(pod.status.conditions, "Ready")
    if ready is None or ready.status != "True" or ready.last_transition_time is None:
        return None
    return parse_rfc3339(ready.last_transition_time)


def is_available(pod: Pod, min_ready: int, now: Instant) -> bool:
    """Whether it has been ready for `min_ready` seconds."""
    if not is_ready(pod):
        return False
    if not min_ready:
        return True
    since = ready_since(pod)
    return since is not None and since + min_ready * SECOND <= now


def next_available(pods: Iterable[Pod], min_ready: int, now: Instant) -> Instant | None:
    """When the next of the ready pods becomes available; None if none is on its way."""
    if not min_ready:
        return None
    due = [since + min_ready * SECOND for pod in pods if (since := ready_since(pod)) is not None]
    return min((Instant(at) for at in due if at > now), default=None)
