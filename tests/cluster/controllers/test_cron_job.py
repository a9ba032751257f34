"""CronJobs start Jobs by the clock, keep some of them, and tell what became of them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from bayplan.cluster.embedded.admission.workloads.cron_schedule import read_schedule
from bayplan.cluster.embedded.controllers.cron_job import SCHEDULED_TIMESTAMP, CronJobController
from bayplan.cluster.embedded.controllers.cron_job_times import Missed, NeverDueError, due, next_after
from bayplan.cluster.kinds import CRON_JOB, JOB
from bayplan.model.clock import SECOND, Instant, parse_rfc3339, rfc3339

from .stage import START, Stage

MINUTE = START // SECOND // 60


@pytest.mark.parametrize(
    ("schedule", "after", "expected"),
    [
        pytest.param("* * * * *", "2026-01-01T00:00:00Z", "2026-01-01T00:01:00Z", id="a time is not its own next"),
        pytest.param("*/15 8-9 * * 1-5", "2026-01-02T09:50:00Z", "2026-01-05T08:00:00Z", id="over a weekend"),
        pytest.param("0 0 13 * 5", "2026-01-02T12:00:00Z", "2026-01-09T00:00:00Z", id="either day is enough"),
        pytest.param("0 0 */1 * 5", "2026-01-02T12:00:00Z", "2026-01-09T00:00:00Z", id="a step of one leaves it open"),
        pytest.param("0 0 */2 * 5", "2026-01-02T12:00:00Z", "2026-01-03T00:00:00Z", id="a step of two restricts it"),
        pytest.param("0 0 29 2 *", "2026-03-01T00:00:00Z", "2028-02-29T00:00:00Z", id="a leap day"),
        pytest.param("0 0 31 2 *", "2026-01-01T00:00:00Z", None, id="a day that never comes"),
        pytest.param("@every 90s", "2026-01-01T00:00:01Z", "2026-01-01T00:01:31Z", id="a span counts from then"),
        pytest.param("TZ=Asia/Tokyo 0 9 * * *", "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z", id="another zone"),
        pytest.param(
            "TZ=America/New_York 30 2 * * *", "2026-03-08T05:00:00Z", "2026-03-09T06:30:00Z", id="an hour left out"
        ),
        pytest.param(
            "TZ=America/New_York 30 1 * * *", "2026-11-01T05:30:00Z", "2026-11-01T06:30:00Z", id="an hour come twice"
        ),
        pytest.param(
            "TZ=America/Sao_Paulo 0 0 * * *", "2018-11-03T12:00:00Z", "2018-11-05T02:00:00Z", id="no midnight that day"
        ),
    ],
)
def test_next_time(schedule: str, after: str, expected: str | None) -> None:
    found = next_after(read_schedule(schedule), parse_rfc3339(after))
    assert (None if found is None else rfc3339(found)) == expected


@given(
    schedule=some.sampled_from(("*/7 * * * *", "0 3 * * 1", "TZ=Europe/Berlin 30 2 1-7 * *", "@every 37s")),
    at=some.integers(min_value=0, max_value=4_000_000_000),
)
def test_nothing_is_due_between_two_times(schedule: str, at: int) -> None:
    read = read_schedule(schedule)
    after = Instant(at * SECOND)
    found = next_after(read, after)
    assert found is not None
    assert found > after
    if not schedule.startswith("@"):
        assert next_after(read, Instant((after + found) // 2)) == found


def test_what_was_missed() -> None:
    each = read_schedule("* * * * *")
    assert due(each, START, Instant(START + 30 * SECOND)).last is None
    assert due(each, START, Instant(START + 90 * SECOND)) == (START, START + 60 * SECOND, Missed.NONE)
    assert due(each, START, Instant(START + 600 * SECOND)) == (START, START + 600 * SECOND, Missed.FEW)
    assert due(each, START, Instant(START + 6060 * SECOND)).missed is Missed.MANY
    with pytest.raises(NeverDueError, match="less than 1 second"):
        due(read_schedule("0 0 31 2 *"), START, START)


def stage(schedule: str = "* * * * *", **spec: Any) -> Stage:
    made = Stage(CronJobController(), hands=False)
    pod = {"containers": [{"name": "main", "image": "x"}], "restartPolicy": "Never"}
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"template": {"spec": pod}}}
    made.create(CRON_JOB, "tick", {"schedule": schedule, "jobTemplate": template, **spec})
    return made


def end(world: Stage, job: str, condition: str = "Complete") -> None:
    now = rfc3339(world.now)
    status = {"conditions": [{"type": condition, "status": "True"}], "startTime": now}
    if condition == "Complete":
        status["completionTime"] = now
    world.server.write_status(world.server.get(JOB, "default", job), status)
    world.settle()


def jobs(world: Stage) -> list[str]:
    return [job.name for job in world.store.objects(JOB, "default")]


def test_a_job_a_minute_is_named_after_the_minute() -> None:
    world = stage()
    assert jobs(world) == []
    world.wait(60.05)
    assert jobs(world) == []
    world.wait(0.1)
    job = world.server.get(JOB, "default", f"tick-{MINUTE + 1}")
    assert job.meta.annotations == {SCHEDULED_TIMESTAMP: "2026-01-01T00:01:00Z"}
    assert job.meta.labels["a"] == "b"
    assert world.status(CRON_JOB, "tick") == {
        "active": [
            {
                "kind": "Job",
                "namespace": "default",
                "name": job.name,
                "uid": job.uid,
                "apiVersion": "batch/v1",
                "resourceVersion": job.meta.resource_version,
            }
        ],
        "lastScheduleTime": "2026-01-01T00:01:00Z",
    }
    assert world.events("tick") == [f"SuccessfulCreate: Created job {job.name}"]
    world.wait(120)
    assert len(jobs(world)) == 3


def test_ended_jobs_are_noted_and_old_ones_go() -> None:
    world = stage(successfulJobsHistoryLimit=1, failedJobsHistoryLimit=0)
    for number in (1, 2, 3):
        world.wait(60.1)
        end(world, f"tick-{MINUTE + number}", "Failed" if number == 3 else "Complete")
    assert jobs(world) == [f"tick-{MINUTE + 2}"]
    assert world.status(CRON_JOB, "tick") == {
        "lastScheduleTime": "2026-01-01T00:03:00Z",
        "lastSuccessfulTime": "2026-01-01T00:02:00Z",
    }
    assert world.events("tick")[-3:] == [
        f"SawCompletedJob: Saw completed job: tick-{MINUTE + 2}, condition: Complete",
        f"SuccessfulCreate: Created job tick-{MINUTE + 3}",
        f"SuccessfulDelete: Deleted job tick-{MINUTE + 3}",
    ]


@pytest.mark.parametrize(
    ("policy", "left", "event"),
    [
        pytest.param("Allow", 3, "SuccessfulCreate", id="jobs may run beside each other"),
        pytest.param("Forbid", 1, "JobAlreadyActive", id="the next waits for the first"),
        pytest.param("Replace", 1, "SuccessfulCreate", id="the next takes the place of the first"),
    ],
)
def test_concurrency(policy: str, left: int, event: str) -> None:
    world = stage(concurrencyPolicy=policy)
    world.wait(181)
    assert len(jobs(world)) == left
    assert world.events("tick")[-1].startswith(event)
    assert len(world.status(CRON_JOB, "tick")["active"]) == left


def test_a_suspended_one_starts_nothing_and_takes_up_the_last_missed_time() -> None:
    world = stage(suspend=True)
    world.wait(600)
    assert jobs(world) == []
    world.wait(30)
    world.patch(CRON_JOB, "tick", {"spec": {"suspend": False}})
    assert jobs(world) == [f"tick-{MINUTE + 10}"]


def test_a_deadline_keeps_a_late_job_from_starting() -> None:
    world = stage("0 * * * *", suspend=True, startingDeadlineSeconds=60)
    world.wait(3700)
    world.patch(CRON_JOB, "tick", {"spec": {"suspend": False}})
    assert jobs(world) == []
    world.wait(3600)
    assert jobs(world) == [f"tick-{MINUTE + 120}"]


def test_a_new_schedule_waits_for_its_next_time() -> None:
    world = stage("0 0 1 1 *")
    world.wait(330)
    world.patch(CRON_JOB, "tick", {"spec": {"schedule": "*/5 * * * *"}})
    assert jobs(world) == []
    world.wait(300)
    assert jobs(world) == [f"tick-{MINUTE + 10}"]


def test_a_job_made_by_hand_is_unexpected_but_its_success_counts() -> None:
    world = stage("0 0 1 1 *")
    owner = world.server.get(CRON_JOB, "default", "tick")
    reference = {"apiVersion": "batch/v1", "kind": "CronJob", "name": "tick", "uid": owner.uid, "controller": True}
    pod = {"containers": [{"name": "main", "image": "x"}], "restartPolicy": "Never"}
    world.create(JOB, "mine", {"template": {"spec": pod}}, ownerReferences=[reference])
    assert world.events("tick") == ["UnexpectedJob: Saw a job that the controller did not create or forgot: mine"]
    end(world, "mine")
    assert world.status(CRON_JOB, "tick") == {"lastSuccessfulTime": rfc3339(START)}


def test_a_job_that_went_away_is_missed() -> None:
    world = stage()
    world.wait(61)
    world.server.delete(JOB, "default", f"tick-{MINUTE + 1}")
    world.settle()
    assert world.events("tick")[-1] == f"MissingJob: Active job went missing: tick-{MINUTE + 1}"
    assert "active" not in world.status(CRON_JOB, "tick")


def test_the_zone_counts() -> None:
    world = stage("30 9 * * *", timeZone="Asia/Tokyo")
    world.wait(1801)
    made = world.server.get(JOB, "default", jobs(world)[0])
    assert made.meta.annotations[SCHEDULED_TIMESTAMP] == "2026-01-01T09:30:00+09:00"
    assert datetime.fromtimestamp(int(made.name.removeprefix("tick-")) * 60, UTC).hour == 0
