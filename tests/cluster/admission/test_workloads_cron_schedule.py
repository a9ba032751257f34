"""Cron schedules as robfig/cron reads them."""

from __future__ import annotations

import pytest

from bayplan.cluster.embedded.admission.workloads.cron_schedule import ScheduleError, location_fault, read_schedule


@pytest.mark.parametrize(
    "schedule",
    [
        "* * * * *",
        "*/5 0-6 1,15 JAN-mar mon-FRI",
        "0 0 ? * 0",
        "5/10 * * * *",
        "@daily",
        "@every 1h30m",
        "@every -1.5s",
        "CRON_TZ=UTC 0 0 * * *",
        "  0 0 * * *  ",
    ],
)
def test_a_good_schedule(schedule: str) -> None:
    read_schedule(schedule)


@pytest.mark.parametrize(
    ("schedule", "fault"),
    [
        pytest.param("* * * *", "expected exactly 5 fields, found 4: [* * * *]", id="four fields"),
        pytest.param("60 * * * *", "end of range (60) above maximum (59): 60", id="a minute too high"),
        pytest.param("* * 0 * *", "beginning of range (0) below minimum (1): 0", id="a day too low"),
        pytest.param("5-1 * * * *", "beginning of range (5) beyond end of range (1): 5-1", id="a range backwards"),
        pytest.param("*/0 * * * *", "step of range should be a positive number: */0", id="a step of nothing"),
        pytest.param("1-2-3 * * * *", "too many hyphens: 1-2-3", id="a range of three"),
        pytest.param("*/2/3 * * * *", "too many slashes: */2/3", id="two steps"),
        pytest.param(
            "x * * * *",
            'failed to parse int from x: strconv.Atoi: parsing "x": invalid syntax',
            id="a word where no name is known",
        ),
        pytest.param(
            "99999999999999999999 * * * *",
            "failed to parse int from 99999999999999999999: "
            'strconv.Atoi: parsing "99999999999999999999": value out of range',
            id="a number that does not fit",
        ),
        pytest.param("@reboot", "unrecognized descriptor: @reboot", id="an unknown descriptor"),
        pytest.param("@every 5", 'failed to parse duration @every 5: time: missing unit in duration "5"', id="no unit"),
        pytest.param(
            "@every 5d",
            'failed to parse duration @every 5d: time: unknown unit "d" in duration "5d"',
            id="a unit that Go does not know",
        ),
        pytest.param("@every x", 'failed to parse duration @every x: time: invalid duration "x"', id="no duration"),
        pytest.param(
            "TZ=No/Where * * * * *", "provided bad location No/Where: unknown time zone No/Where", id="no zone"
        ),
        pytest.param(
            "TZ=UTC",
            "invalid schedule format: runtime error: slice bounds out of range [:-1]",
            id="a zone without a schedule",
        ),
    ],
)
def test_a_bad_schedule_tells_why(schedule: str, fault: str) -> None:
    with pytest.raises(ScheduleError) as raised:
        read_schedule(schedule)
    assert str(raised.value) == fault


def test_time_zones_are_those_of_the_database() -> None:
    assert location_fault("Europe/Berlin") is None
    assert location_fault("europe/berlin") == "unknown time zone europe/berlin"
    assert location_fault("../x") == "time: invalid location name"
