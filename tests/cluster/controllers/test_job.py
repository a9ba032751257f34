"""Jobs, played through on a small cluster: counts, ends, back-off, indexes, policies, suspension."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayplan.cluster.embedded.controllers.contract import View
from bayplan.cluster.embedded.controllers.garbage_collector import GarbageCollector
from bayplan.cluster.embedded.controllers.job import JobController
from bayplan.cluster.embedded.controllers.job_expiry import JobExpiry
from bayplan.cluster.embedded.controllers.job_orphans import JobOrphans
from bayplan.cluster.embedded.controllers.job_pods import INDEX, TRACKING
from bayplan.cluster.embedded.controllers.pod_collector import PodCollector
from bayplan.cluster.embedded.deletion import DeleteOptions
from bayplan.cluster.kinds import JOB, POD, RESOURCE_QUOTA
from bayplan.cluster.objects import Object
from bayplan.model.clock import rfc3339
from bayplan.model.pods import Pod
from tests.cluster.controllers.stage import Stage


class JobStage(Stage):
    """A cluster with all that has to do with Jobs."""

    def __init__(self) -> None:
        super().__init__(JobController(), JobOrphans(), JobExpiry(), GarbageCollector(), PodCollector())

    def job(self, name: str = "job", *, restart: str = "Never", **spec: Any) -> None:
        """Store a Job and let its pods start."""
        pod = {"restartPolicy": restart, "containers": [{"name": "main", "image": "work:1"}]}
        self.create(JOB, name, {"template": {"spec": pod}, **spec})

    def end(self, pod: Object, code: int = 0, **status: Any) -> None:
        """A pod's container ends."""
        ended = {"exitCode": code, "finishedAt": rfc3339(self.now)}
        containers = [{"name": "main", "state": {"terminated": ended}}]
        phase = "Failed" if code else "Succeeded"
        self.set_status(pod, {"phase": phase, "containerStatuses": containers, **status})

    def running(self) -> list[Object]:
        """The pods that run, by name."""
        return [pod for pod in self.pods() if pod.view(Pod).status.phase == "Running"]

    def of_index(self, index: int) -> Object:
        """The pod that runs an index."""
        (found,) = [pod for pod in self.running() if pod.meta.annotations.get(INDEX) == str(index)]
        return found

    def indexes(self) -> list[int]:
        """The indexes that run."""
        return sorted(int(pod.meta.annotations[INDEX]) for pod in self.running())

    def told(self, name: str = "job") -> list[str]:
        """The conditions of a Job, those that do not hold in brackets."""
        conditions = self.status(JOB, name).get("conditions", [])
        return [one["type"] if one["status"] == "True" else f"({one['type']})" for one in conditions]

    def reasons(self, name: str = "job") -> list[str]:
        """Why things happened to a Job."""
        return [event.partition(":")[0] for event in self.events(name)]


def test_a_job_of_three_runs_two_at_a_time_and_completes() -> None:
    stage = JobStage()
    stage.job(completions=3, parallelism=2)
    first, second = stage.running()
    assert stage.status(JOB, "job") == {
        "startTime": "2026-01-01T00:00:00Z",
        "active": 2,
        "terminating": 0,
        "uncountedTerminatedPods": {},
        "ready": 2,
    }
    assert TRACKING in first.meta.finalizers
    stage.wait(5)
    stage.end(first)
    assert len(stage.running()) == 2
    stage.end(second)
    stage.wait(5)
    (third,) = stage.running()
    stage.end(third)
    status = stage.status(JOB, "job")
    assert status.pop("conditions") == [
        {
            "type": kind,
            "status": "True",
            "lastProbeTime": "2026-01-01T00:00:10Z",
            "lastTransitionTime": "2026-01-01T00:00:10Z",
            "reason": "CompletionsReached",
            "message": "Reached expected number of succeeded pods",
        }
        for kind in ("SuccessCriteriaMet", "Complete")
    ]
    assert status == {
        "startTime": "2026-01-01T00:00:00Z",
        "completionTime": "2026-01-01T00:00:10Z",
        "succeeded": 3,
        "terminating": 0,
        "uncountedTerminatedPods": {},
        "ready": 0,
    }
    assert stage.reasons() == ["SuccessfulCreate"] * 3 + ["Completed"]
    assert not any(pod.meta.finalizers for pod in stage.pods())


