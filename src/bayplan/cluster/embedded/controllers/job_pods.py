"""A Job's pods: how they are marked, which index they run, when one counts as failed, which go first.

Each pod carries a finalizer until the Job has counted its end, so none is lost or counted twice. Pods of an Indexed Job
carry their index as annotation, label and, by that label, in the variable JOB_COMPLETION_INDEX.
Source of truth: pkg/controller/job/indexed_job_utils.go, tracking_utils.go.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from bayplan.cluster.embedded.controllers.contract import Create, Patch
from bayplan.cluster.embedded.controllers.job_policies import judge
from bayplan.cluster.embedded.controllers.readiness import is_ready, ready_since
from bayplan.cluster.embedded.controllers.stamping import create_pod, pod_meta
from bayplan.cluster.objects import Object, Section
from bayplan.model.pods import Pod
from bayplan.model.workloads import JobSpec

COMPONENT = "job-controller"
TRACKING = "batch.kubernetes.io/job-tracking"
INDEX = "batch.kubernetes.io/job-completion-index"
FAILURES = "batch.kubernetes.io/job-index-failure-count"
IGNORED_FAILURES = "batch.kubernetes.io/job-index-ignored-failure-count"
_PREFIX = 58  # of a generated name: 63 less the five random letters
_PHASES = {"Unknown": 1, "Running": 2}
_VARIABLE = {
    "name": "JOB_COMPLETION_INDEX",
    "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": f"metadata.labels['{INDEX}']"}},
}


def is_tracked(pod: Object) -> bool:
    """Whether the pod's end is still to be counted."""
    return TRACKING in pod.meta.finalizers


def untracked(pod: Object) -> Patch:
    """Let a pod go: its end is counted, or nobody is left to count it."""
    others = [each for each in pod.meta.finalizers if each != TRACKING]
    return Patch(pod, {"metadata": {"uid": pod.uid, "finalizers": others or None}})


def index_of(pod: Object) -> int | None:
    """The completion index that a pod runs, if it has one."""
    text = pod.meta.annotations.get(INDEX, "")
    return int(text) if text.isdecimal() else None


def valid_index(spec: JobSpec, pod: Object) -> bool:
    """Whether the pod's index is one of the Job's; pods of other Jobs have none and need none."""
    if spec.completion_mode != "Indexed":
        return True
    index = index_of(pod)
    return index is not None and index < (spec.completions or 0)


def replaces_only_failed(spec: JobSpec) -> bool:
    """Whether a pod on its way out still holds its place."""
    return spec.pod_replacement_policy == "Failed" or spec.pod_failure_policy is not None


def is_failed(spec: JobSpec, pod: Pod) -> bool:
    """Whether a pod counts as failed: one that is deleted does, unless the Job waits for its end."""
    if pod.status.phase == "Failed":
        return True
    deleted = pod.metadata.deletion_timestamp is not None and pod.status.phase != "Succeeded"
    return deleted and not replaces_only_failed(spec)


def failures_of(pod: Object) -> int:
    """How many pods of its index failed before this one and counted."""
    return _number(pod, FAILURES)


def all_failures_of(pod: Object) -> int:
    """How many pods of its index failed before this one, counted or ignored."""
    return _number(pod, FAILURES) + _number(pod, IGNORED_FAILURES)


def _number(pod: Object, annotation: str) -> int:
    text = pod.meta.annotations.get(annotation, "")
    return int(text) if text.isdecimal() and int(text) < 2**31 else 0


def is_index_failed(spec: JobSpec, item: Object) -> bool:
    """Whether a pod's end is the end of its index."""
    pod = item.view(Pod)
    if not is_failed(spec, pod):
        return False
    told = judge(spec, pod)
    return told.action == "FailIndex" or (told.counts and failures_of(item) >= (spec.backoff_limit_per_index or 0))


def first_to_go(pods: Sequence[Object]) -> list[Object]:
    """Pods in the order in which a Job does without them: those that have come less far first."""
    return sorted(pods, key=_worth)


def _worth(item: Object) -> tuple[bool, int, bool, int, int, str]:
    pod = item.view(Pod)
    restarts = max((one.restart_count for one in pod.status.container_statuses), default=0)
    return (
        bool(pod.spec.node_name),
        _PHASES.get(pod.status.phase, 0),
        is_ready(pod),
        -(ready_since(pod) or 0),
        -restarts,
        _descending(item.meta.creation_timestamp or ""),
    )


def _descending(text: str) -> str:
    """A text that sorts the other way round: young pods go before old ones."""
    return "".join(chr(0x10FFFF - ord(letter)) for letter in text)


class Stamp:
    """Makes a Job's pods. What all of them share is made once."""

    def __init__(self, job: Object, spec: JobSpec) -> None:
        self._job = job
        self._spec = spec
        meta = pod_meta(spec.template, job)
        if TRACKING not in meta.finalizers:
            meta = msgspec.structs.replace(meta, finalizers=(*meta.finalizers, TRACKING))
        self._meta = meta
        self._section = Section(bytes(spec.template.spec))
        if spec.completion_mode == "Indexed":
            self._section = _with_variable(self._section)

    def pod(self) -> Create:
        """A pod without index."""
        return create_pod(self._job, self._meta, self._section, COMPONENT)

    def indexed_pod(self, index: int, replaced: Object | None) -> Create:
        """The pod of an index, which knows how many of its predecessors failed where that is limited."""
        annotations = {INDEX: str(index)}
        if self._spec.backoff_limit_per_index is not None:
            annotations |= _failure_counts(self._spec, replaced)
        meta = msgspec.structs.replace(
            self._meta,
            generate_name=_prefix(self._job.name, index),
            labels={**self._meta.labels, INDEX: str(index)},
            annotations={**self._meta.annotations, **annotations},
        )
        hostname = msgspec.json.encode(f"{self._job.name}-{index}")
        spec = Section(self._section.raw[:-1] + b',"hostname":' + hostname + b"}")
        return create_pod(self._job, meta, spec, COMPONENT)


def _with_variable(section: Section) -> Section:
    spec = section.plain()
    spec.pop("hostname", None)
    for container in (*spec.get("initContainers", ()), *spec["containers"]):
        present = container.setdefault("env", [])
        if all(one["name"] != _VARIABLE["name"] for one in present):
            present.append(_VARIABLE)
    return Section(msgspec.json.encode(spec))


def _prefix(job: str, index: int) -> str:
    end = f"-{index}-"
    return job[: _PREFIX - len(end)] + end


def _failure_counts(spec: JobSpec, replaced: Object | None) -> dict[str, str]:
    if replaced is None:
        return {FAILURES: "0"}
    counted = judge(spec, replaced.view(Pod)).counts
    ignored = _number(replaced, IGNORED_FAILURES) + (not counted)
    counts = {FAILURES: str(_number(replaced, FAILURES) + counted)}
    return counts | ({IGNORED_FAILURES: str(ignored)} if ignored else {})
