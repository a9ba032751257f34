"""A replay beside its recording, in numbers."""

from __future__ import annotations

import pytest

from bayplan.model.clock import SECOND, Instant
from bayplan.simulate.recording.comparison import Replayed, Stay, compared

BEGAN, ENDED = Instant(0), Instant(60 * SECOND)


def _at(second: float | None) -> Instant | None:
    return None if second is None else Instant(int(second * SECOND))


def _pod(arrived: float, recorded: tuple[str, float | None], replayed: tuple[str, float | None]) -> Replayed:
    stays = [Stay(node, _at(bound)) for node, bound in (recorded, replayed)]
    return Replayed("default/p", Instant(int(arrived * SECOND)), *stays)


@pytest.mark.parametrize(
    ("pods", "same", "waits", "pending"),
    [
        pytest.param([], None, (None, None), (0.0, 0.0), id="nothing happened"),
        pytest.param([_pod(0, ("a", 0), ("a", 0))], 1.0, (0, 0), (0, 0), id="the same at once"),
        pytest.param([_pod(0, ("a", 0), ("b", 30))], 0.0, (0, 30), (0, 0.5), id="elsewhere and later"),
        pytest.param([_pod(30, ("a", 30), ("", None))], None, (0, None), (0, 0.5), id="never the second time"),
        pytest.param(
            [_pod(0, ("a", 0), ("a", 0)), _pod(0, ("a", 0), ("b", 0))], 0.5, (0, 0), (0, 0), id="one of two the same"
        ),
    ],
)
def test_compared(
    pods: list[Replayed],
    same: float | None,
    waits: tuple[float | None, float | None],
    pending: tuple[float, float],
) -> None:
    found = compared(pods, BEGAN, ENDED)
    assert found.same_share == same
    assert (found.recorded.longest_wait, found.replayed.longest_wait) == waits
    assert (found.recorded.mean_pending, found.replayed.mean_pending) == pending


def test_the_curve_tells_how_many_were_pending_when() -> None:
    found = compared([_pod(10, ("a", 20), ("", None))], BEGAN, ENDED)
    assert found.recorded.pending == (0,) * 10 + (1,) * 10 + (0,) * 41
    assert found.replayed.pending == (0,) * 10 + (1,) * 51