def test_failed_pods_are_replaced_until_the_limit() -> None:
    stage = JobStage()
    stage.job(backoffLimit=2)
    for _ in range(3):
        (pod,) = stage.running()
        stage.end(pod, 1)
        stage.wait(45)
    assert stage.told() == ["FailureTarget", "Failed"]
    assert stage.status(JOB, "job")["failed"] == 3
    assert stage.reasons()[-1] == "BackoffLimitExceeded"
    assert stage.events("job")[-1] == "BackoffLimitExceeded: Job has reached the specified backoff limit"


def test_the_first_failure_costs_ten_seconds_and_the_second_twenty() -> None:
    stage = JobStage()
    stage.job()
    for wait in (10, 20, 40):
        (pod,) = stage.running()
        stage.end(pod, 1)
        stage.wait(wait - 1)
        assert not stage.running()
        assert stage.status(JOB, "job").get("active", 0) == 0
        stage.wait(1)
        assert len(stage.running()) == 1


def test_a_success_makes_up_for_the_failures_before_it() -> None:
    stage = JobStage()
    stage.job(completions=2)
    stage.end(stage.running()[0], 1)
    stage.wait(10)
    stage.wait(5)
    stage.end(stage.running()[0])
    assert len(stage.running()) == 1  # at once


def test_a_container_that_restarts_in_place_uses_up_the_limit() -> None:
    stage = JobStage()
    stage.job(restart="OnFailure", backoffLimit=2)
    (pod,) = stage.running()
    stage.set_status(pod, {"phase": "Running", "containerStatuses": [{"name": "main", "restartCount": 2}]})
    assert stage.told() == ["FailureTarget", "Failed"]
    assert stage.reasons() == ["SuccessfulCreate", "SuccessfulDelete", "BackoffLimitExceeded"]
    assert stage.status(JOB, "job")["failed"] == 1


def test_a_failed_job_waits_for_its_pods_to_go() -> None:
    stage = JobStage()
    stage.hands.ends = lambda _pod: False
    stage.job(activeDeadlineSeconds=60, parallelism=2)
    stage.wait(59)
    assert stage.told() == []
    stage.wait(1)
    assert stage.told() == ["FailureTarget"]
    assert stage.status(JOB, "job")["terminating"] == 2
    stage.hands.ends = lambda _pod: True
    for pod in stage.pods():
        stage.server.delete(POD, "default", pod.name, DeleteOptions(grace=0))
    stage.settle()
    assert stage.told() == ["FailureTarget", "Failed"]
    assert stage.reasons()[-1] == "DeadlineExceeded"
    assert stage.pods() == []


def test_indexed_pods_know_their_index() -> None:
    stage = JobStage()
    stage.job(completions=5, parallelism=3, completionMode="Indexed")
    assert stage.indexes() == [0, 1, 2]
    pod = stage.of_index(1)
    assert pod.name.startswith("job-1-")
    assert pod.meta.labels[INDEX] == "1"
    spec = pod.sections["spec"].plain()
    assert spec["hostname"] == "job-1"
    variable = {"fieldRef": {"apiVersion": "v1", "fieldPath": f"metadata.labels['{INDEX}']"}}
    assert spec["containers"][0]["env"] == [{"name": "JOB_COMPLETION_INDEX", "valueFrom": variable}]


def test_completed_indexes_are_told_in_short() -> None:
    stage = JobStage()
    stage.job(completions=6, parallelism=6, completionMode="Indexed")
    told = []
    for index in (0, 2, 3, 1, 5, 4):
        stage.end(stage.of_index(index))
        told.append(stage.status(JOB, "job")["completedIndexes"])
    assert told == ["0", "0,2", "0,2,3", "0-3", "0-3,5", "0-5"]
    assert stage.status(JOB, "job")["succeeded"] == 6
    assert stage.told() == ["SuccessCriteriaMet", "Complete"]


