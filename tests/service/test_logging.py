"""Logs: what is written, at which level, in which form."""

from __future__ import annotations

import io
import json
import logging as stdlib
from collections.abc import Iterator
from typing import Any

import pytest

from bayplan.model.clock import VirtualClock
from bayplan.service.levels import Levels
from bayplan.service.logging import Logs
from bayplan.service.settings import LogSettings


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def _root_logger() -> Iterator[None]:
    root = stdlib.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


def logs_to(stream: io.StringIO, levels: str = "info", form: Any = "auto") -> Logs:
    logs = Logs()
    logs.configure(LogSettings(format=form, levels=Levels.parse(levels)), VirtualClock(), stream)
    return logs


def test_elsewhere_than_on_a_terminal_a_line_is_one_json_object() -> None:
    stream = io.StringIO()
    logs_to(stream).get("bayplan.node.gpu").info("pod\nplaced", pod="vision/trainer-3", gpus=[0, 1])
    assert stream.getvalue().count("\n") == 1
    assert json.loads(stream.getvalue()) == {
        "ts": "2026-01-01T00:00:00.000000Z",
        "level": "info",
        "logger": "node.gpu",
        "msg": "pod\nplaced",
        "pod": "vision/trainer-3",
        "gpus": [0, 1],
    }


def test_on_a_terminal_a_line_is_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    stream = Terminal()
    logs_to(stream).get("ledger").warning("gap found", since="10:00", why='the "watch" ended', rows=3)
    expected = '2026-01-01T00:00:00.000Z WARNING ledger: gap found since=10:00 why="the \\"watch\\" ended" rows=3\n'
    assert stream.getvalue() == expected


def test_colour_is_for_terminals_that_want_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    terminal, file = Terminal(), io.StringIO()
    logs_to(terminal).get("a").error("x")
    logs_to(file, form="text").get("a").error("x")
    assert "\x1b[31mERROR" in terminal.getvalue()
    assert "\x1b" not in file.getvalue()


def test_nobody_forges_a_line() -> None:
    stream = io.StringIO()
    logs_to(stream, form="text").get("a").info("x\n2026 ERROR b: y", pod="c\nd", raw="\x1b[2J\x9b")
    assert stream.getvalue().count("\n") == 1
    assert "\x1b" not in stream.getvalue()
    assert "\x9b" not in stream.getvalue()


@pytest.mark.parametrize(
    ("levels", "said"),
    [
        ("info", ["info", "warning", "error"]),
        ("trace", ["trace", "debug", "info", "warning", "error"]),
        ("node=error", ["error"]),
        ("error,node.gpu=debug", ["debug", "info", "warning", "error"]),
    ],
)
def test_a_room_says_what_its_level_admits(levels: str, said: list[str]) -> None:
    stream = io.StringIO()
    log = logs_to(stream, levels).get("node.gpu")
    for level in ("trace", "debug", "info", "warning", "error"):
        getattr(log, level)("x")
    assert [json.loads(line)["level"] for line in stream.getvalue().splitlines()] == said
    assert (log.traces, log.debugs) == ("trace" in said, "debug" in said)


def test_levels_change_while_running() -> None:
    stream = io.StringIO()
    logs = logs_to(stream)
    log = logs.get("ledger")
    log.debug("one")
    logs.set_levels(Levels.parse("ledger=debug"))
    log.debug("two")
    logs.set_levels(Levels.parse("info"))
    log.debug("three")
    assert [json.loads(line)["msg"] for line in stream.getvalue().splitlines()] == ["two"]


def test_an_exception_comes_with_its_traceback_and_without_its_secrets() -> None:
    stream = io.StringIO()
    try:
        raise ValueError("cannot reach postgresql://ann:hunter2@db")
    except ValueError as error:
        logs_to(stream).get("ledger").error("failed", exc=error)
    line = json.loads(stream.getvalue())
    assert line["error"] == "ValueError: cannot reach postgresql://ann:[redacted]@db"
    assert line["trace"].startswith("Traceback")
    assert "hunter2" not in stream.getvalue()


@pytest.mark.parametrize("form", ["text", "json"])
def test_secrets_are_never_logged(form: str) -> None:
    stream = io.StringIO()
    logs = logs_to(stream, form=form)
    logs.get("a").info("password=hunter2", token="hunter2", headers={"Authorization": "Bearer hunter2hunter2"})
    stdlib.getLogger("other").warning("token=%s", "hunter2")
    assert stream.getvalue().count("\n") == 2
    assert "hunter2" not in stream.getvalue()


def test_a_field_may_have_a_name_that_the_line_uses_itself() -> None:
    stream = io.StringIO()
    logs_to(stream).get("a").info("x", level=3, msg="y", exc="none")
    line = json.loads(stream.getvalue())
    assert (line["level"], line["level_"], line["msg"], line["msg_"]) == ("info", 3, "x", "y")


def test_other_libraries_come_out_the_same_way_under_the_same_levels() -> None:
    stream = io.StringIO()
    logs_to(stream, "info,noisy=error")
    stdlib.getLogger("noisy.part").warning("not said")
    stdlib.getLogger("quiet").critical("said %d", 1)
    (line,) = map(json.loads, stream.getvalue().splitlines())
    assert (line["level"], line["logger"], line["msg"]) == ("error", "quiet", "said 1")


@pytest.mark.parametrize(
    ("levels", "said"),
    [
        pytest.param("info", ["warning"], id="warnings alone"),
        pytest.param("debug", ["warning"], id="also where the house says more"),
        pytest.param("error", [], id="not even those where the house says less"),
        pytest.param("httpx2=info", ["info", "warning"], id="more where it is named"),
        pytest.param("a=trace,warning", ["warning"], id="another name is not its own"),
    ],
)
def test_a_library_says_little_unless_it_is_named(levels: str, said: list[str]) -> None:
    stream = io.StringIO()
    logs_to(stream, levels)
    for level in ("debug", "info", "warning"):
        getattr(stdlib.getLogger("httpx2.part"), level)("x")
    assert [json.loads(line)["level"] for line in stream.getvalue().splitlines()] == said


def test_a_stream_that_is_gone_stops_no_work() -> None:
    stream = io.StringIO()
    log = logs_to(stream).get("a")
    stream.close()
    log.info("x")
