"""Which revisions a stream tells late, and when it must ask how late it is."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from bayplan.cluster.live.reflector import Batch
from bayplan.ledger.lateness import Lateness
from bayplan.model.clock import Instant, seconds

Step = tuple[float, float, int, int]
"""Seconds of waiting for a batch and of handing it on; its revision, and how far its reflector says it is behind."""


def _told(*steps: Step, present: Iterator[int]) -> list[tuple[int, bool]]:
    """Of each batch how far it is behind, and whether the server was asked after it."""
    lateness, now, found = Lateness(), 0, []
    for wait, hold, revision, behind in steps:
        now += seconds(wait)
        batch = Batch((), str(revision), behind=behind)
        marked = lateness.marked(batch, Instant(now))
        now += seconds(hold)
        asks = lateness.handed_on(batch, Instant(now))
        if asks:
            lateness.is_behind(next(present), Instant(now))
        found.append((marked.behind, asks))
    return found


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        pytest.param(
            [(10, 0, 5, 0), (0.1, 0.1, 6, 0), (0.1, 0.1, 7, 0)],
            [(0, False), (0, False), (0, False)],
            id="who is never held up is never late",
        ),
        pytest.param(
            [(10, 1.5, 5, 0), (0, 0, 50, 0), (0, 0, 120, 0), (0, 0, 121, 0)],
            [(0, True), (100, False), (100, False), (0, False)],
            id="a long hold-up makes late what happened up to its end",
        ),
        pytest.param(
            [(10, 0.6, 5, 0), (0.1, 0.6, 6, 0), (0.1, 0, 7, 0)],
            [(0, False), (0, True), (100, False)],
            id="short ones add up while there is more to read",
        ),
        pytest.param(
            [(10, 0.6, 5, 0), (0.5, 0.6, 6, 0), (0.5, 0.6, 7, 0)],
            [(0, False), (0, False), (0, False)],
            id="and do not where all was read in between",
        ),
        pytest.param(
            [(10, 0.2, 5, 90), (0, 0.2, 95, 90), (0, 0, 96, 0)],
            [(90, False), (90, False), (0, False)],
            id="a backlog that is soon read is late, and what follows is not",
        ),
        pytest.param(
            [(10, 0.7, 5, 90), (0, 0.7, 95, 90), (0, 0.7, 96, 0), (0, 0.7, 150, 0), (0, 0.1, 220, 0), (0, 0, 221, 0)],
            [(90, False), (90, True), (100, False), (100, True), (200, False), (0, False)],
            id="what happened while a long backlog was read is late too",
        ),
        pytest.param(
            [(10, 0.1, 5, 90), (0.7, 0.1, 50, 90), (0.7, 0.1, 95, 90), (0, 0, 110, 0)],
            [(90, False), (90, False), (90, True), (100, False)],
            id="who waits while there is more to read has not read all",
        ),
        pytest.param(
            [(10, 0.6, 5, 90), (0, 0.6, 95, 90), (60, 0, 150, 0), (60, 0, 151, 0)],
            [(90, False), (90, True), (100, False), (0, False)],
            id="a quiet stream asks once",
        ),
    ],
)
def test_what_is_told_late(steps: list[Step], expected: list[tuple[int, bool]]) -> None:
    assert _told(*steps, present=iter([100, 200, 300])) == expected