def test_an_index_that_fails_too_often_does_not_stop_the_others() -> None:
    stage = JobStage()
    stage.job(completions=2, parallelism=2, completionMode="Indexed", backoffLimitPerIndex=1)
    stage.end(stage.of_index(0), 1)
    assert stage.indexes() == [1]
    stage.wait(10)
    again = stage.of_index(0)
    assert again.meta.annotations["batch.kubernetes.io/job-index-failure-count"] == "1"
    stage.end(again, 1)
    assert stage.status(JOB, "job")["failedIndexes"] == "0"
    assert stage.told() == []
    stage.end(stage.of_index(1))
    assert stage.told() == ["FailureTarget", "Failed"]
    assert stage.reasons()[-1] == "FailedIndexes"
    status = stage.status(JOB, "job")
    assert (status["succeeded"], status["failed"], status["completedIndexes"]) == (1, 2, "1")


def test_too_many_failed_indexes_end_the_job() -> None:
    stage = JobStage()
    stage.job(completions=3, parallelism=3, completionMode="Indexed", backoffLimitPerIndex=0, maxFailedIndexes=0)
    stage.end(stage.of_index(1), 1)
    assert stage.told() == ["FailureTarget", "Failed"]
    assert stage.reasons()[-1] == "MaxFailedIndexesExceeded"
    assert stage.running() == []


@pytest.mark.parametrize(
    ("rules", "told", "failed"),
    [
        pytest.param([{"succeededIndexes": "0"}], ["SuccessCriteriaMet", "Complete"], 0, id="the leader is enough"),
        pytest.param([{"succeededCount": 2}], [], 0, id="one of two is not enough"),
        pytest.param(
            [{"succeededIndexes": "0-2", "succeededCount": 1}],
            ["SuccessCriteriaMet", "Complete"],
            0,
            id="one of the named ones is enough",
        ),
    ],
)
def test_a_success_policy_ends_a_job_early(rules: list[dict[str, Any]], told: list[str], failed: int) -> None:
    stage = JobStage()
    stage.job(completions=3, parallelism=3, completionMode="Indexed", successPolicy={"rules": rules})
    stage.end(stage.of_index(0))
    assert stage.told() == told
    assert stage.status(JOB, "job").get("failed", 0) == failed
    assert len(stage.running()) == (0 if told else 2)


EXIT_42 = {"onExitCodes": {"operator": "In", "values": [42]}}
DISRUPTED = {"onPodConditions": [{"type": "DisruptionTarget"}]}


def test_a_pod_that_fails_as_the_policy_says_fails_the_job() -> None:
    stage = JobStage()
    stage.job(podFailurePolicy={"rules": [{"action": "FailJob", **EXIT_42}]}, parallelism=2, completions=2)
    pod, _ = stage.running()
    stage.end(pod, 42)
    assert stage.told() == ["FailureTarget", "Failed"]
    text = f"Container main for pod default/{pod.name} failed with exit code 42 matching FailJob rule at index 0"
    assert stage.events("job")[-1] == f"PodFailurePolicy: {text}"


def test_an_ignored_failure_does_not_count() -> None:
    stage = JobStage()
    stage.job(podFailurePolicy={"rules": [{"action": "Ignore", **DISRUPTED}]}, backoffLimit=0)
    (pod,) = stage.running()
    stage.end(pod, 137, conditions=[{"type": "DisruptionTarget", "status": "True"}])
    assert stage.status(JOB, "job").get("failed", 0) == 0
    stage.wait(10)
    assert len(stage.running()) == 1


def test_a_suspended_job_has_no_pods_and_starts_again_when_resumed() -> None:
    stage = JobStage()
    stage.job(parallelism=2)
    stage.wait(5)
    stage.patch(JOB, "job", {"spec": {"suspend": True}})
    status = stage.status(JOB, "job")
    assert stage.told() == ["Suspended"]
    assert "startTime" not in status
    assert status.get("failed", 0) == 0
    assert stage.pods() == []
    stage.wait(5)
    stage.patch(JOB, "job", {"spec": {"suspend": False}})
    assert stage.told() == ["(Suspended)"]
    assert stage.status(JOB, "job")["startTime"] == "2026-01-01T00:00:10Z"
    assert stage.reasons() == [
        *["SuccessfulCreate"] * 2,
        *["SuccessfulDelete"] * 2,
        "Suspended",
        *["SuccessfulCreate"] * 2,
        "Resumed",
    ]


