"""Answers in the other forms, and names as answers print them."""

from __future__ import annotations

import csv
import io
import json

import pytest

from tests.cli.ledger.conftest import Ask


def test_a_timeline_as_csv_has_the_bars_of_the_picture(ask: Ask) -> None:
    rows = list(csv.DictReader(io.StringIO(ask("timeline", "trainer", "-o", "csv").out)))
    assert [(row["POD"], row["DOING"], row["START"][11:16], row["END"][11:16], row["GPUS"]) for row in rows] == [
        ("trainer-0", "waiting", "01:00", "02:00", "8"),
        ("trainer-0", "holding", "02:00", "02:30", "8"),
        ("trainer-0", "running", "02:30", "10:00", "8"),
    ]


def test_doctor_as_csv_and_in_a_wide_table(ask: Ask) -> None:
    (row,) = csv.DictReader(io.StringIO(ask("doctor", "--offline", "-o", "csv").out))
    assert (row["CODE"], row["LEVEL"], row["SUBJECT"]) == ("LD015", "warning", "east")
    lines = ask("doctor", "--offline", "-o", "wide").out.splitlines()
    assert [line.split()[0] for line in lines if line] == ["CODE", "LD015", "checked"]


def test_idle_steps_in_json_add_up_and_say_when_they_begin(ask: Ask) -> None:
    found = json.loads(ask("idle", "--since", "24h", "--step", "12h", "-o", "json").out)
    assert found["starts"] == ["2026-01-01T00:00:00.000000Z", "2026-01-01T12:00:00.000000Z"]
    for line in found["lines"]:
        steps = zip(line["capacity"], line["allocated"], strict=True)
        assert line["idle"] == [had - taken for had, taken in steps]


def test_before_it_existed_there_is_nothing_to_draw(ask: Ask) -> None:
    told = ask("timeline", "trainer", "--until", "2025-01-01T00:00:00Z")
    assert told.out == (
        "vision/trainer (Job) did not exist yet at 2025-01-01T00:00:00Z: it was made at 2026-01-01T01:00:00Z.\n"
    )


@pytest.mark.parametrize(
    "name",
    ["vision/Job/trainer", "job.batch/trainer", "jobs.batch/trainer", "job.v1.batch/trainer", "Job/trainer"],
)
def test_a_workload_is_found_by_the_names_that_are_printed(ask: Ask, name: str) -> None:
    assert ask("timeline", name).out.startswith("vision/trainer (Job): ")


@pytest.mark.parametrize("name", ["lab/Pod/notebook", "lab/notebook", "pod/notebook"])
def test_so_is_a_pod_that_nobody_made(ask: Ask, name: str) -> None:
    assert ask("timeline", name).out.startswith("lab/notebook (Pod): ")


@pytest.mark.parametrize("name", ["prod/Job/trainer", "vision/Deployment/trainer", "job.apps/trainer", "a/b/c/d"])
def test_a_name_of_something_else_is_not_guessed_at(ask: Ask, name: str) -> None:
    assert "no such workload or GPU pod" in ask("timeline", name).err


@pytest.mark.parametrize(
    ("columns", "ticks"),
    [
        pytest.param(49, ["|01:00:00"], id="the second would be cut"),
        pytest.param(50, ["|01:00:00", "|07:53:47"], id="the second just fits"),
    ],
)
def test_a_tick_that_does_not_fit_is_left_out(
    ask: Ask, columns: int, ticks: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    assert ask("timeline", "trainer").out.splitlines()[2].split() == ticks
