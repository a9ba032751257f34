"""`bayplan ledger` about the past, in JSON too: nothing of later stands in it; and about clusters that fell silent."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.ledger.conftest import Ask
from tests.ledger.books import hour, node, workload, written
from tests.ledger.questions.test_rebuilt import a_job, others
from tests.ledger.questions.test_silent_clusters import two_clusters


@pytest.fixture
def past(tmp_path: Path) -> tuple[str, ...]:
    """The flags that ask a ledger of workloads with versions, and of a node without GPUs."""

    async def write() -> None:
        rows = [*a_job(), *others(), node("cpu-1", "", 0, updated_at=hour(7))]
        await (await written(str(tmp_path / "past.db"), rows)).close()

    asyncio.run(write())
    return ("--database", f"sqlite:///{tmp_path / 'past.db'}")


@pytest.fixture
def two(tmp_path: Path) -> tuple[str, ...]:
    """The flags that ask a ledger of which one cluster fell silent at one o'clock."""

    async def write() -> None:
        await (await written(str(tmp_path / "two.db"), two_clusters())).close()

    asyncio.run(write())
    return ("--database", f"sqlite:///{tmp_path / 'two.db'}")


def _items(ask: Ask, *arguments: str) -> dict[str, dict[str, Any]]:
    return {each["name"]: each for each in json.loads(ask("get", *arguments, "-A", "-o", "json").out)["items"]}


def test_a_workload_of_the_past_in_json(ask: Ask, past: tuple[str, ...]) -> None:
    found = _items(ask, "workloads", "--at", "2026-01-01T02:30:00Z", *past)
    names = ("status", "status_reason", "resource_version", "labels", "gpu_request", "updated_at", "end_at")
    assert [found["train"][name] for name in names] == [
        "Pending",
        "0 of 1 active pods ready",
        3,
        {"stage": "begun"},
        8000,
        "2026-01-01T02:00:00.000000Z",
        None,
    ]
    assert [found["late"][name] for name in names] == ["Pending", "no pods yet", None, {}, 0, None, None]


def test_a_node_of_the_past_in_json(ask: Ask, past: tuple[str, ...]) -> None:
    day = json.loads(ask("get", "nodes", "--at", "2026-01-01T06:30:00Z", "-o", "json").out)["items"][1]
    assert [day[name] for name in ("name", "hurdle", "ready", "schedulable")] == ["h100-1", "not ready", False, True]
    plain = _items(ask, "nodes", "--at", "2026-01-01T06:30:00Z", *past)["cpu-1"]
    assert [plain[name] for name in ("hurdle", "ready", "schedulable", "resource_version")] == [None] * 4


@pytest.mark.parametrize(
    "flags",
    [
        pytest.param((), id="seven days"),
        pytest.param(("--since", "2026-01-01T10:00:00Z", "--until", "2026-01-01T18:00:00Z"), id="between two times"),
        pytest.param(("--since", "2026-01-01T18:00:00Z", "--until", "2026-01-02"), id="after the silence began"),
        pytest.param(("--since", "2026-01-01", "--until", "2026-01-02", "--step", "1h"), id="by the hour"),
    ],
)
def test_gpu_hours_of_all_are_those_of_each(ask: Ask, two: tuple[str, ...], flags: tuple[str, ...]) -> None:
    def total(*more: str) -> int:
        told = ask("usage", *flags, *more, *two, "-o", "json")
        return int(json.loads(told.out)["gpuNanoseconds"]) if told.code == 0 else 0  # its present is before the window

    assert total() == total("--cluster", "east") + total("--cluster", "west")


def test_a_silent_cluster_is_named_and_told_as_of_its_last_word(ask: Ask, two: tuple[str, ...]) -> None:
    told = ask("get", "pods", "-A", *two)
    assert told.err.splitlines() == [
        "the ledger's last word is from 2026-01-02T00:00:00Z: that is taken as the present",
        "west: its last word is from 2026-01-01T13:00:00Z, and nothing counts after that",
    ]
    ages = {(cells[0], cells[2]): cells[-1] for line in told.out.splitlines() if (cells := line.split())}
    assert (ages["east", "notebook"], ages["west", "notebook"]) == ("16h", "5h")
    nodes = [line.split() for line in ask("get", "nodes", *two).out.splitlines()]
    assert [(cells[0], cells[5]) for cells in nodes if cells[1] == "a100-1"] == [("east", "24h"), ("west", "13h")]


def test_an_open_workload_ends_its_timeline_with_its_cluster(ask: Ask, tmp_path: Path, two: tuple[str, ...]) -> None:
    lines = [ask("timeline", "notebook", "--cluster", name, *two).out.splitlines()[0] for name in ("east", "west")]
    assert [line.split(" to ")[1] for line in lines] == ["2026-01-02T00:00:00Z, 16h", "2026-01-01T13:00:00Z, 5h"]

    async def write() -> None:
        rows = [row for row in two_clusters() if row.cluster == "east" or getattr(row, "name", "") != "serve-1"]
        await (await written(str(tmp_path / "one.db"), [*rows, workload("w", cluster="west")])).close()

    asyncio.run(write())
    alone = ask("timeline", "vision/Job/w", "--database", f"sqlite:///{tmp_path / 'one.db'}")
    assert alone.out.splitlines()[1] == "It had no GPU pods by then."
