"""Durations as settings."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.service.durations import Duration


@pytest.mark.parametrize(
    ("text", "micros", "canonical"),
    [
        pytest.param("5m", 300_000_000, "5m", id="a round duration keeps its form"),
        pytest.param("1h30m", 5_400_000_000, "1h30m", id="units add up"),
        pytest.param("90m", 5_400_000_000, "1h30m", id="the greatest unit comes first"),
        pytest.param("1h0m5s", 3_605_000_000, "1h5s", id="empty units are left out"),
        pytest.param("250ms", 250_000, "250ms", id="milliseconds"),
        pytest.param("1.5s", 1_500_000, "1.5s", id="a fraction is exact"),
        pytest.param("0", 0, "0s", id="nothing needs no unit"),
    ],
)
def test_a_duration_is_read_and_written(text: str, micros: int, canonical: str) -> None:
    assert Duration.parse(text).micros == micros
    assert str(Duration.parse(text)) == canonical


@pytest.mark.parametrize("text", ["", "5", "m", "-5m", "5 m", "5m ", "5x", "1e3s"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected a duration such as"):
        Duration.parse(text)


@given(st.integers(min_value=0, max_value=10**15))
def test_every_duration_reads_back_as_itself(micros: int) -> None:
    assert Duration.parse(str(Duration(micros))) == Duration(micros)
