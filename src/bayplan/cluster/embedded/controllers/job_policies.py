"""What a failed pod means for its Job, and when some successes are enough.

Source of truth: pkg/controller/job/pod_failure_policy.go, success_policy.go.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from bayplan.cluster.embedded.controllers import job_indexes
from bayplan.cluster.embedded.controllers.job_indexes import Indexes
from bayplan.model.pods import ContainerStatus, Pod
from bayplan.model.workloads import JobSpec, OnExitCodes, PodFailurePolicyRule


class Judgement(msgspec.Struct, frozen=True):
    """What a Job's failure policy says of a failed pod. `action` is empty when no rule fits: then it counts."""

    action: str = ""
    message: str = ""

    @property
    def counts(self) -> bool:
        """Whether the failure counts towards the back-off limits."""
        return self.action != "Ignore"


_COUNTS = Judgement()


def judge(spec: JobSpec, pod: Pod) -> Judgement:
    """The first rule that fits a failed pod."""
    for index, rule in enumerate(spec.pod_failure_policy.rules if spec.pod_failure_policy is not None else ()):
        told = _fits(rule, pod)
        if told:
            message = f"{told} matching {rule.action} rule at index {index}" if rule.action == "FailJob" else ""
            return Judgement(rule.action, message)
    return _COUNTS


def _fits(rule: PodFailurePolicyRule, pod: Pod) -> str:
    """What of a pod fits a rule, in the words of the message; empty when nothing does."""
    where = f"{pod.metadata.namespace}/{pod.metadata.name}"
    if rule.on_exit_codes is not None:
        for status in (*pod.status.container_statuses, *pod.status.init_container_statuses):
            code = _matching_code(rule.on_exit_codes, status)
            if code:
                return f"Container {status.name} for pod {where} failed with exit code {code}"
        return ""
    wanted = {(one.type, one.status) for one in rule.on_pod_conditions}
    for condition in pod.status.conditions:
        if (condition.type, condition.status) in wanted:
            return f"Pod {where} has condition {condition.type}"
    return ""


def _matching_code(wanted: OnExitCodes, status: ContainerStatus) -> int:
    """A container's exit code if the requirement asks for it, else 0."""
    ended = status.state.terminated
    if ended is None or not ended.exit_code or wanted.container_name not in (None, status.name):
        return 0
    return ended.exit_code if (ended.exit_code in wanted.values) == (wanted.operator == "In") else 0


def fail_job(spec: JobSpec, failed: Iterable[Pod]) -> str:
    """Why a failed pod fails the whole Job; empty when none does."""
    if spec.pod_failure_policy is None:
        return ""
    return next((told.message for pod in failed if (told := judge(spec, pod)).action == "FailJob"), "")


def enough(spec: JobSpec, succeeded: Indexes) -> str:
    """Which rule of the success policy is met, in the words of the condition; empty when none is."""
    if spec.success_policy is None or not succeeded:
        return ""
    for index, rule in enumerate(spec.success_policy.rules):
        if rule.succeeded_indexes is not None:
            asked = job_indexes.parse(rule.succeeded_indexes, spec.completions or 0)
            have, need = job_indexes.common(asked, succeeded), job_indexes.total(asked)
            met = bool(asked) and (have == need or _reaches(have, rule.succeeded_count))
        else:
            met = _reaches(job_indexes.total(succeeded), rule.succeeded_count)
        if met:
            return f"Matched rules at index {index}"
    return ""


def _reaches(count: int, wanted: int | None) -> bool:
    return wanted is not None and count >= wanted
