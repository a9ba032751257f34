"""Times and spans as people type them."""

from __future__ import annotations

from datetime import timedelta, timezone

import pytest

from bayplan.cli.ledger.printing import bar, percent, spark
from bayplan.cli.ledger.times import parse_span, parse_time, since_or_span
from bayplan.model.clock import SECOND, parse_rfc3339, rfc3339

NOW = parse_rfc3339("2026-01-03T01:30:00Z")
EAST = timezone(timedelta(hours=2))  # where it is 03:30


@pytest.mark.parametrize(
    ("text", "at"),
    [
        pytest.param("2026-01-02T03:04:05Z", "2026-01-02T03:04:05Z", id="RFC 3339"),
        pytest.param("2026-01-02T03:04:05+01:00", "2026-01-02T02:04:05Z", id="with a zone"),
        pytest.param("2026-01-02 03:04:05Z", "2026-01-02T03:04:05Z", id="with a space"),
        pytest.param("2026-01-02 03:04", "2026-01-02T01:04:00Z", id="local, without seconds"),
        pytest.param("2026-01-02T03:04:05", "2026-01-02T01:04:05Z", id="local, with a T"),
        pytest.param("2026-01-02", "2026-01-01T22:00:00Z", id="a local day begins"),
        pytest.param("now", "2026-01-03T01:30:00Z", id="now"),
        pytest.param("2h ago", "2026-01-02T23:30:00Z", id="ago"),
        pytest.param("1h30m ago", "2026-01-03T00:00:00Z", id="two units ago"),
        pytest.param("-2h", "2026-01-02T23:30:00Z", id="minus"),
        pytest.param("-1d", "2026-01-02T01:30:00Z", id="days"),
        pytest.param("yesterday 14:00", "2026-01-02T12:00:00Z", id="yesterday, by the local calendar"),
        pytest.param("Yesterday", "2026-01-01T22:00:00Z", id="yesterday begins"),
        pytest.param("today 02:15", "2026-01-03T00:15:00Z", id="today"),
        pytest.param("02:15", "2026-01-03T00:15:00Z", id="a time of today"),
        pytest.param("2:15", "2026-01-03T00:15:00Z", id="with one digit"),
    ],
)
def test_a_time(text: str, at: str) -> None:
    assert rfc3339(parse_time(text, NOW, EAST)) == at


@pytest.mark.parametrize("text", ["", "2h", "tomorrow", "yesterday 25:00", "ago", "-", "2026-13-01", "14.00", "1x ago"])
def test_what_is_no_time_is_said(text: str) -> None:
    with pytest.raises(ValueError, match="expected a time such as"):
        parse_time(text, NOW, EAST)


def test_a_bare_span_is_so_long_ago() -> None:
    assert since_or_span("7d", NOW) == NOW - 7 * 86_400 * SECOND
    assert since_or_span("-2h", NOW) == since_or_span("2h", NOW)


@pytest.mark.parametrize(
    ("text", "seconds"), [("90s", 90), ("1.5h", 5400), ("1w", 604_800), ("1d12h", 129_600), ("5", None), ("h", None)]
)
def test_a_span(text: str, seconds: int | None) -> None:
    assert parse_span(text) == (None if seconds is None else seconds * SECOND)


def test_bars_and_little_columns() -> None:
    assert [bar(part, 8, 2) for part in (0, 1, 4, 8, 9)] == ["", "▎", "█", "██", "██"]
    assert spark([0, 1, 4, 8], 10) == " ▁▄█".replace("▁", "▂").replace("▄", "▅")
    assert len(spark(list(range(100)), 10)) == 10
    assert (percent(1, 3), percent(2, 3), percent(0, 0)) == ("33%", "67%", "0%")
