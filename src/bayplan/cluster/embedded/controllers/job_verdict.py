"""Whether a Job is at its end, and why.

An end is told in two steps: first what it will be (SuccessCriteriaMet, FailureTarget), then, once every pod is counted
and gone, that it is (Complete, Failed). What was told once stands; of several reasons the first in this order counts:
an earlier verdict, the pod failure policy, the back-off limit, the deadline, failed indexes, the success policy.
"""

from __future__ import annotations

import msgspec

from bayplan.cluster.embedded.controllers import job_indexes
from bayplan.cluster.embedded.controllers.job_pods import is_failed
from bayplan.cluster.embedded.controllers.job_policies import enough, fail_job
from bayplan.cluster.embedded.controllers.job_view import Seen
from bayplan.model.clock import SECOND, Instant, parse_rfc3339, rfc3339
from bayplan.model.meta import Condition, condition
from bayplan.model.pods import Pod
from bayplan.model.workloads import JobStatus

SUCCESS = "SuccessCriteriaMet"
FAILURE = "FailureTarget"
COMPLETE = "Complete"
FAILED = "Failed"


class Verdict(msgspec.Struct, frozen=True):
    """What a Job will have come to."""

    kind: str
    """SuccessCriteriaMet or FailureTarget."""
    reason: str
    message: str

    @property
    def final(self) -> str:
        """The condition that says it has."""
        return COMPLETE if self.kind == SUCCESS else FAILED

    def told(self, kind: str, now: Instant) -> Condition:
        """A condition with this reason."""
        return job_condition(kind, "True", self.reason, self.message, now)


REACHED = Verdict(SUCCESS, "CompletionsReached", "Reached expected number of succeeded pods")


def job_condition(kind: str, status: str, reason: str, message: str, now: Instant) -> Condition:
    """A condition as Jobs have them: with the time of its probe beside that of its change."""
    at = rfc3339(now)
    return Condition(
        type=kind, status=status, last_probe_time=at, last_transition_time=at, reason=reason, message=message
    )


def is_true(status: JobStatus, kind: str) -> bool:
    """Whether a condition holds."""
    found = condition(status.conditions, kind)
    return found is not None and found.status == "True"


def is_over(status: JobStatus) -> bool:
    """Whether the Job has ended."""
    return is_true(status, COMPLETE) or is_true(status, FAILED)


def verdict(seen: Seen, start: Instant | None) -> Verdict | None:
    """Why a Job must end now, leaving completions aside; None while it may go on."""
    for kind in (SUCCESS, FAILURE):
        earlier = condition(seen.status.conditions, kind)
        if earlier is not None and earlier.status == "True":
            return Verdict(kind, earlier.reason, earlier.message)
    broken = fail_job(seen.spec, (pod for pod in seen.views() if is_failed(seen.spec, pod)))
    if broken:
        return Verdict(FAILURE, "PodFailurePolicy", broken)
    if seen.failed > seen.spec.backoff_limit or _restarted_too_often(seen):
        return Verdict(FAILURE, "BackoffLimitExceeded", "Job has reached the specified backoff limit")
    due = deadline(seen, start)
    if due is not None and seen.now >= due:
        return Verdict(FAILURE, "DeadlineExceeded", "Job was active longer than specified deadline")
    return _by_index(seen) if seen.indexed else None


def deadline(seen: Seen, start: Instant | None) -> Instant | None:
    """When a Job that is running must have ended."""
    limit = seen.spec.active_deadline_seconds
    if limit is None or start is None or seen.spec.suspend:
        return None
    return Instant(start + limit * SECOND)


def started(status: JobStatus) -> Instant | None:
    """When a Job began, if it has."""
    return None if status.start_time is None else parse_rfc3339(status.start_time)


def _by_index(seen: Seen) -> Verdict | None:
    spec, lost = seen.spec, seen.lost
    if lost is not None:
        count = job_indexes.total(lost)
        if spec.max_failed_indexes is not None and count > spec.max_failed_indexes:
            text = "Job has exceeded the specified maximal number of failed indexes"
            return Verdict(FAILURE, "MaxFailedIndexesExceeded", text)
        if count and count + job_indexes.total(seen.done) >= (spec.completions or 0):
            return Verdict(FAILURE, "FailedIndexes", "Job has failed indexes")
    met = enough(spec, seen.done)
    return Verdict(SUCCESS, "SuccessPolicy", met) if met else None


def _restarted_too_often(seen: Seen) -> bool:
    """Whether containers that restart in place have used up the back-off limit."""
    restarts = sum(map(_restarts, seen.views()))
    return restarts >= max(seen.spec.backoff_limit, 1)


def _restarts(pod: Pod) -> int:
    if pod.spec.restart_policy != "OnFailure" or pod.status.phase not in ("Running", "Pending"):
        return 0
    return sum(one.restart_count for one in (*pod.status.init_container_statuses, *pod.status.container_statuses))
