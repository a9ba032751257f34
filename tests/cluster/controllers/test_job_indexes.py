"""Sets of indexes: the text, and the laws of sets."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.cluster.embedded.controllers import job_indexes

SETS = st.frozensets(st.integers(0, 40), max_size=30)


def _of(members: frozenset[int]) -> job_indexes.Indexes:
    return job_indexes.with_indexes(job_indexes.NONE, members)


@pytest.mark.parametrize(
    ("members", "text"),
    [
        pytest.param({3}, "3", id="one"),
        pytest.param({3, 4}, "3,4", id="two neighbours stand alone"),
        pytest.param({3, 4, 5}, "3-5", id="three are a range"),
        pytest.param({0, 2, 3, 7, 8, 9}, "0,2,3,7-9", id="all together"),
        pytest.param(set(), "", id="none"),
    ],
)
def test_text(members: set[int], text: str) -> None:
    assert job_indexes.text(_of(frozenset(members))) == text


@pytest.mark.parametrize(
    ("text", "members"),
    [
        pytest.param("1,3-5", {1, 3, 4, 5}, id="as written"),
        pytest.param("1,3-50", {1, 3, 4, 5, 6, 7, 8, 9}, id="what the Job does not have is cut off"),
        pytest.param("x,2,3-y", {2}, id="what cannot be read is passed over"),
        pytest.param("", set(), id="nothing"),
    ],
)
def test_parse(text: str, members: set[int]) -> None:
    assert job_indexes.parse(text, 10) == _of(frozenset(members))


@given(SETS)
def test_a_text_means_the_set_it_was_written_from(members: frozenset[int]) -> None:
    indexes = _of(members)
    assert job_indexes.parse(job_indexes.text(indexes), 41) == indexes
    assert job_indexes.total(indexes) == len(members)
    assert {index for index in range(45) if job_indexes.has(indexes, index)} == members


@given(SETS, SETS)
def test_union_and_intersection_are_those_of_sets(one: frozenset[int], other: frozenset[int]) -> None:
    assert job_indexes.merged((*_of(one), *_of(other))) == _of(one | other)
    assert job_indexes.common(_of(one), _of(other)) == len(one & other)


@given(SETS, st.integers(0, 20), st.integers(0, 45))
def test_the_first_missing_are_the_lowest_that_are_not_there(
    members: frozenset[int], count: int, completions: int
) -> None:
    missing = [index for index in range(completions) if index not in members][:count]
    assert job_indexes.first_missing(_of(members), count, completions) == missing