def test_a_job_that_is_made_smaller_lets_pods_go_without_counting_them() -> None:
    stage = JobStage()
    stage.job(parallelism=3, completions=6)
    stage.patch(JOB, "job", {"spec": {"parallelism": 1}})
    assert len(stage.running()) == 1
    assert stage.status(JOB, "job").get("failed", 0) == 0


@pytest.mark.parametrize(
    ("policy", "running"),
    [
        pytest.param("TerminatingOrFailed", 1, id="a pod on its way out is replaced at once"),
        pytest.param("Failed", 0, id="a pod on its way out still holds its place"),
    ],
)
def test_deleted_pods_are_replaced(policy: str, running: int) -> None:
    stage = JobStage()
    stage.hands.ends = lambda _pod: False
    stage.job(podReplacementPolicy=policy)
    stage.server.delete(POD, "default", stage.running()[0].name)
    stage.settle()
    stage.wait(60)
    assert len([pod for pod in stage.running() if pod.meta.deletion_timestamp is None]) == running
    assert stage.status(JOB, "job").get("failed", 0) == running


def test_a_finished_job_goes_after_its_time_with_its_pods() -> None:
    stage = JobStage()
    stage.job(ttlSecondsAfterFinished=30)
    stage.end(stage.running()[0])
    stage.wait(29)
    assert stage.store.get(JOB, "default", "job") is not None
    stage.wait(1)
    assert stage.store.get(JOB, "default", "job") is None
    assert stage.pods() == []


def test_pods_of_a_deleted_job_are_let_go() -> None:
    stage = JobStage()
    stage.job(parallelism=2)
    stage.server.delete(JOB, "default", "job", DeleteOptions(propagation="Background"))
    stage.settle()
    assert stage.pods() == []


def test_a_refused_pod_is_told_and_tried_again() -> None:
    stage = JobStage()
    quota = stage.server.create(
        RESOURCE_QUOTA, "default", {"metadata": {"name": "few"}, "spec": {"hard": {"pods": "1"}}}
    ).object
    stage.server.write_status(quota, {"hard": {"pods": "1"}, "used": {"pods": "1"}})
    stage.job()
    stage.wait(3)
    assert stage.status(JOB, "job")["startTime"] == "2026-01-01T00:00:01Z"
    assert set(stage.reasons()) == {"FailedCreate"}
    stage.server.write_status(
        stage.server.get(RESOURCE_QUOTA, "default", "few"), {"hard": {"pods": "9"}, "used": {"pods": "0"}}
    )
    stage.wait(10)
    assert stage.status(JOB, "job")["active"] == 1


def test_a_job_of_another_controller_is_left_alone() -> None:
    stage = JobStage()
    stage.job(managedBy="example.com/mine")
    assert stage.pods() == []


def test_looking_again_changes_nothing() -> None:
    stage = JobStage()
    stage.job(completions=4, parallelism=2, completionMode="Indexed")
    for code in (0, 1, 0):
        stage.end(stage.running()[0], code)
        view: View = stage.store
        assert JobController().reconcile(("default", "job"), view, stage.now).writes == []
        stage.wait(30)


@settings(max_examples=20, deadline=None)
@given(st.lists(st.sampled_from((0, 0, 1, None)), max_size=12), st.sampled_from(("Indexed", "NonIndexed")))
def test_every_end_is_counted_once(codes: list[int | None], mode: str) -> None:
    """Whatever pods do, end well, end badly or be deleted, the counts are theirs and no pod stays held."""
    stage = JobStage()
    stage.job(completions=5, parallelism=3, completionMode=mode, backoffLimit=50)
    succeeded = failed = 0
    for code in codes:
        if not stage.running():
            break
        pod = stage.running()[0]
        succeeded, failed = succeeded + (code == 0), failed + (code != 0)
        if code is None:
            stage.server.delete(POD, "default", pod.name)
            stage.settle()
        else:
            stage.end(pod, code)
        stage.wait(700)
    status = stage.status(JOB, "job")
    assert (status.get("succeeded", 0), status.get("failed", 0)) == (succeeded, failed)
    assert status["uncountedTerminatedPods"] == {}
    assert (stage.told() == ["SuccessCriteriaMet", "Complete"]) == (succeeded == 5)
    assert all((TRACKING in pod.meta.finalizers) == (pod in stage.running()) for pod in stage.pods())
