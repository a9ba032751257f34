"""Sets of ids, and the kernel's way of writing them."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.node.sets import HIGHEST_ID, BadListError, format_list, ids_of, mask_of, parse_list


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("", [], id="nothing is the empty set"),
        pytest.param("0-2,8", [0, 1, 2, 8], id="ids and ranges"),
        pytest.param(" 1 , 0-0\n", [0, 1], id="blanks around, and ids in any order"),
        pytest.param("0" * 5000 + "7", [7], id="zeros in front, however many"),
    ],
)
def test_lists_that_can_be_read(text: str, expected: list[int]) -> None:
    assert [*ids_of(parse_list(text))] == expected


@pytest.mark.parametrize(
    ("text", "why"),
    [
        pytest.param("3-1", "3-1 runs backwards", id="backwards"),
        pytest.param("8192", "8192 is above 8191", id="more than Linux can have"),
        pytest.param("0-" + "9" * 5000, "is above 8191", id="more digits than Python would read"),
        pytest.param("1-", '"1-" is neither a number nor a range', id="no end"),
        pytest.param("-1", '"-1" is neither a number nor a range', id="negative"),
        pytest.param("0,,1", '"" is neither a number nor a range', id="a hole"),
        pytest.param("\N{SUPERSCRIPT TWO}", "is neither a number nor a range", id="digits that are none"),
    ],
)
def test_lists_that_cannot(text: str, why: str) -> None:
    with pytest.raises(BadListError) as told:
        parse_list(text)
    assert why in told.value.message


@given(st.sets(st.integers(0, HIGHEST_ID)))
def test_what_is_written_can_be_read(ids: set[int]) -> None:
    assert parse_list(format_list(mask_of(ids))) == mask_of(ids)


@given(st.text("0123456789-, \n+x", max_size=20))
def test_any_text_is_read_or_refused(text: str) -> None:
    with contextlib.suppress(BadListError):
        assert parse_list(format_list(parse_list(text))) == parse_list(text)
