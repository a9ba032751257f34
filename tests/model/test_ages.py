"""Ages and spans, as kubectl has them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.model.ages import age, human_duration

S, M, H, D = 1, 60, 3600, 86400
Y = 365 * D


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-2, "<invalid>"),
        (-1.9, "0s"),
        (-1, "0s"),
        (-0.5, "0s"),
        (0, "0s"),
        (95 * S, "95s"),
        (119.9, "119s"),
        (2 * M, "2m"),
        (5 * M + 3, "5m3s"),
        (10 * M - 1, "9m59s"),
        (10 * M + 59, "10m"),
        (3 * H - 1, "179m"),
        (3 * H, "3h"),
        (5 * H + 12 * M, "5h12m"),
        (8 * H, "8h"),
        (48 * H - 1, "47h"),
        (48 * H, "2d"),
        (2 * D + 5 * H, "2d5h"),
        (8 * D - 1, "7d23h"),
        (8 * D + 5 * H, "8d"),
        (400 * D, "400d"),
        (2 * Y, "2y"),
        (2 * Y + 80 * D, "2y80d"),
        (8 * Y - 1, "7y364d"),
        (10 * Y + 40 * D, "10y"),
    ],
)
def test_a_span_as_kubectl_shows_it(seconds: float, text: str) -> None:
    assert human_duration(int(seconds * 1_000_000)) == text


@given(st.integers(min_value=0, max_value=10**16))
def test_no_age_is_longer_than_six_characters_in_eight_years(span: int) -> None:
    assert len(human_duration(span)) <= 6


def test_the_age_of_what_has_no_birthday() -> None:
    assert age(None, 5) == "<unknown>"
    assert age(1_000_000, 96_000_000) == "95s"
