"""Several quotas may refuse a workload's pods at once: every moment of it belongs to one that held then."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.ledger.questions.refusals import joined
from bayplan.ledger.rows import PendingPeriod
from bayplan.model.clock import Instant
from tests.ledger.books import CLUSTER

Told = tuple[str, int, int | None]
"""A quota, and from when until when."""


def refused(told: Told, version: int = 1) -> PendingPeriod:
    quota, start, end = told
    return PendingPeriod(
        cluster=CLUSTER,
        pod_uid="job",
        start_at=Instant(start),
        end_at=None if end is None else Instant(end),
        resource_version=version,
        reason="QuotaExceeded",
        message=f"exceeded quota: {quota}, told {version}",
    )


def told(periods: Sequence[PendingPeriod]) -> list[Told]:
    return [(each.message.split()[2].rstrip(","), each.start_at, each.end_at) for each in periods]


@pytest.mark.parametrize(
    ("periods", "found"),
    [
        pytest.param(
            [("team", 0, 20), ("gpus", 5, 8)],
            [("team", 0, 5), ("gpus", 5, 8), ("team", 8, 20)],
            id="the outer one goes on after the inner one",
        ),
        pytest.param(
            [("team", 0, None), ("gpus", 5, 8)],
            [("team", 0, 5), ("gpus", 5, 8), ("team", 8, None)],
            id="the outer one still holds",
        ),
        pytest.param([("team", 0, 8), ("gpus", 5, 20)], [("team", 0, 5), ("gpus", 5, 20)], id="one into the other"),
        pytest.param(
            [("team", 0, 20), ("gpus", 5, None)], [("team", 0, 5), ("gpus", 5, None)], id="the later one still holds"
        ),
        pytest.param(
            [("team", 0, 20), ("gpus", 0, 8)], [("gpus", 0, 8), ("team", 8, 20)], id="both from the same moment on"
        ),
        pytest.param(
            [("a", 0, 20), ("b", 2, 10), ("c", 4, 6)],
            [("a", 0, 2), ("b", 2, 4), ("c", 4, 6), ("b", 6, 10), ("a", 10, 20)],
            id="one within another within a third",
        ),
        pytest.param(
            [("a", 0, 20), ("b", 2, 6), ("c", 4, 8)],
            [("a", 0, 2), ("b", 2, 4), ("c", 4, 8), ("a", 8, 20)],
            id="one that ended behind another is not told again",
        ),
        pytest.param([("team", 0, 20), ("team", 5, 8)], [("team", 0, 20)], id="the same quota is one"),
        pytest.param([("team", 0, 20), ("gpus", 5, 5)], [("team", 0, 20)], id="an instant of another cuts nothing"),
        pytest.param([("team", 0, 5), ("gpus", 7, 8)], [("team", 0, 5), ("gpus", 7, 8)], id="a pause stays one"),
    ],
)
def test_time_is_given_to_a_quota_that_held_then(periods: list[Told], found: list[Told]) -> None:
    for order in (periods, periods[::-1]):
        assert told(joined(map(refused, order))) == found


def test_an_instant_at_the_end_of_a_wait_has_its_latest_words() -> None:
    (found,) = joined([refused(("team", 0, 5), 3), refused(("team", 5, 5), 4), refused(("gpus", 5, 5), 9)])
    assert (found.start_at, found.end_at, found.message) == (0, 5, "exceeded quota: team, told 4")


times = st.integers(0, 12)
spans = st.builds(
    lambda quota, start, lasting: (quota, start, None if lasting is None else start + lasting),
    st.sampled_from("abc"),
    times,
    st.none() | st.integers(1, 12),
)


@given(st.lists(spans, min_size=1, max_size=8))
def test_every_moment_is_told_once_by_one_of_those_that_held(periods: list[Told]) -> None:
    found = told(joined(map(refused, periods)))

    def holding(those: Sequence[Told], moment: int) -> list[str]:
        return [quota for quota, start, end in those if start <= moment and (end is None or moment < end)]

    for moment in range(26):
        now, held = holding(found, moment), holding(periods, moment)
        assert len(now) == bool(held)
        assert set(now) <= set(held)
