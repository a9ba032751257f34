"""How long a Job waits before it replaces a failed pod.

10 s, doubled with each failure since the last success, 10 minutes at most. Upstream keeps the count in memory; here it
is read off the finished pods, which stay until someone deletes them. Source: pkg/controller/job/backoff_utils.go.
"""

from __future__ import annotations

from collections.abc import Iterable

from bayplan.model.clock import SECOND, Instant, parse_rfc3339
from bayplan.model.meta import condition
from bayplan.model.pods import ContainerStatus, Pod

_FIRST = 10 * SECOND
_MOST = 600 * SECOND


def finished_at(pod: Pod) -> Instant:
    """When a pod ended: its last container's end, else when it ceased to be ready, was deleted, or was made."""
    ended = _last_container_end(pod)
    if ended is not None:
        return ended
    ready = condition(pod.status.conditions, "Ready")
    if ready is not None and ready.status == "False" and ready.last_transition_time is not None:
        return parse_rfc3339(ready.last_transition_time)
    meta = pod.metadata
    if meta.deletion_timestamp is not None:
        grace = meta.deletion_grace_period_seconds or 0
        return Instant(parse_rfc3339(meta.deletion_timestamp) - grace * SECOND)
    return parse_rfc3339(meta.creation_timestamp) if meta.creation_timestamp else Instant(0)


def _last_container_end(pod: Pod) -> Instant | None:
    """The end of the last container to end; None while one runs. Sidecars end after the containers they serve."""
    sidecars = {one.name for one in pod.spec.init_containers if one.is_sidecar}
    statuses: list[ContainerStatus] = [
        *pod.status.container_statuses,
        *(one for one in pod.status.init_container_statuses if one.name in sidecars),
    ]
    ends = [one.state.terminated.finished_at for one in statuses if one.state.terminated is not None]
    if not ends or len(ends) < len(statuses):
        return None
    times = [parse_rfc3339(end) for end in ends if end is not None]
    return max(times) if len(times) == len(ends) else None


def next_try(succeeded: Iterable[Pod], failed: Iterable[Pod]) -> Instant:
    """From when on failed pods may be replaced; the beginning of time when none failed since the last success."""
    success = max((finished_at(pod) for pod in succeeded), default=Instant(-1))
    failures = [at for pod in failed if (at := finished_at(pod)) > success]
    return next_after(len(failures), max(failures)) if failures else Instant(0)


def next_after(failures: int, last: Instant) -> Instant:
    """From when on to try again after so many failures in a row, the last of them then."""
    return Instant(last + min(_FIRST << min(failures - 1, 10), _MOST))
