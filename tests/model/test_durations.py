"""Durations are read and written as Go does."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.model.clock import SECOND
from bayplan.model.durations import DurationError, format_duration, parse_duration
from tests.model.recorded import recorded


@pytest.mark.parametrize(
    ("text", "microseconds", "written"),
    [
        pytest.param("1h2m3s", 3723 * SECOND, "1h2m3s", id="hours, minutes, seconds"),
        pytest.param("250ms", 250_000, "250ms", id="milliseconds"),
        pytest.param("90s", 90 * SECOND, "1m30s", id="seconds carry over"),
        pytest.param("1.5h", 5400 * SECOND, "1h30m0s", id="a fraction of an hour"),
        pytest.param("-1.5s", -1_500_000, "-1.5s", id="a span backwards"),
        pytest.param("999ns", 0, "0s", id="what is finer than a microsecond is cut"),
        pytest.param("0", 0, "0s", id="zero needs no unit"),
    ],
)
def test_a_duration(text: str, microseconds: int, written: str) -> None:
    assert parse_duration(text) == microseconds
    assert format_duration(microseconds) == written


def test_every_recorded_duration_is_read_as_go_reads_it() -> None:
    for case in recorded("durations"):
        expected = case["expected"]
        if "error" in expected:
            with pytest.raises(DurationError) as refused:
                parse_duration(case["text"])
            assert refused.value.message == expected["error"]
        else:
            span = parse_duration(case["text"])
            assert {"microseconds": span, "string": format_duration(span)} == expected, case["text"]


def test_an_endless_number_is_refused_not_computed() -> None:
    with pytest.raises(DurationError, match="invalid duration"):
        parse_duration("9" * 10_000 + "h")


@given(st.integers(-(2**62) // 1000, 2**62 // 1000))
def test_what_is_written_reads_back_the_same(microseconds: int) -> None:
    # Go reads fractions by way of a float, which may cost the last microsecond
    assert abs(parse_duration(format_duration(microseconds)) - microseconds) <= 1
