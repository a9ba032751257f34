"""Times beyond all calendars are refused in one line; times in more words are understood."""

from __future__ import annotations

import pytest

from bayplan.cli.ledger.times import parse_span, parse_time
from bayplan.model.clock import SECOND, parse_rfc3339, rfc3339
from tests.cli.ledger.conftest import Ask

NOW = parse_rfc3339("2026-01-03T01:30:00Z")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param(["get", "pods", "--at", "-99999999w"], "a time from 1970 to 9999", id="ages ago"),
        pytest.param(["get", "pods", "--at", f"{'9' * 400}w ago"], "a time from 1970 to 9999", id="beyond numbers"),
        pytest.param(["usage", "--since", "99999999w"], "a time from 1970 to 9999", id="a span of ages"),
        pytest.param(["usage", "--since", "3000w"], "a time from 1970 to 9999", id="before 1970"),
        pytest.param(["get", "pods", "--at", "0001-01-01"], "a time from 1970 to 9999", id="the first day"),
        pytest.param(["get", "pods", "--at", "9999-12-31T23:59:59-10:00"], "from 1970 to 9999", id="the last day"),
        pytest.param(["get", "events", "--for", "99999999w"], "expected a span such as", id="events of ages"),
        pytest.param(["usage", "--step", f"{'9' * 400}w"], "expected a span such as", id="a step of ages"),
    ],
)
def test_absurd_times_are_one_clear_line(ask: Ask, arguments: list[str], message: str) -> None:
    told = ask(*arguments)
    assert (told.code, told.out) == (2, "")
    (line,) = [line for line in told.err.splitlines() if line.startswith("error: ")]
    assert message in line


@pytest.mark.parametrize(
    ("text", "at"),
    [
        pytest.param("2026-01-01T14:00Z", "2026-01-01T14:00:00Z", id="without seconds"),
        pytest.param("2026-01-01 14:00+02:00", "2026-01-01T12:00:00Z", id="without seconds, with a zone"),
        pytest.param("2 hours ago", "2026-01-02T23:30:00Z", id="in words"),
        pytest.param("1 day 1 hour ago", "2026-01-02T00:30:00Z", id="in several words"),
        pytest.param("1h 30m ago", "2026-01-03T00:00:00Z", id="with spaces"),
        pytest.param("90 minutes ago", "2026-01-03T00:00:00Z", id="minutes"),
        pytest.param("-1h 30m", "2026-01-03T00:00:00Z", id="minus, with spaces"),
    ],
)
def test_a_time_in_more_words(text: str, at: str) -> None:
    assert rfc3339(parse_time(text, NOW)) == at


@pytest.mark.parametrize(
    ("text", "seconds"), [("2 hours", 7200), ("1w 1d", 691_200), ("30 secs", 30), ("2 hats", None), ("2 ms", None)]
)
def test_a_span_in_words(text: str, seconds: int | None) -> None:
    assert parse_span(text) == (None if seconds is None else seconds * SECOND)
